#include "presence/resync.h"

#include "base/container.h"
#include "presence/presence_event.h"
#include "presence/resync_contacts.h"
#include "presence/subscription.h"
#include "routing/chat_topic.h"

#include <string.h>

void resync_init(struct resync *resync)
{
    list_init(&resync->chats);
    resync->available_since_ms = INT64_MAX;
    resync->disturbed_at_ms = INT64_MIN / 2;
}

void resync_free(struct resync *resync)
{
    id_list_free(&resync->users);
}

bool resync_is_idle(const struct presence_plane *plane)
{
    return !plane->rereads.reading && plane->resync.users_pending == 0;
}

/* ---- gaps ---- */

/* Returns whether a subscriber has read the state, or is reading it: its view is not `unread_view`. */
static bool resync_was_read(const struct topic *topic, uint8_t unread_view)
{
    for (uint32_t i = 0; i < topic->count; i++)
        if (topic->subscriptions[i]->view != unread_view)
            return true;
    return false;
}

static void resync_topic_gap(struct presence_plane *plane, struct topic *topic)
{
    struct slice chat_id;
    if (presence_topic_user(topic_name(topic)).data) {
        if (resync_was_read(topic, SUBSCRIPTION_UNDECIDED))
            reread_queue_add_topic(plane, topic);
        return;
    }
    if (chat_topic_parse(topic_name(topic), &chat_id) != CHAT_TOPIC_PRESENCE ||
        !resync_was_read(topic, CHAT_VIEW_PENDING))
        return;
    /* Mark also the endpoints that got a snapshot a moment ago. */
    for (uint32_t i = 0; i < topic->count; i++)
        topic->subscriptions[i]->needs_state = topic->subscriptions[i]->view == CHAT_VIEW_OPEN;
    if (!list_empty(&topic->stale))
        return;
    list_append(&plane->resync.chats, &topic->stale);
    metrics_count(plane->metrics, METRIC_BUS_GAPS);
}

static void resync_visit_topic(struct table_node *node, void *arg)
{
    resync_topic_gap(arg, CONTAINER_OF(node, struct topic, node));
}

void resync_gap(struct presence_plane *plane, struct slice name)
{
    struct topic *topic = name.data ? router_topic(plane->router, name) : NULL;
    if (topic)
        resync_topic_gap(plane, topic);
    if (!name.data)
        table_each(&plane->router->topics, resync_visit_topic, plane);
    if (!name.data || bus_topic_gateway(name).data) {
        plane->resync.disturbed_at_ms = plane->clock->now_ms;
        plane->resync.needs_syncs = true;
        resync_contacts_begin(plane);
    }
}

/* A store that was never available has nothing to lose. */
void resync_disturb(struct presence_plane *plane)
{
    plane->resync.disturbed_at_ms = plane->clock->now_ms;
    plane->resync.is_unsettled |= plane->resync.was_available;
}

bool resync_is_disturbed(const struct presence_plane *plane)
{
    int64_t undisturbed_ms = plane->clock->now_ms - plane->resync.disturbed_at_ms;
    return undisturbed_ms < plane->config->presence.expiry_window_ms;
}

static int64_t resync_registered_ms(const struct presence_plane *plane)
{
    int64_t third_ms = plane->config->presence.expiry_window_ms / 3;
    if (third_ms > RESYNC_REGISTERED_MS)
        return third_ms;
    return 2 * third_ms < RESYNC_REGISTERED_MS ? 2 * third_ms : RESYNC_REGISTERED_MS;
}

bool resync_is_settled(const struct presence_plane *plane)
{
    return !plane->resync.is_unsettled ||
           plane->clock->now_ms - plane->resync.disturbed_at_ms >= resync_registered_ms(plane);
}

bool resync_has_been_settled(const struct presence_plane *plane)
{
    return resync_is_settled(plane) &&
           plane->clock->now_ms - plane->resync.disturbed_at_ms >= 2 * resync_registered_ms(plane);
}

/* ---- chats ---- */

/* Takes up to `max` of the marked endpoints; the topic stays on the list while more are marked. */
static size_t resync_take_endpoints(struct topic *topic, struct endpoint **out, size_t max)
{
    size_t count = 0;
    for (uint32_t i = 0; i < topic->count; i++) {
        struct subscription *held = topic->subscriptions[i];
        if (!held->needs_state)
            continue;
        if (count == max)
            return count;
        held->needs_state = false;
        out[count++] = held->endpoint;
    }
    list_remove(&topic->stale);
    return count;
}

/* A topic may be freed once its first endpoint is refreshed, so the chat id is copied. */
static void resync_refresh_chats(struct presence_plane *plane)
{
    struct list *chats = &plane->resync.chats;
    struct list *at = chats->next;
    size_t left = RESYNC_CHATS_PER_RUN;
    while (at != chats && left > 0) {
        struct topic *topic = CONTAINER_OF(at, struct topic, stale);
        struct endpoint *endpoints[RESYNC_CHATS_PER_RUN];
        char id[CHAT_ID_BYTES_MAX];
        struct slice chat_id = SLICE_NONE;
        at = at->next;
        chat_topic_parse(topic_name(topic), &chat_id);
        memcpy(id, chat_id.data, chat_id.len);
        size_t count = resync_take_endpoints(topic, endpoints, left);
        for (size_t i = 0; i < count && plane->resync.refresh_chat; i++)
            plane->resync.refresh_chat(endpoints[i], (struct slice){id, chat_id.len});
        left -= count;
    }
}

/* ---- health and the run ---- */

/* Right after an outage the bus may not have reported its gap yet, so only a store that has been
 * available for a while counts as healthy. */
void resync_run(struct presence_plane *plane)
{
    struct resync *resync = &plane->resync;
    int64_t now_ms = plane->clock->now_ms;
    if (!state_available(plane->store)) {
        resync->available_since_ms = INT64_MAX;
        resync->needs_syncs = true;
        resync_disturb(plane);
        return;
    }
    resync->was_available = true;
    if (now_ms < resync->available_since_ms)
        resync->available_since_ms = now_ms;
    else if (now_ms - resync->available_since_ms >= RESYNC_UNDETECTED_MS)
        resync->healthy_at_ms = plane->clock->wall_ms;
    if (now_ms - resync->disturbed_at_ms >= RESYNC_SETTLE_MS)
        resync_refresh_chats(plane);
    if (resync->is_unsettled && resync_is_settled(plane)) {
        resync->is_unsettled = false;
        privacy_repeat_run(plane);
        table_each(&plane->router->topics, resync_visit_topic, plane);
        resync_contacts_begin(plane);
    }
    settle_queue_run(plane);
    reread_queue_run(plane);
    resync_contacts_run(plane);
}
