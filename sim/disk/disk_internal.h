/* The parts of the simulated disk: disk.c has files and connections, disk_locks.c locks and shared memory. */
#ifndef ROLLCALL_SIM_DISK_DISK_INTERNAL_H
#define ROLLCALL_SIM_DISK_DISK_INTERNAL_H

#include "kernel/kernel.h"

#include <sqlite3.h>

enum { DISK_PATH_BYTES = 128, DISK_REGIONS_MAX = 64 };

/* What a write replaced. */
struct disk_undo {
    struct disk_undo *next;
    size_t at;
    size_t bytes;
    size_t file_bytes;
    char data[];
};

struct disk_file {
    struct list place;
    char path[DISK_PATH_BYTES];
    const struct machine *machine;
    char *data;
    size_t bytes;
    size_t capacity;
    struct disk_undo *undo; /* since the last sync, newest first */
    /* locks of the database file */
    unsigned shared;
    struct disk_handle *reserved;
    struct disk_handle *exclusive;
    /* shared memory of its write-ahead log */
    unsigned region_users;
    void *regions[DISK_REGIONS_MAX];
    unsigned region_shared[SQLITE_SHM_NLOCK];
    struct disk_handle *region_exclusive[SQLITE_SHM_NLOCK];
};

struct disk_handle {
    sqlite3_file base;
    struct disk_file *file;
    struct process *process;
    int lock; /* SQLITE_LOCK_… */
    bool uses_regions;
    unsigned region_shared; /* bits */
    bool is_temporary;
    bool is_dead; /* its process has crashed */
};

struct disk {
    struct list files;
    struct list connections;
    int failure;
    unsigned temporary_count;
};

extern struct disk disk;

int disk_take_lock(sqlite3_file *handle, int level);
int disk_lower_lock(sqlite3_file *handle, int level);
int disk_check_reserved(sqlite3_file *handle, int *out);
void disk_unlock(struct disk_handle *handle);

int disk_map_region(sqlite3_file *handle, int region, int bytes, int extend, void volatile **out);
int disk_lock_region(sqlite3_file *handle, int offset, int count, int flags);
void disk_region_barrier(sqlite3_file *handle);
int disk_unmap_regions(sqlite3_file *handle, int remove);
void disk_leave_regions(struct disk_handle *handle);
void disk_free_regions(struct disk_file *file);

#endif
