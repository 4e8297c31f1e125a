#include "ledger/sqlite/sqlite_thread.h"

#include "ledger/sqlite/sqlite_schema.h"
#include "log/log.h"

#include <signal.h>
#include <stdio.h>

/* ---- the connection ---- */

static bool open_thread_database(struct sqlite_thread *thread)
{
    struct database *database = &thread->database;
    if (!database_open(database, thread->setup.path, thread->mode, thread->setup.vfs))
        return false;
    if (thread->mode == DATABASE_READER || sqlite_schema_migrate(database))
        return true;
    database_close(database);
    return false;
}

bool sqlite_thread_ready(struct sqlite_thread *thread)
{
    struct database *database = &thread->database;
    database_clear_failure(database);
    if (database->handle)
        return true;
    uint64_t now_us = thread->setup.now_us();
    if (now_us < thread->reopen_after_us)
        return false;
    thread->reopen_after_us = now_us + SQLITE_LEDGER_REOPEN_INTERVAL_MS * 1000;
    ledger_count(&thread->setup.metrics->reopens);
    if (open_thread_database(thread)) {
        log_info("ledger_reopened", "writer=%d", thread->mode == DATABASE_WRITER);
        return true;
    }
    log_error("ledger_reopen_failed", "error=%s", log_sentence(slice_of(database->failure_text)));
    return false;
}

void sqlite_thread_failed(struct sqlite_thread *thread)
{
    struct database *database = &thread->database;
    if (thread->mode == DATABASE_WRITER)
        atomic_store_explicit(&thread->setup.metrics->available, false, memory_order_relaxed);
    if (!database->handle || !database_needs_reopening(database->failure))
        return;
    log_error("ledger_connection_dropped", "writer=%d error=%s", thread->mode == DATABASE_WRITER,
              log_sentence(slice_of(database->failure_text)));
    database_close(database);
}

/* ---- the thread ---- */

static const char *advise_on_failure(int failure)
{
    switch (failure) {
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
        return ": the user that runs rollcall needs write access to the file and its folder; or name "
               "another place with --ledger sqlite:PATH (ledger.url)";
    case SQLITE_FULL:
        return ": make space on the disk";
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
        return ": it is no ledger, or it is damaged: name another file with --ledger sqlite:PATH "
               "(ledger.url), or restore a backup";
    default:
        return "";
    }
}

bool sqlite_thread_start(struct sqlite_thread *thread, const struct sqlite_thread_setup *setup,
                         enum database_mode mode, struct ledger_request_queue *queue,
                         struct sqlite_ledger_error *error)
{
    *thread = (struct sqlite_thread){.setup = *setup, .mode = mode, .queue = queue};
    if (!open_thread_database(thread) ||
        (mode == DATABASE_WRITER && !sqlite_schema_try_write(&thread->database))) {
        snprintf(error->text, sizeof(error->text), "%s: %s%s", setup->path,
                 thread->database.failure_text, advise_on_failure(thread->database.failure));
        return false;
    }
    /* The thread starts with all signals blocked: the main thread handles them. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread->running =
        pthread_create(&thread->id, NULL,
                       mode == DATABASE_WRITER ? sqlite_writer_main : sqlite_reader_main,
                       thread) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!thread->running)
        snprintf(error->text, sizeof(error->text), "cannot start a thread");
    return thread->running;
}

void sqlite_thread_stop(struct sqlite_thread *thread)
{
    if (thread->running)
        pthread_join(thread->id, NULL);
    thread->running = false;
    database_close(&thread->database);
}
