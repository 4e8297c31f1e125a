/* `rollcall dead-letters --ledger URL | --feed URL [list | replay ID]`: events that could not be fanned out. */
#ifndef ROLLCALL_APP_COMMANDS_DEAD_LETTERS_COMMAND_H
#define ROLLCALL_APP_COMMANDS_DEAD_LETTERS_COMMAND_H

/* argv[0] is "dead-letters". Returns the exit status: 0, 1 on failure, 2 for wrong arguments. */
int dead_letters_command(int argc, char **argv);

#endif
