/*
 * Delivery: an event to all devices of some users, wherever they are connected.
 *
 *   delivery_send() → state store: which gateways → one publish per gateway, carrying all recipients
 *   there, on `server:<gateway>:deliver` → delivery_received() → that gateway's own sockets
 *
 * It is best effort: who is offline, or on a gateway that cannot be reached, is skipped.
 * While the store is out of reach nobody knows who is where. Then the event goes to all gateways
 * (BUS_TOPIC_ALL), naming all recipients, and each gateway gives it to those it has.
 * On the wire:
 *
 *   {"users":["a","b"], "type":"call_incoming", "fields":{…}, "except":"<conn_id>", "id":"<16 hex>"}
 *   {"users":["a"], "type":"call_signal", "fields":{…}, "device":"<device_id>", "id":"<16 hex>"}
 *   {"users":["a","b"], "type":"message", "fields":{…}, "except":…, "chat":"<chat_id>", "sequence":47}
 *   {"close":"<conn_id>", "users":["a"]}       an administrator closes a connection
 *
 * A chat's message carries its place, so that a receiver can drop the repetition of one it had lately
 * (they are published at least once, and a broadcast may bring what had come before), and so that a
 * connection that cannot take it knows what it missed. Other events carry an id, so that no two are alike:
 * by that a bus knows one that came by two roads.
 *
 * Who lost the connection a moment ago gets it on coming back (store/recovery_store.h): the sender keeps it for
 * those with a parked session, and the gateway it arrives at for those who left it, or come to it, just then.
 */
#ifndef ROLLCALL_ROUTING_DELIVERY_H
#define ROLLCALL_ROUTING_DELIVERY_H

#include "base/seen.h"
#include "base/ulid.h"
#include "metrics/metrics.h"
#include "routing/router.h"
#include "store/recovery_store.h"
#include "store/state_store.h"

enum { DELIVERY_ID_TEXT_LEN = 16 };

/* What delivery works with on one gateway. */
struct delivery {
    struct router *router;
    struct state_store *store;
    struct recovery_store *recovery; /* NULL: nobody's events are kept */
    struct metrics *metrics;
    /* Whether this endpoint is the connection of that id. */
    bool (*is_connection)(const struct endpoint *endpoint, const struct ulid *conn_id);
    /* Whether this endpoint is a connection of that device. */
    bool (*is_device)(const struct endpoint *endpoint, struct slice device_id);
    /* Closes a connection of this gateway for an administrator. */
    void (*close)(void *arg, struct slice user_id, const struct ulid *conn_id);
    void *arg;
    struct seen seen;    /* messages of chats that came lately */
    uint64_t sent_count; /* events that were given an id */
};

/* Sends a message to all devices of the users but the one connection `except` (NULL: none). Nobody
 * waits for it and nothing is retried. */
void delivery_send(struct delivery *delivery, const struct slice *users, size_t count,
                   const struct message *message, const struct ulid *except);

/* The same; `done` runs once, also before this returns. False: nothing was sent, for want of memory. True
 * says no more than that it was tried, by routes or by broadcast. */
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

/* What a message of a chat is known by, wherever it arrives. */
uint64_t delivery_place_id(struct slice chat_id, int64_t sequence);

/* An event of this gateway's own topic, or a broadcast. */
void delivery_received(struct delivery *delivery, struct slice payload);

/* A broadcast came: somebody knew no routes, and so kept nothing for those who were cut off. */
void delivery_disturbed(struct delivery *delivery);

#endif
