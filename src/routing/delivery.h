/*
 * Delivery: an event to all devices of some users, wherever they are connected.
 *
 *   delivery_send() → state store: which gateways → one publish per gateway, carrying all recipients
 *   there, on `server:<gateway>:deliver` → delivery_received() → that gateway's own sockets
 *
 * It is best effort, as F has it: who is offline, or on a gateway that cannot be reached, is skipped.
 * On the wire:
 *
 *   {"users":["a","b"], "type":"call_incoming", "fields":{…}, "except":"<conn_id>"}
 *   {"close":"<conn_id>", "users":["a"]}       an administrator closes a connection
 */
#ifndef ROLLCALL_ROUTING_DELIVERY_H
#define ROLLCALL_ROUTING_DELIVERY_H

#include "base/ulid.h"
#include "metrics/metrics.h"
#include "routing/router.h"
#include "store/state_store.h"

/* What delivery works with on one gateway. */
struct delivery {
    struct router *router;
    struct state_store *store;
    struct metrics *metrics;
    /* Whether this endpoint is the connection of that id. */
    bool (*is_connection)(const struct endpoint *endpoint, const struct ulid *conn_id);
    /* Closes a connection of this gateway for an administrator. */
    void (*close)(void *arg, struct slice user_id, const struct ulid *conn_id);
    void *arg;
};

/* Sends a message to all devices of the users but the one connection `except` (NULL: none). Nobody
 * waits for it and nothing is retried. */
void delivery_send(struct delivery *delivery, const struct slice *users, size_t count,
                   const struct message *message, const struct ulid *except);

/* Asks a gateway to close a connection. */
void delivery_close(struct delivery *delivery, struct slice gateway_id, struct slice user_id,
                    const struct ulid *conn_id);

/* Writes "server:<gateway>:deliver" and returns it; `out` has room for ROUTER_TOPIC_BYTES_MAX. */
struct slice delivery_topic(char *out, struct slice gateway_id);

/* An event of this gateway's own topic. */
void delivery_received(struct delivery *delivery, struct slice payload);

#endif
