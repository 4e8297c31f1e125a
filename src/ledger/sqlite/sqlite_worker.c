#include "ledger/sqlite/sqlite_worker.h"

#include "ledger/sqlite/sqlite_schema.h"
#include "log/log.h"

#include <signal.h>
#include <stdio.h>

/* ---- the connection ---- */

static bool open_worker_database(struct sqlite_worker *worker)
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
    uint64_t now_us = worker->setup.now_us();
    if (now_us < worker->reopen_after_us)
        return false;
    worker->reopen_after_us = now_us + SQLITE_LEDGER_REOPEN_INTERVAL_MS * 1000;
    ledger_count(&worker->setup.metrics->reopens);
    if (open_worker_database(worker)) {
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

bool sqlite_worker_start(struct sqlite_worker *worker, const struct sqlite_worker_setup *setup,
                         enum database_mode mode, struct ledger_request_queue *queue,
                         struct sqlite_ledger_error *error)
{
    *worker = (struct sqlite_worker){.setup = *setup, .mode = mode, .queue = queue};
    if (!open_worker_database(worker)) {
        snprintf(error->text, sizeof(error->text), "%s: %s", setup->path,
                 worker->database.failure_text);
        return false;
    }
    /* The thread starts with all signals blocked: the main thread handles them. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    worker->running =
        pthread_create(&worker->thread, NULL,
                       mode == DATABASE_WRITER ? sqlite_writer_main : sqlite_reader_main,
                       worker) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!worker->running)
        snprintf(error->text, sizeof(error->text), "cannot start a thread");
    return worker->running;
}

void sqlite_worker_stop(struct sqlite_worker *worker)
{
    if (worker->running)
        pthread_join(worker->thread, NULL);
    worker->running = false;
    database_close(&worker->database);
}
