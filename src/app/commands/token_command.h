/* `rollcall token`: prints signed tokens for development and tests. */
#ifndef ROLLCALL_APP_COMMANDS_TOKEN_COMMAND_H
#define ROLLCALL_APP_COMMANDS_TOKEN_COMMAND_H

/* `argv[0]` is the command's own name. Returns the exit status: 0, 1 when it failed, 2 when it was
 * called wrongly. Tokens go to stdout, everything else to stderr. */
int token_command(int argc, char **argv);

#endif
