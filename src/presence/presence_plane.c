#include "presence/presence_plane.h"

#include "log/log.h"
#include "presence/presence_event.h"
#include "presence/subscription.h"
#include "presence/visibility/visibility_review.h"

#include <stdlib.h>
#include <string.h>

void presence_init(struct presence_plane *plane)
{
    list_init(&plane->looks);
    list_init(&plane->reviews);
    resync_init(&plane->resync);
    uncertain_users_init(&plane->doubts);
}

void presence_free(struct presence_plane *plane)
{
    visibility_review_forget_all(plane);
    resync_free(&plane->resync);
    uncertain_users_free(&plane->doubts);
}

static void publish(struct presence_plane *plane, const struct presence_event *event)
{
    char name[ROUTER_TOPIC_BYTES_MAX];
    struct buffer payload = BUFFER_INIT;
    presence_event_write(&payload, event);
    if (!payload.failed)
        bus_publish(plane->bus, presence_topic(name, event->change.presence.user_id),
                    buffer_slice(&payload));
    buffer_free(&payload);
}

/* What must outlive the state store: when somebody left, and the version of that. */
static void note_last_seen(struct presence_plane *plane, const struct presence *presence)
{
    bool left = presence->status == PRESENCE_OFFLINE && presence->last_seen_ms != TIME_NONE;
    if (left)
        last_seen_note(plane->last_seen, presence->user_id, presence->last_seen_ms,
                       (uint64_t)presence->version);
}

void presence_tell(struct presence_plane *plane, const struct presence_change *change)
{
    last_known_note(plane->last_known, &change->presence);
    note_last_seen(plane, &change->presence);
    publish(plane, &(struct presence_event){.kind = PRESENCE_EVENT_CHANGED, .change = *change});
    audience_tell(plane, change);
}

/* `news` is what such an operation makes of a user who is still there after it. */
static void apply_transition(struct presence_plane *plane,
                             const struct state_transition *transition, enum presence_news news)
{
    if (!transition->changed)
        return;
    metrics_count(plane->metrics, METRIC_PRESENCE_TRANSITIONS);
    bool left = transition->presence.status == PRESENCE_OFFLINE;
    presence_tell(plane, &(struct presence_change){.presence = transition->presence,
                                                   .timestamp_ms = transition->at_ms,
                                                   .news = left ? PRESENCE_NEWS_OFFLINE : news});
}

/* For operations whose caller waits for nothing. */
static void settle(void *arg, enum state_status status, const struct state_transition *transition)
{
    struct presence_plane *plane = arg;
    if (status == STATE_OK)
        apply_transition(plane, transition, PRESENCE_NEWS_NONE);
    else if (status == STATE_UNKNOWN)
        uncertain_users_add(plane, transition->presence.user_id, PRESENCE_NEWS_NONE);
}

struct opening {
    struct presence_plane *plane;
    void (*done)(void *arg, bool registered);
    void *arg;
};

static void opened(void *arg, enum state_status status, const struct state_transition *transition)
{
    struct opening opening = *(struct opening *)arg;
    free(arg);
    /* first: `online` must be out before the `offline` of a session that cannot be opened after all */
    if (status == STATE_OK)
        apply_transition(opening.plane, transition,
                         transition->was_here ? PRESENCE_NEWS_NONE : PRESENCE_NEWS_ONLINE);
    else if (status == STATE_UNKNOWN)
        uncertain_users_add(opening.plane, transition->presence.user_id, PRESENCE_NEWS_ONLINE);
    opening.done(opening.arg, status == STATE_OK);
}

void presence_open(struct presence_plane *plane, const struct lease *lease,
                   void (*done)(void *arg, bool registered), void *arg)
{
    struct opening *opening = malloc(sizeof(*opening));
    if (!opening) {
        done(arg, false);
        return;
    }
    *opening = (struct opening){plane, done, arg};
    struct lease opened_lease = *lease;
    if (opened_lease.known_since_ms == 0 && plane->known_since)
        opened_lease.known_since_ms = plane->known_since(plane->lost_arg, lease->user_id);
    state_open(plane->store, &opened_lease, opened, opening);
}

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

static void renewed(void *arg, enum state_status status, const struct lease_renewal *renewals,
                    size_t count)
{
    struct presence_plane *plane = arg;
    (void)status; /* each says how it went */
    for (size_t i = 0; i < count; i++) {
        if (renewals[i].lost)
            plane->lost(plane->lost_arg, renewals[i].user_id, &renewals[i].conn_id);
        else if (!renewals[i].failed)
            metrics_count(plane->metrics, METRIC_LEASES_RENEWED);
        else if (plane->unrenewed)
            plane->unrenewed(plane->lost_arg, renewals[i].user_id, &renewals[i].conn_id);
    }
}

void presence_flush(struct presence_plane *plane)
{
    size_t count = plane->renewal_count;
    plane->renewal_count = 0;
    if (count)
        state_renew(plane->store, plane->renewals, count, renewed, plane);
}

void presence_set_idle(struct presence_plane *plane, struct slice user_id,
                       const struct ulid *conn_id, bool idle)
{
    state_set_idle(plane->store, user_id, conn_id, idle, settle, plane);
}

void presence_close(struct presence_plane *plane, struct slice user_id, const struct ulid *conn_id)
{
    state_close(plane->store, user_id, conn_id, settle, plane);
}

struct call_setting {
    struct presence_plane *plane;
    void (*done)(void *arg, bool set);
    void *arg;
};

static void call_set(void *arg, enum state_status status, const struct state_transition *transition)
{
    struct call_setting setting = *(struct call_setting *)arg;
    free(arg);
    if (status == STATE_OK)
        apply_transition(setting.plane, transition,
                         transition->presence.in_call ? PRESENCE_NEWS_IN_CALL
                                                      : PRESENCE_NEWS_OUT_OF_CALL);
    setting.done(setting.arg, status == STATE_OK);
}

void presence_set_call(struct presence_plane *plane, struct slice user_id, bool in_call,
                       void (*done)(void *arg, bool set), void *arg)
{
    struct call_setting *setting = malloc(sizeof(*setting));
    if (!setting) {
        done(arg, false);
        return;
    }
    *setting = (struct call_setting){plane, done, arg};
    state_set_call(plane->store, user_id, in_call, call_set, setting);
}

static void reaped(void *arg, enum state_status status, const struct state_transition *transitions,
                   size_t count)
{
    struct presence_plane *plane = arg;
    if (status != STATE_OK)
        return;
    metrics_add(plane->metrics, METRIC_PRESENCE_REAPED, (int64_t)count);
    for (size_t i = 0; i < count; i++)
        apply_transition(plane, &transitions[i], PRESENCE_NEWS_NONE);
}

void presence_reap(struct presence_plane *plane)
{
    visibility_review_retry(plane);
    resync_run(plane);
    uncertain_users_run(plane);
    state_reap(plane->store, plane->config->presence.reap_batch_max, reaped, plane);
}

void presence_publish_privacy(struct presence_plane *plane, struct slice user_id)
{
    publish(plane, &(struct presence_event){.kind = PRESENCE_EVENT_PRIVACY,
                                            .change.presence.user_id = user_id});
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
        last_known_note(plane->last_known, &event.change.presence);
        subscription_fan_out(plane, topic, &event.change);
    } else {
        visibility_review_start(plane, event.change.presence.user_id);
    }
}
