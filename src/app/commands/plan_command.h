/* `rollcall plan`: how many edges, aggregators and Redis nodes a number of users needs (plan/plan.h). */
#ifndef ROLLCALL_APP_COMMANDS_PLAN_COMMAND_H
#define ROLLCALL_APP_COMMANDS_PLAN_COMMAND_H

/* argv[0] is "plan". Returns the exit status: 0, 1 if the costs cannot be read or the output not be written, 2 for wrong
 * arguments. */
int plan_command(int argc, char **argv);

#endif
