/*
 * The disk of a simulated machine, for SQLite: its default file layer. Files live in memory and survive crashes of
 * processes. Of what was written and not synced, a loss of power undoes a part that is drawn from the seed.
 */
#ifndef ROLLCALL_SIM_DISK_DISK_H
#define ROLLCALL_SIM_DISK_DISK_H

#include "kernel/kernel.h"

/* Registers the layer as SQLite's default. Once per program. */
void disk_register(void);

/* The process has ended: closes its connections without writing, and gives up their locks. `lost_power`: also undoes
 * unsynced writes. */
void disk_release(struct process *process, bool lost_power);

/* While set, writes and syncs fail with this code of SQLite. 0: they succeed. */
void disk_fail(int code);

/* Frees all files. No process may use one. */
void disk_clear(void);

#endif
