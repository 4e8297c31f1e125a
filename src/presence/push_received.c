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
#include <xxhash.h>

/* The lists stay raw JSON until they are walked, each once. */
struct received_push {
    struct push push;
    struct slice users;
    struct slice chats;
};

static bool parse_pushed_presence(struct json *json, struct presence_change *change)
{
    struct slice key, type;
    change->presence.last_seen_ms = TIME_NONE;
    json_object(json);
    while (json_member(json, &key))
        if (!presence_event_read_member(json, key, &type, change))
            return false;
    return change->presence.user_id.data != NULL;
}

static bool parse_push_member(struct json *json, struct slice key, struct received_push *received)
{
    struct push *push = &received->push;
    int64_t view;
    if (slice_is(key, "presence"))
        return parse_pushed_presence(json, &push->change);
    if (slice_is(key, "users"))
        return json_raw(json, &received->users);
    if (slice_is(key, "chats"))
        return json_raw(json, &received->chats);
    if (slice_is(key, "contacts"))
        return json_bool(json, &push->contacts);
    if (!slice_is(key, "view"))
        return json_skip(json);
    if (!json_int(json, &view) || view < 0 || view >= PRIVACY_VIEWS)
        return false;
    push->exposes = true;
    push->view = (enum privacy_view)view;
    return true;
}

/* Reads the ids of `chats`, once: unescaping changes the text. Returns false when out of memory. */
static bool read_pushed_chats(struct received_push *received)
{
    struct json json;
    if (!received->chats.data)
        return true;
    struct slice *ids =
        malloc(received->chats.len * sizeof(*ids)); /* an id takes a byte at least */
    size_t count = 0;
    json_init(&json, (char *)received->chats.data, received->chats.len);
    json_array(&json);
    while (ids && json_element(&json) && json_string(&json, &ids[count]))
        count++;
    received->push.chats = (struct id_list){ids, count};
    return ids != NULL;
}

static struct subscription *held_by(const struct endpoint *endpoint, struct slice user_id)
{
    return endpoint->subscription_count ? subscription_find(endpoint, user_id) : NULL;
}

static uint64_t news_key(const struct router *router, const struct presence_change *change)
{
    uint64_t hash = XXH3_64bits_withSeed(change->presence.user_id.data,
                                         change->presence.user_id.len, router->seed);
    uint64_t parts[] = {hash, (uint64_t)change->presence.version, (uint64_t)change->timestamp_ms};
    return XXH3_64bits(parts, sizeof(parts));
}

/* Without a subscription of any kind there is no second road, and nothing need be remembered. */
static bool note(const struct router *router, struct endpoint *endpoint,
                 const struct presence_change *change)
{
    return endpoint->subscription_count == 0 ||
           recent_note(&endpoint->recent, news_key(router, change));
}

bool push_is_news(const struct router *router, struct endpoint *endpoint,
                  const struct presence_change *change)
{
    const struct subscription *held = held_by(endpoint, change->presence.user_id);
    if (held && (held->view != PRIVACY_HIDDEN || change->presence.status == PRESENCE_UNKNOWN))
        return false;
    return note(router, endpoint, change);
}

static bool has_one_open(const struct endpoint *endpoint, const struct id_list *chats)
{
    char name[ROUTER_TOPIC_BYTES_MAX];
    for (size_t i = 0; endpoint->subscription_count && i < chats->count; i++)
        if (chats->ids[i].len <= CHAT_ID_BYTES_MAX &&
            router_subscription(endpoint,
                                chat_topic_name(name, chats->ids[i], CHAT_TOPIC_PRESENCE)))
            return true;
    return false;
}

/* Whether a subscription that has a view would show more by this push. */
static bool gives_sight(const struct endpoint *endpoint, const struct push *push)
{
    const struct subscription *held = held_by(endpoint, push->change.presence.user_id);
    return push->exposes && held && (int)push->view > (int)held->view;
}

/* Takes away what the view showed more; true when the endpoint must be told: it lost what it saw, or sees what it
 * did not. A subscription without a view gets it from the look or the review that is under way. */
static bool expose(struct presence_plane *plane, struct endpoint *endpoint, const struct push *push)
{
    struct subscription *held = held_by(endpoint, push->change.presence.user_id);
    if (held && held->view == SUBSCRIPTION_UNDECIDED)
        return false;
    bool told =
        held ? held->view != push->view : push->contacts || has_one_open(endpoint, &push->chats);
    if (held)
        held->view = (uint8_t)push->view;
    if (told)
        subscription_told(plane, endpoint, &push->change.presence, 1);
    return told && note(plane->router, endpoint, &push->change);
}

static void tell_roads(struct announcement *announcement, struct endpoint *endpoint,
                       const struct push *push)
{
    announcement_to_contact(announcement, endpoint);
    if (endpoint->wants_announcements && !push->exposes && has_one_open(endpoint, &push->chats))
        announcement_to_chat(announcement, endpoint);
}

/* Of two changes of sight that were made at two gateways the older may come last. So it is taken away at once,
 * but where it would be given to a subscription the ledger has the last word. */
static size_t deliver_to(struct presence_plane *plane, struct slice user_id,
                         const struct push *push, struct broadcast *broadcast, uint64_t key,
                         struct announcement *announcement)
{
    struct route *route = router_find(plane->router, user_id);
    size_t delivered = 0;
    bool gives = false;
    struct list *at = route ? route->endpoints.next : NULL;
    for (; at && at != &route->endpoints; at = at->next) {
        struct endpoint *endpoint = CONTAINER_OF(at, struct endpoint, of_route);
        bool gains = gives_sight(endpoint, push);
        bool told =
            !gains && (push->exposes ? expose(plane, endpoint, push)
                                     : push_is_news(plane->router, endpoint, &push->change));
        gives |= gains;
        if (told || gains || !push->exposes)
            tell_roads(announcement, endpoint, push);
        if (!told)
            continue;
        plane->router->deliver(endpoint, broadcast, key);
        delivered++;
    }
    if (gives)
        visibility_review_viewer(plane, push->change.presence.user_id, user_id);
    return delivered;
}

/* What was asked of the ledger before this change of sight must not have the last word. */
static void outdate(struct presence_plane *plane, const struct push *push)
{
    if (!push->exposes)
        return;
    presence_query_outdate(plane, push->change.presence.user_id);
    visibility_review_again(plane, push->change.presence.user_id);
}

static void tell_receivers(struct presence_plane *plane, const struct received_push *received)
{
    const struct push *push = &received->push;
    struct message message = {.type = MESSAGE_PRESENCE_CHANGED, .change = push->change};
    struct broadcast broadcast = {.message = &message};
    uint64_t key =
        router_key(plane->router, MESSAGE_PRESENCE_CHANGED, push->change.presence.user_id);
    struct announcement announcement;
    struct json json;
    struct slice user;
    size_t delivered = 0;
    outdate(plane, push);
    announcement_begin(&announcement, plane->router, &push->change);
    json_init(&json, (char *)received->users.data, received->users.len);
    json_array(&json);
    while (json_element(&json) && json_string(&json, &user))
        delivered += deliver_to(plane, user, push, &broadcast, key, &announcement);
    broadcast_end(&broadcast);
    announcement_end(&announcement);
    metrics_add(plane->metrics, METRIC_FRIENDS_TOLD, (int64_t)delivered);
    metrics_latency(plane->metrics, LATENCY_PRESENCE,
                    (plane->clock->wall_ms - push->change.timestamp_ms) * 1000);
}

bool push_received(void *arg, struct json *members)
{
    struct presence_plane *plane = arg;
    struct received_push received = {0};
    struct slice key;
    while (json_member(members, &key))
        if (!parse_push_member(members, key, &received))
            return false;
    if (!json_done(members) || !received.users.data || !received.push.change.presence.user_id.data)
        return false;
    if (read_pushed_chats(&received))
        tell_receivers(plane, &received);
    free((void *)received.push.chats.ids);
    return true;
}
