/* `rollcall check --state URL`: verifies the invariants on a live Redis. */
#ifndef ROLLCALL_APP_COMMANDS_CHECK_COMMAND_H
#define ROLLCALL_APP_COMMANDS_CHECK_COMMAND_H

/* argv[0] is "check". Returns the exit status: 0 when all hold, 1 when some do not (each is named on standard
 * output), 2 when that could not be found out, or after wrong arguments (standard error says why). */
int check_command(int argc, char **argv);

#endif
