/* `rollcall tables create|check|template`: the tables of a ledger on DynamoDB. */
#ifndef ROLLCALL_APP_COMMANDS_TABLES_COMMAND_H
#define ROLLCALL_APP_COMMANDS_TABLES_COMMAND_H

/* argv[0] is "tables". Returns the exit status: 0 if the tables are as described, 1 if not or on failure, 2 for wrong
 * arguments. */
int tables_command(int argc, char **argv);

#endif
