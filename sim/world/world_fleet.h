/*
 * The servers of a simulated world: gateways, the ledger, Redis, and aggregators if there are any, each on a machine of its own.
 */
#ifndef ROLLCALL_SIM_WORLD_WORLD_FLEET_H
#define ROLLCALL_SIM_WORLD_WORLD_FLEET_H

#include "world/world.h"

#define WORLD_TOKEN_SECRET "a secret of the simulation, known to all"

/* A machine on the network of the servers. */
struct machine *world_make_machine(const char *name, uint32_t address);

/* The kinds of faults that can happen to it, as bits. */
unsigned world_fleet_faults(const struct world_fleet *fleet);

/* Draws what the options leave open, makes all servers and starts them. */
void world_fleet_make(struct world *world);

/* All end at once. */
void world_fleet_crash(struct world *world);

#endif
