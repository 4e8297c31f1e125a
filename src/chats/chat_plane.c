#include "chats/chat_plane.h"

#include "base/container.h"
#include "chats/chat_event.h"
#include "log/log.h"
#include "presence/announcement.h"
#include "presence/push.h"

#include <stdlib.h>
#include <string.h>

static struct subscription *chat_find_subscription(const struct endpoint *endpoint,
                                                   struct slice chat_id, enum chat_topic topic)
{
    char name[ROUTER_TOPIC_BYTES_MAX];
    return router_subscription(endpoint, chat_topic_name(name, chat_id, topic));
}

bool chat_is_open(const struct endpoint *endpoint, struct slice chat_id)
{
    const struct subscription *held =
        chat_find_subscription(endpoint, chat_id, CHAT_TOPIC_PRESENCE);
    return held && held->view == CHAT_VIEW_OPEN;
}

/* ---- opening and closing ---- */

static bool chat_subscribe(struct chat_plane *plane, struct endpoint *endpoint,
                           struct slice chat_id, enum chat_topic topic)
{
    char name[ROUTER_TOPIC_BYTES_MAX];
    return router_subscribe(plane->router, endpoint, chat_topic_name(name, chat_id, topic));
}

enum chat_begin chat_begin(struct chat_plane *plane, struct endpoint *endpoint,
                           struct slice chat_id)
{
    if (chat_find_subscription(endpoint, chat_id, CHAT_TOPIC_PRESENCE))
        return CHAT_BEGUN;
    size_t open_chats = 0;
    struct slice open_id;
    for (const struct subscription *at = endpoint->subscriptions; at; at = at->next)
        open_chats += chat_topic_parse(topic_name(at->topic), &open_id) == CHAT_TOPIC_PRESENCE;
    if (open_chats >= plane->config->presence.max_open_chats)
        return CHAT_TOO_MANY;
    if (chat_subscribe(plane, endpoint, chat_id, CHAT_TOPIC_PRESENCE) &&
        chat_subscribe(plane, endpoint, chat_id, CHAT_TOPIC_TYPING)) {
        metrics_add(plane->metrics, METRIC_CHATS_OPEN, 1);
        return CHAT_BEGUN;
    }
    struct subscription *half = chat_find_subscription(endpoint, chat_id, CHAT_TOPIC_PRESENCE);
    if (half)
        router_unsubscribe(plane->router, half);
    return CHAT_NO_MEMORY;
}

bool chat_confirm(struct endpoint *endpoint, struct slice chat_id)
{
    struct subscription *presence = chat_find_subscription(endpoint, chat_id, CHAT_TOPIC_PRESENCE);
    if (!presence)
        return false;
    presence->view = CHAT_VIEW_OPEN;
    chat_find_subscription(endpoint, chat_id, CHAT_TOPIC_TYPING)->view = CHAT_VIEW_OPEN;
    return true;
}

void chat_give_up(struct chat_plane *plane, struct endpoint *endpoint, struct slice chat_id)
{
    if (!chat_is_open(endpoint, chat_id))
        chat_close(plane, endpoint, chat_id);
}

/* Removes both subscriptions: they exist only together. */
static void chat_unsubscribe(struct chat_plane *plane, struct endpoint *endpoint,
                             struct slice chat_id)
{
    struct subscription *typing = chat_find_subscription(endpoint, chat_id, CHAT_TOPIC_TYPING);
    struct subscription *presence = chat_find_subscription(endpoint, chat_id, CHAT_TOPIC_PRESENCE);
    if (!presence)
        return;
    router_unsubscribe(plane->router, typing);
    router_unsubscribe(plane->router, presence);
    if (!chat_topic_of(plane->router, chat_id, CHAT_TOPIC_TYPING))
        typing_view_close(&plane->typing->views, chat_id);
    metrics_add(plane->metrics, METRIC_CHATS_OPEN, -1);
}

void chat_close(struct chat_plane *plane, struct endpoint *endpoint, struct slice chat_id)
{
    typing_stop(plane->typing, endpoint, chat_id);
    chat_unsubscribe(plane, endpoint, chat_id);
}

void chat_leave(struct chat_plane *plane, struct endpoint *endpoint)
{
    typing_leave(plane->typing, endpoint);
    struct subscription *at = endpoint->subscriptions;
    while (at) {
        struct slice chat_id;
        char name[ROUTER_TOPIC_BYTES_MAX];
        enum chat_topic topic = chat_topic_parse(topic_name(at->topic), &chat_id);
        if (topic == CHAT_TOPIC_NONE) {
            at = at->next;
            continue;
        }
        memcpy(name, chat_id.data, chat_id.len);
        chat_unsubscribe(plane, endpoint, (struct slice){name, chat_id.len});
        at = endpoint->subscriptions; /* both subscriptions were freed */
    }
}

/* ---- publishing ---- */

/* Publishes and frees an event on the chat's presence topic. */
static void chat_publish(struct chat_plane *plane, struct slice chat_id, struct buffer *payload)
{
    char name[ROUTER_TOPIC_BYTES_MAX];
    if (!payload->failed)
        bus_publish(plane->router->bus, chat_topic_name(name, chat_id, CHAT_TOPIC_PRESENCE),
                    buffer_slice(payload));
    buffer_free(payload);
}

void chat_publish_removal(struct chat_plane *plane, struct slice chat_id, struct slice user_id)
{
    struct buffer payload = BUFFER_INIT;
    typing_end(plane->typing, chat_id, user_id);
    chat_event_write_removed(&payload, user_id);
    chat_publish(plane, chat_id, &payload);
}

void chat_publish_changed(struct chat_plane *plane, struct slice chat_id, struct slice user_id)
{
    struct buffer payload = BUFFER_INIT;
    chat_event_write_changed(&payload, user_id);
    chat_publish(plane, chat_id, &payload);
}

void chat_publish_receipt(struct chat_plane *plane, struct slice chat_id, struct slice user_id,
                          uint64_t sequence, const struct id_list *hidden_from)
{
    struct buffer payload = BUFFER_INIT;
    chat_event_write_receipt(&payload, user_id, (int64_t)sequence, hidden_from);
    chat_publish(plane, chat_id, &payload);
}

/* ---- removal ---- */

static void chat_send_closed(struct chat_plane *plane, struct endpoint *endpoint,
                             struct slice chat_id)
{
    struct buffer fields = BUFFER_INIT;
    json_write_object(&fields);
    json_write_key_string(&fields, SLICE("chat_id"), chat_id);
    json_write_key_string(&fields, SLICE("reason"), SLICE("removed"));
    json_write_object_end(&fields);
    struct message message = {
        .type = MESSAGE_RELAY,
        .relay = {.name = RELAY_CHAT_CLOSED, .fields = buffer_slice(&fields)}};
    struct broadcast broadcast = {.message = &message};
    if (!fields.failed)
        plane->router->deliver(endpoint, &broadcast, 0);
    broadcast_end(&broadcast);
    buffer_free(&fields);
}

static void chat_remove_member(struct chat_plane *plane, struct slice chat_id, struct slice user_id)
{
    struct route *route = router_find(plane->router, user_id);
    struct list *at = route ? route->endpoints.next : NULL;
    for (; at && at != &route->endpoints; at = at->next) {
        struct endpoint *endpoint = CONTAINER_OF(at, struct endpoint, of_route);
        bool was_open = chat_is_open(endpoint, chat_id);
        chat_unsubscribe(plane, endpoint, chat_id);
        if (was_open)
            chat_send_closed(plane, endpoint, chat_id);
    }
}

/* ---- presence ---- */

/* The local routes of the users who must not get the change, sorted. Most of the users are not connected here. */
struct chat_exceptions {
    const struct route **routes;
    size_t count;
};

static int chat_compare_routes(const void *left, const void *right)
{
    uintptr_t a = (uintptr_t) * (const struct route *const *)left;
    uintptr_t b = (uintptr_t) * (const struct route *const *)right;
    return (a > b) - (a < b);
}

/* Returns false when out of memory. */
static bool chat_exceptions_find(const struct router *router, const struct chat_event *event,
                                 struct chat_exceptions *out)
{
    *out = (struct chat_exceptions){0};
    if (event->except.count == 0)
        return true;
    out->routes = calloc(event->except.count, sizeof(const struct route *));
    if (!out->routes)
        return false;
    for (size_t i = 0; i < event->except.count; i++) {
        const struct route *route = router_find(router, event->except.ids[i]);
        if (route)
            out->routes[out->count++] = route;
    }
    qsort(out->routes, out->count, sizeof(const struct route *), chat_compare_routes);
    return true;
}

static bool chat_exceptions_contain(const struct chat_exceptions *exceptions,
                                    const struct route *route)
{
    return exceptions->count && bsearch(&route, exceptions->routes, exceptions->count,
                                        sizeof(const struct route *), chat_compare_routes);
}

static void chat_deliver_presence(struct chat_plane *plane, const struct topic *topic,
                                  const struct chat_event *event,
                                  const struct chat_exceptions *exceptions)
{
    const struct presence *presence = &event->change.presence;
    const struct route *own = router_find(plane->router, presence->user_id);
    struct message message = {.type = MESSAGE_PRESENCE_CHANGED, .change = event->change};
    struct broadcast broadcast = {.message = &message};
    uint64_t key = router_key(plane->router, MESSAGE_PRESENCE_CHANGED, presence->user_id);
    struct announcement announcement;
    size_t delivered = 0;
    announcement_begin(&announcement, plane->router, &event->change);
    for (uint32_t i = 0; i < topic->count; i++) {
        struct endpoint *endpoint = topic->subscriptions[i]->endpoint;
        if (topic->subscriptions[i]->view != CHAT_VIEW_OPEN || endpoint->route == own ||
            chat_exceptions_contain(exceptions, endpoint->route))
            continue;
        announcement_to_chat(&announcement, endpoint);
        if (!push_is_new(plane->router, endpoint, &event->change))
            continue;
        plane->router->deliver(endpoint, &broadcast, key);
        delivered++;
    }
    broadcast_end(&broadcast);
    announcement_end(&announcement);
    metrics_add(plane->metrics, METRIC_PRESENCE_DELIVERIES, (int64_t)delivered);
    metrics_latency(plane->metrics, LATENCY_PRESENCE,
                    (plane->clock->wall_ms - event->change.timestamp_ms) * 1000);
}

static void chat_presence_changed(struct chat_plane *plane, struct slice chat_id,
                                  const struct chat_event *event)
{
    struct topic *topic = chat_topic_of(plane->router, chat_id, CHAT_TOPIC_PRESENCE);
    struct chat_exceptions exceptions;
    if (!topic || !chat_exceptions_find(plane->router, event, &exceptions))
        return;
    chat_deliver_presence(plane, topic, event, &exceptions);
    free(exceptions.routes);
    if (event->change.presence.status == PRESENCE_UNKNOWN)
        typing_view_recheck(&plane->typing->views, chat_id, event->change.presence.user_id);
}

/* ---- changes and receipts ---- */

/* Sends a push to everybody who has the chat open except the exceptions and, of a receipt, the reader. A newer push
 * replaces one with the same key that is still queued. */
static void chat_deliver_push(struct chat_plane *plane, const struct topic *topic,
                              const struct chat_event *event, struct slice name,
                              const struct buffer *fields, uint64_t key)
{
    const struct route *own = router_find(plane->router, event->change.presence.user_id);
    struct message message = {.type = MESSAGE_RELAY,
                              .relay = {.name = name, .fields = buffer_slice(fields)}};
    struct broadcast broadcast = {.message = &message};
    struct chat_exceptions exceptions;
    if (fields->failed || !chat_exceptions_find(plane->router, event, &exceptions))
        return;
    for (uint32_t i = 0; i < topic->count; i++) {
        struct endpoint *endpoint = topic->subscriptions[i]->endpoint;
        bool is_own = event->kind == CHAT_EVENT_RECEIPT && endpoint->route == own;
        if (topic->subscriptions[i]->view == CHAT_VIEW_OPEN && !is_own &&
            !chat_exceptions_contain(&exceptions, endpoint->route))
            plane->router->deliver(endpoint, &broadcast, key);
    }
    broadcast_end(&broadcast);
    free(exceptions.routes);
}

static void chat_push_event(struct chat_plane *plane, struct slice chat_id,
                            const struct chat_event *event)
{
    const struct topic *topic = chat_topic_of(plane->router, chat_id, CHAT_TOPIC_PRESENCE);
    bool is_receipt = event->kind == CHAT_EVENT_RECEIPT;
    struct slice user_id = event->change.presence.user_id;
    struct buffer fields = BUFFER_INIT;
    if (!topic)
        return;
    uint64_t key = router_key(plane->router, MESSAGE_CHAT_SNAPSHOT, chat_id);
    if (is_receipt)
        key = (key ^ router_key(plane->router, MESSAGE_ACK, user_id)) | 1;
    json_write_object(&fields);
    json_write_key_string(&fields, SLICE("chat_id"), chat_id);
    if (is_receipt) {
        json_write_key_string(&fields, SLICE("user_id"), user_id);
        json_write_key_int(&fields, SLICE("sequence"), event->sequence);
    }
    json_write_object_end(&fields);
    chat_deliver_push(plane, topic, event, is_receipt ? RELAY_RECEIPT : RELAY_CHAT_CHANGED, &fields,
                      key);
    buffer_free(&fields);
}

void chat_received(struct chat_plane *plane, enum chat_topic topic, struct slice chat_id,
                   struct slice payload)
{
    struct chat_event event;
    if (topic == CHAT_TOPIC_TYPING) {
        typing_received(plane->typing, chat_id, payload);
        return;
    }
    if (!chat_event_parse(payload, &event)) {
        log_warn("bad_chat_event", "chat=%s", log_quote(chat_id));
        return;
    }
    if (event.kind == CHAT_EVENT_PRESENCE)
        chat_presence_changed(plane, chat_id, &event);
    else if (event.kind == CHAT_EVENT_REMOVED)
        chat_remove_member(plane, chat_id, event.change.presence.user_id);
    else
        chat_push_event(plane, chat_id, &event);
    chat_event_free(&event);
}
