/*
 * A worker is a thread of the SQLite ledger with a connection of its own: the writer, or a reader.
 * It takes requests from a queue, carries them out and gives them back, until the queue is closed
 * and empty. What it does when the store fails stands in sqlite_ledger.h.
 *
 * The thread owns everything in here from start to stop. It reads the system's clock itself, as a
 * thread outside the loops may.
 */
#ifndef ROLLCALL_LEDGER_SQLITE_SQLITE_WORKER_H
#define ROLLCALL_LEDGER_SQLITE_SQLITE_WORKER_H

#include "ledger/ledger_request_queue.h"
#include "ledger/sqlite/database.h"

#include <pthread.h>

/* Borrowed for the workers' life. */
struct sqlite_worker_setup {
    const char *path;
    const char *vfs;
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

/* Opens the connection, brings the schema up to date, starts the thread. False: `error` says why.
 */
bool sqlite_worker_start_writer(struct sqlite_worker *worker,
                                const struct sqlite_worker_setup *setup,
                                struct ledger_request_queue *queue, char *error,
                                size_t error_bytes);

/* Opens the connection and starts the thread; after the writer. */
bool sqlite_worker_start_reader(struct sqlite_worker *worker,
                                const struct sqlite_worker_setup *setup,
                                struct ledger_request_queue *queue, char *error,
                                size_t error_bytes);

/* Waits for the thread to finish its (closed) queue and closes the connection. Harmless for a
 * worker that never started. */
void sqlite_worker_stop(struct sqlite_worker *worker);

/* ---- for the two kinds of worker (sqlite_writer.c, sqlite_reader.c) ---- */

uint64_t sqlite_worker_now_us(void);

/* The connection, made anew if it was lost and enough time has passed; false while it is not to be
 * had. Clears an old failure. */
bool sqlite_worker_ready(struct sqlite_worker *worker);

/* After a failure: notes it, and drops the connection if it will not recover by itself. */
void sqlite_worker_failed(struct sqlite_worker *worker);

/* What the threads run; the argument is the worker. */
void *sqlite_writer_main(void *arg);
void *sqlite_reader_main(void *arg);

#endif
