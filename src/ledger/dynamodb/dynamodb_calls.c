/*
 * The history of calls: one item "call#ID" per participant, sorted by their ends when they are read.
 *
 * A call is stored for both in one transaction; calls beyond the bounds are removed afterwards, before the answer. The count of
 * a user's calls grows with each of them and is set back only if none came meanwhile, so it is never below their
 * number, and what a crash leaves behind is removed with the next call.
 */
#include "base/id_list.h"
#include "ledger/dynamodb/dynamodb_events.h"
#include "ledger/dynamodb/dynamodb_operations.h"

#include <stdlib.h>

#define CALL_PREFIX "call#"

static struct dynamodb_key get_call_key(struct dynamodb_task *task, struct slice user,
                                        struct slice call)
{
    return (struct dynamodb_key){DYNAMODB_USERS, user, dynamodb_join(task, CALL_PREFIX, call), 0};
}

static struct dynamodb_key get_counts_key(struct slice user)
{
    return (struct dynamodb_key){DYNAMODB_USERS, user, SLICE("counts"), 0};
}

/* ---- reading ---- */

static struct ledger_call read_call(const struct dynamodb_item *item)
{
    return (struct ledger_call){
        .id = slice_after(dynamodb_item_text(item, "part_key"), sizeof(CALL_PREFIX) - 1),
        .caller = dynamodb_item_text(item, "caller_id"),
        .callee = dynamodb_item_text(item, "callee_id"),
        .reason = dynamodb_item_text(item, "end_reason"),
        .started_at_ms = dynamodb_item_number(item, "started_at_ms"),
        .answered_at_ms = dynamodb_item_number(item, "answered_at_ms"),
        .ended_at_ms = dynamodb_item_number(item, "ended_at_ms"),
    };
}

/* The latest to end comes first. */
static int compare_calls(const void *a, const void *b)
{
    const struct ledger_call *x = a, *y = b;
    if (x->ended_at_ms != y->ended_at_ms)
        return x->ended_at_ms > y->ended_at_ms ? -1 : 1;
    return id_list_compare(y->id, x->id);
}

static struct ledger_call *get_calls(struct dynamodb_task *task, struct slice user, size_t *count)
{
    struct dynamodb_query query = {
        .table = DYNAMODB_USERS, .partition = user, .prefix = CALL_PREFIX};
    struct ledger_request_array calls = {0};
    struct dynamodb_item item;
    while (dynamodb_query_next(task, &query, &item)) {
        struct ledger_call *call = ledger_request_array_push(task->request, &calls, sizeof(*call));
        if (call)
            *call = read_call(&item);
    }
    *count = calls.count;
    if (calls.count)
        qsort(calls.items, calls.count, sizeof(struct ledger_call), compare_calls);
    return calls.items;
}

enum ledger_status dynamodb_calls_list(struct dynamodb_task *task)
{
    struct ledger_calls_outcome *outcome = &task->request->outcome.calls;
    size_t limit = task->request->input.limit;
    outcome->calls = get_calls(task, task->request->input.user, &outcome->count);
    if (outcome->count > limit)
        outcome->count = limit;
    return LEDGER_OK;
}

/* ---- removing ---- */

static size_t get_kept_max(const struct ledger_call *call)
{
    bool is_set = call->kept_max > 0 && call->kept_max < LEDGER_CALLS_KEPT_MAX;
    return is_set ? call->kept_max : LEDGER_CALLS_KEPT_MAX;
}

static bool is_unanswered_like(const struct ledger_call *a, const struct ledger_call *b)
{
    return a->answered_at_ms == 0 && b->answered_at_ms == 0 && slice_equal(a->caller, b->caller) &&
           slice_equal(a->callee, b->callee);
}

/* Chooses from the user's calls, the latest first. Returns how many are kept. */
static size_t choose_surplus_calls(struct dynamodb_task *task, struct slice user,
                                   const struct ledger_call *calls, size_t count,
                                   struct ledger_request_array *surplus)
{
    const struct ledger_call *added = task->request->input.call;
    size_t kept = 0, unanswered = 0;
    for (size_t i = 0; i < count; i++) {
        bool is_like = is_unanswered_like(&calls[i], added);
        if (kept < get_kept_max(added) && !(is_like && unanswered == LEDGER_CALLS_UNANSWERED_MAX)) {
            kept++;
            unanswered += is_like;
            continue;
        }
        struct dynamodb_put_entry *entry =
            ledger_request_array_push(task->request, surplus, sizeof(*entry));
        if (entry)
            *entry = (struct dynamodb_put_entry){.key = get_call_key(task, user, calls[i].id),
                                                 .is_delete = true};
    }
    return kept;
}

static void remove_surplus_calls(struct dynamodb_task *task, struct slice user, int64_t counted)
{
    struct ledger_request_array surplus = {0};
    size_t count;
    struct ledger_call *calls = get_calls(task, user, &count);
    size_t kept = choose_surplus_calls(task, user, calls, count, &surplus);
    if (dynamodb_put_many(task, surplus.items, surplus.count) != DYNAMODB_DONE)
        return;
    dynamodb_update(
        task, get_counts_key(user), "SET call_count = :kept", "call_count = :counted",
        DYNAMODB_VALUES(DYNAMODB_NUMBER(":kept", kept), DYNAMODB_NUMBER(":counted", counted)));
}

static void keep_calls_bounded(struct dynamodb_task *task, const struct ledger_call *call)
{
    const struct slice users[] = {call->caller, call->callee};
    const struct dynamodb_key keys[] = {get_counts_key(users[0]), get_counts_key(users[1])};
    struct dynamodb_item counts[2];
    dynamodb_get_many(task, keys, 2, counts);
    for (unsigned i = 0; i < 2; i++) {
        int64_t counted = dynamodb_item_number(&counts[i], "call_count");
        if (counted > (int64_t)get_kept_max(call) ||
            (call->answered_at_ms == 0 && counted > LEDGER_CALLS_UNANSWERED_MAX))
            remove_surplus_calls(task, users[i], counted);
    }
}

/* ---- adding ---- */

static void add_call_side(struct dynamodb_transaction *transaction, struct slice user,
                          const struct ledger_call *call)
{
    dynamodb_transaction_put(
        transaction, get_call_key(transaction->task, user, call->id),
        DYNAMODB_VALUES(DYNAMODB_TEXT("caller_id", call->caller),
                        DYNAMODB_TEXT("callee_id", call->callee),
                        DYNAMODB_TEXT("end_reason", call->reason),
                        DYNAMODB_NUMBER("started_at_ms", call->started_at_ms),
                        DYNAMODB_NUMBER("answered_at_ms", call->answered_at_ms),
                        DYNAMODB_NUMBER("ended_at_ms", call->ended_at_ms)),
        "attribute_not_exists(user_id)", DYNAMODB_NO_VALUES);
    dynamodb_transaction_update(transaction, get_counts_key(user), "ADD call_count :one", NULL,
                                DYNAMODB_VALUES(DYNAMODB_NUMBER(":one", 1)));
}

enum ledger_status dynamodb_calls_append(struct dynamodb_task *task)
{
    const struct ledger_call *call = task->request->input.call;
    struct dynamodb_transaction transaction;
    if (slice_equal(call->caller, call->callee))
        return LEDGER_INVALID;
    dynamodb_transaction_begin(&transaction, task);
    add_call_side(&transaction, call->caller, call);
    add_call_side(&transaction, call->callee, call);
    task->request->outcome.change.changed = true;
    dynamodb_events_add_now(&transaction);
    task->request->outcome.change.changed =
        dynamodb_transaction_commit(&transaction) == DYNAMODB_DONE;
    keep_calls_bounded(task, call);
    return LEDGER_OK;
}
