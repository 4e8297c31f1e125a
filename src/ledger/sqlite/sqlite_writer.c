/* The writing thread: groups of requests, one transaction and one wait for the disk each. */
#include "ledger/sqlite/sqlite_ledger.h"
#include "ledger/sqlite/sqlite_operations.h"
#include "ledger/sqlite/sqlite_worker.h"
#include "log/log.h"

#include <assert.h>

/* The requests of one transaction, in order. */
struct group {
    struct ledger_request *first;
    struct ledger_request **last_next;
    size_t count;
    bool lost; /* SQLite failed in it: nothing of it may be answered OK */
};

static const char BEGIN[] = "BEGIN IMMEDIATE";
static const char COMMIT[] = "COMMIT";
static const char SAVEPOINT[] = "SAVEPOINT request";
static const char UNDO[] = "ROLLBACK TO request";
static const char RELEASE[] = "RELEASE request";

static void group_add(struct group *group, struct ledger_request *request)
{
    request->next = NULL;
    *group->last_next = request;
    group->last_next = &request->next;
    group->count++;
}

static void group_fail(struct group *group)
{
    for (struct ledger_request *request = group->first; request; request = request->next)
        ledger_request_fail(request, LEDGER_UNAVAILABLE);
}

/* ---- one request ---- */

/* A room that looks before it writes has nothing to undo when it refuses, and is spared the cost of a
 * savepoint. These find out only after they have written. */
static bool may_refuse_after_writing(const struct ledger_request *request)
{
    switch (request->operation) {
    case LEDGER_CONTACT_REQUEST_CREATE:
    case LEDGER_CONTACT_REQUEST_ACCEPT:
    case LEDGER_CHAT_CREATE:
        return true;
    default:
        return false;
    }
}

/* When SQLite itself fails, the whole group is given up: its callers ask again. */
static void execute(struct sqlite_worker *worker, struct group *group,
                    struct ledger_request *request)
{
    struct database *database = &worker->database;
    if (atomic_load_explicit(&request->abandoned, memory_order_relaxed)) {
        ledger_request_fail(request, LEDGER_TIMEOUT);
        return;
    }
    if (group->lost) {
        ledger_request_fail(request, LEDGER_UNAVAILABLE);
        return;
    }
    bool savepoint = may_refuse_after_writing(request);
    sqlite3_int64 changes = sqlite3_total_changes64(database->handle);
    if (savepoint)
        database_run(database, SAVEPOINT);
    bool keep = sqlite_rooms_execute(database, request);
    if (savepoint && !keep)
        database_run(database, UNDO);
    if (savepoint)
        database_run(database, RELEASE);
    assert(keep || savepoint || request->exhausted || database_failed(database) ||
           sqlite3_total_changes64(database->handle) == changes);
    bool half_done = !keep && !savepoint && request->exhausted;
    group->lost = database_failed(database) || half_done;
}

/* ---- one group ---- */

static void execute_chain(struct sqlite_worker *worker, struct group *group,
                          struct ledger_request *chain)
{
    while (chain) {
        struct ledger_request *next = chain->next;
        execute(worker, group, chain);
        group_add(group, chain);
        chain = next;
    }
}

static void execute_group(struct sqlite_worker *worker, struct group *group,
                          struct ledger_request *chain)
{
    uint64_t end_us = sqlite_worker_now_us() + SQLITE_LEDGER_GROUP_WINDOW_US;
    while (chain) {
        execute_chain(worker, group, chain);
        bool open = group->count < SQLITE_LEDGER_GROUP_MAX && sqlite_worker_now_us() < end_us;
        chain = open ? ledger_request_queue_try_take(worker->queue,
                                                     SQLITE_LEDGER_GROUP_MAX - group->count)
                     : NULL;
    }
}

static bool commit(struct sqlite_worker *worker, const struct group *group)
{
    struct database *database = &worker->database;
    struct ledger_metrics *metrics = worker->setup.metrics;
    uint64_t start_us = sqlite_worker_now_us();
    bool committed = !group->lost && database_run(database, COMMIT);
    if (!committed) {
        log_error("ledger_commit_failed", "requests=%zu error=%s", group->count,
                  log_sentence(slice_of(database->failure_text)));
        ledger_count(&metrics->commit_failures);
        if (!sqlite3_get_autocommit(database->handle))
            sqlite3_exec(database->handle, "ROLLBACK", NULL, NULL, NULL);
        return false;
    }
    ledger_count(&metrics->commits);
    ledger_histogram_add(&metrics->commit_us, sqlite_worker_now_us() - start_us);
    ledger_histogram_add(&metrics->group_requests, group->count);
    atomic_store_explicit(&metrics->available, true, memory_order_relaxed);
    return true;
}

static void count_answers(struct ledger_metrics *metrics, const struct group *group)
{
    uint64_t now_us = sqlite_worker_now_us();
    for (const struct ledger_request *request = group->first; request; request = request->next) {
        ledger_histogram_add(&metrics->write_us, now_us - request->submitted_us);
        if (request->operation != LEDGER_MESSAGE_APPEND)
            continue;
        if (request->outcome.any.status == LEDGER_HALTED)
            ledger_count(&metrics->halted_appends);
        if (request->outcome.any.status == LEDGER_OK)
            ledger_count(request->outcome.append.duplicate ? &metrics->duplicates
                                                           : &metrics->appends);
    }
}

static bool begin(struct sqlite_worker *worker)
{
    struct database *database = &worker->database;
    if (!sqlite_worker_ready(worker))
        return false;
    if (database_run(database, BEGIN))
        return true;
    log_error("ledger_begin_failed", "error=%s", log_sentence(slice_of(database->failure_text)));
    return false;
}

static void write_group(struct sqlite_worker *worker, struct ledger_request *chain)
{
    struct group group = {.last_next = &group.first};
    bool begun = begin(worker);
    group.lost = !begun;
    execute_group(worker, &group, chain);
    if (!begun || !commit(worker, &group)) {
        group_fail(&group);
        sqlite_worker_failed(worker);
    }
    count_answers(worker->setup.metrics, &group);
    ledger_request_finish(group.first);
}

/* ---- the thread ---- */

/* The log only starts over when no reader needs its end; until then what was moved already does not
 * count again. */
static void checkpoint_if_due(struct sqlite_worker *worker)
{
    struct database *database = &worker->database;
    if (database->wal_pages < database->wal_pages_moved)
        database->wal_pages_moved = 0;
    if (!database->handle ||
        database->wal_pages - database->wal_pages_moved < SQLITE_LEDGER_CHECKPOINT_PAGES)
        return;
    database_checkpoint(database, database->wal_pages > SQLITE_LEDGER_CHECKPOINT_PAGES_MAX);
    database->wal_pages_moved = database->wal_pages;
    ledger_count(&worker->setup.metrics->checkpoints);
    if (database_failed(database))
        sqlite_worker_failed(worker);
}

void *sqlite_writer_main(void *arg)
{
    struct sqlite_worker *worker = arg;
    struct ledger_request *chain;
    while ((chain = ledger_request_queue_take(worker->queue, SQLITE_LEDGER_GROUP_MAX))) {
        write_group(worker, chain);
        checkpoint_if_due(worker);
    }
    return NULL;
}
