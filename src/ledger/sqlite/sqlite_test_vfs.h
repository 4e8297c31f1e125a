/*
 * A file layer for SQLite that fails on command, for tests. It forwards everything to the default layer,
 * unless a test makes it refuse writes, syncs or opens, hold syncs, or skip sleeps. Its state is
 * process-wide, as SQLite's list of layers is.
 */
#ifndef ROLLCALL_LEDGER_SQLITE_SQLITE_TEST_VFS_H
#define ROLLCALL_LEDGER_SQLITE_SQLITE_TEST_VFS_H

#include <stdbool.h>
#include <stdint.h>

#define TEST_VFS_NAME "rollcall-test"

enum { TEST_VFS_PATIENCE_SECONDS = 60 };

/* Registers the layer under TEST_VFS_NAME. Registering again does nothing. */
void test_vfs_register(void);

/* Set the SQLite code with which writes, syncs or opens fail; SQLITE_OK forwards them again. */
void test_vfs_fail_writes(int code);
void test_vfs_fail_syncs(int code);
void test_vfs_fail_opens(int code);

/* While set, SQLite's waits for a lock return at once. Setting it starts a new count of the skipped time. */
void test_vfs_skip_sleeps(bool skip);
int64_t test_vfs_skipped_us(void);

/* While held, a sync does not return. */
void test_vfs_hold_syncs(bool hold);

/* Lets the held sync return and waits until the next one is held. Returns false after TEST_VFS_PATIENCE_SECONDS. */
bool test_vfs_step_sync(void);

/* Waits until a sync is being held. Returns false after TEST_VFS_PATIENCE_SECONDS. */
bool test_vfs_await_held_sync(void);

#endif
