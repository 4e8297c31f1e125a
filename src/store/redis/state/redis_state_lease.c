#include "base/container.h"
#include "store/redis/state/redis_state_internal.h"
#include "text/time_text.h"

#include <stdlib.h>

enum lease_step { STEP_OPEN, STEP_IDLE, STEP_CLOSE, STEP_CALL };

/* One operation on its way. Texts are copied: what borrowed them has returned by the time of the answer. */
struct lease_call {
    struct table_node node;    /* in state->turns, from its turn on */
    struct lease_call *behind; /* the next about the same lease */
    struct lease_call *last;   /* of those behind, when it is its turn */
    struct redis_state *state;
    state_transition_done done;
    void *arg;
    enum lease_step step;
    bool set; /* idle, or in a call */
    struct lease lease;
    struct state_transition transition; /* of an open, while the crowd is told */
    char conn[ULID_TEXT_LEN];
    char user[USER_ID_BYTES_MAX];
    char device[DEVICE_ID_BYTES_MAX];
    char gateway[GATEWAY_ID_BYTES_MAX];
};

static struct slice conn_of(const struct lease_call *call)
{
    return (struct slice){call->conn, sizeof(call->conn)};
}

/* ---- one after the other ----
 *
 * A call goes from server to server, each of which may send it elsewhere, ask for patience or for a script's
 * source. So that none overtakes another about the same lease, it begins when that one has been answered. */

static void begin(struct lease_call *call);

/* Its lease; of a user's calls, the user. */
static struct slice subject_of(const struct lease_call *call)
{
    return call->step == STEP_CALL ? call->lease.user_id : conn_of(call);
}

bool redis_state_turn_matches(const struct table_node *node, struct slice key)
{
    return slice_equal(subject_of(CONTAINER_OF(node, struct lease_call, node)), key);
}

static void take_turn(struct lease_call *call)
{
    struct table_node *node = table_find(&call->state->turns, subject_of(call));
    if (!node) {
        table_insert(&call->state->turns, &call->node, subject_of(call));
        begin(call);
        return;
    }
    struct lease_call *first = CONTAINER_OF(node, struct lease_call, node);
    struct lease_call *last = first->last ? first->last : first;
    last->behind = first->last = call;
}

/* Whose turn is next; NULL: nobody waits. It has not begun. */
static struct lease_call *pass_turn(struct lease_call *call)
{
    struct lease_call *next = call->behind;
    table_remove(&call->state->turns, &call->node);
    if (!next)
        return NULL;
    next->last = call->last == next ? NULL : call->last;
    table_insert(&call->state->turns, &next->node, subject_of(next));
    return next;
}

static void finish(struct lease_call *call, enum state_status status,
                   const struct state_transition *transition)
{
    static const struct state_transition nothing;
    struct redis_state *state = call->state;
    struct lease_call *next = pass_turn(call);
    call->done(call->arg, status, transition ? transition : &nothing);
    free(call);
    if (next)
        begin(next);
    redis_state_end(state);
}

/* ---- what a cluster keeps beside the script ---- */

static void leave_beside(struct lease_call *call, const struct resp_value *reply)
{
    struct slice conn = conn_of(call);
    if (redis_state_has_ended(reply))
        redis_state_index(call->state, conn, call->lease.user_id, -1, NULL, NULL);
    redis_state_let_go(call->state, redis_state_left_gateway(reply), conn);
}

static void told_crowd(void *arg, const struct resp_value *reply)
{
    struct lease_call *call = arg;
    (void)reply; /* what was lost is mended by the next who opens, or a renewal */
    finish(call, STATE_OK, &call->transition);
}

/* Who opens is answered only when those online know of it: so whoever asks for them before misses nobody who
 * will not in turn, being here, see what the asker did. It is told in any case, as it may have been lost. */
static void open_beside(struct lease_call *call, const struct state_transition *transition)
{
    call->transition = *transition;
    redis_state_hold(call->state, call->lease.gateway_id, conn_of(call), call->lease.user_id);
    redis_state_crowd(call->state, &call->transition.presence, told_crowd, call);
}

static void answered(void *arg, const struct resp_value *reply)
{
    struct lease_call *call = arg;
    struct state_transition transition = {.presence.user_id = call->lease.user_id};
    if (!reply ||
        !redis_state_read_transition(call->state, reply, call->lease.user_id, &transition)) {
        finish(call, reply ? STATE_UNAVAILABLE : STATE_UNKNOWN, reply ? NULL : &transition);
        return;
    }
    if (call->state->keys.cluster && call->step == STEP_OPEN) {
        open_beside(call, &transition);
        return;
    }
    if (call->state->keys.cluster && call->step == STEP_CLOSE)
        leave_beside(call, reply);
    if (call->state->keys.cluster && transition.changed)
        redis_state_crowd(call->state, &transition.presence, NULL, NULL);
    finish(call, STATE_OK, &transition);
}

/* ---- the scripts ---- */

/* Since when the user is known here, by Redis's clock: both clocks as they are now, so that a gateway's wrong one
 * does no harm. Redis's is known from its last answer; before the first, ours must do. */
static struct slice known_by_redis(const struct lease_call *call, char out[TIME_TEXT_LEN])
{
    if (call->lease.known_since_ms == 0)
        return SLICE("");
    const struct redis_state *state = call->state;
    time_text_write(out, call->lease.known_since_ms + state->redis_ahead_ms);
    return (struct slice){out, TIME_TEXT_LEN};
}

static void run_open(struct lease_call *call)
{
    char name[REDIS_KEY_BYTES_MAX], connected[TIME_TEXT_LEN], heartbeat[TIME_TEXT_LEN];
    char known[TIME_TEXT_LEN];
    const struct lease *lease = &call->lease;
    time_text_write(connected, lease->connected_at_ms);
    time_text_write(heartbeat, lease->last_heartbeat_ms);
    const struct slice arguments[] = {redis_state_name(call->state, name, lease->user_id),
                                      conn_of(call),
                                      lease->user_id,
                                      lease->device_id,
                                      lease->gateway_id,
                                      {connected, sizeof(connected)},
                                      {heartbeat, sizeof(heartbeat)},
                                      lease->idle ? SLICE("1") : SLICE("0"),
                                      known_by_redis(call, known)};
    redis_state_run(call->state, REDIS_STATE_OPEN, lease->user_id, arguments,
                    sizeof(arguments) / sizeof(arguments[0]), answered, call);
}

static void run_other(struct lease_call *call)
{
    char name[REDIS_KEY_BYTES_MAX];
    struct slice flag = call->set ? SLICE("1") : SLICE("0");
    struct slice user = redis_state_name(call->state, name, call->lease.user_id);
    bool closes = call->step == STEP_CLOSE;
    const struct slice arguments[] = {user, conn_of(call),
                                      closes ? redis_state_gateway_id(call->state) : flag};
    const struct slice of_call[] = {user, flag};
    if (call->step == STEP_CALL)
        redis_state_run(call->state, REDIS_STATE_IN_CALL, call->lease.user_id, of_call, 2, answered,
                        call);
    else
        redis_state_run(call->state, closes ? REDIS_STATE_CLOSE : REDIS_STATE_IDLE,
                        call->lease.user_id, arguments, 3, answered, call);
}

static void run(struct lease_call *call)
{
    if (call->step == STEP_OPEN)
        run_open(call);
    else
        run_other(call);
}

static void entered(void *arg, const struct resp_value *reply)
{
    struct lease_call *call = arg;
    if (redis_state_is(reply, RESP_INTEGER))
        run(call);
    else
        finish(call, STATE_UNAVAILABLE, NULL);
}

/* On a cluster the index knows of a lease, or a grace, before it begins. */
static void begin(struct lease_call *call)
{
    struct redis_state *state = call->state;
    const struct redis_state_options *options = &state->options;
    bool lingers = call->step == STEP_CLOSE && options->offline_grace_ms > 0;
    if (state->keys.cluster && call->step == STEP_OPEN)
        redis_state_index(state, conn_of(call), call->lease.user_id, options->lease_window_ms,
                          entered, call);
    else if (state->keys.cluster && lingers)
        redis_state_index(state, SLICE_NONE, call->lease.user_id, options->offline_grace_ms,
                          entered, call);
    else
        run(call);
}

/* ---- calls ---- */

static struct slice keep(char *out, struct slice text)
{
    if (text.len)
        memcpy(out, text.data, text.len);
    return (struct slice){out, text.len};
}

/* NULL when it was answered already. */
static struct lease_call *start(struct state_store *store, enum lease_step step,
                                struct slice user_id, state_transition_done done, void *arg)
{
    static const struct state_transition nothing;
    struct redis_state *state = redis_state_of(store);
    /* what ends a lease of ours harms nobody, whoever has our id by now */
    bool may = step == STEP_CLOSE || redis_state_may_write(state);
    struct lease_call *call = may ? malloc(sizeof(*call)) : NULL;
    if (!call) {
        done(arg, STATE_UNAVAILABLE, &nothing);
        return NULL;
    }
    *call = (struct lease_call){.state = state, .done = done, .arg = arg, .step = step};
    call->lease.user_id = keep(call->user, user_id);
    redis_state_begin(state);
    return call;
}

void redis_state_open(struct state_store *store, const struct lease *lease,
                      state_transition_done done, void *arg)
{
    struct lease_call *call = start(store, STEP_OPEN, lease->user_id, done, arg);
    if (!call)
        return;
    call->lease = *lease;
    call->lease.user_id = (struct slice){call->user, lease->user_id.len};
    call->lease.device_id = keep(call->device, lease->device_id);
    call->lease.gateway_id = keep(call->gateway, lease->gateway_id);
    ulid_write(call->conn, &lease->conn_id);
    take_turn(call);
}

void redis_state_set_idle(struct state_store *store, struct slice user_id,
                          const struct ulid *conn_id, bool idle, state_transition_done done,
                          void *arg)
{
    struct lease_call *call = start(store, STEP_IDLE, user_id, done, arg);
    if (!call)
        return;
    call->set = idle;
    ulid_write(call->conn, conn_id);
    take_turn(call);
}

void redis_state_close(struct state_store *store, struct slice user_id, const struct ulid *conn_id,
                       state_transition_done done, void *arg)
{
    struct lease_call *call = start(store, STEP_CLOSE, user_id, done, arg);
    if (!call)
        return;
    ulid_write(call->conn, conn_id);
    take_turn(call);
}

void redis_state_set_call(struct state_store *store, struct slice user_id, bool in_call,
                          state_transition_done done, void *arg)
{
    struct lease_call *call = start(store, STEP_CALL, user_id, done, arg);
    if (!call)
        return;
    call->set = in_call;
    take_turn(call);
}
