#include "base/container.h"
#include "store/redis/state/redis_state_internal.h"
#include "text/time_text.h"

#include <stdlib.h>

enum lease_verb { LEASE_OPEN, LEASE_SET_IDLE, LEASE_CLOSE, LEASE_SETTLE, LEASE_SET_CALL };

/* A claim that Redis runs later than this is out of date. */
enum { SETTLE_LATE_MS = 2000 };

/* One operation. Ids are copied, because the caller's last only until the operation returns. */
struct lease_operation {
    struct table_node node;       /* in state->lease_queues while this is the first operation */
    struct lease_operation *next; /* waits for this one */
    struct lease_operation
        *last; /* the end of the queue; NULL when nobody waits. First operation only */
    struct redis_state *state;
    state_transition_done done;
    void *arg;
    enum lease_verb verb;
    bool flag; /* idle, or in a call */
    struct lease lease;
    struct state_claim claim; /* of a settlement; its user is that of the lease */
    char conn[ULID_TEXT_LEN];
    char user[USER_ID_BYTES_MAX];
    char device[DEVICE_ID_BYTES_MAX];
    char gateway[GATEWAY_ID_BYTES_MAX];
};

static struct slice lease_operation_conn(const struct lease_operation *operation)
{
    return (struct slice){operation->conn, sizeof(operation->conn)};
}

/* ---- one operation at a time per lease ----
 *
 * An operation may be redirected to another server, may have to wait, or may have to be sent again with the script's
 * source. So that none overtakes another on the same lease, each begins only when the previous one was answered. */

static void run_lease_script(struct lease_operation *operation);

/* The key of the queue: the connection, or the user for the in-call flag and for claims without a connection. */
static struct slice lease_queue_key(const struct lease_operation *operation)
{
    bool has_conn = operation->verb == LEASE_SETTLE ? operation->claim.left_at_ms != 0
                                                    : operation->verb != LEASE_SET_CALL;
    return has_conn ? lease_operation_conn(operation) : operation->lease.user_id;
}

bool redis_state_lease_queue_matches(const struct table_node *node, struct slice key)
{
    return slice_equal(lease_queue_key(CONTAINER_OF(node, struct lease_operation, node)), key);
}

static void enqueue_lease_operation(struct lease_operation *operation)
{
    struct slice key = lease_queue_key(operation);
    struct table_node *node = table_find(&operation->state->lease_queues, key);
    if (!node) {
        table_insert(&operation->state->lease_queues, &operation->node, key);
        run_lease_script(operation);
        return;
    }
    struct lease_operation *first = CONTAINER_OF(node, struct lease_operation, node);
    struct lease_operation *last = first->last ? first->last : first;
    last->next = first->last = operation;
}

/* Completes the first operation of a queue and begins the next one. */
static void finish_lease_operation(struct lease_operation *operation, enum state_status status,
                                   const struct state_transition *transition)
{
    static const struct state_transition nothing;
    struct redis_state *state = operation->state;
    struct lease_operation *next = operation->next;
    table_remove(&state->lease_queues, &operation->node);
    if (next) {
        next->last = operation->last == next ? NULL : operation->last;
        table_insert(&state->lease_queues, &next->node, lease_queue_key(next));
    }
    operation->done(operation->arg, status, transition ? transition : &nothing);
    free(operation);
    if (next)
        run_lease_script(next);
    redis_state_end(state);
}

/* ---- replies, and what a cluster updates after the script ---- */

static struct slice copy_lease_text(char *out, struct slice text)
{
    if (text.len)
        memcpy(out, text.data, text.len);
    return (struct slice){out, text.len};
}

/* On a cluster: the sets of gateways' connections and the connections' owners, which no script of a user can update. */
static void update_cluster_connections(struct lease_operation *operation,
                                       const struct state_transition *transition,
                                       const struct redis_lease_change *change)
{
    struct redis_state *state = operation->state;
    struct slice conn = lease_operation_conn(operation);
    char displaced[ULID_TEXT_LEN];
    bool is_settled =
        operation->verb == LEASE_SETTLE && operation->claim.left_at_ms && !change->is_undecided;
    if (operation->verb == LEASE_CLOSE || is_settled)
        redis_state_remove_connection(state, change->old_gateway, conn);
    if (operation->verb != LEASE_OPEN)
        return;
    if (transition->displaced_gateway.len) {
        ulid_write(displaced, &transition->displaced);
        redis_state_remove_connection(state, transition->displaced_gateway,
                                      (struct slice){displaced, sizeof(displaced)});
    }
    redis_state_add_connection(state, operation->lease.gateway_id, conn, operation->lease.user_id);
}

/* A lease or a grace whose end nobody else may look for: a reaper of this gateway does. */
static void expect_lease_end(const struct lease_operation *operation, int64_t in_ms)
{
    redis_state_expect_end(operation->state, operation->lease.user_id, in_ms);
}

static void on_lease_transition(void *arg, const struct resp_value *reply)
{
    struct lease_operation *operation = arg;
    struct redis_state *state = operation->state;
    struct state_transition transition = {.presence.user_id = operation->lease.user_id};
    struct redis_lease_change change;
    if (!reply || !redis_state_parse_transition(state, reply, operation->lease.user_id, &transition,
                                                &change)) {
        expect_lease_end(operation, state->options.lease_window_ms);
        finish_lease_operation(operation, reply ? STATE_UNAVAILABLE : STATE_UNKNOWN,
                               reply ? NULL : &transition);
        return;
    }
    transition.undecided = change.is_undecided;
    if (state->keys.cluster)
        update_cluster_connections(operation, &transition, &change);
    if (change.grace_ms > 0)
        expect_lease_end(operation, change.grace_ms);
    /* A lease that has expired, or is lost, is left to a reaper (close.lua). */
    if (operation->verb == LEASE_CLOSE && !change.has_ended)
        expect_lease_end(operation, state->options.lease_window_ms);
    finish_lease_operation(operation, STATE_OK, &transition);
}

/* ---- scripts ---- */

/* Converts `known_since_ms` and `silent_heard_ms` to Redis's clock. Both clocks are compared as they are now, so a gateway's wrong clock does
 * no harm. Redis's clock is known from its last answer; before the first one ours is used. */
static void run_open_script(struct lease_operation *operation)
{
    char name[REDIS_KEY_BYTES_MAX], connected[TIME_TEXT_LEN], heartbeat[TIME_TEXT_LEN];
    char known[TIME_TEXT_LEN], max[REDIS_STATE_NUMBER_MAX], heard[REDIS_STATE_NUMBER_MAX];
    char silent[ULID_TEXT_LEN], version[REDIS_STATE_NUMBER_MAX];
    const struct lease *lease = &operation->lease;
    ulid_write(silent, &lease->silent_conn_id);
    time_text_write(connected, lease->connected_at_ms);
    time_text_write(heartbeat, lease->last_heartbeat_ms);
    if (lease->known_since_ms)
        time_text_write(known, lease->known_since_ms + operation->state->redis_ahead_ms);
    const struct slice arguments[] = {
        redis_state_user_name(operation->state, name, lease->user_id),
        lease_operation_conn(operation),
        lease->user_id,
        lease->device_id,
        lease->gateway_id,
        {connected, sizeof(connected)},
        {heartbeat, sizeof(heartbeat)},
        lease->idle ? SLICE("1") : SLICE("0"),
        {known, lease->known_since_ms ? sizeof(known) : 0},
        redis_state_number(max, lease->user_leases_max),
        {silent, lease->silent_heard_ms ? sizeof(silent) : 0},
        redis_state_number(heard, lease->silent_heard_ms + operation->state->redis_ahead_ms),
        redis_state_number(version, lease->version_min)};
    redis_state_run(operation->state, REDIS_STATE_OPEN, lease->user_id, arguments,
                    sizeof(arguments) / sizeof(arguments[0]), on_lease_transition, operation);
}

/* A time of our wall clock by Redis's clock; empty for 0. */
static struct slice write_redis_time(const struct redis_state *state, char out[TIME_TEXT_LEN],
                                     int64_t wall_ms)
{
    if (wall_ms == 0)
        return SLICE("");
    time_text_write(out, wall_ms + state->redis_ahead_ms);
    return (struct slice){out, TIME_TEXT_LEN};
}

/* Since when others have been told that the user is connected: since the connection began, or, without one, since the
 * version that they were told, which is a time of Redis's clock. */
static struct slice claimed_since(const struct lease_operation *operation, char out[TIME_TEXT_LEN])
{
    const struct state_claim *claim = &operation->claim;
    if (!claim->was_connected)
        return SLICE("");
    if (claim->left_at_ms)
        return write_redis_time(operation->state, out, ulid_time_ms(&claim->conn_id));
    time_text_write(out, claim->version_min);
    return (struct slice){out, TIME_TEXT_LEN};
}

static void run_settle_script(struct lease_operation *operation)
{
    char name[REDIS_KEY_BYTES_MAX], left[TIME_TEXT_LEN], since[TIME_TEXT_LEN];
    char version[REDIS_STATE_NUMBER_MAX], until[REDIS_STATE_NUMBER_MAX];
    const struct redis_state *state = operation->state;
    const struct state_claim *claim = &operation->claim;
    int64_t until_ms = state->options.loop->clock.wall_ms + state->redis_ahead_ms + SETTLE_LATE_MS;
    const struct slice arguments[] = {redis_state_user_name(state, name, operation->lease.user_id),
                                      claim->left_at_ms ? lease_operation_conn(operation)
                                                        : SLICE(""),
                                      write_redis_time(state, left, claim->left_at_ms),
                                      redis_state_gateway_id(state),
                                      claimed_since(operation, since),
                                      redis_state_number(version, claim->version_min),
                                      claim->is_final ? SLICE("1") : SLICE("0"),
                                      redis_state_number(until, until_ms)};
    redis_state_run(operation->state, REDIS_STATE_SETTLE, operation->lease.user_id, arguments,
                    sizeof(arguments) / sizeof(arguments[0]), on_lease_transition, operation);
}

static void run_lease_script(struct lease_operation *operation)
{
    if (operation->verb == LEASE_OPEN) {
        if (operation->state->keys.cluster)
            redis_state_announce_shard(operation->state,
                                       redis_state_shard(operation->lease.user_id));
        run_open_script(operation);
        return;
    }
    if (operation->verb == LEASE_SETTLE) {
        run_settle_script(operation);
        return;
    }
    struct redis_state *state = operation->state;
    char name[REDIS_KEY_BYTES_MAX];
    struct slice flag = operation->flag ? SLICE("1") : SLICE("0");
    struct slice user_id = operation->lease.user_id;
    struct slice user = redis_state_user_name(state, name, user_id);
    char request[REDIS_STATE_NUMBER_MAX];
    if (operation->verb == LEASE_SET_CALL) {
        const struct slice arguments[] = {user, flag};
        redis_state_run(state, REDIS_STATE_IN_CALL, user_id, arguments, 2, on_lease_transition,
                        operation);
    } else {
        bool closes = operation->verb == LEASE_CLOSE;
        const struct slice arguments[] = {
            user, lease_operation_conn(operation), closes ? redis_state_gateway_id(state) : flag,
            slice_of(state->requester), redis_state_number(request, ++state->request_number)};
        redis_state_run(state, closes ? REDIS_STATE_CLOSE : REDIS_STATE_IDLE, user_id, arguments,
                        closes ? 3 : 5, on_lease_transition, operation);
    }
}

/* ---- the port ---- */

/* Returns NULL when the store may not write or is out of memory; the operation is completed then. A close is allowed
 * even then: ending a lease of ours does no harm, whichever process has our id by now. */
static struct lease_operation *make_lease_operation(struct state_store *store, enum lease_verb verb,
                                                    struct slice user_id,
                                                    state_transition_done done, void *arg)
{
    static const struct state_transition nothing;
    struct redis_state *state = redis_state_of(store);
    bool is_allowed = verb == LEASE_CLOSE || redis_state_may_write(state);
    struct lease_operation *operation = is_allowed ? malloc(sizeof(*operation)) : NULL;
    if (!operation) {
        done(arg, STATE_UNAVAILABLE, &nothing);
        return NULL;
    }
    *operation = (struct lease_operation){.state = state, .done = done, .arg = arg, .verb = verb};
    operation->lease.user_id = copy_lease_text(operation->user, user_id);
    redis_state_begin(state);
    return operation;
}

void redis_state_open(struct state_store *store, const struct lease *lease,
                      state_transition_done done, void *arg)
{
    struct lease_operation *operation =
        make_lease_operation(store, LEASE_OPEN, lease->user_id, done, arg);
    if (!operation)
        return;
    operation->lease = *lease;
    operation->lease.user_id = (struct slice){operation->user, lease->user_id.len};
    operation->lease.device_id = copy_lease_text(operation->device, lease->device_id);
    operation->lease.gateway_id = copy_lease_text(operation->gateway, lease->gateway_id);
    ulid_write(operation->conn, &lease->conn_id);
    enqueue_lease_operation(operation);
}

void redis_state_set_idle(struct state_store *store, struct slice user_id,
                          const struct ulid *conn_id, bool idle, state_transition_done done,
                          void *arg)
{
    struct lease_operation *operation =
        make_lease_operation(store, LEASE_SET_IDLE, user_id, done, arg);
    if (!operation)
        return;
    operation->flag = idle;
    ulid_write(operation->conn, conn_id);
    enqueue_lease_operation(operation);
}

void redis_state_close(struct state_store *store, struct slice user_id, const struct ulid *conn_id,
                       state_transition_done done, void *arg)
{
    struct lease_operation *operation =
        make_lease_operation(store, LEASE_CLOSE, user_id, done, arg);
    if (!operation)
        return;
    ulid_write(operation->conn, conn_id);
    enqueue_lease_operation(operation);
}

void redis_state_settle(struct state_store *store, const struct state_claim *claim,
                        state_transition_done done, void *arg)
{
    struct lease_operation *operation =
        make_lease_operation(store, LEASE_SETTLE, claim->user_id, done, arg);
    if (!operation)
        return;
    operation->claim = *claim;
    ulid_write(operation->conn, &claim->conn_id);
    enqueue_lease_operation(operation);
}

void redis_state_set_call(struct state_store *store, struct slice user_id, bool in_call,
                          state_transition_done done, void *arg)
{
    struct lease_operation *operation =
        make_lease_operation(store, LEASE_SET_CALL, user_id, done, arg);
    if (!operation)
        return;
    operation->flag = in_call;
    enqueue_lease_operation(operation);
}
