/* The receiving half of push.h. */
#include "base/container.h"
#include "presence/announcement.h"
#include "presence/presence_event.h"
#include "presence/presence_query.h"
#include "presence/push.h"
#include "presence/subscription.h"
#include "presence/visibility/visibility_review.h"
#include "routing/chat_topic.h"
#include "text/json.h"

#include <stdlib.h>

struct received_push {
    struct push push;
    struct slice users; /* raw JSON */
};

static bool push_parse_field(struct json *json, struct slice key, struct received_push *received)
{
    struct push *push = &received->push;
    int64_t view;
    if (slice_is(key, "presence")) {
        struct slice field, type;
        push->change.presence.last_seen_ms = TIME_NONE;
        json_object(json);
        while (json_member(json, &field))
            if (!presence_event_read_field(json, field, &type, &push->change))
                return false;
        return push->change.presence.user_id.data != NULL;
    }
    if (slice_is(key, "users"))
        return json_raw(json, &received->users);
    if (slice_is(key, "chats"))
        return presence_event_read_ids(json, &push->chats);
    if (slice_is(key, "contacts"))
        return json_bool(json, &push->contacts);
    if (!slice_is(key, "view"))
        return json_skip(json);
    if (!json_int(json, &view) || view < 0 || view >= PRIVACY_VIEWS)
        return false;
    push->changes_view = true;
    push->view = (enum privacy_view)view;
    return true;
}

/* ---- one endpoint ---- */

/* Returns whether the endpoint has not been told this change yet, and records it. Without a subscription
 * of any kind no other change source can bring it, so nothing is recorded. */
static bool push_note_change(const struct router *router, struct endpoint *endpoint,
                             const struct presence_change *change)
{
    if (endpoint->subscription_count == 0)
        return true;
    return recent_note(&endpoint->recent, presence_change_hash(&router->key, change));
}

bool push_is_new(const struct router *router, struct endpoint *endpoint,
                 const struct presence_change *change)
{
    const struct subscription *held = subscription_find(endpoint, change->presence.user_id);
    if (held && (held->view != PRIVACY_HIDDEN || change->presence.status == PRESENCE_UNKNOWN))
        return false;
    return push_note_change(router, endpoint, change);
}

static bool push_has_chat_open(const struct endpoint *endpoint, const struct id_list *chats)
{
    char name[ROUTER_TOPIC_BYTES_MAX];
    for (size_t i = 0; endpoint->subscription_count && i < chats->count; i++)
        if (chats->ids[i].len <= CHAT_ID_BYTES_MAX &&
            router_subscription(endpoint,
                                chat_topic_name(name, chats->ids[i], CHAT_TOPIC_PRESENCE)))
            return true;
    return false;
}

/* Narrows the view of the endpoint's subscription (NULL: it has none). Returns whether the endpoint must be
 * told: its view changed or, without a subscription, the push selects it. A subscription without a view gets one
 * from the query or the review that is pending. */
static bool push_set_view(struct presence_plane *plane, struct endpoint *endpoint,
                          struct subscription *held, const struct push *push)
{
    if (held && held->view == SUBSCRIPTION_UNDECIDED)
        return false;
    bool told = held ? held->view != push->view
                     : push->contacts || push_has_chat_open(endpoint, &push->chats);
    if (held)
        held->view = (uint8_t)push->view;
    if (told)
        subscription_told(plane, endpoint, &push->change.presence, 1);
    return told && push_note_change(plane->router, endpoint, &push->change);
}

/* ---- one push ---- */

/* Two gateways may make two visibility changes, and the older may arrive last. So a push takes visibility
 * away at once, but before a subscription gets more the ledger decides. */
static size_t push_deliver_to_user(struct presence_plane *plane, struct slice user_id,
                                   const struct push *push, struct broadcast *broadcast,
                                   uint64_t key, struct announcement *announcement)
{
    struct route *route = router_find(plane->router, user_id);
    size_t delivered = 0;
    bool needs_review = false;
    struct list *at = route ? route->endpoints.next : NULL;
    for (; at && at != &route->endpoints; at = at->next) {
        struct endpoint *endpoint = CONTAINER_OF(at, struct endpoint, of_route);
        struct subscription *held = subscription_find(endpoint, push->change.presence.user_id);
        bool widens = push->changes_view && held && (int)push->view > (int)held->view;
        bool told =
            !widens && (push->changes_view ? push_set_view(plane, endpoint, held, push)
                                           : push_is_new(plane->router, endpoint, &push->change));
        needs_review |= widens;
        if (told || widens || !push->changes_view)
            announcement_to_contact(announcement, endpoint);
        if (endpoint->wants_announcements && !push->changes_view &&
            push_has_chat_open(endpoint, &push->chats))
            announcement_to_chat(announcement, endpoint);
        if (!told)
            continue;
        if (held && !push->changes_view)
            subscription_note_pushed(held, &push->change.presence);
        plane->router->deliver(endpoint, broadcast, key);
        delivered++;
    }
    if (needs_review)
        visibility_review_viewer(plane, push->change.presence.user_id, user_id);
    return delivered;
}

static void push_deliver(struct presence_plane *plane, const struct received_push *received)
{
    const struct push *push = &received->push;
    struct slice user_id = push->change.presence.user_id;
    struct message message = {.type = MESSAGE_PRESENCE_CHANGED, .change = push->change};
    struct broadcast broadcast = {.message = &message};
    uint64_t key = router_key(plane->router, MESSAGE_PRESENCE_CHANGED, user_id);
    struct announcement announcement;
    struct json json;
    struct slice receiver;
    size_t delivered = 0;
    if (push->changes_view) { /* ledger reads that began before this change must not win */
        presence_query_outdate(plane, user_id);
        visibility_review_again(plane, user_id);
    }
    announcement_begin(&announcement, plane->router, &push->change);
    json_init(&json, (char *)received->users.data, received->users.len);
    json_array(&json);
    while (json_element(&json) && json_string(&json, &receiver))
        delivered += push_deliver_to_user(plane, receiver, push, &broadcast, key, &announcement);
    broadcast_end(&broadcast);
    announcement_end(&announcement);
    metrics_add(plane->metrics, METRIC_FRIENDS_TOLD, (int64_t)delivered);
    metrics_latency(plane->metrics, LATENCY_PRESENCE,
                    (plane->clock->wall_ms - push->change.timestamp_ms) * 1000);
}

bool push_received(void *arg, struct json *json)
{
    struct received_push received = {0};
    struct slice key;
    bool valid = true;
    while (valid && json_member(json, &key))
        valid = push_parse_field(json, key, &received);
    valid = valid && json_done(json) && received.users.data &&
            received.push.change.presence.user_id.data;
    if (valid)
        push_deliver(arg, &received);
    free((void *)received.push.chats.ids);
    return valid;
}
