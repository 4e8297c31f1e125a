/*
 * A worker is a thread of the SQLite ledger with a connection of its own: the writer, or a reader. It
 * takes requests from a queue, executes them and finishes them, until the queue is closed and empty.
 * sqlite_ledger.h describes what it does when the store fails.
 *
 * The thread owns the whole struct from start to stop.
 */
#ifndef ROLLCALL_LEDGER_SQLITE_SQLITE_WORKER_H
#define ROLLCALL_LEDGER_SQLITE_SQLITE_WORKER_H

#include "ledger/ledger_request_queue.h"
#include "ledger/sqlite/database.h"
#include "ledger/sqlite/sqlite_ledger.h"

#include <pthread.h>

/* Borrowed for the lives of the workers. */
struct sqlite_worker_setup {
    const char *path;
    const char *vfs;
    sqlite_ledger_clock now_us;
    struct ledger_metrics *metrics;
};

struct sqlite_worker {
    struct sqlite_worker_setup setup;
    struct database database;
    enum database_mode mode;
    struct ledger_request_queue *queue;
    uint64_t reopen_after_us; /* while the database is closed */
    pthread_t thread;
    bool running;
};

/* Opens the connection and starts the thread. The writer also migrates the schema and starts before the
 * readers. Returns false with a reason in `error`. */
bool sqlite_worker_start(struct sqlite_worker *worker, const struct sqlite_worker_setup *setup,
                         enum database_mode mode, struct ledger_request_queue *queue,
                         struct sqlite_ledger_error *error);

/* Waits for the thread to finish its (closed) queue and closes the connection. Does nothing for a worker
 * that never started. */
void sqlite_worker_stop(struct sqlite_worker *worker);

/* ---- for the two kinds of worker (sqlite_writer.c, sqlite_reader.c) ---- */

/* Clears an old failure and reopens a lost connection if enough time has passed. Returns false while there
 * is no connection. */
bool sqlite_worker_ready(struct sqlite_worker *worker);

/* Records a failure, and closes the connection if it cannot recover by itself. */
void sqlite_worker_failed(struct sqlite_worker *worker);

/* The threads' main functions; the argument is the worker. */
void *sqlite_writer_main(void *arg);
void *sqlite_reader_main(void *arg);

#endif
