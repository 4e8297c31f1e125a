/*
 * `rollcall ledger`: the ledger as a process of its own, for gateways with --ledger remote://.
 *
 *   SIGTERM, SIGINT   refuses new requests, answers pending ones, exits with 0; a second one exits at once
 */
#ifndef ROLLCALL_APP_COMMANDS_LEDGER_COMMAND_H
#define ROLLCALL_APP_COMMANDS_LEDGER_COMMAND_H

/* argv[0] is "ledger". Returns the exit status: 0 after a drain, 1 if it cannot run, 2 for wrong arguments;
 * standard error says why. */
int ledger_command(int argc, char **argv);

#endif
