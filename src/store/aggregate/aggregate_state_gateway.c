#include "base/container.h"
#include "log/log.h"
#include "store/aggregate/aggregate_state_internal.h"

#include <string.h>

bool aggregate_state_may_write(const struct aggregate_state *state)
{
    if (state->is_fenced || state->is_released)
        return false;
    return !state->is_claimed || aggregate_state_now_ms(state) < state->registered_until_ms;
}

/* ---- the record ---- */

static void keep_record(struct aggregate_state *state, const struct gateway_info *info)
{
    state->info = *info;
    state->info.gateway_id = state->options.gateway_id;
    if (info->peer_address.len > sizeof(state->peer_address))
        state->info.peer_address = SLICE_NONE;
    if (state->info.peer_address.len)
        state->info.peer_address.data =
            memcpy(state->peer_address, info->peer_address.data, info->peer_address.len);
}

static void send_record(struct aggregate_state *state, enum aggregate_operation operation)
{
    aggregate_forward_to(
        state->options.client, state->home, operation,
        &(union aggregate_arguments){.put = {state->info, aggregate_state_now_ms(state)}}, NULL,
        NULL, NULL);
}

/* Whether the claim was made in the session that home has now. */
static bool is_home_current(const struct aggregate_state *state)
{
    return state->home < aggregate_client_count(state->options.client) &&
           aggregate_client_session(state->options.client, state->home) == state->home_session;
}

/* Claims the id at the aggregator that is its home now; without one, the next change tries again. */
static void claim_at_home(struct aggregate_state *state)
{
    size_t home =
        aggregate_client_route(state->options.client, aggregate_slot_of(state->options.gateway_id));
    if (home == AGGREGATE_NONE || state->is_fenced || state->is_released)
        return;
    if (home == state->home && is_home_current(state))
        return;
    if (home != state->home && is_home_current(state))
        aggregate_forward_to(state->options.client, state->home, AGGREGATE_STATE_UNCLAIM,
                             &(union aggregate_arguments){0}, NULL, NULL, NULL);
    state->home = home;
    state->home_session = aggregate_client_session(state->options.client, home);
    state->is_granted = false;
    send_record(state, AGGREGATE_STATE_CLAIM);
}

void aggregate_state_put_gateway(struct state_store *store, const struct gateway_info *info)
{
    struct aggregate_state *state = aggregate_state_of(store);
    keep_record(state, info);
    if (state->is_released || state->is_fenced)
        return;
    if (!state->is_claimed) { /* a store without a claim only says that it lives */
        aggregate_forward(state->options.client, info->gateway_id, AGGREGATE_STATE_PUT,
                          &(union aggregate_arguments){.put = {*info, 0}}, SLICE_NONE, NULL, NULL,
                          NULL);
        return;
    }
    claim_at_home(state);
    if (state->is_granted && is_home_current(state))
        send_record(state, AGGREGATE_STATE_PUT);
}

/* ---- what the home says ---- */

static void finish_claim(struct aggregate_state *state, enum redis_claim result, struct slice since)
{
    redis_claim_done done = state->claim_done;
    state->claim_done = NULL;
    loop_cancel_timer(state->options.loop, &state->claim_timer);
    if (done)
        done(state->claim_arg, result, since);
}

static void fence_gateway(struct aggregate_state *state, struct slice since)
{
    bool is_waiting = state->claim_done != NULL;
    if (state->is_fenced)
        return;
    state->is_fenced = true;
    log_error("gateway_id_taken", "gateway=%s because=\"another process has it\"",
              log_quote(state->options.gateway_id));
    if (is_waiting)
        finish_claim(state, REDIS_CLAIM_TAKEN, since);
    else if (state->options.on_fenced)
        state->options.on_fenced(state->options.arg);
}

/* The record was sent some time ago, perhaps a window; so it is put again at once. */
static void on_claim_notice(struct aggregate_state *state, struct slice body)
{
    struct aggregate_claimed claimed = {0};
    struct wire wire = wire_reading(body, NULL, NULL);
    aggregate_codec_pass_claimed(&wire, &claimed);
    if (!wire_end(&wire))
        return;
    if (claimed.result == REDIS_CLAIM_TAKEN) {
        fence_gateway(state, claimed.since);
    } else if (claimed.result != REDIS_CLAIM_CANCELLED) {
        state->is_granted = true;
        send_record(state, AGGREGATE_STATE_PUT);
        if (claimed.result == REDIS_CLAIM_UNDECIDED)
            finish_claim(state, REDIS_CLAIM_UNDECIDED, SLICE_NONE);
    }
}

/* A record that is made anew, though Redis had it, says that Redis has lost its data. */
static void on_gateway_registered(struct aggregate_state *state, struct slice body)
{
    struct aggregate_registered registered = {0};
    struct wire wire = wire_reading(body, NULL, NULL);
    aggregate_codec_pass_registered(&wire, &registered);
    if (!wire_end(&wire))
        return;
    bool is_forgotten = registered.made && state->is_known;
    int64_t until_ms = registered.put_ms + state->options.lease_window_ms;
    if (until_ms > state->registered_until_ms)
        state->registered_until_ms = until_ms;
    state->is_known = true;
    if (is_forgotten && state->options.on_forgotten)
        state->options.on_forgotten(state->options.arg);
    if (aggregate_state_may_write(state))
        finish_claim(state, REDIS_CLAIM_GRANTED, SLICE_NONE);
}

/* Only this machine can tell whether the process that has our id still runs here. */
static void on_gateway_rival(struct aggregate_state *state, struct slice process)
{
    if (process.len && process.len <= AGGREGATE_ID_BYTES_MAX && state->options.is_process_gone &&
        state->options.is_process_gone(state->options.arg, process))
        aggregate_forward_to(state->options.client, state->home, AGGREGATE_STATE_GONE,
                             &(union aggregate_arguments){.process = process}, NULL, NULL, NULL);
}

static void on_state_notice(struct aggregate_listener *listener, size_t aggregator,
                            enum aggregate_notice notice, struct slice body)
{
    struct aggregate_state *state = CONTAINER_OF(listener, struct aggregate_state, listener);
    if (aggregator != state->home || !is_home_current(state) || state->is_released)
        return;
    if (notice == AGGREGATE_CLAIMED)
        on_claim_notice(state, body);
    else if (notice == AGGREGATE_REGISTERED)
        on_gateway_registered(state, body);
    else if (notice == AGGREGATE_RIVAL)
        on_gateway_rival(state, body);
    else if (notice == AGGREGATE_FENCED)
        fence_gateway(state, SLICE_NONE);
}

static void on_state_links_changed(struct aggregate_listener *listener)
{
    struct aggregate_state *state = CONTAINER_OF(listener, struct aggregate_state, listener);
    if (state->is_claimed)
        claim_at_home(state);
    if (state->options.on_server_returned && aggregate_client_usable(state->options.client) > 0)
        state->options.on_server_returned(state->options.arg);
}

/* ---- claim and release ---- */

/* No aggregator, or none that reaches Redis: the gateway starts, and the first put that arrives decides. */
static void on_claim_timer(struct wheel_timer *timer)
{
    struct aggregate_state *state = CONTAINER_OF(timer, struct aggregate_state, claim_timer);
    size_t home =
        aggregate_client_route(state->options.client, aggregate_slot_of(state->options.gateway_id));
    if (home == AGGREGATE_NONE)
        finish_claim(state, REDIS_CLAIM_UNDECIDED, SLICE_NONE);
}

void aggregate_state_claim(struct state_store *store, const struct gateway_info *info,
                           redis_claim_done done, void *arg)
{
    struct aggregate_state *state = aggregate_state_of(store);
    state->is_claimed = true;
    state->claim_done = done;
    state->claim_arg = arg;
    keep_record(state, info);
    loop_set_timer(state->options.loop, &state->claim_timer,
                   aggregate_state_now_ms(state) + AGGREGATE_CLAIM_REACH_MS);
    claim_at_home(state);
}

static void complete_release(const struct aggregate_forwarded *forwarded,
                             const union aggregate_outcome *outcome)
{
    (void)outcome; /* a key that could not be removed expires */
    ((redis_release_done)forwarded->done)(forwarded->arg);
}

void aggregate_state_release(struct state_store *store, redis_release_done done, void *arg)
{
    struct aggregate_state *state = aggregate_state_of(store);
    bool is_ours = !state->is_fenced && !state->is_released && state->is_granted;
    state->is_released = true;
    if (!is_ours)
        done(arg);
    else
        aggregate_forward_to(state->options.client, state->home, AGGREGATE_STATE_RELEASE,
                             &(union aggregate_arguments){0}, complete_release,
                             (aggregate_any_done)done, arg);
}

/* ---- life ---- */

void aggregate_state_gateway_init(struct aggregate_state *state)
{
    state->home = AGGREGATE_NONE;
    state->claim_timer.fire = on_claim_timer;
    state->listener = (struct aggregate_listener){.on_changed = on_state_links_changed,
                                                  .on_notice = on_state_notice};
    aggregate_client_listen(state->options.client, &state->listener);
}

void aggregate_state_gateway_stop(struct aggregate_state *state)
{
    finish_claim(state, REDIS_CLAIM_CANCELLED, SLICE_NONE);
}
