/* `rollcall repair --ledger URL [--dry-run] CHAT`: restores the counter of a halted chat. */
#ifndef ROLLCALL_APP_COMMANDS_REPAIR_COMMAND_H
#define ROLLCALL_APP_COMMANDS_REPAIR_COMMAND_H

/* argv[0] is "repair". Returns the exit status: 0 when the chat is (or would be) in order afterwards, 1
 * when that failed, 2 after wrong arguments. */
int repair_command(int argc, char **argv);

#endif
