#include "calls/call_losses.h"

#include "base/container.h"
#include "calls/call_events.h"
#include "calls/call_outcome.h"
#include "calls/call_plane_internal.h"
#include "log/log.h"

#include <stdlib.h>

void call_losses_init(struct call_losses *losses)
{
    *losses = (struct call_losses){0};
    list_init(&losses->waiting);
}

static struct call_binding *call_losses_next(struct call_losses *losses)
{
    struct call_binding *lost = CONTAINER_OF(losses->waiting.next, struct call_binding, waiting);
    list_remove(&lost->waiting);
    losses->count--;
    return lost;
}

void call_losses_free(struct call_losses *losses)
{
    while (!list_empty(&losses->waiting))
        free(call_losses_next(losses));
}

void call_losses_add(struct call_plane *plane, struct call_binding *binding)
{
    struct call_losses *losses = &plane->losses;
    if (losses->count == CALL_LOSSES_MAX) {
        log_error("call_loss_dropped", "user=%s", log_quote(binding->device.user_id));
        free(binding);
        return;
    }
    binding->plane = plane;
    list_append(&losses->waiting, &binding->waiting);
    losses->count++;
}

static bool call_loss_is_declared(const struct call_binding *lost)
{
    return !lost->call.callee.user_id.data;
}

static bool call_loss_is_callers(const struct call_binding *lost)
{
    return slice_equal(lost->device.user_id, lost->call.caller.user_id);
}

/* ---- the end ---- */

/* The device may have no route now. It is told with each run until the end has passed through this gateway. */
static void call_loss_tell_device(struct call_binding *lost)
{
    struct call_plane *plane = lost->plane;
    bool is_told = call_told_has_ended(plane, lost->device.user_id, lost->call.id);
    if (is_told || lost->is_gone || lost->tellings == CALL_LOSS_TELLINGS_MAX ||
        call_loss_is_declared(lost)) {
        free(lost);
        return;
    }
    lost->tellings++;
    call_losses_add(plane, lost);
}

/* Whether the call was answered may not be known here, so `in_call` of both sides is set anew in any case. */
static void call_loss_tell(struct call_binding *lost)
{
    struct call_plane *plane = lost->plane;
    struct call *call = &lost->call;
    call->state = CALL_ENDED;
    call->reason = CALL_REASON_DISCONNECTED;
    call->ended_at_ms = plane->presence->clock->wall_ms;
    call_events_ended(plane->delivery, call, NULL);
    call_outcome_ended(plane, call, NULL);
    if (!call->answered_at_ms) {
        call_sync_user(&plane->sync, call->caller.user_id);
        if (!call_loss_is_declared(lost))
            call_sync_user(&plane->sync, call->callee.user_id);
    }
    call_loss_tell_device(lost);
}

static bool has_no_answer(const struct call_answer *answer)
{
    return answer->result == CALL_UNAVAILABLE || answer->result == CALL_UNKNOWN;
}

static void on_call_loss_ended(void *arg, const struct call_answer *answer)
{
    struct call_binding *lost = arg;
    if (has_no_answer(answer))
        call_losses_add(lost->plane, lost);
    else
        call_loss_tell(lost);
}

static void call_loss_end(struct call_binding *lost)
{
    call_store_end(lost->plane->store, lost->call.id, lost->device.user_id, on_call_loss_ended,
                   lost);
}

static void call_loss_restore(struct call_binding *lost, const struct call *call)
{
    call_plane_bind(lost->plane, &lost->device, call);
    call_sync_user(&lost->plane->sync, lost->device.user_id);
    free(lost);
}

/* A user who is in another call by now cannot declare this one; both sides are told all the same. */
static void on_call_loss_declared(void *arg, const struct call_answer *answer)
{
    struct call_binding *lost = arg;
    lost->is_claimed = answer->result == CALL_DONE || answer->result == CALL_UNKNOWN;
    if (has_no_answer(answer))
        call_losses_add(lost->plane, lost);
    else if (answer->result == CALL_CALLER_BUSY)
        call_loss_tell(lost);
    else if (answer->result != CALL_DONE)
        free(lost);
    else if (call_loss_is_declared(lost) && !lost->is_gone)
        call_loss_restore(lost, answer->call);
    else
        call_loss_end(lost);
}

/* ---- what the store knows ---- */

/* Another gateway told that the call ended, perhaps while the device had no route. */
static void call_loss_found_ended(struct call_binding *lost, const struct call *call)
{
    lost->call.state = CALL_ENDED;
    lost->call.reason = call->reason;
    call_loss_tell_device(lost);
}

/* The call that this gateway declared, or may have declared, without an answer; else one that is not lost. */
static void call_loss_found(struct call_binding *lost, const struct call *call)
{
    if (!lost->is_claimed && call->state == CALL_ENDED)
        call_loss_found_ended(lost, call);
    else if (!lost->is_claimed)
        free(lost);
    else if (call->state == CALL_ENDED)
        call_loss_tell(lost);
    else if (call_loss_is_declared(lost) && !lost->is_gone)
        call_loss_restore(lost, call);
    else
        call_loss_end(lost);
}

static void on_call_loss_read(void *arg, const struct call_answer *answer)
{
    struct call_binding *lost = arg;
    bool is_missing = answer->result == CALL_NOT_FOUND;
    bool gives_way =
        call_loss_is_callers(lost) && !call_loss_is_declared(lost) && !lost->was_missing;
    lost->was_missing |= is_missing;
    if (answer->result == CALL_DONE)
        call_loss_found(lost, answer->call);
    else if (is_missing && !gives_way)
        call_store_declare(lost->plane->store, lost->call.id, &lost->device, on_call_loss_declared,
                           lost);
    else
        call_losses_add(lost->plane, lost);
}

/* Those that must wait again wait for the next run. */
void call_losses_run(struct call_plane *plane)
{
    struct call_losses *losses = &plane->losses;
    if (!resync_is_settled(plane->presence))
        return;
    size_t count = losses->count < CALL_LOSSES_PER_RUN ? losses->count : CALL_LOSSES_PER_RUN;
    for (; count > 0; count--) {
        struct call_binding *lost = call_losses_next(losses);
        if (lost->tellings > 0) {
            if (!call_told_has_ended(plane, lost->device.user_id, lost->call.id))
                call_events_ended_for(plane->delivery, &lost->call, &lost->device);
            call_loss_tell_device(lost);
            continue;
        }
        call_store_get(plane->store, lost->call.id, lost->device.user_id, on_call_loss_read, lost);
    }
}
