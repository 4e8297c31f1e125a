#include "store/aggregate/aggregate_serve_internal.h"

#include "store/redis/state/redis_state.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- the gateway's record ---- */

static void notify_with(struct aggregate_stores_session *session, enum aggregate_notice notice,
                        struct buffer *body)
{
    if (!body->failed)
        aggregate_session_notify(session->session, notice, buffer_slice(body));
    buffer_free(body);
}

/* A record that was sent before a put arrived does not answer that put. A gateway that puts all the time gets the answer to
 * the first one. */
static void on_session_registered(void *arg, int64_t sent_at_ms, bool made)
{
    struct aggregate_stores_session *session = arg;
    bool has_last = session->has_put && session->last_put.arrived_ms <= sent_at_ms;
    bool has_first = session->has_put && session->first_put.arrived_ms <= sent_at_ms;
    struct aggregate_put_mark put = has_last ? session->last_put : session->first_put;
    struct aggregate_registered registered = {put.put_ms, made};
    struct buffer body = BUFFER_INIT;
    struct wire wire = wire_writing(&body);
    if (!has_first)
        return;
    session->has_put = !has_last;
    session->first_put = session->last_put;
    aggregate_codec_pass_registered(&wire, &registered);
    notify_with(session, AGGREGATE_REGISTERED, &body);
}

static void on_session_fenced(void *arg)
{
    struct aggregate_stores_session *session = arg;
    aggregate_session_notify(session->session, AGGREGATE_FENCED, SLICE_NONE);
}

/* Only the gateway's machine can tell. It says so later, and the next try to claim finds it here. */
static bool is_rival_gone(void *arg, struct slice process)
{
    struct aggregate_stores_session *session = arg;
    if (process.len == 0 || process.len > AGGREGATE_ID_BYTES_MAX)
        return false;
    if (slice_equal(slice_of(session->gone), process))
        return true;
    aggregate_session_notify(session->session, AGGREGATE_RIVAL, process);
    return false;
}

struct state_store *aggregate_serve_make_state(struct aggregate_stores_session *session)
{
    const struct aggregate_stores_options *options = &session->stores->options;
    return redis_state_make(&(struct redis_state_options){
        .client = options->client,
        .loop = options->loop,
        .random = options->random,
        .metrics = options->metrics,
        .gateway_id = aggregate_session_gateway(session->session),
        .lease_window_ms = session->terms.values[AGGREGATE_LEASE_WINDOW_MS],
        .offline_grace_ms = session->terms.values[AGGREGATE_OFFLINE_GRACE_MS],
        .process = slice_of(session->process),
        .instance = slice_of(session->instance),
        .is_process_gone = is_rival_gone,
        .on_registered = on_session_registered,
        .on_fenced = on_session_fenced,
        .arg = session,
    });
}

static void note_put(struct aggregate_stores_session *session, const struct aggregate_put *put)
{
    session->last_put = (struct aggregate_put_mark){
        .put_ms = put->put_ms, .arrived_ms = session->stores->options.loop->clock.now_ms};
    if (!session->has_put)
        session->first_put = session->last_put;
    session->has_put = true;
}

static void on_session_claimed(void *arg, enum redis_claim claim, struct slice since)
{
    struct aggregate_stores_session *session = arg;
    struct aggregate_claimed claimed = {claim, slice_first(since, AGGREGATE_ID_BYTES_MAX)};
    struct buffer body = BUFFER_INIT;
    struct wire wire = wire_writing(&body);
    if (claim == REDIS_CLAIM_CANCELLED)
        return; /* the session is being closed */
    aggregate_codec_pass_claimed(&wire, &claimed);
    notify_with(session, AGGREGATE_CLAIMED, &body);
}

/* A claim may take as long as a dead process's record lives, so its result is a notice. */
void aggregate_serve_claim(struct aggregate_stores_session *session,
                           struct aggregate_served *served,
                           const union aggregate_arguments *arguments)
{
    note_put(session, &arguments->put);
    if (!session->record)
        session->record = aggregate_serve_make_state(session);
    if (!session->record) {
        aggregate_served_undone(served); /* the gateway claims again with its next put */
        return;
    }
    redis_state_claim(session->record, &arguments->put.info, on_session_claimed, session);
    aggregate_serve_done(served);
}

void aggregate_serve_put(struct aggregate_stores_session *session, struct aggregate_served *served,
                         const union aggregate_arguments *arguments)
{
    note_put(session, &arguments->put);
    state_put_gateway(session->record ? session->record : session->state, &arguments->put.info);
    aggregate_serve_done(served);
}

static void on_session_released(void *arg)
{
    aggregate_serve_done(arg);
}

void aggregate_serve_release(struct aggregate_stores_session *session,
                             struct aggregate_served *served,
                             const union aggregate_arguments *arguments)
{
    (void)arguments;
    if (session->record)
        redis_state_release(session->record, on_session_released, served);
    else
        aggregate_serve_done(served);
}

/* The gateway has another home: nothing is said about its record here any more. */
void aggregate_serve_unclaim(struct aggregate_stores_session *session,
                             struct aggregate_served *served,
                             const union aggregate_arguments *arguments)
{
    (void)arguments;
    session->has_put = false;
    state_store_free(&session->record);
    aggregate_serve_done(served);
}

void aggregate_serve_gone(struct aggregate_stores_session *session, struct aggregate_served *served,
                          const union aggregate_arguments *arguments)
{
    snprintf(session->gone, sizeof(session->gone), "%.*s", SLICE_FORMAT(arguments->process));
    aggregate_serve_done(served);
}

/* ---- leases ---- */

static void on_transition_made(void *arg, enum state_status status,
                               const struct state_transition *transition)
{
    union aggregate_outcome outcome = {.transition.status = status};
    if (transition)
        outcome.transition.transition = *transition;
    aggregate_serve_answer(arg, &outcome);
}

void aggregate_serve_open(struct aggregate_stores_session *session, struct aggregate_served *served,
                          const union aggregate_arguments *arguments)
{
    state_open(session->state, &arguments->open, on_transition_made, served);
}

void aggregate_serve_settle(struct aggregate_stores_session *session,
                            struct aggregate_served *served,
                            const union aggregate_arguments *arguments)
{
    state_settle(session->state, &arguments->settle, on_transition_made, served);
}

void aggregate_serve_change(struct aggregate_stores_session *session,
                            struct aggregate_served *served,
                            const union aggregate_arguments *arguments)
{
    const struct aggregate_subject *subject = &arguments->subject;
    if (served->operation == AGGREGATE_STATE_SET_IDLE)
        state_set_idle(session->state, subject->user_id, &subject->conn_id, subject->flag,
                       on_transition_made, served);
    else if (served->operation == AGGREGATE_STATE_CLOSE)
        state_close(session->state, subject->user_id, &subject->conn_id, on_transition_made,
                    served);
    else
        state_set_call(session->state, subject->user_id, subject->flag, on_transition_made, served);
}

static void on_renewals_made(void *arg, enum state_status status,
                             const struct lease_renewal *renewals, size_t count)
{
    aggregate_serve_answer(arg, &(union aggregate_outcome){.renewals = {status, renewals, count}});
}

void aggregate_serve_renew(struct aggregate_stores_session *session,
                           struct aggregate_served *served,
                           const union aggregate_arguments *arguments)
{
    struct lease_renewal renewals[AGGREGATE_RENEWALS_MAX];
    size_t count = arguments->renew.count;
    metrics_add(session->stores->options.metrics, METRIC_AGGREGATE_RENEWALS, (int64_t)count);
    if (count)
        memcpy(renewals, arguments->renew.items, count * sizeof(*renewals));
    state_renew(session->state, renewals, count, on_renewals_made, served);
}

/* ---- reads ---- */

static void on_presences_read(void *arg, enum state_status status, const struct presence *presences,
                              size_t count)
{
    aggregate_serve_answer(arg,
                           &(union aggregate_outcome){
                               .presences = {status, presences, status == STATE_OK ? count : 0}});
}

static void on_routes_read(void *arg, enum state_status status, const struct state_routes *routes)
{
    union aggregate_outcome outcome = {.routes.status = status};
    if (routes)
        outcome.routes.routes = *routes;
    aggregate_serve_answer(arg, &outcome);
}

void aggregate_serve_read(struct aggregate_stores_session *session, struct aggregate_served *served,
                          const union aggregate_arguments *arguments)
{
    const struct aggregate_ids *users = &arguments->users;
    if (served->operation == AGGREGATE_STATE_READ)
        state_read(session->stores->state, users->items, users->count, on_presences_read, served);
    else
        state_routes(session->stores->state, users->items, users->count, on_routes_read, served);
}

static void on_leases_read(void *arg, enum state_status status, const struct lease *leases,
                           size_t count)
{
    aggregate_serve_answer(arg, &(union aggregate_outcome){
                                    .leases = {status, leases, status == STATE_OK ? count : 0}});
}

static void on_served_history_read(void *arg, enum state_status status,
                                   const struct state_history *history, size_t count)
{
    aggregate_serve_answer(arg, &(union aggregate_outcome){
                                    .history = {status, history, status == STATE_OK ? count : 0}});
}

static void on_served_user_forgotten(void *arg, enum state_status status)
{
    aggregate_serve_answer(arg, &(union aggregate_outcome){.status = status});
}

void aggregate_serve_user(struct aggregate_stores_session *session, struct aggregate_served *served,
                          const union aggregate_arguments *arguments)
{
    struct state_store *state = session->stores->state;
    struct slice user_id = arguments->subject.user_id;
    if (served->operation == AGGREGATE_STATE_LEASES)
        state_leases(state, user_id, on_leases_read, served);
    else if (served->operation == AGGREGATE_STATE_HISTORY)
        state_history(state, user_id, on_served_history_read, served);
    else
        state_forget(state, user_id, on_served_user_forgotten, served);
}

/* ---- the fleet ---- */

static void on_lease_found(void *arg, enum state_status status, const struct lease *lease)
{
    aggregate_serve_answer(arg,
                           &(union aggregate_outcome){.leases = {status, lease, lease ? 1 : 0}});
}

static void on_served_leases_reaped(void *arg, enum state_status status,
                                    const struct state_transition *transitions, size_t count)
{
    aggregate_serve_answer(
        arg, &(union aggregate_outcome){
                 .transitions = {status, transitions, status == STATE_OK ? count : 0}});
}

static void on_gateways_listed(void *arg, enum state_status status,
                               const struct gateway_info *gateways, size_t count)
{
    aggregate_serve_answer(
        arg,
        &(union aggregate_outcome){.gateways = {status, gateways, status == STATE_OK ? count : 0}});
}

static void on_online_listed(void *arg, enum state_status status, const struct state_online *page)
{
    union aggregate_outcome outcome = {.online.status = status};
    if (page)
        outcome.online.page = *page;
    aggregate_serve_answer(arg, &outcome);
}

static void on_online_counted(void *arg, enum state_status status, size_t count)
{
    aggregate_serve_answer(arg, &(union aggregate_outcome){.count = {status, count}});
}

void aggregate_serve_fleet(struct aggregate_stores_session *session,
                           struct aggregate_served *served,
                           const union aggregate_arguments *arguments)
{
    struct state_store *state = session->stores->state;
    if (served->operation == AGGREGATE_STATE_FIND)
        state_find(state, &arguments->conn_id, on_lease_found, served);
    else if (served->operation == AGGREGATE_STATE_REAP)
        /* The next reap says that these were told, so it must be the same gateway's. */
        state_reap(session->state, arguments->max, on_served_leases_reaped, served);
    else if (served->operation == AGGREGATE_STATE_GATEWAYS)
        state_gateways(session->state, on_gateways_listed,
                       served); /* it learns its rank as a reaper */
    else if (served->operation == AGGREGATE_STATE_ONLINE)
        state_online(state, arguments->page.after,
                     arguments->page.limit ? arguments->page.limit : 1, on_online_listed, served);
    else
        state_count_online(state, on_online_counted, served);
}
