/* The writer thread: it executes groups of requests, with one transaction and one disk sync per group. */
#include "ledger/sqlite/sqlite_chat_drafts.h"
#include "ledger/sqlite/sqlite_operations.h"
#include "ledger/sqlite/sqlite_thread.h"
#include "log/log.h"

#include <assert.h>

/* The requests of one transaction, in order. */
struct write_group {
    struct ledger_request *first;
    struct ledger_request **last_next;
    size_t count;
    bool lost; /* SQLite failed during it: none of its requests may be answered OK */
};

static const char BEGIN[] = "BEGIN IMMEDIATE";
static const char COMMIT[] = "COMMIT";
static const char SAVEPOINT[] = "SAVEPOINT request";
static const char UNDO[] = "ROLLBACK TO request";
static const char RELEASE[] = "RELEASE request";

/* ---- one request ---- */

/* Most operations check before they write, so they have nothing to undo when they fail and need no
 * savepoint. These may fail after they have written. */
static bool may_fail_after_writing(const struct ledger_request *request)
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

/* A request that is done in slices leaves a draft behind when it fails. */
static void abandon_request_draft(struct sqlite_thread *thread,
                                  const struct ledger_request *request)
{
    if (!request->draft)
        return;
    sqlite_chat_drafts_abandon(&thread->database, request->draft);
    thread->clears_drafts = true;
}

/* When SQLite itself fails, the whole group is lost, and its callers try again. */
static void execute_write(struct sqlite_thread *thread, struct write_group *group,
                          struct ledger_request *request)
{
    struct database *database = &thread->database;
    request->unfinished = false;
    if (!request->draft && atomic_load_explicit(&request->abandoned, memory_order_relaxed)) {
        ledger_request_fail(request, LEDGER_TIMEOUT);
        return;
    }
    if (group->lost) {
        ledger_request_fail(request, LEDGER_UNAVAILABLE);
        return;
    }
    bool savepoint = may_fail_after_writing(request);
    sqlite3_int64 changes = sqlite3_total_changes64(database->handle);
    if (savepoint)
        database_run(database, SAVEPOINT);
    bool keep = sqlite_operations_execute(database, request);
    if (savepoint && !keep)
        database_run(database, UNDO);
    if (savepoint)
        database_run(database, RELEASE);
    assert(keep || savepoint || request->exhausted || database_failed(database) ||
           sqlite3_total_changes64(database->handle) == changes);
    if (!keep)
        abandon_request_draft(thread, request);
    bool half_done = !keep && !savepoint && request->exhausted;
    group->lost = database_failed(database) || half_done;
}

/* ---- one group ---- */

/* Executes the chain and whatever else arrives within the group's time. */
static void execute_write_group(struct sqlite_thread *thread, struct write_group *group,
                                struct ledger_request *chain)
{
    uint64_t end_us = thread->setup.now_us() + SQLITE_LEDGER_GROUP_TIME_US;
    thread->imports = false;
    while (chain) {
        while (chain) {
            struct ledger_request *next = chain->next;
            thread->imports |= chain->operation == LEDGER_RELATIONS_CHANGE;
            execute_write(thread, group, chain);
            chain->next = NULL;
            *group->last_next = chain;
            group->last_next = &chain->next;
            group->count++;
            chain = next;
        }
        bool open = group->count < SQLITE_LEDGER_GROUP_MAX && thread->setup.now_us() < end_us;
        chain = open ? ledger_request_queue_try_take(thread->queue,
                                                     SQLITE_LEDGER_GROUP_MAX - group->count)
                     : NULL;
    }
}

static bool commit_write_group(struct sqlite_thread *thread, const struct write_group *group)
{
    struct database *database = &thread->database;
    struct ledger_metrics *metrics = thread->setup.metrics;
    uint64_t start_us = thread->setup.now_us();
    bool committed = !group->lost && database_run(database, COMMIT);
    if (!committed) {
        log_error("ledger_commit_failed", "requests=%zu error=%s", group->count,
                  log_sentence(slice_of(database->failure_text)));
        ledger_count(&metrics->commit_failures);
        sqlite_contact_space_forget(database->contact_space);
        if (!sqlite3_get_autocommit(database->handle))
            sqlite3_exec(database->handle, "ROLLBACK", NULL, NULL, NULL);
        return false;
    }
    ledger_count(&metrics->commits);
    ledger_histogram_add(&metrics->commit_us, thread->setup.now_us() - start_us);
    ledger_histogram_add(&metrics->group_requests, group->count);
    atomic_store_explicit(&metrics->available, true, memory_order_relaxed);
    return true;
}

static void count_group_answers(const struct sqlite_thread *thread, const struct write_group *group)
{
    struct ledger_metrics *metrics = thread->setup.metrics;
    uint64_t now_us = thread->setup.now_us();
    for (const struct ledger_request *request = group->first; request; request = request->next) {
        ledger_histogram_add(&metrics->write_us, now_us - request->submitted_us);
        if (request->operation != LEDGER_MESSAGE_APPEND)
            continue;
        if (request->outcome.any.status == LEDGER_HALTED) {
            ledger_count(&metrics->halted_appends);
            if (request->sequence_taken)
                ledger_count(&metrics->duplicate_sequences);
        }
        if (request->outcome.any.status == LEDGER_OK)
            ledger_count(request->outcome.append.duplicate ? &metrics->duplicates
                                                           : &metrics->appends);
    }
}

/* Puts the requests of which a part remains back into the queue. */
static void put_back_unfinished(struct sqlite_thread *thread, struct write_group *group)
{
    struct ledger_request **at = &group->first;
    while (*at) {
        struct ledger_request *request = *at, *next = request->next;
        if (request->unfinished && ledger_request_queue_put_back(thread->queue, request)) {
            *at = next;
            continue;
        }
        if (request->unfinished) {
            ledger_request_fail(request, LEDGER_UNAVAILABLE);
            thread->abandons_drafts |= request->draft != 0;
        }
        at = &request->next;
    }
}

static void fail_write_group(struct sqlite_thread *thread, struct write_group *group)
{
    for (struct ledger_request *request = group->first; request; request = request->next) {
        ledger_request_fail(request, LEDGER_UNAVAILABLE);
        request->unfinished = false;
    }
    thread->abandons_drafts = true;
    thread->clears_drafts = false; /* until a group succeeds again */
    sqlite_thread_failed(thread);
}

/* Does a part of the work that failed creations of chats have left. */
static void tidy_chat_drafts(struct sqlite_thread *thread)
{
    if (thread->abandons_drafts)
        sqlite_chat_drafts_abandon_all(&thread->database);
    if (thread->abandons_drafts || thread->clears_drafts)
        thread->clears_drafts = sqlite_chat_drafts_clear(&thread->database);
    thread->abandons_drafts = false;
}

static void run_write_group(struct sqlite_thread *thread, struct ledger_request *chain)
{
    struct database *database = &thread->database;
    struct write_group group = {.last_next = &group.first};
    bool ready = sqlite_thread_ready(thread);
    bool begun = ready && database_run(database, BEGIN);
    if (ready && !begun)
        log_error("ledger_begin_failed", "error=%s",
                  log_sentence(slice_of(database->failure_text)));
    if (begun)
        tidy_chat_drafts(thread);
    group.lost = !begun || database_failed(database);
    execute_write_group(thread, &group, chain);
    if (!begun || !commit_write_group(thread, &group))
        fail_write_group(thread, &group);
    put_back_unfinished(thread, &group);
    count_group_answers(thread, &group);
    ledger_request_finish(group.first);
}

/* ---- the thread ---- */

/* The log starts over only when no reader needs its end. Until then, pages that a checkpoint has already
 * moved do not count again. */
static void checkpoint_log_if_due(struct sqlite_thread *thread)
{
    struct database *database = &thread->database;
    int worth_pages =
        thread->imports ? SQLITE_LEDGER_CHECKPOINT_PAGES_IMPORT : SQLITE_LEDGER_CHECKPOINT_PAGES;
    if (database->wal_pages < database->wal_pages_moved)
        database->wal_pages_moved = 0;
    if (!database->handle || database->wal_pages - database->wal_pages_moved < worth_pages)
        return;
    database_checkpoint(database, database->wal_pages > SQLITE_LEDGER_CHECKPOINT_PAGES_MAX);
    database->wal_pages_moved = database->wal_pages;
    ledger_count(&thread->setup.metrics->checkpoints);
    if (database_failed(database))
        sqlite_thread_failed(thread);
}

/* While drafts are to be cleared, the writer does not wait for requests. */
static struct ledger_request *take_writes(struct sqlite_thread *thread)
{
    return thread->clears_drafts
               ? ledger_request_queue_try_take(thread->queue, SQLITE_LEDGER_GROUP_MAX)
               : ledger_request_queue_take(thread->queue, SQLITE_LEDGER_GROUP_MAX);
}

void *sqlite_writer_main(void *arg)
{
    struct sqlite_thread *thread = arg;
    struct ledger_request *chain;
    thread->abandons_drafts = true;
    thread->clears_drafts = sqlite_chat_drafts_exist(&thread->database);
    while ((chain = take_writes(thread)) || thread->clears_drafts) {
        run_write_group(thread, chain);
        checkpoint_log_if_due(thread);
    }
    return NULL;
}
