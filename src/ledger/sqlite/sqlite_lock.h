/*
 * One process per SQLite file. SQLite itself allows several, but then more than one connection would
 * write and checkpoint. The lock is flock(2) on `<path>.lock`, which the kernel drops however the process
 * ends. The file holds the process id of the holder, for people to read.
 */
#ifndef ROLLCALL_LEDGER_SQLITE_SQLITE_LOCK_H
#define ROLLCALL_LEDGER_SQLITE_SQLITE_LOCK_H

#include <stddef.h>

/* Returns the descriptor that holds the lock, or -1 with a reason in `error`. */
int sqlite_lock_take(const char *path, char *error, size_t error_bytes);

void sqlite_lock_release(int *lock);

#endif
