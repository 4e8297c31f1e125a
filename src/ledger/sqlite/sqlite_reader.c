/* The reader threads: they execute one request at a time, each in a snapshot of its own. */
#include "ledger/sqlite/sqlite_operations.h"
#include "ledger/sqlite/sqlite_worker.h"

static void read_in_snapshot(struct sqlite_worker *worker, struct ledger_request *request)
{
    static const char BEGIN[] = "BEGIN";
    static const char COMMIT[] = "COMMIT";
    struct database *database = &worker->database;
    if (!sqlite_worker_ready(worker)) {
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
        sqlite_worker_failed(worker);
}

void *sqlite_reader_main(void *arg)
{
    struct sqlite_worker *worker = arg;
    struct ledger_request *request;
    while ((request = ledger_request_queue_take(worker->queue, 1))) {
        if (atomic_load_explicit(&request->abandoned, memory_order_relaxed))
            ledger_request_fail(request, LEDGER_TIMEOUT);
        else
            read_in_snapshot(worker, request);
        ledger_histogram_add(&worker->setup.metrics->read_us,
                             worker->setup.now_us() - request->submitted_us);
        ledger_request_finish(request);
    }
    return NULL;
}
