/*
 * A user's device as a simulated process: the C client library (clients/c), unchanged, and an application that follows a
 * chat, watches contacts, sends, goes idle, types, and ends and comes back, as its chance says.
 */
#ifndef ROLLCALL_SIM_PROCESSES_DEVICE_PROCESS_H
#define ROLLCALL_SIM_PROCESSES_DEVICE_PROCESS_H

#include "world/population.h"

struct world;

/* Connects for the first time, or again, after a while that is drawn, at most `within_us`. */
void device_start_within(struct world *world, struct device *device, int64_t within_us);

/* `lost_power`: the other side hears nothing. */
void device_crash(struct device *device, bool lost_power);

#endif
