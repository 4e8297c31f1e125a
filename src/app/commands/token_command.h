/* `rollcall token`: prints signed tokens for development and tests. */
#ifndef ROLLCALL_APP_COMMANDS_TOKEN_COMMAND_H
#define ROLLCALL_APP_COMMANDS_TOKEN_COMMAND_H

/* argv[0] is "token". Returns the exit status: 0, 1 on failure, 2 for wrong arguments. Prints tokens to standard
 * output and everything else to standard error. */
int token_command(int argc, char **argv);

#endif
