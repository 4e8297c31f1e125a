#include "base/container.h"
#include "log/log.h"
#include "store/redis/state/redis_state_internal.h"
#include "text/time_text.h"

#include <assert.h>
#include <stdlib.h>

enum {
    PUT_INTERVAL_MIN_MS = 100,  /* what changes in between goes together */
    CLAIM_INTERVAL_MS = 500,    /* looks at a record that may be a dead process's */
    CLAIM_RENEWED_MIN_MS = 250, /* its time left grew by more than chance: somebody renews it */
    CLAIM_REACH_MS = 2000,      /* a cluster must be asked for its table first */
    CLAIM_REACH_INTERVAL_MS = 50,
};

static const struct slice LIST = {"presence:gateways", 17};

static int64_t now_ms(const struct redis_state *state)
{
    return state->options.loop->clock.now_ms;
}

/* ---- our record ---- */

static void keep_record(struct redis_state *state, const struct gateway_info *info)
{
    struct redis_state_record *record = &state->record;
    assert(info->gateway_id.len <= sizeof(record->gateway_id));
    record->info = *info;
    record->info.gateway_id.data =
        memcpy(record->gateway_id, info->gateway_id.data, info->gateway_id.len);
    if (info->peer_address.len > sizeof(record->peer_address))
        record->info.peer_address = SLICE_NONE;
    if (record->info.peer_address.len)
        record->info.peer_address.data =
            memcpy(record->peer_address, info->peer_address.data, info->peer_address.len);
}

static void run_gateway(struct redis_state *state, const char *verb,
                        void (*done)(void *arg, const struct resp_value *reply), void *arg)
{
    const struct gateway_info *info = &state->record.info;
    char key[REDIS_KEY_BYTES_MAX], count[REDIS_STATE_NUMBER_MAX], started[TIME_TEXT_LEN];
    time_text_write(started, info->started_at_ms);
    redis_state_eval(state, REDIS_STATE_GATEWAY_RECORD,
                     REDIS_ARGS(redis_key_plain(key, "gateway:", info->gateway_id)),
                     REDIS_ARGS(slice_of(verb), slice_of(state->instance),
                                state->first_arguments[0],
                                redis_state_number(count, (int64_t)info->connections),
                                (struct slice){started, sizeof(started)},
                                info->draining ? SLICE("1") : SLICE("0"), info->peer_address),
                     done, arg);
}

static void fence(struct redis_state *state)
{
    if (state->fenced)
        return;
    state->fenced = true;
    log_error("gateway_id_taken", "gateway=%s because=\"another process has it\"",
              log_quote(redis_state_gateway_id(state)));
    if (state->options.fenced)
        state->options.fenced(state->options.arg);
}

/* What stands behind "taken". */
enum { TAKEN_SINCE = 2, TAKEN_LEFT_MS, TAKEN_ITEMS };

/* Whether somebody renews the record that is in our way, or does not let it lapse in time. Between two looks
 * at least the time from the first answer to the second question has passed, however late either was heard of. */
static bool holder_lives(struct redis_state *state, const struct resp_value *taken,
                         int64_t sent_at_ms)
{
    struct redis_state_holder before = state->holder;
    int64_t now = now_ms(state);
    int64_t left_ms = taken->items[TAKEN_LEFT_MS].integer;
    int64_t until_ms =
        before.seen ? before.until_ms : now + state->options.lease_window_ms + CLAIM_INTERVAL_MS;
    state->holder = (struct redis_state_holder){true, until_ms, now, left_ms};
    bool renewed = before.seen && left_ms > before.left_ms - (sent_at_ms - before.answered_at_ms) +
                                                CLAIM_RENEWED_MIN_MS;
    return renewed || sent_at_ms >= until_ms;
}

/* One put on its way: when it was sent decides how long it is good for. */
struct gateway_put {
    struct redis_state *state;
    int64_t sent_at_ms;
};

static bool is_word(const struct resp_value *reply, const char *word)
{
    return reply->count > 0 && slice_is(reply->items[0].text, word);
}

static void registered(struct redis_state *state, int64_t sent_at_ms, bool made)
{
    bool forgotten = made && state->known;
    state->known = true;
    state->registered_until_ms = sent_at_ms + state->options.lease_window_ms;
    if (!forgotten)
        return;
    redis_state_hold_off(state);
    log_warn("gateway_forgotten", "gateway=%s", log_quote(redis_state_gateway_id(state)));
    if (state->options.forgotten)
        state->options.forgotten(state->options.arg);
}

/* A process that never had the id may be in a dead one's way only, whose record lapses (the claim was left
 * open); one that had it has lost it. */
static void meet_holder(struct redis_state *state, const struct resp_value *taken,
                        int64_t sent_at_ms)
{
    if (state->known || taken->count < TAKEN_ITEMS || holder_lives(state, taken, sent_at_ms))
        fence(state);
    else if (!state->released && !wheel_is_set(&state->put_timer))
        loop_set_timer(state->options.loop, &state->put_timer, now_ms(state) + CLAIM_INTERVAL_MS);
}

static void put_answered(void *arg, const struct resp_value *reply)
{
    struct gateway_put put = *(struct gateway_put *)arg;
    struct redis_state *state = put.state;
    free(arg);
    if (redis_state_is(reply, RESP_ARRAY) && !state->closing) {
        if (is_word(reply, "taken"))
            meet_holder(state, reply, put.sent_at_ms);
        else if (slice_equal(state->record.info.gateway_id, redis_state_gateway_id(state)))
            registered(state, put.sent_at_ms, is_word(reply, "made"));
    }
    redis_state_end(state);
}

static void put_now(struct redis_state *state)
{
    struct gateway_put *put = malloc(sizeof(*put));
    if (!put || state->released || state->fenced) {
        free(put);
        return;
    }
    *put = (struct gateway_put){state, now_ms(state)};
    state->put_at_ms = put->sent_at_ms;
    redis_state_begin(state);
    run_gateway(state, "put", put_answered, put);
    redis_state_eval(
        state, REDIS_STATE_GATEWAY_LIST, REDIS_ARGS(LIST),
        REDIS_ARGS(SLICE("put"), state->record.info.gateway_id, state->first_arguments[0]), NULL,
        NULL);
}

static void put_due(struct wheel_timer *timer)
{
    put_now(CONTAINER_OF(timer, struct redis_state, put_timer));
}

void redis_state_gateways_init(struct redis_state *state)
{
    state->put_timer.fire = put_due;
    state->put_at_ms = now_ms(state) - PUT_INTERVAL_MIN_MS;
}

void redis_state_gateways_return(struct redis_state *state)
{
    if (state->known)
        put_now(state);
}

void redis_state_put_gateway(struct state_store *store, const struct gateway_info *info)
{
    struct redis_state *state = redis_state_of(store);
    keep_record(state, info);
    int64_t due_ms = state->put_at_ms + PUT_INTERVAL_MIN_MS;
    if (now_ms(state) >= due_ms)
        put_now(state);
    else if (!wheel_is_set(&state->put_timer))
        loop_set_timer(state->options.loop, &state->put_timer, due_ms);
}

/* ---- claims ---- */

struct claiming {
    struct redis_state *state;
    void (*done)(void *arg, enum redis_claim claim, struct slice since);
    void *arg;
    struct wheel_timer timer;
    int64_t sent_at_ms;
    int64_t reach_until_ms;
};

static void claim(struct claiming *claiming);

static void claim_again(struct wheel_timer *timer)
{
    struct claiming *claiming = CONTAINER_OF(timer, struct claiming, timer);
    claiming->state->claiming = NULL;
    claim(claiming);
}

static void finish_claim(struct claiming *claiming, enum redis_claim result, struct slice since)
{
    struct redis_state *state = claiming->state;
    claiming->done(claiming->arg, result, since);
    free(claiming);
    redis_state_end(state);
}

static void claim_in(struct claiming *claiming, int64_t delay_ms)
{
    struct redis_state *state = claiming->state;
    state->claiming = claiming;
    loop_set_timer(state->options.loop, &claiming->timer, now_ms(state) + delay_ms);
}

static void claim_answered(void *arg, const struct resp_value *reply)
{
    struct claiming *claiming = arg;
    struct redis_state *state = claiming->state;
    if (state->closing) {
        finish_claim(claiming, REDIS_CLAIM_GIVEN_UP, SLICE_NONE);
    } else if (!reply && now_ms(state) < claiming->reach_until_ms) {
        claim_in(claiming, CLAIM_REACH_INTERVAL_MS);
    } else if (!redis_state_is(reply, RESP_ARRAY)) {
        finish_claim(claiming, REDIS_CLAIM_OPEN, SLICE_NONE);
    } else if (!is_word(reply, "taken") || reply->count < TAKEN_ITEMS) {
        registered(state, claiming->sent_at_ms, is_word(reply, "made"));
        finish_claim(claiming, REDIS_CLAIM_GRANTED, SLICE_NONE);
    } else if (holder_lives(state, reply, claiming->sent_at_ms)) {
        state->fenced = true;
        finish_claim(claiming, REDIS_CLAIM_TAKEN, reply->items[TAKEN_SINCE].text);
    } else {
        claim_in(claiming, CLAIM_INTERVAL_MS);
    }
}

static void claim(struct claiming *claiming)
{
    claiming->sent_at_ms = now_ms(claiming->state);
    run_gateway(claiming->state, "put", claim_answered, claiming);
}

void redis_state_claim(struct state_store *store, const struct gateway_info *info,
                       void (*done)(void *arg, enum redis_claim claim, struct slice since),
                       void *arg)
{
    struct redis_state *state = redis_state_of(store);
    struct claiming *claiming = malloc(sizeof(*claiming));
    state->claimed = true;
    keep_record(state, info);
    if (!claiming) {
        done(arg, REDIS_CLAIM_OPEN, SLICE_NONE);
        return;
    }
    *claiming = (struct claiming){
        .state = state,
        .done = done,
        .arg = arg,
        .timer.fire = claim_again,
        .reach_until_ms = now_ms(state) + CLAIM_REACH_MS,
    };
    redis_state_begin(state);
    claim(claiming);
}

void redis_state_gateways_stop(struct redis_state *state)
{
    loop_cancel_timer(state->options.loop, &state->put_timer);
    if (!state->claiming)
        return;
    loop_cancel_timer(state->options.loop, &state->claiming->timer);
    finish_claim(state->claiming, REDIS_CLAIM_GIVEN_UP, SLICE_NONE);
}

/* ---- leaving ---- */

struct releasing {
    struct redis_state *state;
    void (*done)(void *arg);
    void *arg;
    size_t waiting;
};

static void released(void *arg, const struct resp_value *reply)
{
    struct releasing *releasing = arg;
    (void)reply; /* what could not be taken away lapses */
    if (--releasing->waiting)
        return;
    struct redis_state *state = releasing->state;
    releasing->done(releasing->arg);
    free(releasing);
    redis_state_end(state);
}

void redis_state_release(struct state_store *store, void (*done)(void *arg), void *arg)
{
    enum { COMMANDS = 3 };
    struct redis_state *state = redis_state_of(store);
    struct releasing *releasing = malloc(sizeof(*releasing));
    char text[REDIS_KEY_BYTES_MAX];
    loop_cancel_timer(state->options.loop, &state->put_timer);
    bool ours = !state->fenced && !state->released && state->record.info.gateway_id.len > 0;
    state->released = true;
    if (!releasing || !ours) {
        free(releasing);
        done(arg);
        return;
    }
    *releasing = (struct releasing){state, done, arg, COMMANDS};
    redis_state_begin(state);
    struct slice id = redis_state_gateway_id(state);
    struct slice held = redis_key_plain(text, "server_connections:", id);
    redis_command(state->options.client, held, REDIS_ARGS(SLICE("DEL"), held), released, releasing);
    redis_state_eval(state, REDIS_STATE_GATEWAY_LIST, REDIS_ARGS(LIST),
                     REDIS_ARGS(SLICE("drop"), id), released, releasing);
    run_gateway(state, "release", released, releasing);
}
