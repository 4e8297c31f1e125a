/* `rollcall repair --ledger URL [--dry-run] CHAT`: restores the counter of a halted chat. */
#ifndef ROLLCALL_APP_COMMANDS_REPAIR_COMMAND_H
#define ROLLCALL_APP_COMMANDS_REPAIR_COMMAND_H

/* argv[0] is "repair". Returns the exit status: 0 if the chat is (or would be) in order afterwards, 1 on
 * failure, 2 for wrong arguments. */
int repair_command(int argc, char **argv);

#endif
