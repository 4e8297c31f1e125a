#include "base/container.h"
#include "store/redis/state/redis_state_internal.h"
#include "text/time_text.h"

#include <stdlib.h>

enum lease_verb { LEASE_OPEN, LEASE_SET_IDLE, LEASE_CLOSE, LEASE_SET_CALL };

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
    struct state_transition transition; /* of an open, while the online sets are updated */
    char conn[ULID_TEXT_LEN];
    char user[USER_ID_BYTES_MAX];
    char device[DEVICE_ID_BYTES_MAX];
    char gateway[GATEWAY_ID_BYTES_MAX];
    char displaced_gateway[GATEWAY_ID_BYTES_MAX]; /* for `transition` */
};

static struct slice lease_operation_conn(const struct lease_operation *operation)
{
    return (struct slice){operation->conn, sizeof(operation->conn)};
}

/* ---- one operation at a time per lease ----
 *
 * An operation may be redirected to another server, may have to wait, or may have to be sent again with the script's
 * source. So that none overtakes another on the same lease, each begins only when the previous one was answered. */

static void begin_lease_operation(struct lease_operation *operation);

/* The key of the queue: the connection, or the user for the in-call flag. */
static struct slice lease_queue_key(const struct lease_operation *operation)
{
    return operation->verb == LEASE_SET_CALL ? operation->lease.user_id
                                             : lease_operation_conn(operation);
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
        begin_lease_operation(operation);
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
        begin_lease_operation(next);
    redis_state_end(state);
}

/* ---- replies, and what a cluster updates after the script ---- */

/* A failed update is ignored: the user's next open, or a renewal, repairs the sets. */
static void on_online_sets_updated(void *arg, const struct resp_value *reply)
{
    struct lease_operation *operation = arg;
    (void)reply;
    finish_lease_operation(operation, STATE_OK, &operation->transition);
}

static struct slice copy_lease_text(char *out, struct slice text)
{
    if (text.len)
        memcpy(out, text.data, text.len);
    return (struct slice){out, text.len};
}

/* On a cluster: what the script of an open could not update. The operation completes only after the online sets are
 * updated, so that concurrent readers miss nobody: a reader that did not find this user read before the open completed,
 * and what this user reads afterwards includes what that reader did. The sets are updated even without a change: an
 * earlier update may have been lost. */
static void update_cluster_after_open(struct lease_operation *operation,
                                      const struct state_transition *transition)
{
    struct redis_state *state = operation->state;
    struct slice user_id = operation->lease.user_id;
    char displaced[ULID_TEXT_LEN];
    operation->transition = *transition;
    operation->transition.displaced_gateway =
        copy_lease_text(operation->displaced_gateway, transition->displaced_gateway);
    if (transition->displaced_gateway.len) {
        struct slice conn = {displaced, sizeof(displaced)};
        ulid_write(displaced, &transition->displaced);
        redis_state_update_index(state, conn, user_id, -1, NULL, NULL);
        redis_state_remove_connection(state, operation->transition.displaced_gateway, conn);
    }
    redis_state_add_connection(state, operation->lease.gateway_id, lease_operation_conn(operation),
                               user_id);
    redis_state_update_online_sets(state, &operation->transition.presence, on_online_sets_updated,
                                   operation);
}

static void on_lease_transition(void *arg, const struct resp_value *reply)
{
    struct lease_operation *operation = arg;
    struct redis_state *state = operation->state;
    struct slice conn = lease_operation_conn(operation), user_id = operation->lease.user_id;
    struct state_transition transition = {.presence.user_id = user_id};
    struct redis_lease_change change;
    if (!reply || !redis_state_parse_transition(state, reply, user_id, &transition, &change)) {
        finish_lease_operation(operation, reply ? STATE_UNAVAILABLE : STATE_UNKNOWN,
                               reply ? NULL : &transition);
        return;
    }
    if (state->keys.cluster && operation->verb == LEASE_OPEN) {
        update_cluster_after_open(operation, &transition);
        return;
    }
    if (state->keys.cluster && operation->verb == LEASE_CLOSE) {
        if (change.has_ended)
            redis_state_update_index(state, conn, user_id, -1, NULL, NULL);
        redis_state_remove_connection(state, change.old_gateway, conn);
    }
    if (state->keys.cluster && transition.changed)
        redis_state_update_online_sets(state, &transition.presence, NULL, NULL);
    finish_lease_operation(operation, STATE_OK, &transition);
}

/* ---- scripts ---- */

/* Converts `known_since_ms` and `silent_heard_ms` to Redis's clock. Both clocks are compared as they are now, so a gateway's wrong clock does
 * no harm. Redis's clock is known from its last answer; before the first one ours is used. */
static void run_open_script(struct lease_operation *operation)
{
    char name[REDIS_KEY_BYTES_MAX], connected[TIME_TEXT_LEN], heartbeat[TIME_TEXT_LEN];
    char known[TIME_TEXT_LEN], max[REDIS_STATE_NUMBER_MAX], heard[REDIS_STATE_NUMBER_MAX];
    char silent[ULID_TEXT_LEN];
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
        redis_state_number(heard, lease->silent_heard_ms + operation->state->redis_ahead_ms)};
    redis_state_run(operation->state, REDIS_STATE_OPEN, lease->user_id, arguments,
                    sizeof(arguments) / sizeof(arguments[0]), on_lease_transition, operation);
}

static void run_lease_script(struct lease_operation *operation)
{
    if (operation->verb == LEASE_OPEN) {
        run_open_script(operation);
        return;
    }
    struct redis_state *state = operation->state;
    char name[REDIS_KEY_BYTES_MAX];
    struct slice flag = operation->flag ? SLICE("1") : SLICE("0");
    struct slice user_id = operation->lease.user_id;
    struct slice user = redis_state_user_name(state, name, user_id);
    if (operation->verb == LEASE_SET_CALL) {
        const struct slice arguments[] = {user, flag};
        redis_state_run(state, REDIS_STATE_IN_CALL, user_id, arguments, 2, on_lease_transition,
                        operation);
    } else {
        bool closes = operation->verb == LEASE_CLOSE;
        const struct slice arguments[] = {user, lease_operation_conn(operation),
                                          closes ? redis_state_gateway_id(state) : flag};
        redis_state_run(state, closes ? REDIS_STATE_CLOSE : REDIS_STATE_IDLE, user_id, arguments, 3,
                        on_lease_transition, operation);
    }
}

static void on_lease_indexed(void *arg, const struct resp_value *reply)
{
    if (redis_state_reply_is(reply, RESP_INTEGER))
        run_lease_script(arg);
    else
        finish_lease_operation(arg, STATE_UNAVAILABLE, NULL);
}

/* On a cluster a lease, or a grace, is in the index before it begins, so that a reaper always finds it. */
static void begin_lease_operation(struct lease_operation *operation)
{
    struct redis_state *state = operation->state;
    const struct redis_state_options *options = &state->options;
    bool has_grace = operation->verb == LEASE_CLOSE && options->offline_grace_ms > 0;
    if (state->keys.cluster && operation->verb == LEASE_OPEN)
        redis_state_update_index(state, lease_operation_conn(operation), operation->lease.user_id,
                                 options->lease_window_ms, on_lease_indexed, operation);
    else if (state->keys.cluster && has_grace)
        redis_state_update_index(state, SLICE_NONE, operation->lease.user_id,
                                 options->offline_grace_ms, on_lease_indexed, operation);
    else
        run_lease_script(operation);
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
