/*
 * Routing: from a user or a topic to this gateway's own sockets.
 *
 * An endpoint is one connection as routing sees it. A route is a user with at least one endpoint here;
 * a topic is a name somebody here cares about. The router tells the bus when the first subscriber of a
 * topic comes and when the last one goes.
 *
 * A subscription carries a view: which of several variants of an event its holder may see. Fan-out
 * hands each holder the variant of its view, encoded once per dialect; a view without a variant gets
 * nothing. Views are set by the plane that owns the topic.
 *
 * A subscription also carries what its holder was told last, and which version that was. Between gateways
 * events may overtake one another or come twice, and what was missed is read anew; so nobody is told what is
 * older than what they know, or what they know.
 *
 * Endpoints are embedded in their owner's struct; subscriptions and topics are the router's. One thread.
 */
#ifndef ROLLCALL_ROUTING_ROUTER_H
#define ROLLCALL_ROUTING_ROUTER_H

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
    struct typing_notice
        *typing_notices;   /* where this device types; typing/typing_plane.h keeps it */
    struct recent *recent; /* what several roads may bring; NULL until one does */
    uint32_t subscription_count;
    bool
        hears_sources; /* is told besides what is new of a contact, and in a room (presence/change_source.h) */
};

struct topic {
    struct table_node node;
    struct list stale; /* in line to be read anew, or alone; presence/resync.h keeps it */
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
    bool due;        /* the plane that owns the topic has yet to tell the holder how things stand */
    uint8_t told;    /* what the holder knows, in a byte of that plane's; 0: nothing */
    int64_t version; /* and the version of it */
};

struct router {
    struct table routes;
    struct table topics;
    size_t users_multi_device; /* with more than one endpoint here */
    struct bus *bus;
    struct encoder *encoder;
    /* Queues a message for one endpoint. `key` not 0: it takes the place of a queued one with the
     * same key. */
    void (*deliver)(struct endpoint *endpoint, struct broadcast *broadcast, uint64_t key);
    uint64_t seed;
};

bool router_init(struct router *router, uint64_t seed, struct bus *bus, struct encoder *encoder,
                 void (*deliver)(struct endpoint *endpoint, struct broadcast *broadcast,
                                 uint64_t key));
void router_free(struct router *router);

/* Puts an endpoint on its user's route. False when memory is short. */
bool router_attach(struct router *router, struct endpoint *endpoint, struct slice user_id);

/* Takes it off, with all its subscriptions. Harmless when it is not attached. */
void router_detach(struct router *router, struct endpoint *endpoint);

struct route *router_find(const struct router *router, struct slice user_id);

static inline struct slice route_user(const struct route *route)
{
    return (struct slice){route->user_id, route->user_id_len};
}

/* The endpoint's subscription to a topic, or NULL. */
struct subscription *router_subscription(const struct endpoint *endpoint, struct slice topic);

/* Subscribes, or finds what is there already. NULL when memory is short. */
struct subscription *router_subscribe(struct router *router, struct endpoint *endpoint,
                                      struct slice name);
void router_unsubscribe(struct router *router, struct subscription *subscription);

struct topic *router_topic(const struct router *router, struct slice name);

/* Whether the holder is to be told this, which is noted as told then. Not what is no newer than what they
 * know; nor the same by a newer version (`told` not 0), which only makes their knowledge newer. */
static inline bool subscription_is_news(struct subscription *subscription, int64_t version,
                                        uint8_t told)
{
    if (version <= subscription->version)
        return false;
    bool known = told && told == subscription->told;
    subscription->version = version;
    subscription->told = told;
    return !known;
}

/* Gives each subscriber of a topic variants[its view], where there is one and it is news. Returns how many
 * got it. */
size_t router_fan_out(struct router *router, struct topic *topic,
                      struct broadcast *variants[ROUTER_VIEWS_MAX], uint64_t key, int64_t version,
                      uint8_t told);

/* To every endpoint of a user here, but for `except` (may be NULL). Returns how many got it. */
size_t router_send_to_user(struct router *router, struct slice user_id,
                           const struct message *message, const struct endpoint *except);

/* The same for one user among many: the broadcast is the caller's, so it is encoded once for all. */
size_t router_broadcast_to_user(struct router *router, struct slice user_id,
                                struct broadcast *broadcast, const struct endpoint *except);

/* A supersede key for "the state of this": the same for the same kind and name, another for any other;
 * always odd, hence never 0. */
uint64_t router_key(const struct router *router, enum message_type kind, struct slice name);

#endif
