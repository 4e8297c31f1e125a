#include "store/aggregate/aggregate_serve_internal.h"

#include "store/redis/state/redis_state.h"

#include <stdio.h>
#include <stdlib.h>

static const aggregate_serve SERVE[AGGREGATE_OPERATION_COUNT] = {
    [AGGREGATE_STATE_CLAIM] = aggregate_serve_claim,
    [AGGREGATE_STATE_PUT] = aggregate_serve_put,
    [AGGREGATE_STATE_RELEASE] = aggregate_serve_release,
    [AGGREGATE_STATE_GONE] = aggregate_serve_gone,
    [AGGREGATE_STATE_UNCLAIM] = aggregate_serve_unclaim,
    [AGGREGATE_STATE_OPEN] = aggregate_serve_open,
    [AGGREGATE_STATE_RENEW] = aggregate_serve_renew,
    [AGGREGATE_STATE_SET_IDLE] = aggregate_serve_change,
    [AGGREGATE_STATE_CLOSE] = aggregate_serve_change,
    [AGGREGATE_STATE_SETTLE] = aggregate_serve_settle,
    [AGGREGATE_STATE_SET_CALL] = aggregate_serve_change,
    [AGGREGATE_STATE_READ] = aggregate_serve_read,
    [AGGREGATE_STATE_ROUTES] = aggregate_serve_read,
    [AGGREGATE_STATE_LEASES] = aggregate_serve_user,
    [AGGREGATE_STATE_HISTORY] = aggregate_serve_user,
    [AGGREGATE_STATE_FORGET] = aggregate_serve_user,
    [AGGREGATE_STATE_FIND] = aggregate_serve_fleet,
    [AGGREGATE_STATE_REAP] = aggregate_serve_fleet,
    [AGGREGATE_STATE_GATEWAYS] = aggregate_serve_fleet,
    [AGGREGATE_STATE_ONLINE] = aggregate_serve_fleet,
    [AGGREGATE_STATE_COUNT_ONLINE] = aggregate_serve_fleet,
    [AGGREGATE_GRAPH_LOOKUP] = aggregate_serve_graph,
    [AGGREGATE_GRAPH_PUT] = aggregate_serve_graph,
    [AGGREGATE_GRAPH_DROP] = aggregate_serve_graph,
    [AGGREGATE_GRAPH_SET_ONLINE] = aggregate_serve_graph,
    [AGGREGATE_TYPING_START] = aggregate_serve_typing,
    [AGGREGATE_TYPING_STOP] = aggregate_serve_typing,
    [AGGREGATE_TYPING_READ] = aggregate_serve_typing,
    [AGGREGATE_CALL_REQUEST] = aggregate_serve_call,
    [AGGREGATE_CALL_RING_UNHEARD] = aggregate_serve_call,
    [AGGREGATE_CALL_DECLARE] = aggregate_serve_call,
    [AGGREGATE_CALL_ANSWER] = aggregate_serve_call,
    [AGGREGATE_CALL_REJECT] = aggregate_serve_call,
    [AGGREGATE_CALL_END] = aggregate_serve_call,
    [AGGREGATE_CALL_GET] = aggregate_serve_call,
    [AGGREGATE_CALL_ATTACH] = aggregate_serve_call,
    [AGGREGATE_CALL_DETACH] = aggregate_serve_call,
    [AGGREGATE_CALL_RENEW] = aggregate_serve_call,
    [AGGREGATE_CALL_REAP] = aggregate_serve_call,
    [AGGREGATE_BUDGET_TAKE] = aggregate_serve_budget,
    [AGGREGATE_RECOVERY_PARK] = aggregate_serve_recovery,
    [AGGREGATE_RECOVERY_APPEND] = aggregate_serve_recovery,
    [AGGREGATE_RECOVERY_TAKE] = aggregate_serve_recovery,
};

/* ---- calls ---- */

void aggregate_serve_answer(struct aggregate_served *served, const union aggregate_outcome *outcome)
{
    struct buffer body = BUFFER_INIT;
    aggregate_codec_write_outcome(&body, served->operation, outcome);
    if (body.failed)
        aggregate_served_undone(served);
    else
        aggregate_served_answer(served, buffer_slice(&body));
    buffer_free(&body);
}

void aggregate_serve_done(struct aggregate_served *served)
{
    aggregate_served_answer(served, SLICE_NONE);
}

bool aggregate_stores_serve(struct aggregate_stores_session *session,
                            struct aggregate_served *served, struct slice body)
{
    union aggregate_arguments arguments;
    struct wire_memory memory = {0};
    bool is_read = aggregate_codec_read_arguments(body, served->operation, &arguments, &memory);
    if (is_read)
        SERVE[served->operation](session, served, &arguments);
    wire_memory_free(&memory);
    return is_read;
}

/* ---- sessions ---- */

struct aggregate_stores_session *aggregate_stores_open(struct aggregate_stores *stores,
                                                       struct aggregate_session *session,
                                                       const struct aggregate_frame *hello)
{
    struct aggregate_stores_session *opened = calloc(1, sizeof(*opened));
    if (!opened)
        return NULL;
    opened->stores = stores;
    opened->session = session;
    snprintf(opened->process, sizeof(opened->process), "%.*s", SLICE_FORMAT(hello->process));
    snprintf(opened->instance, sizeof(opened->instance), "%.*s", SLICE_FORMAT(hello->instance));
    opened->terms = hello->terms;
    opened->state = aggregate_serve_make_state(opened);
    if (!opened->state) {
        free(opened);
        return NULL;
    }
    list_append(&stores->sessions, &opened->place);
    return opened;
}

void aggregate_stores_close(struct aggregate_stores_session **session)
{
    struct aggregate_stores_session *closed = *session;
    *session = NULL;
    if (!closed)
        return;
    list_remove(&closed->place);
    state_store_free(&closed->record);
    state_store_free(&closed->state);
    free(closed);
}

/* ---- life ---- */

struct aggregate_stores *aggregate_stores_make(const struct aggregate_stores_options *options)
{
    struct aggregate_stores *stores = calloc(1, sizeof(*stores));
    if (!stores)
        return NULL;
    stores->options = *options;
    list_init(&stores->sessions);
    stores->state = redis_state_make(&(struct redis_state_options){
        .client = options->client,
        .loop = options->loop,
        .random = options->random,
        .metrics = options->metrics,
        .gateway_id = options->id,
        .lease_window_ms = options->terms.values[AGGREGATE_LEASE_WINDOW_MS],
        .offline_grace_ms = options->terms.values[AGGREGATE_OFFLINE_GRACE_MS],
    });
    if (!stores->state || !aggregate_serve_make_stores(stores))
        aggregate_stores_free(&stores);
    return stores;
}

void aggregate_stores_free(struct aggregate_stores **stores)
{
    struct aggregate_stores *freed = *stores;
    *stores = NULL;
    if (!freed)
        return;
    call_store_free(&freed->calls);
    graph_store_free(&freed->graph);
    typing_store_free(&freed->typing);
    budget_store_free(&freed->budgets);
    recovery_store_free(&freed->recovery);
    state_store_free(&freed->state);
    free(freed);
}
