#include "store/aggregate/aggregate_serve_internal.h"

#include "base/container.h"
#include "store/redis/redis_budget.h"
#include "store/redis/redis_call.h"
#include "store/redis/redis_graph.h"
#include "store/redis/redis_recovery.h"
#include "store/redis/redis_typing.h"

/* ---- social graphs ---- */

static void on_graph_found(void *arg, enum state_status status, const struct graph_lookup *lookup)
{
    union aggregate_outcome outcome = {.lookup.status = status};
    if (lookup && status == STATE_OK)
        outcome.lookup.lookup = *lookup;
    aggregate_serve_answer(arg, &outcome);
}

void aggregate_serve_graph(struct aggregate_stores_session *session,
                           struct aggregate_served *served,
                           const union aggregate_arguments *arguments)
{
    struct graph_store *graph = session->stores->graph;
    if (served->operation == AGGREGATE_GRAPH_LOOKUP) {
        graph_lookup(graph, arguments->subject.user_id, on_graph_found, served);
        return;
    }
    if (served->operation == AGGREGATE_GRAPH_PUT)
        graph_put(graph, arguments->graph_put.user_id, arguments->graph_put.ticket,
                  &arguments->graph_put.graph);
    else if (served->operation == AGGREGATE_GRAPH_DROP)
        graph_drop(graph, arguments->subject.user_id);
    else
        graph_set_online(graph, arguments->graph_online.user_id, arguments->graph_online.online,
                         arguments->graph_online.version);
    aggregate_serve_done(served);
}

/* ---- typing ---- */

static void on_served_typing_started(void *arg, enum state_status status,
                                     const struct typing_outcome *outcome)
{
    union aggregate_outcome answer = {.typing_start.status = status};
    if (outcome)
        answer.typing_start.outcome = *outcome;
    aggregate_serve_answer(arg, &answer);
}

static void on_served_typing_stopped(void *arg, enum state_status status, bool stopped)
{
    aggregate_serve_answer(arg, &(union aggregate_outcome){.typing_stop = {status, stopped}});
}

static void on_typing_read(void *arg, enum state_status status, const struct typing_user *users,
                           size_t count)
{
    aggregate_serve_answer(arg,
                           &(union aggregate_outcome){
                               .typing_users = {status, users, status == STATE_OK ? count : 0}});
}

void aggregate_serve_typing(struct aggregate_stores_session *session,
                            struct aggregate_served *served,
                            const union aggregate_arguments *arguments)
{
    struct typing_store *typing = session->stores->typing;
    struct slice chat_id = arguments->typing.chat_id, user_id = arguments->typing.user_id;
    if (served->operation == AGGREGATE_TYPING_START)
        typing_store_start(typing, chat_id, user_id, &arguments->typing.conn_id,
                           on_served_typing_started, served);
    else if (served->operation == AGGREGATE_TYPING_STOP)
        typing_store_stop(typing, chat_id, user_id,
                          arguments->typing.has_conn ? &arguments->typing.conn_id : NULL,
                          on_served_typing_stopped, served);
    else
        typing_store_read(typing, chat_id, arguments->typing.max, on_typing_read, served);
}

/* ---- calls ---- */

static void on_call_answered(void *arg, const struct call_answer *answer)
{
    union aggregate_outcome outcome = {
        .call = {.result = answer->result, .has_call = answer->call != NULL}};
    if (answer->call)
        outcome.call.call = *answer->call;
    aggregate_serve_answer(arg, &outcome);
}

static void on_served_calls_reaped(void *arg, const struct call *ended, size_t count)
{
    aggregate_serve_answer(arg, &(union aggregate_outcome){.calls = {ended, count}});
}

/* The store does not say when it is done with a renewal, so the session that asked may be gone; the gateway that has the
 * connection knows it among the others. */
static void on_call_device_lost(void *arg, const struct ulid *conn_id)
{
    struct aggregate_stores *stores = arg;
    struct slice body = {(const char *)conn_id->bytes, sizeof(conn_id->bytes)};
    for (struct list *at = stores->sessions.next; at != &stores->sessions; at = at->next)
        aggregate_session_notify(CONTAINER_OF(at, struct aggregate_stores_session, place)->session,
                                 AGGREGATE_CALL_LOST, body);
}

void aggregate_serve_call(struct aggregate_stores_session *session, struct aggregate_served *served,
                          const union aggregate_arguments *arguments)
{
    struct call_store *calls = session->stores->calls;
    const struct aggregate_call_arguments *call = &arguments->call;
    const struct call_device *device = &call->device;
    switch (served->operation) {
    case AGGREGATE_CALL_REQUEST:
        call_store_request(calls, call->id, device, call->other, on_call_answered, served);
        break;
    case AGGREGATE_CALL_RING_UNHEARD:
        call_store_ring_unheard(calls, call->id, device, call->other, on_call_answered, served);
        break;
    case AGGREGATE_CALL_DECLARE:
        call_store_declare(calls, call->id, device, on_call_answered, served);
        break;
    case AGGREGATE_CALL_ANSWER:
        call_store_answer(calls, call->id, device, on_call_answered, served);
        break;
    case AGGREGATE_CALL_REJECT:
        call_store_reject(calls, call->id, device->user_id, on_call_answered, served);
        break;
    case AGGREGATE_CALL_END:
        call_store_end(calls, call->id, device->user_id, on_call_answered, served);
        break;
    case AGGREGATE_CALL_GET:
        call_store_get(calls, call->id, device->user_id, on_call_answered, served);
        break;
    case AGGREGATE_CALL_ATTACH:
        call_store_attach(calls, device, on_call_answered, served);
        break;
    case AGGREGATE_CALL_DETACH:
        call_store_detach(calls, device->user_id, &device->conn_id, on_call_answered, served);
        break;
    case AGGREGATE_CALL_RENEW:
        call_store_renew(calls, arguments->devices.items, arguments->devices.count,
                         on_call_device_lost, session->stores);
        aggregate_serve_done(served);
        break;
    default:
        call_store_reap(calls, arguments->max, on_served_calls_reaped, served);
    }
}

/* ---- budgets ---- */

static void on_served_budget_taken(void *arg, enum state_status status,
                                   const struct budget_outcome *outcome)
{
    union aggregate_outcome answer = {.budget.status = status};
    if (outcome)
        answer.budget.outcome = *outcome;
    aggregate_serve_answer(arg, &answer);
}

void aggregate_serve_budget(struct aggregate_stores_session *session,
                            struct aggregate_served *served,
                            const union aggregate_arguments *arguments)
{
    budget_store_take(session->stores->budgets, &arguments->claim, on_served_budget_taken, served);
}

/* ---- parked sessions ---- */

static void on_served_session_taken(void *arg, const struct parked_session *session)
{
    union aggregate_outcome outcome = {.taken.is_there = session != NULL};
    if (session)
        outcome.taken.session = *session;
    aggregate_serve_answer(arg, &outcome);
}

static void on_events_appended(void *arg, bool all)
{
    aggregate_serve_answer(
        arg, &(union aggregate_outcome){.status = all ? STATE_OK : STATE_UNAVAILABLE});
}

void aggregate_serve_recovery(struct aggregate_stores_session *session,
                              struct aggregate_served *served,
                              const union aggregate_arguments *arguments)
{
    struct recovery_store *recovery = session->stores->recovery;
    if (!recovery) {
        aggregate_served_undone(served);
    } else if (served->operation == AGGREGATE_RECOVERY_PARK) {
        recovery_park(recovery, &arguments->park);
        aggregate_serve_done(served);
    } else if (served->operation == AGGREGATE_RECOVERY_APPEND) {
        redis_recovery_append_to(recovery, arguments->append.users.items,
                                 arguments->append.users.count, &arguments->append.event,
                                 on_events_appended, served);
    } else {
        redis_recovery_take_since(recovery, arguments->take.user_id, arguments->take.pid,
                                  arguments->take.offset, arguments->take.missed_ms,
                                  on_served_session_taken, served);
    }
}

/* ---- making ---- */

bool aggregate_serve_make_stores(struct aggregate_stores *stores)
{
    const struct aggregate_stores_options *options = &stores->options;
    const int64_t *terms = options->terms.values;
    stores->graph = redis_graph_make(&(struct redis_graph_options){
        .client = options->client, .random = options->random, .loop = options->loop});
    stores->typing = redis_typing_make(
        &(struct redis_typing_options){.client = options->client,
                                       .ttl_ms = terms[AGGREGATE_TYPING_TTL_MS],
                                       .rate_per_second = (uint32_t)terms[AGGREGATE_TYPING_RATE],
                                       .clock = options->script_clock});
    stores->calls = redis_call_make(
        &(struct redis_call_options){.client = options->client,
                                     .loop = options->loop,
                                     .random = options->random,
                                     .ring_timeout_ms = terms[AGGREGATE_RING_TIMEOUT_MS],
                                     .reconnect_grace_ms = terms[AGGREGATE_RECONNECT_GRACE_MS],
                                     .lease_window_ms = terms[AGGREGATE_LEASE_WINDOW_MS],
                                     .clock = options->script_clock});
    stores->budgets = redis_budget_make(
        &(struct redis_budget_options){.client = options->client, .clock = options->script_clock});
    bool made = stores->graph && stores->typing && stores->calls && stores->budgets;
    if (!made || terms[AGGREGATE_RECOVERY_MS] == 0)
        return made;
    stores->recovery = redis_recovery_make(
        &(struct redis_recovery_options){.client = options->client,
                                         .recovery_ms = terms[AGGREGATE_RECOVERY_MS],
                                         .hash_seed = options->hash_seed,
                                         .clock = &options->loop->clock,
                                         .script_clock = options->script_clock});
    return stores->recovery != NULL;
}
