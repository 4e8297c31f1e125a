#include "calls/call_outcome.h"

#include "ledger/ledger_events.h"
#include "log/log.h"

#include <stdlib.h>

static void call_outcome_sync(struct call_plane *plane, const struct call *call)
{
    call_sync_user(&plane->sync, call->caller.user_id);
    if (call->callee.user_id.data)
        call_sync_user(&plane->sync, call->callee.user_id);
}

/* ---- history ---- */

static void on_call_recorded(void *arg, const struct ledger_change_outcome *outcome)
{
    struct call_command *held = arg;
    if (outcome->status != LEDGER_OK)
        log_warn("call_not_recorded", "reason=%s", ledger_status_name(outcome->status));
    if (!held)
        return;
    call_command_reply(held, &(struct call){.id = held->call_id});
    free(held);
}

bool call_outcome_holds_reply(const struct call_plane *plane, const struct call *call)
{
    return call->callee.user_id.data && plane->presence->ledger->event_queue_count > 0;
}

/* Without a history the application hears of the call all the same. */
static void call_outcome_record(struct call_plane *plane, const struct call *call,
                                struct call_command *held)
{
    struct ledger_client *ledger = plane->presence->ledger;
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
    bool is_missed = !call->answered_at_ms && call->reason != CALL_REASON_REJECTED;
    if (call->callee.user_id.data && entry.kept_max > 0) {
        ledger_call_append(ledger, &entry, on_call_recorded, held);
    } else if (call_outcome_holds_reply(plane, call)) {
        if (is_missed)
            ledger_call_event(ledger, LEDGER_EVENT_CALL_MISSED, &entry, on_call_recorded, NULL);
        ledger_call_event(ledger, LEDGER_EVENT_CALL_ENDED, &entry, on_call_recorded, held);
    }
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
    call_outcome_sync(plane, call);
}

void call_outcome_ended(struct call_plane *plane, const struct call *call,
                        struct call_command *held)
{
    metrics_count(plane->presence->metrics, ENDED_METRICS[call->reason]);
    metrics_add(plane->presence->metrics, METRIC_CALLS_ACTIVE, -1);
    if (call->answered_at_ms)
        call_outcome_sync(plane, call);
    call_endings_add(plane, call);
    call_outcome_record(plane, call, held);
}

void call_outcome_unavailable(struct call_plane *plane, struct slice id, struct slice caller,
                              struct slice callee)
{
    int64_t now_ms = plane->presence->clock->wall_ms;
    struct ledger_call entry = {.id = id,
                                .caller = caller,
                                .callee = callee,
                                .reason = SLICE("unavailable"),
                                .started_at_ms = now_ms,
                                .ended_at_ms = now_ms};
    if (plane->presence->ledger->event_queue_count)
        ledger_call_event(plane->presence->ledger, LEDGER_EVENT_CALL_MISSED, &entry,
                          on_call_recorded, NULL);
}

void call_outcome_busy(struct call_plane *plane, struct slice id, struct slice caller,
                       struct slice callee)
{
    int64_t now_ms = plane->presence->clock->wall_ms;
    metrics_count(plane->presence->metrics, ENDED_METRICS[CALL_REASON_BUSY]);
    call_outcome_record(plane,
                        &(struct call){.id = id,
                                       .reason = CALL_REASON_BUSY,
                                       .caller.user_id = caller,
                                       .callee.user_id = callee,
                                       .started_at_ms = now_ms,
                                       .ended_at_ms = now_ms},
                        NULL);
}
