/*
 * `rollcall ledger`: the durability plane as a process of its own, for gateways with --ledger remote://.
 *
 *   SIGTERM, SIGINT   take no more, answer what was taken, exit 0; a second one exits at once
 */
#ifndef ROLLCALL_APP_COMMANDS_LEDGER_COMMAND_H
#define ROLLCALL_APP_COMMANDS_LEDGER_COMMAND_H

/* argv[0] is "ledger". Returns the exit status: 0 after a drain, 1 when it cannot run, 2 after wrong
 * arguments; standard error says why. */
int ledger_command(int argc, char **argv);

#endif
