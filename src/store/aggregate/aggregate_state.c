#include "store/aggregate/aggregate_state.h"

#include "base/container.h"
#include "store/aggregate/aggregate_state_internal.h"

#include <assert.h>
#include <stdlib.h>

struct aggregate_state *aggregate_state_of(struct state_store *store)
{
    return CONTAINER_OF(store, struct aggregate_state, store);
}

static void forward_state(struct aggregate_state *state, struct slice slot_id,
                          enum aggregate_operation operation,
                          const union aggregate_arguments *arguments, struct slice user_id,
                          aggregate_complete complete, aggregate_any_done done, void *arg)
{
    aggregate_forward(state->options.client, slot_id, operation, arguments, user_id, complete, done,
                      arg);
}

/* ---- transitions ---- */

static void complete_transition(const struct aggregate_forwarded *forwarded,
                                const union aggregate_outcome *outcome)
{
    state_transition_done done = (state_transition_done)forwarded->done;
    struct state_transition nothing = {0};
    if (forwarded->status == STATE_UNKNOWN)
        nothing.presence.user_id = forwarded->user_id;
    if (outcome && outcome->status == STATE_OK)
        done(forwarded->arg, STATE_OK, &outcome->transition.transition);
    else if (outcome && outcome->status == STATE_UNKNOWN)
        done(forwarded->arg, STATE_UNKNOWN,
             &(struct state_transition){.presence.user_id = forwarded->user_id});
    else
        done(forwarded->arg, outcome ? outcome->status : forwarded->status, &nothing);
}

static void aggregate_state_open(struct state_store *store, const struct lease *lease,
                                 state_transition_done done, void *arg)
{
    struct aggregate_state *state = aggregate_state_of(store);
    if (!aggregate_state_may_write(state)) {
        done(arg, STATE_UNAVAILABLE, &(struct state_transition){0});
        return;
    }
    aggregate_state_flush_before(state, &lease->conn_id);
    forward_state(state, lease->user_id, AGGREGATE_STATE_OPEN,
                  &(union aggregate_arguments){.open = *lease}, lease->user_id, complete_transition,
                  (aggregate_any_done)done, arg);
}

static void forward_change(struct state_store *store, enum aggregate_operation operation,
                           struct aggregate_subject subject, state_transition_done done, void *arg)
{
    struct aggregate_state *state = aggregate_state_of(store);
    if (!aggregate_state_may_write(state)) {
        done(arg, STATE_UNAVAILABLE, &(struct state_transition){0});
        return;
    }
    if (subject.has_conn)
        aggregate_state_flush_before(state, &subject.conn_id);
    forward_state(state, subject.user_id, operation,
                  &(union aggregate_arguments){.subject = subject}, subject.user_id,
                  complete_transition, (aggregate_any_done)done, arg);
}

static void aggregate_state_set_idle(struct state_store *store, struct slice user_id,
                                     const struct ulid *conn_id, bool idle,
                                     state_transition_done done, void *arg)
{
    forward_change(store, AGGREGATE_STATE_SET_IDLE,
                   (struct aggregate_subject){user_id, true, *conn_id, idle}, done, arg);
}

static void aggregate_state_close(struct state_store *store, struct slice user_id,
                                  const struct ulid *conn_id, state_transition_done done, void *arg)
{
    forward_change(store, AGGREGATE_STATE_CLOSE,
                   (struct aggregate_subject){user_id, true, *conn_id, false}, done, arg);
}

static void aggregate_state_settle(struct state_store *store, const struct state_claim *claim,
                                   state_transition_done done, void *arg)
{
    struct aggregate_state *state = aggregate_state_of(store);
    if (!aggregate_state_may_write(state)) {
        done(arg, STATE_UNAVAILABLE, &(struct state_transition){0});
        return;
    }
    aggregate_state_flush_before(state, &claim->conn_id);
    forward_state(state, claim->user_id, AGGREGATE_STATE_SETTLE,
                  &(union aggregate_arguments){.settle = *claim}, claim->user_id,
                  complete_transition, (aggregate_any_done)done, arg);
}

static void aggregate_state_set_call(struct state_store *store, struct slice user_id, bool in_call,
                                     state_transition_done done, void *arg)
{
    forward_change(store, AGGREGATE_STATE_SET_CALL,
                   (struct aggregate_subject){.user_id = user_id, .flag = in_call}, done, arg);
}

/* ---- reads of many users ---- */

/* The status to report when no item is. */
static enum state_status status_of(const struct aggregate_forwarded *forwarded,
                                   const union aggregate_outcome *outcome)
{
    return outcome ? outcome->status : forwarded->status;
}

static void complete_presences(const struct aggregate_forwarded *forwarded,
                               const union aggregate_outcome *outcome)
{
    bool is_ok = outcome && outcome->status == STATE_OK;
    ((state_presences_done)forwarded->done)(forwarded->arg, status_of(forwarded, outcome),
                                            is_ok ? outcome->presences.items : NULL,
                                            is_ok ? outcome->presences.count : 0);
}

static void complete_routes(const struct aggregate_forwarded *forwarded,
                            const union aggregate_outcome *outcome)
{
    bool is_ok = outcome && outcome->status == STATE_OK;
    ((state_routes_done)forwarded->done)(forwarded->arg, status_of(forwarded, outcome),
                                         is_ok ? &outcome->routes.routes : NULL);
}

static struct slice first_of(const struct slice *user_ids, size_t count)
{
    return count ? user_ids[0] : SLICE("");
}

static void aggregate_state_read(struct state_store *store, const struct slice *user_ids,
                                 size_t count, state_presences_done done, void *arg)
{
    if (count == 0) {
        done(arg, STATE_OK, NULL, 0);
        return;
    }
    forward_state(aggregate_state_of(store), first_of(user_ids, count), AGGREGATE_STATE_READ,
                  &(union aggregate_arguments){.users = {user_ids, count}}, SLICE_NONE,
                  complete_presences, (aggregate_any_done)done, arg);
}

static void aggregate_state_routes(struct state_store *store, const struct slice *user_ids,
                                   size_t count, state_routes_done done, void *arg)
{
    forward_state(aggregate_state_of(store), first_of(user_ids, count), AGGREGATE_STATE_ROUTES,
                  &(union aggregate_arguments){.users = {user_ids, count}}, SLICE_NONE,
                  complete_routes, (aggregate_any_done)done, arg);
}

/* ---- explanations ---- */

static void complete_leases(const struct aggregate_forwarded *forwarded,
                            const union aggregate_outcome *outcome)
{
    bool is_ok = outcome && outcome->status == STATE_OK;
    ((state_leases_done)forwarded->done)(forwarded->arg, status_of(forwarded, outcome),
                                         is_ok ? outcome->leases.items : NULL,
                                         is_ok ? outcome->leases.count : 0);
}

static void complete_lease(const struct aggregate_forwarded *forwarded,
                           const union aggregate_outcome *outcome)
{
    bool is_found = outcome && outcome->status == STATE_OK && outcome->leases.count > 0;
    ((state_lease_done)forwarded->done)(forwarded->arg, status_of(forwarded, outcome),
                                        is_found ? &outcome->leases.items[0] : NULL);
}

static void complete_history(const struct aggregate_forwarded *forwarded,
                             const union aggregate_outcome *outcome)
{
    bool is_ok = outcome && outcome->status == STATE_OK;
    ((state_history_done)forwarded->done)(forwarded->arg, status_of(forwarded, outcome),
                                          is_ok ? outcome->history.items : NULL,
                                          is_ok ? outcome->history.count : 0);
}

static void aggregate_state_leases(struct state_store *store, struct slice user_id,
                                   state_leases_done done, void *arg)
{
    forward_state(aggregate_state_of(store), user_id, AGGREGATE_STATE_LEASES,
                  &(union aggregate_arguments){.subject.user_id = user_id}, user_id,
                  complete_leases, (aggregate_any_done)done, arg);
}

static void aggregate_state_find(struct state_store *store, const struct ulid *conn_id,
                                 state_lease_done done, void *arg)
{
    struct aggregate_state *state = aggregate_state_of(store);
    forward_state(state, state->options.gateway_id, AGGREGATE_STATE_FIND,
                  &(union aggregate_arguments){.conn_id = *conn_id}, SLICE_NONE, complete_lease,
                  (aggregate_any_done)done, arg);
}

static void aggregate_state_history(struct state_store *store, struct slice user_id,
                                    state_history_done done, void *arg)
{
    forward_state(aggregate_state_of(store), user_id, AGGREGATE_STATE_HISTORY,
                  &(union aggregate_arguments){.subject.user_id = user_id}, user_id,
                  complete_history, (aggregate_any_done)done, arg);
}

static void complete_forget(const struct aggregate_forwarded *forwarded,
                            const union aggregate_outcome *outcome)
{
    ((state_forget_done)forwarded->done)(forwarded->arg, status_of(forwarded, outcome));
}

static void aggregate_state_forget(struct state_store *store, struct slice user_id,
                                   state_forget_done done, void *arg)
{
    forward_state(aggregate_state_of(store), user_id, AGGREGATE_STATE_FORGET,
                  &(union aggregate_arguments){.subject.user_id = user_id}, user_id,
                  complete_forget, (aggregate_any_done)done, arg);
}

/* ---- the fleet ---- */

static void complete_transitions(const struct aggregate_forwarded *forwarded,
                                 const union aggregate_outcome *outcome)
{
    bool is_ok = outcome && outcome->status == STATE_OK;
    ((state_transitions_done)forwarded->done)(forwarded->arg, status_of(forwarded, outcome),
                                              is_ok ? outcome->transitions.items : NULL,
                                              is_ok ? outcome->transitions.count : 0);
}

static void complete_gateways(const struct aggregate_forwarded *forwarded,
                              const union aggregate_outcome *outcome)
{
    bool is_ok = outcome && outcome->status == STATE_OK;
    ((state_gateways_done)forwarded->done)(forwarded->arg, status_of(forwarded, outcome),
                                           is_ok ? outcome->gateways.items : NULL,
                                           is_ok ? outcome->gateways.count : 0);
}

static void complete_online(const struct aggregate_forwarded *forwarded,
                            const union aggregate_outcome *outcome)
{
    bool is_ok = outcome && outcome->status == STATE_OK;
    ((state_online_done)forwarded->done)(forwarded->arg, status_of(forwarded, outcome),
                                         is_ok ? &outcome->online.page : NULL);
}

static void complete_count(const struct aggregate_forwarded *forwarded,
                           const union aggregate_outcome *outcome)
{
    ((state_count_done)forwarded->done)(forwarded->arg, status_of(forwarded, outcome),
                                        outcome ? (size_t)outcome->count.count : 0);
}

static void aggregate_state_reap(struct state_store *store, size_t max, state_transitions_done done,
                                 void *arg)
{
    struct aggregate_state *state = aggregate_state_of(store);
    if (!aggregate_state_may_write(state)) {
        done(arg, STATE_UNAVAILABLE, NULL, 0);
        return;
    }
    forward_state(state, state->options.gateway_id, AGGREGATE_STATE_REAP,
                  &(union aggregate_arguments){.max = max}, SLICE_NONE, complete_transitions,
                  (aggregate_any_done)done, arg);
}

static void aggregate_state_gateways(struct state_store *store, state_gateways_done done, void *arg)
{
    struct aggregate_state *state = aggregate_state_of(store);
    forward_state(state, state->options.gateway_id, AGGREGATE_STATE_GATEWAYS,
                  &(union aggregate_arguments){0}, SLICE_NONE, complete_gateways,
                  (aggregate_any_done)done, arg);
}

static void aggregate_state_online(struct state_store *store, struct slice after, size_t limit,
                                   state_online_done done, void *arg)
{
    struct aggregate_state *state = aggregate_state_of(store);
    forward_state(state, state->options.gateway_id, AGGREGATE_STATE_ONLINE,
                  &(union aggregate_arguments){.page = {after, limit}}, SLICE_NONE, complete_online,
                  (aggregate_any_done)done, arg);
}

static void aggregate_state_count_online(struct state_store *store, state_count_done done,
                                         void *arg)
{
    struct aggregate_state *state = aggregate_state_of(store);
    forward_state(state, state->options.gateway_id, AGGREGATE_STATE_COUNT_ONLINE,
                  &(union aggregate_arguments){0}, SLICE_NONE, complete_count,
                  (aggregate_any_done)done, arg);
}

/* ---- life ---- */

static bool aggregate_state_available(struct state_store *store)
{
    struct aggregate_state *state = aggregate_state_of(store);
    return aggregate_client_usable(state->options.client) > 0 && aggregate_state_may_write(state);
}

size_t aggregate_state_pending(const struct state_store *store)
{
    const struct aggregate_state *state = CONTAINER_OF(store, const struct aggregate_state, store);
    return aggregate_client_pending(state->options.client) + state->gathered_count;
}

static void aggregate_state_free(struct state_store *store)
{
    struct aggregate_state *state = aggregate_state_of(store);
    aggregate_client_unlisten(&state->listener);
    aggregate_state_gateway_stop(state);
    aggregate_state_renew_stop(state);
    free(state->gathered);
    free(state->sending);
    free(state);
}

static const struct state_store_operations OPERATIONS = {
    .open = aggregate_state_open,
    .renew = aggregate_state_renew,
    .set_idle = aggregate_state_set_idle,
    .close = aggregate_state_close,
    .settle = aggregate_state_settle,
    .read = aggregate_state_read,
    .set_call = aggregate_state_set_call,
    .routes = aggregate_state_routes,
    .leases = aggregate_state_leases,
    .find = aggregate_state_find,
    .history = aggregate_state_history,
    .reap = aggregate_state_reap,
    .forget = aggregate_state_forget,
    .put_gateway = aggregate_state_put_gateway,
    .gateways = aggregate_state_gateways,
    .online = aggregate_state_online,
    .count_online = aggregate_state_count_online,
    .available = aggregate_state_available,
    .free = aggregate_state_free,
};

struct state_store *aggregate_state_make(const struct aggregate_state_options *options)
{
    struct aggregate_state *state = calloc(1, sizeof(*state));
    if (!state)
        return NULL;
    state->store.operations = &OPERATIONS;
    state->options = *options;
    if (!aggregate_state_renew_init(state)) {
        free(state->gathered);
        free(state->sending);
        free(state);
        return NULL;
    }
    aggregate_state_gateway_init(state);
    return &state->store;
}
