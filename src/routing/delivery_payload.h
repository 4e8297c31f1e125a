/*
 * The payload of a delivery, and its way to the gateways that hold its users.
 *
 * Every payload on `server:<gateway>:deliver`, BUS_TOPIC_ALL and BUS_TOPIC_LOST is one JSON object. Its
 * first field is its kind, which decides how the rest is read; its last field names the users it is for.
 *
 *   {"kind":"event", …, "users":["a","b"]}      delivery.h
 *   {"kind":"close", …, "users":["a"]}          delivery.h
 *   {"kind":"presence", …, "users":["a","b"]}   presence/push.h
 *   {"kind":"everyone", …, "users":[]}          everyone.h
 *
 * A sender embeds a `struct delivery_payload` in its own struct and calls, in this order:
 *
 *   delivery_payload_begin()   then it writes the fields of its kind to `head`
 *   delivery_payload_route()   looks up in the state store which gateways hold the users
 *   on_early                   (if there is one) may publish to the gateways that the store remembers, before it is sure
 *   on_routed                  publishes to these gateways or broadcasts, by the sender's policy
 *   delivery_payload_end()     inside on_routed
 *
 * The users are borrowed until delivery_payload_route() returns. If the state store has not answered by then,
 * a payload that broadcasts keeps a copy of their ids.
 */
#ifndef ROLLCALL_ROUTING_DELIVERY_PAYLOAD_H
#define ROLLCALL_ROUTING_DELIVERY_PAYLOAD_H

#include "base/buffer.h"
#include "base/id_list.h"
#include "base/slice.h"
#include "bus/bus.h"
#include "metrics/metrics.h"
#include "store/state_store.h"

#include <stdbool.h>
#include <stddef.h>

enum { DELIVERY_TOPIC_BYTES_MAX = GATEWAY_ID_BYTES_MAX + 16, DELIVERY_ID_TEXT_LEN = 16 };

enum delivery_kind {
    DELIVERY_EVENT,
    DELIVERY_CLOSE,
    DELIVERY_PRESENCE,
    DELIVERY_EVERYONE,
    DELIVERY_KINDS
};

struct delivery_payload;

/* `routes` is NULL unless the status is STATE_OK. Ends the payload and frees the struct around it. */
typedef void (*delivery_routed)(struct delivery_payload *payload, enum state_status status,
                                const struct state_routes *routes);

/* Runs at most once, before delivery_routed (state_routes_early()). */
typedef void (*delivery_routed_early)(struct delivery_payload *payload,
                                      const struct state_routes *routes);

struct delivery_payload {
    /* The sender sets these before delivery_payload_begin(). */
    struct bus *bus;
    struct state_store *store;
    struct metrics *metrics;
    delivery_routed on_routed;
    delivery_routed_early on_early; /* may be NULL */
    bool broadcasts;                /* delivery_payload_broadcast() may be called */

    struct buffer head; /* the object without its users and its closing brace */
    /* The users of a payload that broadcasts: borrowed, or else (NULL) as JSON. */
    struct id_list users;
    struct buffer users_json;
    bool *ended; /* set when the payload ends before state_routes() returns */
};

/* Returns the name of a kind on the wire. */
struct slice delivery_kind_name(enum delivery_kind kind);

/* Writes "server:<gateway>:deliver" and returns it; `out` has a capacity of DELIVERY_TOPIC_BYTES_MAX. */
struct slice delivery_topic(char *out, struct slice gateway_id);

/* Begins the object and writes its kind. */
void delivery_payload_begin(struct delivery_payload *payload, enum delivery_kind kind);

/* Looks up the users' routes. `on_routed` runs exactly once, possibly before this function returns.
 * `head` must not have failed. */
void delivery_payload_route(struct delivery_payload *payload, const struct slice *users,
                            size_t count);

/* Publishes once per gateway, naming the users there. Best effort: skips a gateway when out of memory. Returns how many
 * users were named, over all gateways. */
size_t delivery_payload_publish(const struct delivery_payload *payload,
                                const struct state_routes *routes);

/* Publishes to all gateways of BUS_TOPIC_ALL or BUS_TOPIC_LOST, naming all users; each serves those it holds.
 * Returns false when out of memory: nothing was published. */
bool delivery_payload_broadcast(const struct delivery_payload *payload, struct slice topic);

/* Frees what the payload holds, not the struct itself. */
void delivery_payload_end(struct delivery_payload *payload);

#endif
