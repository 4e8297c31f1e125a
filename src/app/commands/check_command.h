/* `rollcall check --state URL`: verifies the invariants on a live Redis. */
#ifndef ROLLCALL_APP_COMMANDS_CHECK_COMMAND_H
#define ROLLCALL_APP_COMMANDS_CHECK_COMMAND_H

/* argv[0] is "check". Returns the exit status: 0 if all invariants hold, 1 if some do not (each is named on
 * standard output), 2 if they could not be checked or the arguments are wrong (standard error says why). */
int check_command(int argc, char **argv);

#endif
