#include "presence/presence_plane.h"

#include "log/log.h"
#include "presence/notify.h"
#include "presence/presence_event.h"
#include "presence/subscription.h"
#include "presence/visibility/visibility_review.h"

#include <stdlib.h>
#include <string.h>

void presence_init(struct presence_plane *plane)
{
    list_init(&plane->queries);
    list_init(&plane->reviews);
    resync_init(&plane->resync);
    reread_queue_init(&plane->rereads);
    settle_queue_init(&plane->settlements);
}

void presence_free(struct presence_plane *plane)
{
    visibility_review_free_all(plane);
    resync_free(&plane->resync);
    reread_queue_free(&plane->rereads);
    settle_queue_free(&plane->settlements);
    dwell_free(&plane->dwell);
}

/* ---- publishing ---- */

/* Last seen and its version must outlive the state store. */
static void presence_note_last_seen(struct presence_plane *plane, const struct presence *presence)
{
    if (presence->status == PRESENCE_OFFLINE && presence->last_seen_ms != TIME_NONE)
        last_seen_note(plane->last_seen, presence->user_id, presence->last_seen_ms,
                       (uint64_t)presence->version);
}

static void presence_publish_event(struct presence_plane *plane, const struct presence_event *event)
{
    char name[ROUTER_TOPIC_BYTES_MAX];
    struct buffer payload = BUFFER_INIT;
    presence_event_write(&payload, event);
    if (!payload.failed)
        bus_publish(plane->bus, presence_topic(name, event->change.presence.user_id),
                    buffer_slice(&payload));
    buffer_free(&payload);
}

void presence_publish_now(struct presence_plane *plane, const struct presence_change *change)
{
    presence_publish_event(
        plane, &(struct presence_event){.kind = PRESENCE_EVENT_CHANGED, .change = *change});
    notify_change(plane, change);
    if (plane->on_change)
        plane->on_change(plane->on_change_arg, change);
}

void presence_publish_change(struct presence_plane *plane, const struct presence_change *change)
{
    const struct presence *presence = &change->presence;
    last_known_note(plane->last_known, presence);
    notify_record_online(plane, presence);
    presence_note_last_seen(plane, presence);
    if (dwell_admit(&plane->dwell, change))
        presence_publish_now(plane, change);
}

void presence_publish_privacy(struct presence_plane *plane, struct slice user_id)
{
    privacy_repeat_note(plane, user_id);
    presence_publish_event(plane, &(struct presence_event){.kind = PRESENCE_EVENT_PRIVACY,
                                                           .change.presence.user_id = user_id});
}

/* ---- transitions ---- */

static void presence_publish_state(struct presence_plane *plane, const struct presence *presence,
                                   int64_t at_ms, enum presence_announcement announcement)
{
    bool left = presence->status == PRESENCE_OFFLINE;
    presence_publish_change(
        plane,
        &(struct presence_change){.presence = *presence,
                                  .timestamp_ms = at_ms,
                                  .announcement = left ? PRESENCE_ANNOUNCE_OFFLINE : announcement});
}

/* `announcement` applies to a user who is still connected after the operation. While routes of viewers may be missing, the
 * state is published again when they are not. */
static void presence_apply(struct presence_plane *plane, const struct state_transition *transition,
                           enum presence_announcement announcement)
{
    const struct presence *presence = &transition->presence;
    if (!transition->changed)
        return;
    metrics_count(plane->metrics, METRIC_PRESENCE_TRANSITIONS);
    if (settle_queue_check(plane, presence))
        return;
    presence_publish_state(plane, presence, transition->at_ms, announcement);
    if (!resync_is_settled(plane))
        reread_queue_add_user(plane, presence->user_id, announcement);
}

void presence_settled(struct presence_plane *plane, const struct state_transition *transition,
                      bool publish)
{
    const struct presence *presence = &transition->presence;
    presence_note_last_seen(plane, presence);
    if (transition->changed)
        presence_apply(plane, transition, PRESENCE_ANNOUNCE_NOTHING);
    else if (publish && !presence->unrecorded && !settle_queue_check(plane, presence))
        presence_publish_state(plane, presence, plane->clock->wall_ms, PRESENCE_ANNOUNCE_NOTHING);
}

static void on_lease_changed(void *arg, enum state_status status,
                             const struct state_transition *transition)
{
    struct presence_plane *plane = arg;
    if (status == STATE_OK)
        presence_apply(plane, transition, PRESENCE_ANNOUNCE_NOTHING);
    else if (status == STATE_UNKNOWN)
        reread_queue_add_user(plane, transition->presence.user_id, PRESENCE_ANNOUNCE_NOTHING);
}

/* A pending operation whose caller waits for the result. */
struct presence_operation {
    struct presence_plane *plane;
    presence_done done;
    void *arg;
};

static struct presence_operation *presence_operation_make(struct presence_plane *plane,
                                                          presence_done done, void *arg)
{
    struct presence_operation *operation = malloc(sizeof(*operation));
    if (operation)
        *operation = (struct presence_operation){plane, done, arg};
    else
        done(arg, false);
    return operation;
}

/* The store had lost the user's record, and has it again with a new version. Whoever asked meanwhile was told that the user is
 * offline; those who know better drop a newer version of the same state. */
static void presence_publish_restored(struct presence_plane *plane, const struct presence *presence)
{
    struct presence told;
    if (!last_known_find(plane->last_known, presence->user_id, &told) ||
        told.version >= presence->version || settle_queue_check(plane, presence))
        return;
    last_known_note(plane->last_known, presence);
    presence_publish_event(
        plane, &(struct presence_event){
                   .kind = PRESENCE_EVENT_CHANGED,
                   .change = {.presence = *presence, .timestamp_ms = plane->clock->wall_ms}});
}

static void on_lease_opened(void *arg, enum state_status status,
                            const struct state_transition *transition)
{
    struct presence_operation operation = *(struct presence_operation *)arg;
    free(arg);
    /* Publish first: `online` must precede the `offline` of a session that fails to open after all. */
    if (status == STATE_OK)
        presence_apply(operation.plane, transition,
                       transition->was_here ? PRESENCE_ANNOUNCE_NOTHING : PRESENCE_ANNOUNCE_ONLINE);
    if (status == STATE_OK && !transition->changed)
        presence_publish_restored(operation.plane, &transition->presence);
    else if (status == STATE_UNKNOWN)
        reread_queue_add_user(operation.plane, transition->presence.user_id,
                              PRESENCE_ANNOUNCE_ONLINE);
    if (status == STATE_OK && transition->displaced_gateway.len && operation.plane->on_displaced)
        operation.plane->on_displaced(operation.plane->session_arg, transition->displaced_gateway,
                                      transition->presence.user_id, &transition->displaced);
    operation.done(operation.arg, status == STATE_OK);
}

void presence_open(struct presence_plane *plane, const struct lease *lease, presence_done done,
                   void *arg)
{
    struct presence_operation *operation = presence_operation_make(plane, done, arg);
    if (!operation)
        return;
    struct lease opened = *lease;
    struct presence told;
    if (last_known_find(plane->last_known, lease->user_id, &told))
        opened.version_min = told.version;
    if (opened.known_since_ms == 0 && plane->connected_since)
        opened.known_since_ms = plane->connected_since(plane->session_arg, lease->user_id);
    state_open(plane->store, &opened, on_lease_opened, operation);
}

void presence_set_idle(struct presence_plane *plane, struct slice user_id,
                       const struct ulid *conn_id, bool idle)
{
    state_set_idle(plane->store, user_id, conn_id, idle, on_lease_changed, plane);
}

/* The end of a lease that the store may not take. */
struct presence_departure {
    struct presence_plane *plane;
    struct ulid conn_id;
    int64_t left_at_ms;
    size_t user_id_len;
    char user_id[USER_ID_BYTES_MAX];
};

static void on_lease_closed(void *arg, enum state_status status,
                            const struct state_transition *transition)
{
    struct presence_departure departure = *(struct presence_departure *)arg;
    free(arg);
    if (status == STATE_OK)
        presence_apply(departure.plane, transition, PRESENCE_ANNOUNCE_NOTHING);
    else
        settle_queue_add_departure(
            departure.plane, (struct slice){departure.user_id, departure.user_id_len},
            &departure.conn_id, departure.left_at_ms, status == STATE_UNKNOWN);
}

void presence_close(struct presence_plane *plane, struct slice user_id, const struct ulid *conn_id)
{
    struct presence_departure *departure = malloc(sizeof(*departure));
    if (!departure) { /* if the store does not take it, the lease expires */
        state_close(plane->store, user_id, conn_id, on_lease_changed, plane);
        return;
    }
    departure->plane = plane;
    departure->conn_id = *conn_id;
    departure->left_at_ms = plane->clock->wall_ms;
    departure->user_id_len = user_id.len;
    memcpy(departure->user_id, user_id.data, user_id.len);
    state_close(plane->store, user_id, conn_id, on_lease_closed, departure);
}

static void on_call_flag_set(void *arg, enum state_status status,
                             const struct state_transition *transition)
{
    struct presence_operation operation = *(struct presence_operation *)arg;
    free(arg);
    if (status == STATE_OK)
        presence_apply(operation.plane, transition,
                       transition->presence.in_call ? PRESENCE_ANNOUNCE_IN_CALL
                                                    : PRESENCE_ANNOUNCE_OUT_OF_CALL);
    operation.done(operation.arg, status == STATE_OK);
}

void presence_set_call(struct presence_plane *plane, struct slice user_id, bool in_call,
                       presence_done done, void *arg)
{
    struct presence_operation *operation = presence_operation_make(plane, done, arg);
    if (operation)
        state_set_call(plane->store, user_id, in_call, on_call_flag_set, operation);
}

/* ---- renewals ---- */

void presence_renew(struct presence_plane *plane, struct slice user_id, const struct ulid *conn_id,
                    int64_t last_heartbeat_ms)
{
    if (plane->renewal_count == PRESENCE_RENEWALS_MAX)
        presence_flush(plane);
    size_t index = plane->renewal_count++;
    memcpy(plane->renewal_users[index], user_id.data, user_id.len);
    plane->renewals[index] = (struct lease_renewal){
        .conn_id = *conn_id,
        .user_id = {plane->renewal_users[index], user_id.len},
        .last_heartbeat_ms = last_heartbeat_ms,
    };
}

static void on_leases_renewed(void *arg, enum state_status status,
                              const struct lease_renewal *renewals, size_t count)
{
    struct presence_plane *plane = arg;
    (void)status; /* each renewal carries its own result */
    for (size_t i = 0; i < count; i++) {
        if (renewals[i].lost)
            resync_disturb(plane);
        if (renewals[i].lost)
            plane->on_lease_lost(plane->session_arg, renewals[i].user_id, &renewals[i].conn_id);
        else if (!renewals[i].failed)
            metrics_count(plane->metrics, METRIC_LEASES_RENEWED);
        else if (plane->on_renewal_failed)
            plane->on_renewal_failed(plane->session_arg, renewals[i].user_id, &renewals[i].conn_id);
    }
}

void presence_flush(struct presence_plane *plane)
{
    size_t count = plane->renewal_count;
    plane->renewal_count = 0;
    if (count)
        state_renew(plane->store, plane->renewals, count, on_leases_renewed, plane);
}

/* ---- the reaper, and events ---- */

static void reap_leases(struct presence_plane *plane);

static void on_leases_reaped(void *arg, enum state_status status,
                             const struct state_transition *transitions, size_t count)
{
    struct presence_plane *plane = arg;
    if (status != STATE_OK)
        return;
    metrics_add(plane->metrics, METRIC_PRESENCE_REAPED, (int64_t)count);
    for (size_t i = 0; i < count; i++)
        presence_apply(plane, &transitions[i], PRESENCE_ANNOUNCE_NOTHING);
    /* More may be due; and these have been told. A store that answers at once is asked with the next tick. */
    if (count > 0 && !plane->is_in_reap)
        reap_leases(plane);
}

static void reap_leases(struct presence_plane *plane)
{
    plane->is_in_reap = true;
    state_reap(plane->store, plane->config->presence.reap_batch_max, on_leases_reaped, plane);
    plane->is_in_reap = false;
}

void presence_reap(struct presence_plane *plane)
{
    visibility_review_retry(plane);
    resync_run(plane);
    reap_leases(plane);
}

void presence_received(struct presence_plane *plane, struct slice topic, struct slice payload)
{
    char text[PRESENCE_EVENT_BYTES_MAX];
    struct presence_event event;
    if (payload.len > sizeof(text))
        return;
    memcpy(text, payload.data, payload.len);
    if (!presence_event_parse(text, payload.len, &event)) {
        log_warn("bad_presence_event", "topic=%s", log_quote(topic));
        return;
    }
    if (event.kind == PRESENCE_EVENT_CHANGED) {
        if (settle_queue_check(plane, &event.change.presence))
            return;
        last_known_note(plane->last_known, &event.change.presence);
        subscription_fan_out(plane, topic, &event.change);
    } else {
        visibility_review_start(plane, event.change.presence.user_id);
    }
}
