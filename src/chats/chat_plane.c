#include "chats/chat_plane.h"

#include "base/container.h"
#include "chats/chat_event.h"
#include "log/log.h"
#include "presence/announcement.h"
#include "presence/push.h"

#include <stdlib.h>
#include <string.h>

static struct slice topic_name(const struct subscription *subscription)
{
    return (struct slice){subscription->topic->name, subscription->topic->name_len};
}

static struct subscription *find(const struct endpoint *endpoint, struct slice chat_id,
                                 enum chat_topic topic)
{
    char name[ROUTER_TOPIC_BYTES_MAX];
    return router_subscription(endpoint, chat_topic_name(name, chat_id, topic));
}

bool chat_is_open(const struct endpoint *endpoint, struct slice chat_id)
{
    const struct subscription *held = find(endpoint, chat_id, CHAT_TOPIC_PRESENCE);
    return held && held->view == CHAT_VIEW_OPEN;
}

/* ---- opening and closing ---- */

static size_t count_chats(const struct endpoint *endpoint)
{
    size_t count = 0;
    struct slice chat_id;
    for (const struct subscription *at = endpoint->subscriptions; at; at = at->next)
        count += chat_topic_parse(topic_name(at), &chat_id) == CHAT_TOPIC_PRESENCE;
    return count;
}

static bool subscribe(struct chat_plane *plane, struct endpoint *endpoint, struct slice chat_id,
                      enum chat_topic topic)
{
    char name[ROUTER_TOPIC_BYTES_MAX];
    return router_subscribe(plane->router, endpoint, chat_topic_name(name, chat_id, topic));
}

enum chat_begin chat_begin(struct chat_plane *plane, struct endpoint *endpoint,
                           struct slice chat_id)
{
    if (find(endpoint, chat_id, CHAT_TOPIC_PRESENCE))
        return CHAT_BEGUN;
    if (count_chats(endpoint) >= plane->config->presence.max_open_chats)
        return CHAT_TOO_MANY;
    if (subscribe(plane, endpoint, chat_id, CHAT_TOPIC_PRESENCE) &&
        subscribe(plane, endpoint, chat_id, CHAT_TOPIC_TYPING)) {
        metrics_add(plane->metrics, METRIC_CHATS_OPEN, 1);
        return CHAT_BEGUN;
    }
    struct subscription *half = find(endpoint, chat_id, CHAT_TOPIC_PRESENCE);
    if (half)
        router_unsubscribe(plane->router, half);
    return CHAT_NO_MEMORY;
}

bool chat_confirm(struct chat_plane *plane, struct endpoint *endpoint, struct slice chat_id)
{
    (void)plane;
    struct subscription *presence = find(endpoint, chat_id, CHAT_TOPIC_PRESENCE);
    if (!presence)
        return false;
    presence->view = CHAT_VIEW_OPEN;
    find(endpoint, chat_id, CHAT_TOPIC_TYPING)->view = CHAT_VIEW_OPEN;
    return true;
}

void chat_give_up(struct chat_plane *plane, struct endpoint *endpoint, struct slice chat_id)
{
    if (!chat_is_open(endpoint, chat_id))
        chat_close(plane, endpoint, chat_id);
}

/* The two subscriptions come and go together. */
static void unsubscribe(struct chat_plane *plane, struct endpoint *endpoint, struct slice chat_id)
{
    struct subscription *typing = find(endpoint, chat_id, CHAT_TOPIC_TYPING);
    struct subscription *presence = find(endpoint, chat_id, CHAT_TOPIC_PRESENCE);
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
    unsubscribe(plane, endpoint, chat_id);
}

void chat_leave(struct chat_plane *plane, struct endpoint *endpoint)
{
    typing_leave(plane->typing, endpoint);
    struct subscription *at = endpoint->subscriptions;
    while (at) {
        struct slice chat_id;
        char name[ROUTER_TOPIC_BYTES_MAX];
        enum chat_topic topic = chat_topic_parse(topic_name(at), &chat_id);
        if (topic == CHAT_TOPIC_NONE) {
            at = at->next;
            continue;
        }
        memcpy(name, chat_id.data, chat_id.len);
        unsubscribe(plane, endpoint, (struct slice){name, chat_id.len});
        at = endpoint->subscriptions; /* both are gone, wherever they stood */
    }
}

/* ---- removal ---- */

void chat_publish_removal(struct chat_plane *plane, struct slice chat_id, struct slice user_id)
{
    char name[ROUTER_TOPIC_BYTES_MAX];
    struct buffer payload = BUFFER_INIT;
    typing_end(plane->typing, chat_id, user_id);
    chat_event_write_removed(&payload, user_id);
    if (!payload.failed)
        bus_publish(plane->router->bus, chat_topic_name(name, chat_id, CHAT_TOPIC_PRESENCE),
                    buffer_slice(&payload));
    buffer_free(&payload);
}

static void tell_closed(struct chat_plane *plane, struct endpoint *endpoint, struct slice chat_id)
{
    struct buffer fields = BUFFER_INIT;
    json_write_object(&fields);
    json_write_key_string(&fields, SLICE("chat_id"), chat_id);
    json_write_key_string(&fields, SLICE("reason"), SLICE("removed"));
    json_write_object_end(&fields);
    struct message message = {
        .type = MESSAGE_RELAY,
        .relay = {.name = SLICE("chat_closed"), .fields = buffer_slice(&fields)}};
    struct broadcast broadcast = {.message = &message};
    if (!fields.failed)
        plane->router->deliver(endpoint, &broadcast, 0);
    broadcast_end(&broadcast);
    buffer_free(&fields);
}

static void remove_member(struct chat_plane *plane, struct slice chat_id, struct slice user_id)
{
    struct route *route = router_find(plane->router, user_id);
    struct list *at = route ? route->endpoints.next : NULL;
    for (; at && at != &route->endpoints; at = at->next) {
        struct endpoint *endpoint = CONTAINER_OF(at, struct endpoint, of_route);
        bool was_open = chat_is_open(endpoint, chat_id);
        unsubscribe(plane, endpoint, chat_id);
        if (was_open)
            tell_closed(plane, endpoint, chat_id);
    }
}

/* ---- presence ---- */

/* The routes that are here of those who are to hear nothing, sorted: most of them are elsewhere. */
struct exceptions {
    const struct route **routes;
    size_t count;
};

static int compare_routes(const void *left, const void *right)
{
    uintptr_t a = (uintptr_t) * (const struct route *const *)left;
    uintptr_t b = (uintptr_t) * (const struct route *const *)right;
    return (a > b) - (a < b);
}

/* False when memory is short. */
static bool find_exceptions(const struct router *router, const struct chat_event *event,
                            struct exceptions *out)
{
    *out = (struct exceptions){0};
    if (event->except_count == 0)
        return true;
    out->routes = calloc(event->except_count, sizeof(const struct route *));
    if (!out->routes)
        return false;
    for (size_t i = 0; i < event->except_count; i++) {
        const struct route *route = router_find(router, event->except[i]);
        if (route)
            out->routes[out->count++] = route;
    }
    qsort(out->routes, out->count, sizeof(const struct route *), compare_routes);
    return true;
}

static bool is_exception(const struct exceptions *exceptions, const struct route *route)
{
    return exceptions->count && bsearch(&route, exceptions->routes, exceptions->count,
                                        sizeof(const struct route *), compare_routes);
}

static void tell_presence(struct chat_plane *plane, const struct topic *topic,
                          const struct chat_event *event, const struct exceptions *exceptions)
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
            is_exception(exceptions, endpoint->route))
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

static void presence_changed(struct chat_plane *plane, struct slice chat_id,
                             const struct chat_event *event)
{
    struct topic *topic = chat_topic_of(plane->router, chat_id, CHAT_TOPIC_PRESENCE);
    struct exceptions exceptions;
    if (!topic || !find_exceptions(plane->router, event, &exceptions))
        return;
    tell_presence(plane, topic, event, &exceptions);
    free(exceptions.routes);
    if (event->change.presence.status == PRESENCE_UNKNOWN)
        typing_view_recheck(&plane->typing->views, chat_id, event->change.presence.user_id);
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
        presence_changed(plane, chat_id, &event);
    else if (event.kind == CHAT_EVENT_REMOVED)
        remove_member(plane, chat_id, event.change.presence.user_id);
    chat_event_free(&event);
}
