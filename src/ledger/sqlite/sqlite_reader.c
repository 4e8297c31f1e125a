/* The reader threads: they execute one request at a time, each in a snapshot of its own. */
#include "ledger/sqlite/sqlite_operations.h"
#include "ledger/sqlite/sqlite_thread.h"

static void execute_in_snapshot(struct sqlite_thread *thread, struct ledger_request *request)
{
    static const char BEGIN[] = "BEGIN";
    static const char COMMIT[] = "COMMIT";
    struct database *database = &thread->database;
    if (!sqlite_thread_ready(thread)) {
        ledger_request_fail(request, LEDGER_UNAVAILABLE);
        return;
    }
    database_run(database, BEGIN);
    sqlite_operations_execute(database, request);
    bool failed = database_failed(database);
    if (failed && !sqlite3_get_autocommit(database->handle))
        sqlite3_exec(database->handle, "ROLLBACK", NULL, NULL, NULL);
    else
        database_run(database, COMMIT);
    if (failed)
        sqlite_thread_failed(thread);
}

void *sqlite_reader_main(void *arg)
{
    struct sqlite_thread *thread = arg;
    struct ledger_request *request;
    while ((request = ledger_request_queue_take(thread->queue, 1))) {
        if (atomic_load_explicit(&request->abandoned, memory_order_relaxed))
            ledger_request_fail(request, LEDGER_TIMEOUT);
        else
            execute_in_snapshot(thread, request);
        ledger_histogram_add(&thread->setup.metrics->read_us,
                             thread->setup.now_us() - request->submitted_us);
        ledger_request_finish(request);
    }
    return NULL;
}
