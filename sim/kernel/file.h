/*
 * Small files on the disks of simulated machines: what is below /sim/. Key files are read from there, and a ledger keeps its
 * lock there. A file survives the processes that use it. (SQLite's own files: disk/disk.h.)
 */
#ifndef ROLLCALL_SIM_KERNEL_FILE_H
#define ROLLCALL_SIM_KERNEL_FILE_H

#include "base/slice.h"
#include "kernel/kernel.h"

/* Creates or replaces a file. */
void file_write(struct machine *machine, const char *path, struct slice content);
void file_remove_all(struct machine *machine);

#endif
