/*
 * A thread of the SQLite ledger with a connection of its own: the writer, or a reader. It
 * takes requests from a queue, executes them and finishes them, until the queue is closed and empty.
 * sqlite_ledger.h describes what it does when the store fails.
 *
 * The thread owns the whole struct from start to stop.
 */
#ifndef ROLLCALL_LEDGER_SQLITE_SQLITE_THREAD_H
#define ROLLCALL_LEDGER_SQLITE_SQLITE_THREAD_H

#include "ledger/ledger_request_queue.h"
#include "ledger/sqlite/database.h"
#include "ledger/sqlite/sqlite_ledger.h"

#include <pthread.h>

/* Borrowed for the lives of the threads. */
struct sqlite_thread_setup {
    const char *path;
    const char *vfs;
    sqlite_ledger_clock now_us;
    struct ledger_metrics *metrics;
};

struct sqlite_thread {
    struct sqlite_thread_setup setup;
    struct database database;
    enum database_mode mode;
    struct ledger_request_queue *queue;
    uint64_t reopen_after_us; /* while the database is closed */
    bool abandons_drafts;     /* the writer's: the next group first abandons all drafts */
    bool clears_drafts;       /* the writer's: there may be abandoned drafts */
    bool imports;             /* the writer's: the last group changed many relations */
    pthread_t id;
    bool running;
};

/* Opens the connection and starts the thread. The writer also migrates the schema and starts before the
 * readers. Returns false with a reason in `error`. */
bool sqlite_thread_start(struct sqlite_thread *thread, const struct sqlite_thread_setup *setup,
                         enum database_mode mode, struct ledger_request_queue *queue,
                         struct sqlite_ledger_error *error);

/* Waits for the thread to finish its (closed) queue and closes the connection. Does nothing for a thread
 * that never started. */
void sqlite_thread_stop(struct sqlite_thread *thread);

/* ---- for the two kinds of thread (sqlite_writer.c, sqlite_reader.c) ---- */

/* Clears an old failure and reopens a lost connection if enough time has passed. Returns false while there
 * is no connection. */
bool sqlite_thread_ready(struct sqlite_thread *thread);

/* Records a failure, and closes the connection if it cannot recover by itself. */
void sqlite_thread_failed(struct sqlite_thread *thread);

/* The threads' main functions; the argument is the struct. */
void *sqlite_writer_main(void *arg);
void *sqlite_reader_main(void *arg);

#endif
