/*
 * Delivery: an event to all devices of some users, wherever they are connected. This is its sending half, which needs
 * no gateway around it; delivery_receiver.h is the receiving half.
 *
 *   delivery_send() → state store: which gateways → one publish per gateway, carrying all recipients
 *   there, on `server:<gateway>:deliver` → delivery_received() → that gateway's own sockets
 *
 * Where the state store remembers the routes of few users, their event is published at once, and when the store is sure, to
 * those that it did not remember (state_routes_early()). Such an event is marked "twice": a receiver drops the second copy for a
 * user. There is one if the store fails meanwhile, and the event is broadcast too.
 *
 * Delivery is best effort: a user who is offline, or on a gateway that cannot be reached, is skipped.
 * While the state store does not answer, routes are unknown. Then the event goes to all gateways
 * (BUS_TOPIC_ALL), naming all recipients, and each gateway serves those it holds. A worker whose bus reaches no
 * gateway without Redis does not broadcast (`broadcasts`); it skips the event, and clients get it when they sync.
 *
 * An event whose sender is told the outcome (counted, or for everyone) is promised: without routes it is broadcast if the
 * bus reaches all gateways (bus_reaches_all()) and refused otherwise. A store that was disturbed may have come back without
 * its routes; until the gateways have registered again (`may_lack_routes`), such an event goes by the routes there are and by
 * broadcast, marked "twice", and each receiver drops the second copy for a user. The broadcast copy is also marked "kept": its
 * sender kept the event for parked sessions.
 *
 * Payloads (delivery_payload.h) of the kinds that this file sends:
 *
 *   {"kind":"event", "type":"call_incoming", "fields":{…}, "except":"<conn_id>", "id":"<16 hex>", "users":["a","b"]}
 *   {"kind":"event", "type":"call_signal", "fields":{…}, "device":"<device_id>", "id":"<16 hex>", "users":["a"]}
 *   {"kind":"event", "type":"message", "fields":{…}, "except":…, "chat":"<chat_id>", "sequence":47, "id":…, "users":["a","b"]}
 *   {"kind":"event", "type":"delivery", "fields":{…}, "id":…, "twice":true, "kept":true, "users":["a"]}     by routes and by broadcast
 *   {"kind":"close", "conn_id":"<conn_id>", "reason":"admin", "users":["a"]}     closes a connection
 *   {"kind":"everyone", "type":"delivery", "fields":{…}, "id":…, "users":[]}     to everyone there, at a pace
 *
 * Every event carries an id, so that no two payloads are equal: the bus compares bytes to recognise two
 * copies of one event that it sent by two paths. The id of a chat message is made of the random bits of its
 * message_id, so it is the same however often the message is published: messages are published at least once,
 * and a broadcast may repeat one. The receiver drops a chat message whose id it received lately, for the same user if it is marked
 * "twice". It never
 * compares anything that a client chose, such as the chat's id: a client could construct two messages that
 * look the same and so suppress one of somebody else. A chat message also carries its chat and sequence, so
 * that a connection that cannot take it records what it missed.
 *
 * A user who lost the connection a moment ago gets the event on coming back (store/recovery_store.h): the
 * sender keeps it for users with a parked session, and the receiving gateway for users who left it, or come
 * back to it, just then.
 *
 * The third kind, "presence", belongs to the presence plane, which sends it (presence/push.h).
 *
 * One per worker, on its thread.
 */
#ifndef ROLLCALL_ROUTING_DELIVERY_H
#define ROLLCALL_ROUTING_DELIVERY_H

#include "base/ulid.h"
#include "bus/bus.h"
#include "metrics/metrics.h"
#include "protocol/encoder.h"
#include "store/recovery_store.h"
#include "store/state_store.h"

enum delivery_result {
    DELIVERY_SENT, /* by routes or by broadcast */
    DELIVERY_SKIPPED, /* routes are unknown, and this worker does not broadcast, or what is promised reaches nobody */
    DELIVERY_FAILED, /* out of memory */
};

typedef void (*delivery_done)(void *arg, enum delivery_result result);

/* What sending needs on one worker; borrowed. */
struct delivery {
    struct bus *bus;
    struct state_store *store;
    struct metrics *metrics;
    struct recovery_store *recovery;        /* NULL: no events are kept */
    const struct dialect *recovery_dialect; /* in which they are kept */
    struct encoder *encoder;                /* for them */
    uint64_t seed;                          /* random, of the process */
    uint64_t number;                        /* of the worker in it */
    bool broadcasts;                        /* while routes are unknown; else events are skipped */
    uint64_t sent_count;                    /* events that were given an id */
    /* Whether the store answers, but may lack routes of connected users. NULL: it never does. */
    bool (*may_lack_routes)(void *arg);
    void *arg;
};

/* Sends a message to all devices of the users except the connection `except` (NULL: none). Best effort:
 * nothing is retried. */
void delivery_send(struct delivery *delivery, const struct slice *users, size_t count,
                   const struct message *message, const struct ulid *except);

/* The same; `done` (may be NULL) runs exactly once, possibly before this function returns. */
void delivery_send_then(struct delivery *delivery, const struct slice *users, size_t count,
                        const struct message *message, const struct ulid *except,
                        delivery_done done, void *arg);

enum delivery_known { DELIVERY_KNOWN_NOTHING, DELIVERY_KNOWN_OFFLINE, DELIVERY_KNOWN_ONLINE };

/* What this very gateway knows of users, whatever the state store knows; borrowed for the call. */
struct delivery_locals {
    struct slice gateway_id;
    size_t (*devices)(void *arg, struct slice user_id);            /* connected here */
    enum delivery_known (*known)(void *arg, struct slice user_id); /* when last heard of */
    void *arg;
};

typedef void (*delivery_counted)(void *arg, enum delivery_result result, size_t count);

/* The same for a sender who must know: `done` gets how many users have at least one device. Users whom this gateway holds
 * are served even without a route. While routes are unknown, the event is broadcast if this gateway holds all the users,
 * or the bus reaches all gateways; otherwise it is skipped: nothing was sent. Users elsewhere count then, unless they were
 * last known as offline. The users, which differ and are sorted by bytes, and the locals are borrowed until `done`, which
 * runs exactly once. */
void delivery_send_counted(struct delivery *delivery, const struct slice *users, size_t count,
                           const struct message *message, const struct delivery_locals *locals,
                           delivery_counted done, void *arg);

/* The same for one user, borrowed too; `done` gets how many devices the user has. */
void delivery_send_to_devices(struct delivery *delivery, const struct slice *user,
                              const struct message *message, const struct delivery_locals *locals,
                              delivery_counted done, void *arg);

/* Sends a message to everyone who is connected to these gateways (everyone.h), one publication for each, and to those
 * gateways that the state store has lost. Returns false when out of memory: nothing was sent. */
bool delivery_send_everyone(struct delivery *delivery, const struct slice *gateway_ids,
                            size_t count, const struct message *message);

/* The same while the gateways cannot be listed: by broadcast. Skipped unless the bus reaches all gateways. */
enum delivery_result delivery_broadcast_everyone(struct delivery *delivery,
                                                 const struct message *message);

/* The same as delivery_send(), to the connections of one device of a user. */
void delivery_send_device(struct delivery *delivery, struct slice user_id, struct slice device_id,
                          const struct message *message);

/* Makes a gateway close one of its connections for this reason. */
void delivery_close(struct delivery *delivery, struct slice gateway_id, struct slice user_id,
                    const struct ulid *conn_id, enum closing_reason reason);

/* Returns the id of a chat message, the same on every gateway: 64 random bits of its message_id. 0, which is
 * never a duplicate: the message_id is no ULID, so this server did not make it. */
uint64_t delivery_chat_message_id(struct slice message_id);

#endif
