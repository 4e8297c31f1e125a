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
 *   {"users":["a"], "type":"call_signal", "fields":{…}, "device":"<device_id>"}
 *   {"users":["a","b"], "type":"message", "fields":{…}, "except":…, "chat":"<chat_id>", "sequence":47}
 *   {"close":"<conn_id>", "users":["a"]}       an administrator closes a connection
 *
 * A chat's message carries its place, so that a receiver can drop the repetition of one it had lately
 * (they are published at least once), and so that a connection that cannot take it knows what it missed.
 */
#ifndef ROLLCALL_ROUTING_DELIVERY_H
#define ROLLCALL_ROUTING_DELIVERY_H

#include "base/ulid.h"
#include "metrics/metrics.h"
#include "routing/router.h"
#include "store/state_store.h"

/* Messages of chats a gateway remembers having received. */
enum { DELIVERY_RECENT_MAX = 512 };

struct delivery_recent {
    uint64_t keys[DELIVERY_RECENT_MAX];
    size_t next;
};

/* What delivery works with on one gateway. */
struct delivery {
    struct router *router;
    struct state_store *store;
    struct metrics *metrics;
    /* Whether this endpoint is the connection of that id. */
    bool (*is_connection)(const struct endpoint *endpoint, const struct ulid *conn_id);
    /* Whether this endpoint is a connection of that device. */
    bool (*is_device)(const struct endpoint *endpoint, struct slice device_id);
    /* Closes a connection of this gateway for an administrator. */
    void (*close)(void *arg, struct slice user_id, const struct ulid *conn_id);
    void *arg;
    struct delivery_recent recent;
};

/* Sends a message to all devices of the users but the one connection `except` (NULL: none). Nobody
 * waits for it and nothing is retried. */
void delivery_send(struct delivery *delivery, const struct slice *users, size_t count,
                   const struct message *message, const struct ulid *except);

/* The same; `done` runs once, also before this returns. False: the routes could not be looked up, so
 * nothing was sent. True says no more than that it was tried. */
void delivery_send_then(struct delivery *delivery, const struct slice *users, size_t count,
                        const struct message *message, const struct ulid *except,
                        void (*done)(void *arg, bool sent), void *arg);

/* Likewise, to the connections of one device of a user. */
void delivery_send_device(struct delivery *delivery, struct slice user_id, struct slice device_id,
                          const struct message *message);

/* Asks a gateway to close a connection. */
void delivery_close(struct delivery *delivery, struct slice gateway_id, struct slice user_id,
                    const struct ulid *conn_id);

/* Writes "server:<gateway>:deliver" and returns it; `out` has room for ROUTER_TOPIC_BYTES_MAX. */
struct slice delivery_topic(char *out, struct slice gateway_id);

/* An event of this gateway's own topic. */
void delivery_received(struct delivery *delivery, struct slice payload);

#endif
