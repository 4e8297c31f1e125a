/*
 * `rollcall fanout`: the fan-out plane as a process of its own, for gateways with --feed kafka://. It has no clients.
 *
 *   SIGTERM, SIGINT   stops consuming, finishes what is under way, commits, leaves the group and exits with 0; a second
 *                     one exits at once
 */
#ifndef ROLLCALL_APP_COMMANDS_FANOUT_COMMAND_H
#define ROLLCALL_APP_COMMANDS_FANOUT_COMMAND_H

/* argv[0] is "fanout". Returns the exit status: 0 after a drain, 1 if it cannot run, 2 for wrong arguments;
 * standard error says why. */
int fanout_command(int argc, char **argv);

#endif
