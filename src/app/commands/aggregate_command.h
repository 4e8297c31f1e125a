/*
 * `rollcall aggregate`: holds the connections to Redis for gateways with --aggregators. It has no clients.
 *
 *   SIGTERM, SIGINT   says to all gateways that it leaves, so that they use others; answers what is under way and exits
 *                     with 0; a second one exits at once
 *
 * One thread: an installation runs as many as it has cores for them. /readyz answers 200 while Redis answers.
 */
#ifndef ROLLCALL_APP_COMMANDS_AGGREGATE_COMMAND_H
#define ROLLCALL_APP_COMMANDS_AGGREGATE_COMMAND_H

/* argv[0] is "aggregate". Returns the exit status: 0 after a drain, 1 if it cannot run, 2 for wrong arguments;
 * standard error says why. */
int aggregate_command(int argc, char **argv);

#endif
