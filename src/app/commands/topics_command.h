/* `rollcall topics create|check`: the topics of a feed on Kafka. */
#ifndef ROLLCALL_APP_COMMANDS_TOPICS_COMMAND_H
#define ROLLCALL_APP_COMMANDS_TOPICS_COMMAND_H

/* argv[0] is "topics". Returns the exit status: 0 if the topics can be used, 1 if not, 2 for wrong arguments. */
int topics_command(int argc, char **argv);

#endif
