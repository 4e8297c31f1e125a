/* `rollcall key`: makes, lists and revokes API keys. */
#ifndef ROLLCALL_APP_COMMANDS_KEY_COMMAND_H
#define ROLLCALL_APP_COMMANDS_KEY_COMMAND_H

/* argv[0] is "key". Returns the exit status: 0, 1 on failure, 2 for wrong arguments. */
int key_command(int argc, char **argv);

#endif
