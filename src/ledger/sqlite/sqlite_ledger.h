/*
 * The embedded backend of the ledger: one SQLite file, one writer thread and a few reader threads.
 *
 *     workers ──submit──▶ write queue ──▶ writer: BEGIN, many requests, COMMIT ──▶ post
 *                    └──▶ read queue ───▶ readers: one snapshot per request ────▶ post
 *
 * Group commit: the writer takes the waiting requests, executes them, keeps taking more until none wait
 * or GROUP_TIME_US has passed, and commits once. While the disk is busy with the commit, the next group
 * gathers. A request that may fail after it has written has a savepoint, so that its failure does not
 * undo the others. No request is answered before its commit has returned.
 *
 * Both queues are fair among users (ledger_request_queue.h). A write that names very many ids, such as a chat of
 * ten thousand members, is done in slices of SQLITE_LEDGER_SLICE_IDS, each in a group with what else waits. Until the
 * last slice is committed, nobody sees anything of it (sqlite_chat_drafts.h).
 *
 * When the store fails, the requests of the group are answered UNAVAILABLE and the cause is logged. The
 * next request reopens a connection whose file was damaged or has become unusable, at most once in
 * REOPEN_INTERVAL_MS. No failure needs a restart.
 *
 * The writer checkpoints the write-ahead log after it has posted its answers.
 */
#ifndef ROLLCALL_LEDGER_SQLITE_SQLITE_LEDGER_H
#define ROLLCALL_LEDGER_SQLITE_SQLITE_LEDGER_H

#include "ledger/ledger.h"

enum {
    SQLITE_LEDGER_READERS = 2,
    SQLITE_LEDGER_GROUP_TIME_US = 2000, /* a group takes no more requests after it */
    SQLITE_LEDGER_GROUP_MAX = 1024,     /* requests in one transaction */
    SQLITE_LEDGER_SLICE_IDS = 256,      /* a write that names more ids is done in slices */
    /* A log of this length is worth a checkpoint. SQLite's search in the log grows with its repeated pages, so that messages want a
     * short one; an import, which changes random pages, wants a long one. */
    SQLITE_LEDGER_CHECKPOINT_PAGES = 2000,
    SQLITE_LEDGER_CHECKPOINT_PAGES_IMPORT = 4000,
    SQLITE_LEDGER_CHECKPOINT_PAGES_MAX = 16000, /* beyond it, a checkpoint waits for the readers */
    SQLITE_LEDGER_REOPEN_INTERVAL_MS = 250,
    SQLITE_LEDGER_ERROR_BYTES = 512,
};

/* A monotonic clock in microseconds that any thread may read. */
typedef uint64_t (*sqlite_ledger_clock)(void);

struct sqlite_ledger_options {
    size_t queue_max; /* of each queue; 0: LEDGER_QUEUE_MAX */
    const char *vfs;  /* SQLite's file layer; NULL: its default. Tests pass a faulty one. */
    sqlite_ledger_clock now_us; /* NULL: the system's. Tests pass one that they control. */
};

struct sqlite_ledger_error {
    char text[SQLITE_LEDGER_ERROR_BYTES];
};

/* Opens or creates the file, migrates its schema and starts the threads. `options` may be NULL. Returns
 * NULL, with a reason in `error`, when the file is unusable, belongs to a newer program or is in use.
 * Close the ledger with ledger_close(). */
struct ledger *sqlite_ledger_open(const char *path, const struct sqlite_ledger_options *options,
                                  struct sqlite_ledger_error *error);

#endif
