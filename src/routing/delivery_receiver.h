/*
 * The receiving half of delivery (delivery.h): a payload that came to this gateway goes to its own sockets.
 *
 * One reader per kind of payload (delivery_payload.h); "presence" is passed on to the presence plane,
 * "everyone" to everyone.h. A chat message, or an event for
 * everyone, that was received lately is dropped; of an event that comes twice, each user gets one copy. An event for a user whose session was cut here a moment ago, or is coming back
 * just now, is kept (store/recovery_store.h).
 *
 * One per gateway, on its thread.
 */
#ifndef ROLLCALL_ROUTING_DELIVERY_RECEIVER_H
#define ROLLCALL_ROUTING_DELIVERY_RECEIVER_H

#include "base/seen.h"
#include "base/ulid.h"
#include "metrics/metrics.h"
#include "routing/everyone.h"
#include "routing/router.h"
#include "store/recovery_store.h"

struct json;

/* Reads the fields of a payload that follow its kind, up to the end of the text, which is a temporary copy.
 * Returns false when the payload is invalid. */
typedef bool (*delivery_presence_hook)(void *arg, struct json *json);

/* An event about a call goes to the user's devices here; `fields` is a JSON object. */
typedef void (*delivery_call_hook)(void *arg, struct slice user_id, struct slice name,
                                   struct slice fields);

/* What receiving needs on one gateway; borrowed. */
struct delivery_receiver {
    struct router *router;
    struct metrics *metrics;
    struct recovery_store *recovery;        /* NULL: no events are kept */
    const struct dialect *recovery_dialect; /* in which they are kept */
    /* Returns whether this endpoint is the connection of that id. */
    bool (*is_connection)(const struct endpoint *endpoint, const struct ulid *conn_id);
    /* Returns whether this endpoint is a connection of that device. */
    bool (*is_device)(const struct endpoint *endpoint, struct slice device_id);
    /* Closes a connection of this gateway. */
    void (*on_close)(void *arg, struct slice user_id, const struct ulid *conn_id,
                     enum closing_reason reason);
    void *arg;
    /* Receives the payloads of the presence plane; NULL: they are dropped. */
    delivery_presence_hook on_presence;
    void *presence_arg;
    /* Runs for each event whose name begins with "call_"; NULL: nobody notes them. */
    delivery_call_hook on_call;
    void *call_arg;
    struct seen seen; /* what was received lately and may come again */
    bool is_kept;     /* the sender of what is being received kept it for parked sessions */
    struct everyone *everyone; /* NULL: events for everyone are dropped */
};

/* A named event that every gateway hears by itself, such as from a Socket.IO adapter; borrowed for the call. */
struct delivery_local {
    struct slice fields; /* of a delivery, a JSON object */
    uint64_t event_id;   /* unlike that of any other event */
    bool to_everyone;
    struct id_list users; /* who gets it; with to_everyone who does not, sorted */
};

/* Delivers it to this gateway's own sockets, and keeps it for sessions that it expects back. */
void delivery_receive_local(struct delivery_receiver *receiver, const struct delivery_local *local);

/* Receives a payload of any kind: of this gateway's own topic, or a broadcast (BUS_TOPIC_ALL). A broadcast also
 * invalidates the parked sessions, unless its sender had routes: else it kept no events for them. */
void delivery_received(struct delivery_receiver *receiver, struct slice topic,
                       struct slice payload);

#endif
