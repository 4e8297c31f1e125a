/*
 * The embedded backend of the ledger: one SQLite file, one thread that writes, a few that read.
 *
 *     workers ──submit──▶ write queue ──▶ writer: BEGIN, many requests, COMMIT ──▶ post
 *                    └──▶ read queue ───▶ readers: a snapshot per request ─────▶ post
 *
 * Group commit: the writer takes what waits, runs it, looks again for GROUP_WINDOW_US at most or
 * until nothing waits, and commits once; while the disk is busy with that, the next group gathers.
 * Each request has a savepoint, so that one that fails does not take the others along. Nothing is
 * answered before its commit has returned.
 *
 * When the store fails, the requests at hand are answered UNAVAILABLE and the cause is logged. A
 * connection whose file was damaged or has become unusable is opened anew with the next request, at
 * most once in REOPEN_INTERVAL_MS; nothing needs a restart.
 *
 * The log is moved into the file (checkpoint) by the writer, after its answers have gone out.
 */
#ifndef ROLLCALL_LEDGER_SQLITE_SQLITE_LEDGER_H
#define ROLLCALL_LEDGER_SQLITE_SQLITE_LEDGER_H

#include "ledger/ledger.h"

enum {
    SQLITE_LEDGER_READERS = 2,
    SQLITE_LEDGER_GROUP_WINDOW_US = 2000,
    SQLITE_LEDGER_GROUP_MAX = 1024,             /* requests in one transaction */
    SQLITE_LEDGER_CHECKPOINT_PAGES = 2000,      /* length of the log that is worth a checkpoint */
    SQLITE_LEDGER_CHECKPOINT_PAGES_MAX = 16000, /* from here on it waits for the readers */
    SQLITE_LEDGER_REOPEN_INTERVAL_MS = 250,
    SQLITE_LEDGER_ERROR_BYTES = 512,
};

struct sqlite_ledger_options {
    size_t queue_max; /* of each queue; 0: LEDGER_QUEUE_MAX */
    const char *vfs;  /* SQLite's file layer, NULL: the usual one. Tests put a faulty one here. */
};

struct sqlite_ledger_error {
    char text[SQLITE_LEDGER_ERROR_BYTES];
};

/* Opens (or makes) the file, brings its schema up to date and starts the threads. `options` may be
 * NULL. NULL when the file is unusable, from a newer program or in use: `error` says so. End it
 * with ledger_close(). */
struct ledger *sqlite_ledger_open(const char *path, const struct sqlite_ledger_options *options,
                                  struct sqlite_ledger_error *error);

#endif
