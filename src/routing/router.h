/*
 * The router finds this gateway's own endpoints of a user and subscribers of a topic.
 *
 * An endpoint is one connection as routing sees it. A route is a user with at least one endpoint here;
 * a topic has at least one subscriber here. The router subscribes to a topic at the bus when its first
 * subscriber comes, and unsubscribes when the last one leaves.
 *
 * A subscription carries a view: which of several variants of an event its holder may see. Fan-out
 * hands each holder the variant of its view, encoded once per dialect; a view without a variant gets
 * nothing. The plane that owns the topic sets the views.
 *
 * A subscription also carries what its holder was told last, and the version of that. Between gateways
 * events may overtake one another or come twice, and missed events are replaced by a new read. So the router
 * drops an event that is not newer than what the holder was told, or that has the same content.
 *
 * Endpoints are embedded in their owner's struct; the router owns subscriptions and topics. One thread.
 */
#ifndef ROLLCALL_ROUTING_ROUTER_H
#define ROLLCALL_ROUTING_ROUTER_H

#include "base/hash_key.h"
#include "base/list.h"
#include "base/table.h"
#include "bus/bus.h"
#include "protocol/encoder.h"
#include "routing/recent.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ROUTER_VIEWS_MAX = 4, ROUTER_TOPIC_BYTES_MAX = 192 };

struct subscription;
struct typing_notice;

struct route {
    struct table_node node;
    struct list endpoints;
    uint8_t user_id_len;
    char user_id[];
};

struct endpoint {
    struct list of_route;
    struct route *route; /* NULL while not attached */
    struct subscription *subscriptions;
    struct typing_notice *typing_notices; /* of this device; typing/typing_plane.h owns them */
    struct recent *recent;                /* what it was told lately; NULL until needed */
    uint32_t subscription_count;
    bool wants_announcements; /* is also told the source of each change (presence/announcement.h) */
};

struct topic {
    struct table_node node;
    struct list stale; /* queued by presence/resync.h to be read again, or empty */
    struct subscription **subscriptions; /* in no order */
    uint32_t count;
    uint32_t cap;
    uint8_t name_len;
    char name[];
};

struct subscription {
    struct topic *topic;
    struct endpoint *endpoint;
    struct subscription *next; /* of the same endpoint */
    uint32_t index;            /* in topic->subscriptions */
    uint8_t view;
    bool needs_state;  /* the plane that owns the topic must tell the holder the current state */
    uint8_t told;      /* what the holder was told, encoded by that plane; 0: nothing */
    uint8_t told_view; /* the view in which the holder was told that */
    int64_t version;   /* the version of what the holder was told */
};

/* Queues a message for one endpoint. Unless `key` is 0, it replaces a queued message with the same key. */
typedef void (*router_deliver)(struct endpoint *endpoint, struct broadcast *broadcast,
                               uint64_t key);

struct router {
    struct table routes;
    struct table topics;
    size_t users_multi_device; /* users with more than one endpoint here */
    struct bus *bus;
    struct encoder *encoder;
    router_deliver deliver;
    uint64_t seed;
    struct hash_key key; /* made from the seed */
};

/* Returns false when out of memory. */
bool router_init(struct router *router, uint64_t seed, struct bus *bus, struct encoder *encoder,
                 router_deliver deliver);

/* All endpoints must be detached. */
void router_free(struct router *router);

/* Adds an endpoint to its user's route. Returns false when out of memory. */
bool router_attach(struct router *router, struct endpoint *endpoint, struct slice user_id);

/* Removes the endpoint and all its subscriptions. Does nothing when it is not attached. */
void router_detach(struct router *router, struct endpoint *endpoint);

struct route *router_find(const struct router *router, struct slice user_id);

/* Returns how many users have an endpoint here. */
static inline size_t router_user_count(const struct router *router)
{
    return router->routes.size;
}

static inline struct slice route_user(const struct route *route)
{
    return (struct slice){route->user_id, route->user_id_len};
}

static inline struct slice topic_name(const struct topic *topic)
{
    return (struct slice){topic->name, topic->name_len};
}

/* Returns the endpoint's subscription to a topic, or NULL. */
struct subscription *router_subscription(const struct endpoint *endpoint, struct slice topic);

/* Subscribes, or returns the subscription there is. Returns NULL when out of memory. */
struct subscription *router_subscribe(struct router *router, struct endpoint *endpoint,
                                      struct slice name);
void router_unsubscribe(struct router *router, struct subscription *subscription);

struct topic *router_topic(const struct router *router, struct slice name);

/* Returns whether the holder must be told this, and notes it as told. Returns false for a version that is not
 * newer than the one noted, and for a newer version with the same content (equal `told`, not 0), which is only
 * noted. */
static inline bool subscription_is_news(struct subscription *subscription, int64_t version,
                                        uint8_t told)
{
    if (version <= subscription->version)
        return false;
    bool known = told && told == subscription->told;
    subscription->version = version;
    subscription->told = told;
    subscription->told_view = subscription->view;
    return !known;
}

/* Delivers variants[view] to each subscriber of a topic, where that variant exists and is news. Returns how
 * many subscribers got one. */
size_t router_fan_out(struct router *router, struct topic *topic,
                      struct broadcast *variants[ROUTER_VIEWS_MAX], uint64_t key, int64_t version,
                      uint8_t told);

/* Delivers to every endpoint of a user here except `except` (may be NULL). Returns how many got it. */
size_t router_send_to_user(struct router *router, struct slice user_id,
                           const struct message *message, const struct endpoint *except);

/* The same for one user of many: the caller owns the broadcast, so it is encoded once for all. */
size_t router_broadcast_to_user(struct router *router, struct slice user_id,
                                struct broadcast *broadcast, const struct endpoint *except);

/* Returns the key of a state in the outbound queue: equal for the same kind and name, different otherwise,
 * always odd and hence never 0. */
uint64_t router_key(const struct router *router, enum message_type kind, struct slice name);

#endif
