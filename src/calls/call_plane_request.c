/* Call requests: check that the callee may be called and, unless the callee hides it, is connected; then make the call store's transition. */
#include "calls/call_command.h"
#include "calls/call_events.h"
#include "calls/call_outcome.h"
#include "calls/call_plane_internal.h"
#include "ledger/ledger_events.h"
#include "log/log.h"
#include "presence/visibility/cached_profiles.h"
#include "presence/visibility/privacy.h"

#include <stdlib.h>

/* The call rings. */
static void call_request_begin(struct call_command *command, const struct call *call)
{
    struct call_plane *plane = command->plane;
    call_command_reply(command, call);
    call_plane_bind(plane, &command->device, call);
    call_events_ring(plane->delivery, call);
    call_outcome_started(plane);
    free(command);
}

static void on_call_start_recorded(void *arg, const struct ledger_change_outcome *outcome)
{
    struct call_command *command = arg;
    struct call call = {.id = command->call_id,
                        .state = CALL_RINGING,
                        .caller = command->device,
                        .callee.user_id = command->to,
                        .unheard = command->unheard,
                        .started_at_ms = command->started_at_ms};
    if (outcome->status != LEDGER_OK)
        log_warn("call_not_recorded", "reason=%s", ledger_status_name(outcome->status));
    call_request_begin(command, &call);
}

/* Whoever hears that it rings finds it recorded, if the application is to hear of it too. */
static void call_request_record(struct call_command *command, const struct call *call)
{
    struct ledger_client *ledger = command->plane->presence->ledger;
    struct ledger_call entry = {.id = call->id,
                                .caller = call->caller.user_id,
                                .callee = call->callee.user_id,
                                .reason = SLICE("ringing"),
                                .started_at_ms = call->started_at_ms};
    if (!ledger->event_queue_count) {
        call_request_begin(command, call);
        return;
    }
    command->unheard = call->unheard;
    command->started_at_ms = call->started_at_ms;
    ledger_call_event(ledger, LEDGER_EVENT_CALL_STARTED, &entry, on_call_start_recorded, command);
}

static void on_call_requested(void *arg, const struct call_answer *answer)
{
    struct call_command *command = arg;
    struct call_plane *plane = command->plane;
    switch (answer->result) {
    case CALL_REPEATED:
        if (!call_plane_events_were_lost(plane, &command->device)) {
            call_command_reply(command, answer->call);
            break;
        }
        __attribute__((fallthrough));
    case CALL_DONE:
        call_request_record(command, answer->call);
        return;
    case CALL_GLARE:
        call_command_reply(command, answer->call);
        call_plane_bind(plane, &command->device, answer->call);
        call_events_send_state(plane->delivery, answer->call, &command->device);
        call_events_answered(plane->delivery, answer->call, &command->device.conn_id);
        call_outcome_answered(plane, answer->call);
        break;
    case CALL_CALLEE_BUSY:
        if (command->callee_hides) {
            call_store_ring_unheard(plane->store, command->call_id, &command->device, command->to,
                                    on_call_requested, command);
            return;
        }
        call_outcome_busy(plane, command->call_id, command->device.user_id, command->to);
        call_command_refuse_result(command, answer);
        return;
    default:
        call_command_refuse_result(command, answer);
        return;
    }
    free(command);
}

static const char UNAVAILABLE[] = "this user cannot be called now";

static void on_callee_routed(void *arg, enum state_status status, const struct state_routes *routes)
{
    struct call_command *command = arg;
    if (status != STATE_OK)
        call_command_refuse(command, ERROR_SERVICE_UNAVAILABLE, "the state store is out of reach");
    else if (routes->count == 0 && !command->callee_hides) {
        call_outcome_unavailable(command->plane, command->call_id, command->device.user_id,
                                 command->to);
        call_command_refuse(command, ERROR_CALL_UNAVAILABLE, UNAVAILABLE);
    } else
        call_store_request(command->plane->store, command->call_id, &command->device, command->to,
                           on_call_requested, command);
}

static void call_request_permit(struct call_command *command, const struct ledger_profile *callee)
{
    command->callee_hides = privacy_decide(command->device.user_id, callee).view == PRIVACY_HIDDEN;
    if (privacy_allows_call(command->device.user_id, callee))
        state_routes(command->plane->presence->store, &command->to, 1, on_callee_routed, command);
    else
        call_command_refuse(command, ERROR_CALL_UNAVAILABLE, UNAVAILABLE);
}

static void on_callee_cached_profile_read(void *arg, const struct cached_profile *profiles)
{
    if (profiles && profiles[0].known)
        call_request_permit(arg, &profiles[0].profile);
    else
        call_command_refuse(arg, ERROR_SERVICE_UNAVAILABLE, "contacts cannot be read now");
}

/* While the ledger does not answer, contacts may call each other if their graphs are cached. */
static void on_callee_profile_read(void *arg, const struct ledger_profiles_outcome *outcome)
{
    struct call_command *command = arg;
    if (outcome->status == LEDGER_OK)
        call_request_permit(command, &outcome->profiles[0]);
    else if (outcome->status == LEDGER_INVALID)
        call_command_refuse(command, ERROR_CALL_UNAVAILABLE, UNAVAILABLE);
    else
        cached_profiles_read(command->plane->presence, command->device.user_id, &command->to, 1,
                             on_callee_cached_profile_read, command);
}

void call_plane_request(struct call_plane *plane, const struct call_device *device, struct slice to,
                        struct slice call_id, call_plane_done done, void *arg)
{
    char made[ULID_TEXT_LEN];
    struct call_command *command = call_command_make(&(struct call_command){
        .plane = plane,
        .device = *device,
        .to = to,
        .call_id = call_id.data ? call_id : call_plane_make_id(plane, made),
        .done = done,
        .arg = arg,
    });
    if (command)
        ledger_profiles(plane->presence->ledger, command->device.user_id, &command->to, 1,
                        on_callee_profile_read, command);
}
