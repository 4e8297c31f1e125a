/*
 * A file layer for SQLite that fails on command: it passes everything on to the usual one, unless a
 * test has told it to refuse writes or syncs, or to hold syncs until it is told otherwise. Process-wide,
 * as SQLite's list of layers is; tests only.
 */
#ifndef ROLLCALL_LEDGER_SQLITE_SQLITE_TEST_VFS_H
#define ROLLCALL_LEDGER_SQLITE_SQLITE_TEST_VFS_H

#include <stdbool.h>

#define TEST_VFS_NAME "rollcall-test"

/* Makes the layer known under TEST_VFS_NAME. Once is enough. */
void test_vfs_register(void);

/* The SQLite code that the calls return from now on; SQLITE_OK passes them on again. */
void test_vfs_fail_writes(int code);
void test_vfs_fail_syncs(int code);
void test_vfs_fail_opens(int code);

/* While held, a sync does not return. */
void test_vfs_hold_syncs(bool hold);

#endif
