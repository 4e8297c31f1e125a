#include "routing/router.h"

#include "base/container.h"

#include <assert.h>
#include <stdlib.h>

enum { TOPIC_SUBSCRIBERS_MIN = 4, PREFETCH_DISTANCE = 8 };

static bool route_matches(const struct table_node *node, struct slice key)
{
    return slice_equal(route_user(CONTAINER_OF(node, struct route, node)), key);
}

static bool topic_matches(const struct table_node *node, struct slice key)
{
    return slice_equal(topic_name(CONTAINER_OF(node, struct topic, node)), key);
}

bool router_init(struct router *router, uint64_t seed, struct bus *bus, struct encoder *encoder,
                 router_deliver deliver)
{
    *router = (struct router){.bus = bus, .encoder = encoder, .deliver = deliver, .seed = seed};
    hash_key_init(&router->key, seed);
    if (!table_init(&router->routes, seed, route_matches))
        return false;
    if (table_init(&router->topics, seed, topic_matches))
        return true;
    table_free(&router->routes);
    return false;
}

void router_free(struct router *router)
{
    assert(router->routes.size == 0 && router->topics.size == 0);
    table_free(&router->routes);
    table_free(&router->topics);
}

struct route *router_find(const struct router *router, struct slice user_id)
{
    struct table_node *node = table_find(&router->routes, user_id);
    return node ? CONTAINER_OF(node, struct route, node) : NULL;
}

static bool route_has_two_endpoints(const struct route *route)
{
    const struct list *first = route->endpoints.next;
    return first != route->endpoints.prev && first->next == route->endpoints.prev;
}

bool router_attach(struct router *router, struct endpoint *endpoint, struct slice user_id)
{
    assert(user_id.len <= UINT8_MAX);
    struct route *route = router_find(router, user_id);
    if (!route) {
        route = malloc(sizeof(*route) + user_id.len);
        if (!route)
            return false;
        list_init(&route->endpoints);
        route->user_id_len = (uint8_t)user_id.len;
        memcpy(route->user_id, user_id.data, user_id.len);
        table_insert(&router->routes, &route->node, user_id);
    }
    *endpoint = (struct endpoint){.route = route};
    list_append(&route->endpoints, &endpoint->of_route);
    router->users_multi_device += route_has_two_endpoints(route);
    return true;
}

struct topic *router_topic(const struct router *router, struct slice name)
{
    struct table_node *node = table_find(&router->topics, name);
    return node ? CONTAINER_OF(node, struct topic, node) : NULL;
}

static void topic_free_if_empty(struct router *router, struct topic *topic)
{
    if (topic->count)
        return;
    bus_unsubscribe(router->bus, topic_name(topic));
    table_remove(&router->topics, &topic->node);
    list_remove(&topic->stale);
    free(topic->subscriptions);
    free(topic);
}

/* Removes a subscription from its topic and frees it; its endpoint no longer lists it. */
static void router_free_subscription(struct router *router, struct subscription *subscription)
{
    struct topic *topic = subscription->topic;
    struct subscription *last = topic->subscriptions[--topic->count];
    topic->subscriptions[subscription->index] = last;
    last->index = subscription->index;
    free(subscription);
    topic_free_if_empty(router, topic);
}

void router_detach(struct router *router, struct endpoint *endpoint)
{
    struct route *route = endpoint->route;
    struct subscription *next;
    if (!route)
        return;
    for (struct subscription *at = endpoint->subscriptions; at; at = next) {
        next = at->next;
        router_free_subscription(router, at);
    }
    endpoint->subscriptions = NULL;
    endpoint->subscription_count = 0;
    recent_free(&endpoint->recent);
    router->users_multi_device -= route_has_two_endpoints(route);
    list_remove(&endpoint->of_route);
    endpoint->route = NULL;
    if (list_empty(&route->endpoints)) {
        table_remove(&router->routes, &route->node);
        free(route);
    }
}

struct subscription *router_subscription(const struct endpoint *endpoint, struct slice topic)
{
    struct subscription *at = endpoint->subscriptions;
    while (at && !slice_equal(topic_name(at->topic), topic))
        at = at->next;
    return at;
}

static struct subscription *topic_add_subscription(struct topic *topic, struct endpoint *endpoint)
{
    if (topic->count == topic->cap) {
        uint32_t cap = topic->cap ? topic->cap * 2 : TOPIC_SUBSCRIBERS_MIN;
        struct subscription **grown =
            realloc(topic->subscriptions, cap * sizeof(struct subscription *));
        if (!grown)
            return NULL;
        topic->subscriptions = grown;
        topic->cap = cap;
    }
    struct subscription *made = malloc(sizeof(*made));
    if (!made)
        return NULL;
    *made = (struct subscription){.topic = topic,
                                  .endpoint = endpoint,
                                  .next = endpoint->subscriptions,
                                  .index = topic->count};
    topic->subscriptions[topic->count++] = made;
    endpoint->subscriptions = made;
    endpoint->subscription_count++;
    return made;
}

struct subscription *router_subscribe(struct router *router, struct endpoint *endpoint,
                                      struct slice name)
{
    assert(name.len <= ROUTER_TOPIC_BYTES_MAX);
    struct subscription *known = router_subscription(endpoint, name);
    if (known)
        return known;
    struct topic *topic = router_topic(router, name);
    if (!topic) {
        topic = malloc(sizeof(*topic) + name.len);
        if (!topic)
            return NULL;
        *topic = (struct topic){.name_len = (uint8_t)name.len};
        list_init(&topic->stale);
        memcpy(topic->name, name.data, name.len);
        table_insert(&router->topics, &topic->node, name);
        bus_subscribe(router->bus, name);
    }
    struct subscription *made = topic_add_subscription(topic, endpoint);
    if (!made)
        topic_free_if_empty(router, topic);
    return made;
}

void router_unsubscribe(struct router *router, struct subscription *subscription)
{
    struct endpoint *endpoint = subscription->endpoint;
    struct subscription **at = &endpoint->subscriptions;
    while (*at != subscription)
        at = &(*at)->next;
    *at = subscription->next;
    endpoint->subscription_count--;
    router_free_subscription(router, subscription);
}

/* Prefetches, because the endpoints of a large topic do not fit into the processor's cache. */
size_t router_fan_out(struct router *router, struct topic *topic,
                      struct broadcast *variants[ROUTER_VIEWS_MAX], uint64_t key, int64_t version,
                      uint8_t told)
{
    size_t delivered = 0;
    for (uint32_t i = 0; i < topic->count; i++) {
        struct subscription *subscription = topic->subscriptions[i];
        if (i + 2 * PREFETCH_DISTANCE < topic->count)
            __builtin_prefetch(topic->subscriptions[i + 2 * PREFETCH_DISTANCE]);
        if (i + PREFETCH_DISTANCE < topic->count)
            __builtin_prefetch(topic->subscriptions[i + PREFETCH_DISTANCE]->endpoint, 1);
        struct broadcast *variant = variants[subscription->view];
        if (!variant || !subscription_is_news(subscription, version, told))
            continue;
        router->deliver(subscription->endpoint, variant, key);
        delivered++;
    }
    return delivered;
}

size_t router_broadcast_to_user(struct router *router, struct slice user_id,
                                struct broadcast *broadcast, const struct endpoint *except)
{
    struct route *route = router_find(router, user_id);
    if (!route)
        return 0;
    size_t delivered = 0;
    for (struct list *at = route->endpoints.next; at != &route->endpoints; at = at->next) {
        struct endpoint *endpoint = CONTAINER_OF(at, struct endpoint, of_route);
        if (endpoint == except)
            continue;
        router->deliver(endpoint, broadcast, 0);
        delivered++;
    }
    return delivered;
}

size_t router_send_to_user(struct router *router, struct slice user_id,
                           const struct message *message, const struct endpoint *except)
{
    struct broadcast broadcast = {.message = message};
    size_t delivered = router_broadcast_to_user(router, user_id, &broadcast, except);
    broadcast_end(&broadcast);
    return delivered;
}

uint64_t router_key(const struct router *router, enum message_type kind, struct slice name)
{
    return (hash_key_hash(&router->key, name) ^ (uint64_t)kind << 1) | 1;
}
