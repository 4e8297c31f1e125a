/*
 * People who change their privacy while the world runs, over REST: they hide and show themselves, block and unblock contacts,
 * and become contacts again. The population knows what the fleet has confirmed.
 */
#ifndef ROLLCALL_SIM_PROCESSES_SETTINGS_PROCESS_H
#define ROLLCALL_SIM_PROCESSES_SETTINGS_PROCESS_H

struct machine;
struct world;

/* Ends by itself in the quiet period. */
void settings_process_start(struct world *world, struct machine *machine);

#endif
