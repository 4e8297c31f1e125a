/* `rollcall webhooks list | replay [ID…]`: dead letters among the events for the application. */
#ifndef ROLLCALL_APP_COMMANDS_WEBHOOKS_COMMAND_H
#define ROLLCALL_APP_COMMANDS_WEBHOOKS_COMMAND_H

/* argv[0] is "webhooks". Returns the exit status: 0, 1 on failure, 2 for wrong arguments. */
int webhooks_command(int argc, char **argv);

#endif
