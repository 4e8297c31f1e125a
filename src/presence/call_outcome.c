#include "presence/call_outcome.h"

#include "base/log.h"

#include <stdlib.h>
#include <string.h>

/* ---- in_call ---- */

/* Transitions that overtake each other while `in_call` is being set: more is a storm, and the next
 * transition of the user sets it right. */
enum { SYNC_ROUNDS_MAX = 16 };

struct syncing {
    struct call_plane *plane;
    unsigned rounds;
    bool set; /* what it was set to last */
    size_t user_len;
    char user[];
};

static void look_again(void *arg);

static void looked(void *arg, const struct call_answer *answer)
{
    struct syncing *syncing = arg;
    struct slice user = {syncing->user, syncing->user_len};
    bool in_call = answer->result == CALL_DONE && answer->call->state == CALL_ACCEPTED;
    bool agrees = syncing->rounds > 0 && syncing->set == in_call;
    if (answer->result == CALL_UNAVAILABLE || agrees || syncing->rounds == SYNC_ROUNDS_MAX) {
        free(syncing);
        return;
    }
    syncing->rounds++;
    syncing->set = in_call;
    presence_set_call(syncing->plane->presence, user, in_call, look_again, syncing);
}

static void look_again(void *arg)
{
    struct syncing *syncing = arg;
    struct slice user = {syncing->user, syncing->user_len};
    call_store_get(syncing->plane->store, SLICE_NONE, user, looked, syncing);
}

void call_outcome_sync(struct call_plane *plane, struct slice user_id)
{
    struct syncing *syncing = malloc(sizeof(*syncing) + user_id.len);
    if (!syncing) {
        log_warn("in_call_not_set", "user=%s reason=memory", log_quote(user_id));
        return;
    }
    *syncing = (struct syncing){.plane = plane, .user_len = user_id.len};
    memcpy(syncing->user, user_id.data, user_id.len);
    look_again(syncing);
}

static void sync_both(struct call_plane *plane, const struct call *call)
{
    call_outcome_sync(plane, call->caller.user_id);
    if (call->callee.user_id.data)
        call_outcome_sync(plane, call->callee.user_id);
}

/* ---- history ---- */

static void recorded(void *arg, const struct ledger_change_outcome *outcome)
{
    (void)arg;
    if (outcome->status != LEDGER_OK)
        log_warn("call_not_recorded", "reason=%s", ledger_status_name(outcome->status));
}

static void record(struct call_plane *plane, const struct call *call)
{
    struct ledger_call entry = {
        .id = call->id,
        .caller = call->caller.user_id,
        .callee = call->callee.user_id,
        .reason = slice_of(call_reason_name(call->reason)),
        .started_at_ms = call->started_at_ms,
        .answered_at_ms = call->answered_at_ms,
        .ended_at_ms = call->ended_at_ms,
        .kept_max = plane->presence->config->call.history_max,
    };
    if (call->callee.user_id.data && entry.kept_max > 0)
        ledger_call_append(plane->presence->ledger, &entry, recorded, NULL);
}

/* ---- transitions ---- */

static const enum metric ENDED_METRICS[CALL_REASON_COUNT] = {
    [CALL_REASON_HANGUP] = METRIC_CALLS_ENDED_HANGUP,
    [CALL_REASON_REJECTED] = METRIC_CALLS_ENDED_REJECTED,
    [CALL_REASON_CANCELLED] = METRIC_CALLS_ENDED_CANCELLED,
    [CALL_REASON_TIMEOUT] = METRIC_CALLS_ENDED_TIMEOUT,
    [CALL_REASON_BUSY] = METRIC_CALLS_BUSY,
    [CALL_REASON_DISCONNECTED] = METRIC_CALLS_ENDED_DISCONNECTED,
};

void call_outcome_started(struct call_plane *plane)
{
    metrics_count(plane->presence->metrics, METRIC_CALLS_STARTED);
    metrics_add(plane->presence->metrics, METRIC_CALLS_ACTIVE, 1);
}

void call_outcome_answered(struct call_plane *plane, const struct call *call)
{
    metrics_count(plane->presence->metrics, METRIC_CALLS_ANSWERED);
    metrics_latency(plane->presence->metrics, LATENCY_CALL_RING,
                    (call->answered_at_ms - call->started_at_ms) * 1000);
    sync_both(plane, call);
}

void call_outcome_ended(struct call_plane *plane, const struct call *call)
{
    metrics_count(plane->presence->metrics, ENDED_METRICS[call->reason]);
    metrics_add(plane->presence->metrics, METRIC_CALLS_ACTIVE, -1);
    if (call->answered_at_ms)
        sync_both(plane, call);
    record(plane, call);
}

void call_outcome_busy(struct call_plane *plane, struct slice id, struct slice caller,
                       struct slice callee)
{
    int64_t now_ms = plane->presence->clock->wall_ms;
    metrics_count(plane->presence->metrics, ENDED_METRICS[CALL_REASON_BUSY]);
    record(plane, &(struct call){.id = id,
                                 .reason = CALL_REASON_BUSY,
                                 .caller.user_id = caller,
                                 .callee.user_id = callee,
                                 .started_at_ms = now_ms,
                                 .ended_at_ms = now_ms});
}
