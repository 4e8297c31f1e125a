#include "presence/resync.h"

#include "base/container.h"
#include "chats/chat_plane.h"
#include "log/log.h"
#include "presence/presence_event.h"
#include "presence/resync_contacts.h"
#include "presence/subscription.h"
#include "presence/visibility/visibility_review.h"

#include <stdlib.h>
#include <string.h>

void resync_init(struct resync *resync)
{
    list_init(&resync->topics);
    list_init(&resync->reviewed);
    resync->available_since_ms = INT64_MAX;
    resync->disturbed_at_ms = INT64_MIN / 2;
}

void resync_free(struct resync *resync)
{
    buffer_free(&resync->graphs);
}

bool resync_idle(const struct resync *resync)
{
    return !resync->reading && resync->graphs_under_way == 0;
}

static struct slice name_of(const struct topic *topic)
{
    return (struct slice){topic->name, topic->name_len};
}

/* ---- what is due ---- */

static bool is_presence(const struct topic *topic)
{
    return presence_topic_user(name_of(topic)).data != NULL;
}

/* Whether somebody has read the state, or is reading it now. */
static bool was_read(const struct topic *topic)
{
    uint8_t unread = is_presence(topic) ? SUBSCRIPTION_UNDECIDED : CHAT_VIEW_PENDING;
    for (uint32_t i = 0; i < topic->count; i++)
        if (topic->subscriptions[i]->view != unread)
            return true;
    return false;
}

static bool is_healed(const struct topic *topic)
{
    struct slice chat_id;
    return is_presence(topic) || chat_topic_parse(name_of(topic), &chat_id) == CHAT_TOPIC_PRESENCE;
}

void resync_topic(struct presence_plane *plane, struct topic *topic)
{
    if (!list_empty(&topic->stale))
        return;
    list_append(&plane->resync.topics, &topic->stale);
    metrics_count(plane->metrics, METRIC_BUS_GAPS);
}

/* Everybody who has the chat open is to be shown it anew, who were shown it a moment ago too. */
static void make_due(struct topic *topic)
{
    for (uint32_t i = 0; i < topic->count; i++)
        topic->subscriptions[i]->due = topic->subscriptions[i]->view == CHAT_VIEW_OPEN;
}

static void note_gap(struct presence_plane *plane, struct topic *topic)
{
    if (!is_healed(topic) || !was_read(topic))
        return;
    if (!is_presence(topic))
        make_due(topic);
    resync_topic(plane, topic);
}

static void visit(struct table_node *node, void *arg)
{
    note_gap(arg, CONTAINER_OF(node, struct topic, node));
}

void resync_gap(struct presence_plane *plane, struct slice name)
{
    struct topic *topic = name.data ? router_topic(plane->router, name) : NULL;
    if (topic)
        note_gap(plane, topic);
    if (!name.data)
        table_each(&plane->router->topics, visit, plane);
    if (!name.data || bus_topic_gateway(name).data) {
        plane->resync.disturbed_at_ms = plane->clock->now_ms;
        resync_graphs_begin(plane);
    }
}

static int64_t undisturbed_ms(const struct presence_plane *plane)
{
    return plane->clock->now_ms - plane->resync.disturbed_at_ms;
}

bool resync_may_have_forgotten(const struct presence_plane *plane)
{
    return undisturbed_ms(plane) < plane->config->presence.expiry_window_ms;
}

/* ---- users ---- */

/* One read under way. */
struct reading {
    struct presence_plane *plane;
    size_t count;
    size_t text_len;
    struct slice users[RESYNC_USERS_MAX];
    char text[RESYNC_USERS_MAX * USER_ID_BYTES_MAX];
};

static void read_on(struct presence_plane *plane);

static struct topic *topic_of(struct presence_plane *plane, struct slice user_id)
{
    char name[ROUTER_TOPIC_BYTES_MAX];
    return router_topic(plane->router, presence_topic(name, user_id));
}

static void put_back(struct reading *reading)
{
    for (size_t i = 0; i < reading->count; i++) {
        struct topic *topic = topic_of(reading->plane, reading->users[i]);
        if (topic && list_empty(&topic->stale))
            list_append(&reading->plane->resync.reviewed, &topic->stale);
    }
}

static void tell(struct presence_plane *plane, const struct presence *presence)
{
    struct topic *topic = topic_of(plane, presence->user_id);
    if (!topic)
        return;
    struct presence_change change = {.presence = *presence, .timestamp_ms = plane->clock->wall_ms};
    size_t told = subscription_tell(plane, topic, &change);
    metrics_add(plane->metrics, METRIC_RESYNC_TOLD, (int64_t)told);
}

static void was_answered(void *arg, enum state_status status, const struct presence *presences,
                         size_t count)
{
    struct reading *reading = arg;
    struct presence_plane *plane = reading->plane;
    plane->resync.reading = false;
    if (status != STATE_OK) {
        put_back(reading);
        free(reading);
        return;
    }
    metrics_add(plane->metrics, METRIC_RESYNC_USERS, (int64_t)count);
    for (size_t i = 0; i < count; i++)
        tell(plane, &presences[i]);
    free(reading);
    read_on(plane);
}

static void take_user(struct reading *reading, struct slice user_id)
{
    char *at = reading->text + reading->text_len;
    memcpy(at, user_id.data, user_id.len);
    reading->users[reading->count++] = (struct slice){at, user_id.len};
    reading->text_len += user_id.len;
}

static void gather(struct reading *reading)
{
    struct resync *resync = &reading->plane->resync;
    while (!list_empty(&resync->reviewed) && resync->readable > 0 &&
           reading->count < RESYNC_USERS_MAX) {
        struct topic *topic = CONTAINER_OF(resync->reviewed.next, struct topic, stale);
        list_remove(&topic->stale);
        resync->readable--;
        take_user(reading, presence_topic_user(name_of(topic)));
    }
}

/* The next read of this run. */
static void read_on(struct presence_plane *plane)
{
    struct resync *resync = &plane->resync;
    if (resync->reading || resync->readable == 0 || list_empty(&resync->reviewed))
        return;
    struct reading *reading = malloc(sizeof(*reading));
    if (!reading)
        return; /* the next run tries again */
    reading->plane = plane;
    reading->count = reading->text_len = 0;
    gather(reading);
    resync->reading = true;
    state_read(plane->store, reading->users, reading->count, was_answered, reading);
}

static void review_users(struct presence_plane *plane, size_t max)
{
    struct list *topics = &plane->resync.topics;
    struct list *at = topics->next;
    while (at != topics && max > 0) {
        struct topic *topic = CONTAINER_OF(at, struct topic, stale);
        struct slice user_id = presence_topic_user(name_of(topic));
        at = at->next;
        if (!user_id.data)
            continue;
        list_remove(&topic->stale);
        list_append(&plane->resync.reviewed, &topic->stale);
        visibility_review_start(plane, user_id);
        max--;
    }
}

static size_t length(const struct list *list)
{
    size_t count = 0;
    for (const struct list *at = list->next; at != list; at = at->next)
        count++;
    return count;
}

/* Those that were reviewed in the last run are read; others are reviewed, as many as can be read next. */
static void heal_users(struct presence_plane *plane)
{
    enum { USERS_PER_RUN = RESYNC_READS_PER_RUN * RESYNC_USERS_MAX };
    struct resync *resync = &plane->resync;
    size_t waiting = length(&resync->reviewed);
    if (waiting < USERS_PER_RUN)
        review_users(plane, USERS_PER_RUN - waiting);
    resync->readable = waiting;
    read_on(plane);
}

/* ---- chats ---- */

/* Takes up to `max` of those who are due; the topic stays in line while there are more. */
static size_t take_due(struct topic *topic, struct endpoint **out, size_t max)
{
    size_t count = 0;
    for (uint32_t i = 0; i < topic->count; i++) {
        struct subscription *held = topic->subscriptions[i];
        if (!held->due)
            continue;
        if (count == max)
            return count;
        held->due = false;
        out[count++] = held->endpoint;
    }
    list_remove(&topic->stale);
    return count;
}

/* The topic may be gone after the first of them is told, so its name is kept. */
static size_t refresh_chat(struct presence_plane *plane, struct topic *topic, struct slice chat_id,
                           size_t max)
{
    char id[CHAT_ID_BYTES_MAX];
    struct endpoint *endpoints[RESYNC_CHATS_PER_RUN];
    memcpy(id, chat_id.data, chat_id.len);
    size_t count = take_due(topic, endpoints, max);
    for (size_t i = 0; i < count && plane->resync.refresh_chat; i++)
        plane->resync.refresh_chat(endpoints[i], (struct slice){id, chat_id.len});
    return count;
}

static void refresh_chats(struct presence_plane *plane)
{
    struct list *topics = &plane->resync.topics;
    struct list *at = topics->next;
    size_t left = RESYNC_CHATS_PER_RUN;
    while (at != topics && left > 0) {
        struct topic *topic = CONTAINER_OF(at, struct topic, stale);
        struct slice chat_id;
        at = at->next;
        if (chat_topic_parse(name_of(topic), &chat_id) == CHAT_TOPIC_PRESENCE)
            left -= refresh_chat(plane, topic, chat_id, left);
    }
}

/* Right after an outage the bus may not have told of its gap yet, so what is well must have been so for a
 * while. */
static void note_health(struct presence_plane *plane, bool available)
{
    struct resync *resync = &plane->resync;
    int64_t now_ms = plane->clock->now_ms;
    if (!available) {
        resync->available_since_ms = INT64_MAX;
        resync->disturbed_at_ms = now_ms;
    } else if (now_ms < resync->available_since_ms) {
        resync->available_since_ms = now_ms;
    } else if (now_ms - resync->available_since_ms >= RESYNC_DOUBT_MS) {
        resync->well_at_ms = plane->clock->wall_ms;
    }
}

void resync_run(struct presence_plane *plane)
{
    bool available = state_available(plane->store);
    note_health(plane, available);
    if (!available)
        return;
    if (undisturbed_ms(plane) >= RESYNC_SETTLE_MS)
        refresh_chats(plane);
    heal_users(plane);
    resync_graphs_run(plane);
}
