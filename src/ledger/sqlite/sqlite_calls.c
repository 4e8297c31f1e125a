/* The history of calls: one row per participant; only the latest calls of a user are kept. */
#include "ledger/sqlite/sqlite_operations.h"

static bool insert_call_row(struct database *database, struct slice user,
                            const struct ledger_call *call)
{
    static const char INSERT_CALL[] =
        "INSERT OR IGNORE INTO calls (user_id, call_id, caller, callee, reason, "
        "started_at_ms, answered_at_ms, ended_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
    struct query query = query_open_texts(database, INSERT_CALL, user, call->id, call->caller);
    query_bind(&query, call->callee);
    query_bind(&query, call->reason);
    query_bind_int(&query, call->started_at_ms);
    query_bind_int(&query, call->answered_at_ms);
    query_bind_int(&query, call->ended_at_ms);
    return query_run(&query) > 0;
}

static void delete_oldest_unanswered(struct database *database, struct slice user,
                                     const struct ledger_call *call)
{
    static const char DELETE_UNANSWERED[] =
        "DELETE FROM calls WHERE user_id = ?1 AND call_id IN "
        "  (SELECT call_id FROM calls "
        "   WHERE user_id = ?1 AND caller = ?2 AND callee = ?3 AND answered_at_ms = 0 "
        "   ORDER BY ended_at_ms DESC, call_id DESC LIMIT -1 OFFSET ?4)";
    struct query query =
        query_open_texts(database, DELETE_UNANSWERED, user, call->caller, call->callee);
    query_bind_int(&query, LEDGER_CALLS_UNANSWERED_MAX);
    query_run(&query);
}

static void delete_oldest_calls(struct database *database, struct slice user, uint32_t kept_max)
{
    static const char DELETE_OLD[] =
        "DELETE FROM calls WHERE user_id = ?1 AND call_id IN "
        "  (SELECT call_id FROM calls WHERE user_id = ?1 "
        "   ORDER BY ended_at_ms DESC, call_id DESC LIMIT -1 OFFSET ?2)";
    struct query query = query_open_texts(database, DELETE_OLD, user, SLICE_NONE, SLICE_NONE);
    bool is_set = kept_max > 0 && kept_max < LEDGER_CALLS_KEPT_MAX;
    query_bind_int(&query, is_set ? kept_max : LEDGER_CALLS_KEPT_MAX);
    query_run(&query);
}

static bool add_call_to_history(struct database *database, struct slice user,
                                const struct ledger_call *call)
{
    if (!insert_call_row(database, user, call))
        return false;
    if (call->answered_at_ms == 0)
        delete_oldest_unanswered(database, user, call);
    delete_oldest_calls(database, user, call->kept_max);
    return true;
}

enum ledger_status sqlite_calls_append(struct database *database, struct ledger_request *request)
{
    const struct ledger_call *call = request->input.call;
    bool added_for_caller = add_call_to_history(database, call->caller, call);
    bool added_for_callee = add_call_to_history(database, call->callee, call);
    request->outcome.change.changed = added_for_caller || added_for_callee;
    return LEDGER_OK;
}

enum ledger_status sqlite_calls_list(struct database *database, struct ledger_request *request)
{
    static const char SELECT_CALLS[] =
        "SELECT call_id, caller, callee, reason, started_at_ms, answered_at_ms, ended_at_ms "
        "FROM calls WHERE user_id = ? ORDER BY ended_at_ms DESC, call_id DESC LIMIT ?";
    struct ledger_request_array calls = {0};
    struct query query =
        query_open_texts(database, SELECT_CALLS, request->input.user, SLICE_NONE, SLICE_NONE);
    query_bind_int(&query, request->input.limit);
    while (query_next(&query)) {
        struct ledger_call *call = ledger_request_array_push(request, &calls, sizeof(*call));
        if (!call)
            continue;
        call->id = ledger_request_copy(request, query_text(&query, 0));
        call->caller = ledger_request_copy(request, query_text(&query, 1));
        call->callee = ledger_request_copy(request, query_text(&query, 2));
        call->reason = ledger_request_copy(request, query_text(&query, 3));
        call->started_at_ms = query_int(&query, 4);
        call->answered_at_ms = query_int(&query, 5);
        call->ended_at_ms = query_int(&query, 6);
    }
    request->outcome.calls.calls = calls.items;
    request->outcome.calls.count = calls.count;
    return LEDGER_OK;
}
