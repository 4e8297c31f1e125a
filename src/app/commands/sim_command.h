/* `rollcall sim`: the simulator is a program of its own, which lies beside this one. */
#ifndef ROLLCALL_APP_COMMANDS_SIM_COMMAND_H
#define ROLLCALL_APP_COMMANDS_SIM_COMMAND_H

/* argv[0] is "sim". Returns only if there is no simulator: the exit status. */
int sim_command(int argc, char **argv);

#endif
