#include "base/container.h"
#include "log/log.h"
#include "store/redis/state/redis_state_internal.h"
#include "text/time_text.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

enum {
    PUT_INTERVAL_MIN_MS = 100, /* changes in between are put together */
    CLAIM_INTERVAL_MS = 500,   /* between two checks of a record that may be a dead process's */
    CLAIM_RENEWED_MIN_MS =
        250,               /* a record with this much more time left than expected was renewed */
    CLAIM_REACH_MS = 2000, /* a cluster's slots must be read first */
    CLAIM_REACH_INTERVAL_MS = 50,
    LISTINGS_PER_WINDOW = 4,
};

static int64_t gateway_now_ms(const struct redis_state *state)
{
    return state->options.loop->clock.now_ms;
}

/* ---- our record ---- */

static void keep_gateway_record(struct redis_state *state, const struct gateway_info *info)
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

/* With `is_listed`, on a single server, also enters the gateway into the registry. */
static void run_gateway_record_script(struct redis_state *state, const char *verb, bool is_listed,
                                      redis_reply_done done, void *arg)
{
    const struct gateway_info *info = &state->record.info;
    char key[REDIS_KEY_BYTES_MAX], count[REDIS_STATE_NUMBER_MAX], started[TIME_TEXT_LEN];
    char text[REDIS_STATE_INFO_MAX];
    const struct slice keys[] = {redis_key_plain(key, "gateway:", info->gateway_id),
                                 REDIS_STATE_GATEWAY_SET, REDIS_STATE_GATEWAY_INFOS};
    time_text_write(started, info->started_at_ms);
    redis_state_eval(
        state, REDIS_STATE_GATEWAY_RECORD, (struct redis_args){keys, is_listed ? 3 : 1},
        REDIS_ARGS(slice_of(verb), slice_of(state->instance), state->first_arguments[0],
                   redis_state_number(count, (int64_t)info->connections),
                   (struct slice){started, sizeof(started)},
                   info->draining ? SLICE("1") : SLICE("0"), info->peer_address,
                   state->options.process, slice_of(state->replaced), info->gateway_id,
                   redis_state_write_info(text, info)),
        done, arg);
}

/* ---- the registry ---- */

static uint64_t hash_gateway_info(const struct gateway_info *info)
{
    char text[REDIS_STATE_INFO_MAX];
    struct slice written = redis_state_write_info(text, info);
    return XXH3_64bits_withSeed(written.data, written.len,
                                XXH3_64bits(info->gateway_id.data, info->gateway_id.len));
}

/* Whether the registry must be told of the record: after a change that it shows, and several times in a window. */
static bool is_gateway_listing_due(struct redis_state *state)
{
    uint64_t hash = hash_gateway_info(&state->record.info);
    int64_t now = gateway_now_ms(state);
    if (state->listed_hash == hash &&
        now < state->listed_at_ms + state->options.lease_window_ms / LISTINGS_PER_WINDOW)
        return false;
    state->listed_hash = hash;
    state->listed_at_ms = now;
    return true;
}

static void list_gateway_on_cluster(struct redis_state *state)
{
    const struct gateway_info *info = &state->record.info;
    char text[REDIS_STATE_INFO_MAX];
    redis_state_eval(state, REDIS_STATE_GATEWAY_LIST,
                     REDIS_ARGS(REDIS_STATE_GATEWAY_SET, REDIS_STATE_GATEWAY_INFOS),
                     REDIS_ARGS(SLICE("put"), info->gateway_id, state->first_arguments[0],
                                redis_state_write_info(text, info)),
                     NULL, NULL);
}

/* The items of a "taken" reply. */
enum { TAKEN_INSTANCE = 1, TAKEN_SINCE, TAKEN_LEFT_MS, TAKEN_PROCESS, TAKEN_ITEMS };

/* Whether the process that has the record in our way is gone. Then the next put replaces its record. */
static bool is_rival_gateway_gone(struct redis_state *state, const struct resp_value *taken)
{
    struct slice instance = taken->items[TAKEN_INSTANCE].text;
    if (!state->options.is_process_gone || instance.len >= sizeof(state->replaced) ||
        slice_equal(instance, slice_of(state->replaced)) ||
        !state->options.is_process_gone(state->options.arg, taken->items[TAKEN_PROCESS].text))
        return false;
    log_info("gateway_taken_over", "gateway=%s reason=%s", log_quote(redis_state_gateway_id(state)),
             log_sentence(SLICE("the process that had this id has ended")));
    snprintf(state->replaced, sizeof(state->replaced), "%.*s", SLICE_FORMAT(instance));
    return true;
}

/* Whether another process renews the record that is in our way, or the record has not expired in time. Between two checks
 * at least the time from the first reply to the second request has passed, however late either of them arrived. */
static bool is_rival_gateway_alive(struct redis_state *state, const struct resp_value *taken,
                                   int64_t sent_at_ms)
{
    struct redis_state_rival before = state->rival;
    int64_t now = gateway_now_ms(state);
    int64_t left_ms = taken->items[TAKEN_LEFT_MS].integer;
    int64_t until_ms =
        before.seen ? before.until_ms : now + state->options.lease_window_ms + CLAIM_INTERVAL_MS;
    state->rival = (struct redis_state_rival){true, until_ms, now, left_ms};
    bool renewed = before.seen && left_ms > before.left_ms - (sent_at_ms - before.answered_at_ms) +
                                                CLAIM_RENEWED_MIN_MS;
    return renewed || sent_at_ms >= until_ms;
}

/* One pending put. The record is good for a window from when the put was sent. */
struct gateway_put {
    struct redis_state *state;
    int64_t sent_at_ms;
};

static bool gateway_reply_is(const struct resp_value *reply, const char *result)
{
    return reply->count > 0 && slice_is(reply->items[0].text, result);
}

/* What our set of connections holds may be out of date: of the process that had our id, or of a server that lost the ends
 * of leases. A lease that expires does not say where it was, and our renewals keep the set, so such a connection would
 * stay. Renewals of all leases follow, which fill the set anew. */
static void reset_gateway_connections(struct redis_state *state)
{
    char text[REDIS_KEY_BYTES_MAX];
    if (state->options.gateway_id.len == 0 || !redis_state_may_write(state))
        return;
    struct slice key = redis_key_plain(text, "server_connections:", redis_state_gateway_id(state));
    redis_command(state->options.client, key, REDIS_ARGS(SLICE("UNLINK"), key), NULL, NULL);
    state->refilled_until_ms = gateway_now_ms(state) + state->options.lease_window_ms;
}

/* Our record is in Redis. If it was made although Redis had it before, Redis has lost its data. */
static void note_gateway_registered(struct redis_state *state, int64_t sent_at_ms, bool made)
{
    bool forgotten = made && state->known;
    state->known = true;
    if (forgotten)
        state->listed_hash = 0;
    state->registered_until_ms = sent_at_ms + state->options.lease_window_ms;
    if (made)
        reset_gateway_connections(state);
    if (state->options.on_registered)
        state->options.on_registered(state->options.arg, sent_at_ms, made);
    if (!forgotten)
        return;
    redis_state_defer_reaping(state);
    log_warn("gateway_forgotten", "gateway=%s", log_quote(redis_state_gateway_id(state)));
    if (state->options.on_forgotten)
        state->options.on_forgotten(state->options.arg);
}

/* Another process's record is in our way. A process that had the id has lost it and is fenced. A process that never had
 * it (its claim is undecided) may have met the record of a dead process, and waits until that expires. */
static void handle_taken_gateway_id(struct redis_state *state, const struct resp_value *taken,
                                    int64_t sent_at_ms)
{
    bool is_whole = taken->count >= TAKEN_ITEMS;
    bool is_gone = is_whole && !state->known && is_rival_gateway_gone(state, taken);
    bool is_lost =
        !is_gone && (state->known || !is_whole || is_rival_gateway_alive(state, taken, sent_at_ms));
    if (!is_lost && !state->released && !wheel_is_set(&state->put_timer))
        loop_set_timer(state->options.loop, &state->put_timer,
                       gateway_now_ms(state) + (is_gone ? 0 : CLAIM_INTERVAL_MS));
    if (!is_lost || state->fenced)
        return;
    state->fenced = true;
    log_error("gateway_id_taken", "gateway=%s because=\"another process has it\"",
              log_quote(redis_state_gateway_id(state)));
    if (state->options.on_fenced)
        state->options.on_fenced(state->options.arg);
}

static void on_gateway_record_put(void *arg, const struct resp_value *reply)
{
    struct gateway_put put = *(struct gateway_put *)arg;
    struct redis_state *state = put.state;
    free(arg);
    if (redis_state_reply_is(reply, RESP_ARRAY) && !state->closing) {
        if (gateway_reply_is(reply, "taken"))
            handle_taken_gateway_id(state, reply, put.sent_at_ms);
        else if (slice_equal(state->record.info.gateway_id, redis_state_gateway_id(state)))
            note_gateway_registered(state, put.sent_at_ms, gateway_reply_is(reply, "made"));
    }
    redis_state_end(state);
}

static void put_gateway_now(struct redis_state *state)
{
    struct gateway_put *put = malloc(sizeof(*put));
    if (!put || state->released || state->fenced) {
        free(put);
        return;
    }
    *put = (struct gateway_put){state, gateway_now_ms(state)};
    state->put_at_ms = put->sent_at_ms;
    redis_state_begin(state);
    bool is_listed = is_gateway_listing_due(state);
    run_gateway_record_script(state, "put", is_listed && !state->keys.cluster,
                              on_gateway_record_put, put);
    if (is_listed && state->keys.cluster)
        list_gateway_on_cluster(state);
}

static void on_gateway_put_due(struct wheel_timer *timer)
{
    put_gateway_now(CONTAINER_OF(timer, struct redis_state, put_timer));
}

void redis_state_gateways_init(struct redis_state *state)
{
    state->put_timer.fire = on_gateway_put_due;
    state->put_at_ms = gateway_now_ms(state) - PUT_INTERVAL_MIN_MS;
}

void redis_state_gateways_on_server_returned(struct redis_state *state)
{
    if (state->known)
        reset_gateway_connections(state);
}

void redis_state_gateways_on_available(struct redis_state *state)
{
    state->listed_hash = 0; /* a part of a cluster may have lost its data */
    if (state->known)
        put_gateway_now(state);
}

void redis_state_put_gateway(struct state_store *store, const struct gateway_info *info)
{
    struct redis_state *state = redis_state_of(store);
    keep_gateway_record(state, info);
    int64_t due_ms = state->put_at_ms + PUT_INTERVAL_MIN_MS;
    if (gateway_now_ms(state) >= due_ms)
        put_gateway_now(state);
    else if (!wheel_is_set(&state->put_timer))
        loop_set_timer(state->options.loop, &state->put_timer, due_ms);
}

/* ---- claims ---- */

struct redis_claim_operation {
    struct redis_state *state;
    redis_claim_done done;
    void *arg;
    struct wheel_timer timer;
    int64_t sent_at_ms;
    int64_t reach_until_ms;
};

static void send_gateway_claim(struct redis_claim_operation *operation);

static void on_gateway_claim_retry_due(struct wheel_timer *timer)
{
    struct redis_claim_operation *operation =
        CONTAINER_OF(timer, struct redis_claim_operation, timer);
    operation->state->waiting_claim = NULL;
    send_gateway_claim(operation);
}

static void finish_gateway_claim(struct redis_claim_operation *operation, enum redis_claim result,
                                 struct slice since)
{
    struct redis_state *state = operation->state;
    operation->done(operation->arg, result, since);
    free(operation);
    redis_state_end(state);
}

static void retry_gateway_claim_in(struct redis_claim_operation *operation, int64_t delay_ms)
{
    struct redis_state *state = operation->state;
    state->waiting_claim = operation;
    loop_set_timer(state->options.loop, &operation->timer, gateway_now_ms(state) + delay_ms);
}

static void on_gateway_claim_reply(void *arg, const struct resp_value *reply)
{
    struct redis_claim_operation *operation = arg;
    struct redis_state *state = operation->state;
    if (state->closing) {
        finish_gateway_claim(operation, REDIS_CLAIM_CANCELLED, SLICE_NONE);
    } else if (!reply && gateway_now_ms(state) < operation->reach_until_ms) {
        retry_gateway_claim_in(operation, CLAIM_REACH_INTERVAL_MS);
    } else if (!redis_state_reply_is(reply, RESP_ARRAY)) {
        finish_gateway_claim(operation, REDIS_CLAIM_UNDECIDED, SLICE_NONE);
    } else if (!gateway_reply_is(reply, "taken") || reply->count < TAKEN_ITEMS) {
        note_gateway_registered(state, operation->sent_at_ms, gateway_reply_is(reply, "made"));
        finish_gateway_claim(operation, REDIS_CLAIM_GRANTED, SLICE_NONE);
    } else if (is_rival_gateway_gone(state, reply)) {
        send_gateway_claim(operation);
    } else if (is_rival_gateway_alive(state, reply, operation->sent_at_ms)) {
        state->fenced = true;
        finish_gateway_claim(operation, REDIS_CLAIM_TAKEN, reply->items[TAKEN_SINCE].text);
    } else {
        retry_gateway_claim_in(operation, CLAIM_INTERVAL_MS);
    }
}

static void send_gateway_claim(struct redis_claim_operation *operation)
{
    operation->sent_at_ms = gateway_now_ms(operation->state);
    run_gateway_record_script(operation->state, "put", false, on_gateway_claim_reply, operation);
}

void redis_state_claim(struct state_store *store, const struct gateway_info *info,
                       redis_claim_done done, void *arg)
{
    struct redis_state *state = redis_state_of(store);
    struct redis_claim_operation *operation = malloc(sizeof(*operation));
    state->claimed = true;
    keep_gateway_record(state, info);
    if (!operation) {
        done(arg, REDIS_CLAIM_UNDECIDED, SLICE_NONE);
        return;
    }
    *operation = (struct redis_claim_operation){
        .state = state,
        .done = done,
        .arg = arg,
        .timer.fire = on_gateway_claim_retry_due,
        .reach_until_ms = gateway_now_ms(state) + CLAIM_REACH_MS,
    };
    redis_state_begin(state);
    send_gateway_claim(operation);
}

void redis_state_gateways_stop(struct redis_state *state)
{
    loop_cancel_timer(state->options.loop, &state->put_timer);
    if (!state->waiting_claim)
        return;
    loop_cancel_timer(state->options.loop, &state->waiting_claim->timer);
    finish_gateway_claim(state->waiting_claim, REDIS_CLAIM_CANCELLED, SLICE_NONE);
}

/* ---- leaving ---- */

struct release_operation {
    struct redis_state *state;
    redis_release_done done;
    void *arg;
    size_t waiting;
};

static void on_gateway_key_released(void *arg, const struct resp_value *reply)
{
    struct release_operation *operation = arg;
    (void)reply; /* a key that could not be removed expires */
    if (--operation->waiting)
        return;
    struct redis_state *state = operation->state;
    operation->done(operation->arg);
    free(operation);
    redis_state_end(state);
}

void redis_state_release(struct state_store *store, redis_release_done done, void *arg)
{
    enum { COMMANDS = 3 };
    struct redis_state *state = redis_state_of(store);
    struct release_operation *operation = malloc(sizeof(*operation));
    char text[REDIS_KEY_BYTES_MAX];
    loop_cancel_timer(state->options.loop, &state->put_timer);
    bool ours = !state->fenced && !state->released && state->record.info.gateway_id.len > 0;
    state->released = true;
    if (!operation || !ours) {
        free(operation);
        done(arg);
        return;
    }
    *operation = (struct release_operation){state, done, arg, COMMANDS};
    redis_state_begin(state);
    struct slice id = redis_state_gateway_id(state);
    struct slice connections = redis_key_plain(text, "server_connections:", id);
    redis_command(state->options.client, connections, REDIS_ARGS(SLICE("DEL"), connections),
                  on_gateway_key_released, operation);
    redis_state_eval(state, REDIS_STATE_GATEWAY_LIST,
                     REDIS_ARGS(REDIS_STATE_GATEWAY_SET, REDIS_STATE_GATEWAY_INFOS),
                     REDIS_ARGS(SLICE("drop"), id), on_gateway_key_released, operation);
    run_gateway_record_script(state, "release", false, on_gateway_key_released, operation);
}
