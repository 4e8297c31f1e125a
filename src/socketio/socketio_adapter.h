/*
 * Socket.IO's adapter: what Node servers with the stock Redis adapter, and the stock emitter, publish reaches this
 * gateway's own sockets (codec/adapter_packet.h reads it). Every gateway hears every message, so each delivers to its own
 * sockets, once, and sends nothing on.
 *
 *   room      whose sockets
 *   u:<user>  the user's devices
 *   <chat>    the devices of the chat's members, whether or not they have it open
 *   none      everybody's
 *   other     nobody's: rooms of the Node servers themselves, among them the ids of their sockets
 *
 * Events go the way of any delivery (routing/delivery_receiver.h): Socket.IO clients get them under their own name with all
 * arguments, native ones as `delivery`. Disconnected sockets are told the reason `admin`.
 *
 * Order: messages are handled one after the other, as they came, although the members of a chat are read from the ledger.
 * At most SOCKETIO_ADAPTER_QUEUE_MAX messages of SOCKETIO_ADAPTER_QUEUE_BYTES_MAX wait; further ones are dropped and counted,
 * as is a message whose rooms cannot be read. There is no state to repair afterwards: Redis does not promise delivery either.
 *
 * One per gateway, on its thread; app/ connects it to Redis.
 */
#ifndef ROLLCALL_SOCKETIO_SOCKETIO_ADAPTER_H
#define ROLLCALL_SOCKETIO_SOCKETIO_ADAPTER_H

#include "base/list.h"
#include "routing/delivery_receiver.h"
#include "session/session_context.h"

enum {
    SOCKETIO_ADAPTER_QUEUE_MAX = 4096,
    SOCKETIO_ADAPTER_QUEUE_BYTES_MAX = 16 * 1024 * 1024,
    SOCKETIO_ADAPTER_USERS_MAX = 100000, /* named by the rooms of one message */
};

struct adapter_work;

/* The owner sets the fields above the line. */
struct socketio_adapter {
    struct session_context *sessions;
    struct delivery_receiver *receiver;
    struct slice key; /* of the channels */
    /* ---- */
    struct list queue;
    size_t queue_count;
    size_t queue_bytes;
    struct adapter_work *work;  /* the message that is being handled; NULL: none */
    struct wheel_timer waiting; /* for an event to everybody that is on its way */
};

void socketio_adapter_init(struct socketio_adapter *adapter);

/* Drops what waits. No ledger request may be pending any more. */
void socketio_adapter_free(struct socketio_adapter *adapter);

/* A message that was published on a channel. */
void socketio_adapter_received(struct socketio_adapter *adapter, struct slice channel,
                               struct slice message);

#endif
