#include "ledger/sqlite/sqlite_worker.h"

#include "ledger/sqlite/sqlite_ledger.h"
#include "ledger/sqlite/sqlite_schema.h"
#include "log/log.h"

#include <signal.h>
#include <stdio.h>
#include <time.h>

uint64_t sqlite_worker_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* ---- the connection ---- */

static bool open_database(struct sqlite_worker *worker)
{
    struct database *database = &worker->database;
    if (!database_open(database, worker->setup.path, worker->mode, worker->setup.vfs))
        return false;
    if (worker->mode == DATABASE_READER || sqlite_schema_migrate(database))
        return true;
    database_close(database);
    return false;
}

bool sqlite_worker_ready(struct sqlite_worker *worker)
{
    struct database *database = &worker->database;
    database_clear_failure(database);
    if (database->handle)
        return true;
    uint64_t now_us = sqlite_worker_now_us();
    if (now_us < worker->reopen_after_us)
        return false;
    worker->reopen_after_us = now_us + SQLITE_LEDGER_REOPEN_INTERVAL_MS * 1000;
    ledger_count(&worker->setup.metrics->reopens);
    if (open_database(worker)) {
        log_info("ledger_reopened", "writer=%d", worker->mode == DATABASE_WRITER);
        return true;
    }
    log_error("ledger_reopen_failed", "error=%s", log_sentence(slice_of(database->failure_text)));
    return false;
}

void sqlite_worker_failed(struct sqlite_worker *worker)
{
    struct database *database = &worker->database;
    if (worker->mode == DATABASE_WRITER)
        atomic_store_explicit(&worker->setup.metrics->available, false, memory_order_relaxed);
    if (!database->handle || !database_needs_reopening(database->failure))
        return;
    log_error("ledger_connection_dropped", "writer=%d error=%s", worker->mode == DATABASE_WRITER,
              log_sentence(slice_of(database->failure_text)));
    database_close(database);
}

/* ---- the thread ---- */

/* Signals are for the main thread. */
static bool start_thread(struct sqlite_worker *worker, void *(*main)(void *))
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    worker->running = pthread_create(&worker->thread, NULL, main, worker) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return worker->running;
}

static bool start(struct sqlite_worker *worker, void *(*main)(void *), char *error,
                  size_t error_bytes)
{
    if (!open_database(worker)) {
        snprintf(error, error_bytes, "%s: %s", worker->setup.path, worker->database.failure_text);
        return false;
    }
    if (start_thread(worker, main))
        return true;
    snprintf(error, error_bytes, "cannot start a thread");
    return false;
}

bool sqlite_worker_start_writer(struct sqlite_worker *worker,
                                const struct sqlite_worker_setup *setup,
                                struct ledger_request_queue *queue, char *error, size_t error_bytes)
{
    *worker = (struct sqlite_worker){.setup = *setup, .mode = DATABASE_WRITER, .queue = queue};
    return start(worker, sqlite_writer_main, error, error_bytes);
}

bool sqlite_worker_start_reader(struct sqlite_worker *worker,
                                const struct sqlite_worker_setup *setup,
                                struct ledger_request_queue *queue, char *error, size_t error_bytes)
{
    *worker = (struct sqlite_worker){.setup = *setup, .mode = DATABASE_READER, .queue = queue};
    return start(worker, sqlite_reader_main, error, error_bytes);
}

void sqlite_worker_stop(struct sqlite_worker *worker)
{
    if (worker->running)
        pthread_join(worker->thread, NULL);
    worker->running = false;
    database_close(&worker->database);
}
