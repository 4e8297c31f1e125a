#include "calls/call_plane_internal.h"

#include "calls/call_command.h"
#include "calls/call_events.h"
#include "calls/call_outcome.h"

#include <stdlib.h>

enum { RENEWALS_PER_WAIT = 3 }; /* renewals of a party before it can be lost */

bool call_plane_init(struct call_plane *plane, uint64_t hash_seed)
{
    call_sync_init(&plane->sync, plane->store, plane->presence);
    call_losses_init(&plane->losses);
    call_endings_init(&plane->endings);
    call_told_init(&plane->told, hash_seed);
    return call_bindings_init(&plane->bindings, hash_seed);
}

void call_plane_free(struct call_plane *plane)
{
    call_sync_free(&plane->sync);
    call_losses_free(&plane->losses);
    call_endings_free(&plane->endings);
    call_told_free(&plane->told);
    call_bindings_free(&plane->bindings);
}

struct slice call_plane_make_id(struct call_plane *plane, char out[ULID_TEXT_LEN])
{
    struct ulid id = ulid_make(plane->presence->clock->wall_ms, plane->random);
    ulid_write(out, &id);
    return (struct slice){out, ULID_TEXT_LEN};
}

/* ---- connections that hold a party ---- */

static void on_unbound_call_detached(void *arg, const struct call_answer *answer)
{
    (void)arg;
    (void)answer;
}

static void call_plane_lose(struct call_plane *plane, struct call_binding *binding, bool is_gone)
{
    call_bindings_take(&plane->bindings, binding);
    binding->is_gone = is_gone;
    call_losses_add(plane, binding);
}

/* A connection that ended while its command was pending could not report its end, so it is detached here. One that was
 * bound to an earlier call is in that one no more. */
void call_plane_bind(struct call_plane *plane, const struct call_device *device,
                     const struct call *call)
{
    struct call_binding *earlier = call_bindings_find(&plane->bindings, &device->conn_id);
    if (earlier && !slice_equal(earlier->call.id, call->id))
        call_plane_lose(plane, earlier, true);
    if (!plane->is_connected(plane->arg, device->user_id, &device->conn_id) ||
        !call_bindings_add(&plane->bindings, device, call))
        call_store_detach(plane->store, device->user_id, &device->conn_id, on_unbound_call_detached,
                          NULL);
}

static void on_call_attached(void *arg, const struct call_answer *answer)
{
    struct call_command *command = arg;
    struct call_plane *plane = command->plane;
    if (answer->result == CALL_DONE)
        call_plane_bind(plane, &command->device, answer->call);
    if (answer->call &&
        answer->call->state == CALL_ACCEPTED) /* a new lease starts without the flag */
        call_sync_user(&plane->sync, command->device.user_id);
    if (answer->result == CALL_DONE || answer->result == CALL_RINGS)
        call_events_send_state(plane->delivery, answer->call, &command->device);
    free(command);
}

static void on_unawaited_reply(void *arg, const struct call_reply *reply)
{
    (void)arg;
    (void)reply;
}

void call_plane_attach(struct call_plane *plane, const struct call_device *device)
{
    struct call_command *command = call_command_make(
        &(struct call_command){.plane = plane, .device = *device, .done = on_unawaited_reply});
    if (command)
        call_store_attach(plane->store, &command->device, on_call_attached, command);
}

/* Whether the store still has the call is not certain if it held no party by this connection, or did not answer. */
static void on_call_detached(void *arg, const struct call_answer *answer)
{
    struct call_binding *binding = arg;
    if (answer->result == CALL_DONE)
        free(binding);
    else
        call_losses_add(binding->plane, binding);
}

void call_plane_detach(struct call_plane *plane, struct slice user_id, const struct ulid *conn_id)
{
    struct call_binding *binding = call_bindings_find(&plane->bindings, conn_id);
    if (!binding)
        return;
    call_bindings_take(&plane->bindings, binding);
    binding->plane = plane;
    binding->is_gone = true;
    call_store_detach(plane->store, user_id, conn_id, on_call_detached, binding);
}

/* ---- accept, reject, end ---- */

static void on_call_accepted(void *arg, const struct call_answer *answer)
{
    struct call_command *command = arg;
    struct call_plane *plane = command->plane;
    if (answer->result != CALL_DONE && answer->result != CALL_REPEATED) {
        call_command_refuse_result(command, answer);
        return;
    }
    call_command_reply(command, answer->call);
    if (answer->result == CALL_DONE || call_plane_events_were_lost(plane, &command->device)) {
        call_plane_bind(plane, &command->device, answer->call);
        call_events_answered(plane->delivery, answer->call, &command->device.conn_id);
        call_outcome_answered(plane, answer->call);
    }
    free(command);
}

static void on_call_rejected(void *arg, const struct call_answer *answer)
{
    struct call_command *command = arg;
    if (answer->result != CALL_DONE) {
        call_command_refuse_result(command, answer);
        return;
    }
    bool holds = call_outcome_holds_reply(command->plane, answer->call);
    if (!holds)
        call_command_reply(command, answer->call);
    call_events_rejected(command->plane->delivery, answer->call, &command->device.conn_id);
    call_outcome_ended(command->plane, answer->call, holds ? command : NULL);
    if (!holds)
        free(command);
}

static void on_call_ended(void *arg, const struct call_answer *answer)
{
    struct call_command *command = arg;
    if (answer->result != CALL_DONE) {
        call_command_refuse_result(command, answer);
        return;
    }
    bool holds = call_outcome_holds_reply(command->plane, answer->call);
    if (!holds)
        call_command_reply(command, answer->call);
    call_events_ended(command->plane->delivery, answer->call, &command->device.conn_id);
    call_outcome_ended(command->plane, answer->call, holds ? command : NULL);
    if (!holds)
        free(command);
}

/* Makes a command about one call. NULL: it was refused. */
static struct call_command *call_plane_command(struct call_plane *plane,
                                               const struct call_device *device,
                                               struct slice call_id, call_plane_done done,
                                               void *arg)
{
    return call_command_make(&(struct call_command){
        .plane = plane, .device = *device, .call_id = call_id, .done = done, .arg = arg});
}

void call_plane_accept(struct call_plane *plane, const struct call_device *device,
                       struct slice call_id, call_plane_done done, void *arg)
{
    struct call_command *command = call_plane_command(plane, device, call_id, done, arg);
    if (command)
        call_store_answer(plane->store, call_id, &command->device, on_call_accepted, command);
}

void call_plane_reject(struct call_plane *plane, const struct call_device *device,
                       struct slice call_id, call_plane_done done, void *arg)
{
    struct call_command *command = call_plane_command(plane, device, call_id, done, arg);
    if (command)
        call_store_reject(plane->store, call_id, device->user_id, on_call_rejected, command);
}

void call_plane_end(struct call_plane *plane, const struct call_device *device,
                    struct slice call_id, call_plane_done done, void *arg)
{
    struct call_command *command = call_plane_command(plane, device, call_id, done, arg);
    if (command)
        call_store_end(plane->store, call_id, device->user_id, on_call_ended, command);
}

/* ---- signals ---- */

/* Until one of the callee's devices accepts, the call is on all of them. */
static void on_call_found_for_signal(void *arg, const struct call_answer *answer)
{
    struct call_command *command = arg;
    const struct call *call = answer->call;
    if (answer->result != CALL_DONE) {
        call_command_refuse_result(command, answer);
        return;
    }
    bool is_caller = slice_equal(command->device.user_id, call->caller.user_id);
    struct slice own_device = is_caller ? call->caller.device_id : call->callee.device_id;
    if (call->state == CALL_ENDED) {
        call_command_refuse_state(command, CALL_ENDED);
    } else if (own_device.data && !slice_equal(own_device, command->device.device_id)) {
        call_command_refuse(command, ERROR_CALL_UNAVAILABLE,
                            "the call is on another of your devices");
    } else {
        call_command_reply(command, call);
        call_events_signal(command->plane->delivery, call, command->device.user_id, command->data);
        free(command);
    }
}

void call_plane_signal(struct call_plane *plane, const struct call_device *device,
                       struct slice call_id, struct slice data, call_plane_done done, void *arg)
{
    size_t quotes = data.len >= 2 && data.data[0] == '"' ? 2 : 0; /* a string counts without them */
    if (data.len - quotes > CALL_SIGNAL_BYTES_MAX) {
        done(arg, &(struct call_reply){.problem = "data is longer than 32768 bytes",
                                       .code = ERROR_MESSAGE_TOO_LARGE});
        return;
    }
    struct call_command *command = call_command_make(&(struct call_command){.plane = plane,
                                                                            .device = *device,
                                                                            .call_id = call_id,
                                                                            .data = data,
                                                                            .done = done,
                                                                            .arg = arg});
    if (command)
        call_store_get(plane->store, call_id, device->user_id, on_call_found_for_signal, command);
}

/* ---- declared calls ---- */

static void on_call_declared(void *arg, const struct call_answer *answer)
{
    struct call_command *command = arg;
    struct call_plane *plane = command->plane;
    bool already = answer->result == CALL_CALLER_BUSY && answer->call->state == CALL_ACCEPTED;
    if (answer->result != CALL_DONE && !already) {
        call_command_refuse_result(command, answer);
        return;
    }
    call_command_reply(command, answer->call);
    if (!already) {
        call_plane_bind(plane, &command->device, answer->call);
        call_outcome_started(plane);
        call_sync_user(&plane->sync, command->device.user_id);
    }
    free(command);
}

void call_plane_declare_start(struct call_plane *plane, const struct call_device *device,
                              call_plane_done done, void *arg)
{
    char made[ULID_TEXT_LEN];
    struct call_command *command =
        call_plane_command(plane, device, call_plane_make_id(plane, made), done, arg);
    if (command)
        call_store_declare(plane->store, command->call_id, &command->device, on_call_declared,
                           command);
}

static void on_call_undeclared(void *arg, const struct call_answer *answer)
{
    if (answer->result == CALL_NOT_FOUND) {
        call_command_reply(arg, NULL);
        free(arg);
    } else {
        on_call_ended(arg, answer);
    }
}

void call_plane_declare_end(struct call_plane *plane, const struct call_device *device,
                            call_plane_done done, void *arg)
{
    struct call_command *command = call_plane_command(plane, device, SLICE_NONE, done, arg);
    if (command)
        call_store_end(plane->store, SLICE_NONE, device->user_id, on_call_undeclared, command);
}

/* ---- users who may no longer call each other ---- */

static void on_call_found_to_end(void *arg, const struct call_answer *answer)
{
    struct call_command *command = arg;
    bool is_theirs =
        answer->result == CALL_DONE && (slice_equal(answer->call->caller.user_id, command->to) ||
                                        slice_equal(answer->call->callee.user_id, command->to));
    if (is_theirs)
        call_store_end(command->plane->store, answer->call->id, command->device.user_id,
                       on_call_ended, command);
    else
        free(command);
}

void call_plane_end_between(struct call_plane *plane, struct slice user, struct slice other)
{
    struct call_command *command = call_command_make(&(struct call_command){
        .plane = plane, .device.user_id = user, .to = other, .done = on_unawaited_reply});
    if (command)
        call_store_get(plane->store, SLICE_NONE, command->device.user_id, on_call_found_to_end,
                       command);
}

/* ---- devices that leave ---- */

static bool call_party_is(const struct call_device *party, const struct call_device *device)
{
    return slice_equal(party->user_id, device->user_id) &&
           ulid_equal(&party->conn_id, &device->conn_id);
}

static void on_call_found_to_leave(void *arg, const struct call_answer *answer)
{
    struct call_command *command = arg;
    if (answer->result == CALL_DONE && (call_party_is(&answer->call->caller, &command->device) ||
                                        call_party_is(&answer->call->callee, &command->device)))
        call_store_end(command->plane->store, answer->call->id, command->device.user_id,
                       on_call_ended, command);
    else
        free(command);
}

void call_plane_leave(struct call_plane *plane, const struct call_device *device)
{
    struct call_binding *binding = call_bindings_find(&plane->bindings, &device->conn_id);
    if (!binding)
        return;
    call_plane_lose(plane, binding, true);
    struct call_command *command = call_command_make(
        &(struct call_command){.plane = plane, .device = *device, .done = on_unawaited_reply});
    if (command) /* without memory the call times out */
        call_store_get(plane->store, SLICE_NONE, command->device.user_id, on_call_found_to_leave,
                       command);
}

/* ---- time ---- */

static void on_calls_reaped(void *arg, const struct call *calls, size_t count)
{
    struct call_plane *plane = arg;
    for (size_t i = 0; i < count; i++) {
        call_events_ended(plane->delivery, &calls[i], NULL);
        call_outcome_ended(plane, &calls[i], NULL);
    }
}

static void on_call_binding_lost(void *arg, const struct ulid *conn_id)
{
    struct call_plane *plane = arg;
    struct call_binding *binding = call_bindings_find(&plane->bindings, conn_id);
    if (binding)
        call_plane_lose(plane, binding, false);
}

void call_plane_tick(struct call_plane *plane)
{
    const struct config *config = plane->presence->config;
    int64_t now_ms = plane->presence->clock->now_ms;
    if (now_ms >= plane->renew_at_ms) {
        int64_t wait_ms = config->presence.expiry_window_ms;
        /* A new connection of the same device takes over by renewing, which must happen within the grace. */
        if (config->call.reconnect_grace_ms && config->call.reconnect_grace_ms < wait_ms)
            wait_ms = config->call.reconnect_grace_ms;
        plane->renew_at_ms = now_ms + wait_ms / RENEWALS_PER_WAIT;
        call_bindings_renew(&plane->bindings, plane->store, on_call_binding_lost, plane);
        call_losses_run(plane);
        call_told_run(plane);
    }
    call_sync_retry(&plane->sync);
    call_endings_run(plane);
    if (resync_is_settled(plane->presence))
        call_store_reap(plane->store, CALL_REAP_MAX, on_calls_reaped, plane);
}
