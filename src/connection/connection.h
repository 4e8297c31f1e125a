/*
 * The life of one connection: messages in, queued blobs out, signs of life, limits, closing. It is a
 * WebSocket, or for a while something else that carries the same messages (`struct connection_transport`).
 *
 *             ┌────── payloads, pings, timers ──────┐
 *   open ──► OPEN ◄─────────────────────────────────┘
 *             │ connection_end()    told why, then a close frame is queued
 *             │ connection_close()  a close frame is queued
 *             │ peer's close frame  answered
 *             ▼
 *           ENDING   what is queued is flushed, the peer's close frame awaited, close_timeout at most
 *             │ both close frames seen and all is sent, or time is up
 *             ▼
 *           GONE     the socket is closed; `gone` runs, the owner frees
 *
 * A peer that merely vanishes (end of stream, reset) goes from OPEN to GONE. `left` runs exactly once,
 * when OPEN ends: from then on the owner delivers nothing more to it.
 *
 * Slow consumers: a queue at the warning level is logged; at the critical level the
 * peer is told SLOW_CONSUMER and given the grace; below the warning level again it has recovered; else,
 * when the grace is over, it is ended. A queue that is full takes nothing more and the end is certain.
 *
 * Short memory: what cannot be queued is not dropped silently. connection_fail() ends the connection,
 * told why as far as there is memory for it; a close frame that needs none is kept at hand, so that
 * every end is signalled.
 *
 * A peer that breaks the protocol is not listened to any more. It is sent a close frame and our end of
 * the stream, and its own end is awaited, so that the close frame is not lost to a reset.
 *
 * Who gives way: a message with a key is the state of something (presence, typing), and the next state
 * or a query makes up for one that is lost; one without a key is owed. From the warning level up, a
 * state that replaces none in the queue is not queued, so that what is left belongs to what is owed.
 * That is never replaced, reordered or taken out again: it is refused as a whole, from the first that
 * does not fit, and the owner is told so by connection_queue(), to name it in `sync_from`. When the queue
 * has drained again, `recovered` makes up for states that gave way.
 *
 * Answers that are owed: an end that was announced or comes by the clock (draining, lifetime, token)
 * waits for them, CONNECTION_OWED_MAX_MS at most; `closing` is set then, and new commands are refused.
 *
 * Signs of life: any complete message or control frame. Silent for the unhealthy time: pinged, and
 * `connection_healthy()` is false. Silent for the lease window: ended.
 *
 * The struct is embedded in its owner's; one timer drives everything timed, so that a heartbeat costs
 * one assignment. One thread.
 */
#ifndef ROLLCALL_CONNECTION_CONNECTION_H
#define ROLLCALL_CONNECTION_CONNECTION_H

#include "base/random.h"
#include "config/config.h"
#include "connection/outbound.h"
#include "metrics/metrics.h"
#include "net/stream.h"
#include "protocol/encoder.h"
#include "protocol/websocket/websocket.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct connection;

struct connection_owner {
    /* A whole text or binary message. `data` may be written to and lasts for the call. */
    void (*payload)(struct connection *connection, char *data, size_t len, bool binary);
    /* Now and then while OPEN, and when an unhealthy peer is heard again; returns when it wants to be
     * called next (monotonic ms). */
    int64_t (*tick)(struct connection *connection);
    void (*left)(struct connection *connection);
    /* May be NULL. Whether answers are under way that an orderly end should wait for. */
    bool (*owes)(const struct connection *connection);
    /* May be NULL. Where the peer should start to sync, of what was not queued; lasts for the call. */
    size_t (*sync_from)(const struct connection *connection, const struct sync_point **points);
    /* May be NULL. The queue has drained again after states had to give way: say anew what they are. */
    void (*recovered)(struct connection *connection);
    /* May be NULL: a WebSocket ping. Asks the peer for a sign of life; false: no memory for it. */
    bool (*ping)(struct connection *connection);
    /* May be NULL. Whose it is, for the log; empty while that is not known. */
    struct slice (*user)(const struct connection *connection);
    /* The last call: frees the memory. */
    void (*gone)(struct connection *connection);
};

/* What carries a connection that has no stream of its own, such as requests that poll. None of these may call
 * back before it returns. */
struct connection_transport {
    /* Something is queued: connection_take_payload() has something to take. Many times a turn. */
    void (*want_write)(struct connection *connection);
    /* Appends a queued frame to what connection_take_payload() collects, in the transport's own form. */
    void (*append_frame)(struct buffer *out, enum websocket_opcode opcode, struct slice payload);
    /* It is over, all is taken or lost: call connection_gone() in a later task, once. May be said twice. */
    void (*close)(struct connection *connection);
};

/* What all connections of a worker share. */
struct connection_context {
    const struct config *config;
    struct loop *loop;
    struct encoder *encoder;
    struct metrics *metrics;
    struct random *random;
    struct websocket_limits frames[DIALECT_SLOT_COUNT];
    struct websocket_limits stranger_frames; /* as long as nobody is known */
    struct outbound_limits outbound;
    struct blob *spare_close; /* a close frame for when memory is short */
    int64_t close_timeout_ms; /* shorter while draining */
    size_t count;             /* connections that are not GONE */
    size_t unhealthy_count;   /* those of them that are OPEN and silent for the unhealthy time */
};

/* How long an end may wait for answers: longer than any request may take. */
enum { CONNECTION_OWED_MAX_MS = 10000 };

enum connection_state { CONNECTION_OPEN, CONNECTION_ENDING, CONNECTION_GONE };

struct connection {
    struct stream stream; /* a WebSocket; not open while `transport` carries the connection */
    const struct connection_transport *transport; /* NULL: the stream does */
    struct wheel_timer timer;
    struct websocket_decoder decoder;
    struct outbound outbound;
    struct connection_context *context;
    const struct connection_owner *owner;
    const struct dialect *dialect;
    int64_t last_heard_ms;
    int64_t ends_at_ms; /* OPEN: told or allowed to live so long; ENDING: the socket goes then */
    int64_t grace_until_ms; /* of a slow consumer; 0: none */
    uint8_t state;          /* enum connection_state */
    uint8_t ends_as;        /* enum closing_reason at ends_at_ms */
    bool end_was_told : 1;
    bool unhealthy : 1;
    bool warned : 1;
    bool overflowed : 1;
    bool shed : 1; /* states gave way */
    bool close_received : 1;
    bool close_owed : 1; /* ENDING: the close frame could not be queued yet */
    bool closing : 1;    /* its end has come and waits for answers */
    bool broken : 1;     /* the peer broke the protocol: what it says is not understood any more */
    bool silent : 1;     /* nobody is there yet who would understand messages: none are sent */
};

/* False when memory is short. */
bool connection_context_init(struct connection_context *context, const struct config *config,
                             struct loop *loop, struct encoder *encoder, struct metrics *metrics,
                             struct random *random);

/* Sets how long messages in a dialect may be; the lowest limit of all holds until the user is known. */
void connection_context_limit(struct connection_context *context, const struct dialect *dialect,
                              size_t message_bytes_max);

/* After the last connection has gone. */
void connection_context_free(struct connection_context *context);

/* Takes over the stream of a finished HTTP handshake and queues `greeting` (the 101 answer) first.
 * False when that fails; `from` is then unchanged. */
bool connection_open(struct connection *connection, struct connection_context *context,
                     const struct connection_owner *owner, const struct dialect *dialect,
                     struct stream *from, struct slice greeting);

/* The same without a stream: `transport` carries it. Nothing can fail. */
void connection_open_on(struct connection *connection, struct connection_context *context,
                        const struct connection_owner *owner, const struct dialect *dialect,
                        const struct connection_transport *transport);

/* A whole message came by another transport than the stream: a sign of life, and `payload` of the owner
 * while OPEN. */
void connection_receive(struct connection *connection, char *data, size_t len, bool binary);

/* Takes what is queued off, up to `bytes_max` (one message at the least), and appends it to `out` as an
 * Engine.IO payload; base64, as which binary messages travel there, is not reckoned with. True: more waits. */
bool connection_take_payload(struct connection *connection, struct buffer *out, size_t bytes_max);

/* The last word of a transport: the connection is GONE and its owner frees it. */
void connection_gone(struct connection *connection);

/* An upgrade: from now on `to` is carried by the WebSocket of `from`, which goes without a word (its
 * owner's `left` and `gone` run as ever). What `from` has half received goes along. Not within a callback
 * of either. False: nothing was changed, since `from` has not sent all it had, or is closing. */
bool connection_take_over(struct connection *to, struct connection *from);

/* Queues one reference to a blob, taken in every case. `key`: see outbound.h. False: it was not queued,
 * nor will anything after it be, unless it was a state (see above). */
bool connection_queue(struct connection *connection, struct blob *blob, uint64_t key);

/* Encodes and queues a message for this connection alone. */
void connection_send(struct connection *connection, const struct message *message);

/* Queues text that is no message (a packet of a dialect) as one frame, in the queue's reserve. False: not
 * queued. `key`: see outbound.h. */
bool connection_send_text(struct connection *connection, struct slice text, uint64_t key);

/* The same for bytes that are no text, without a key. */
bool connection_send_binary(struct connection *connection, struct slice bytes);

/* Something could not be sent for want of memory: takes nothing more and ends in the next turn, so that
 * it may be called while connections are walked over. */
void connection_fail(struct connection *connection);

/* Tells the peer why and where to go, then closes. Nothing when it is not OPEN. */
void connection_end(struct connection *connection, enum closing_reason reason,
                    int64_t reconnect_after_ms);

/* Closes with a code and no more words. Nothing when it is not OPEN. */
void connection_close(struct connection *connection, unsigned code, struct slice reason);

/* Ends it without waiting for the peer: its place is free after this turn. */
void connection_cut(struct connection *connection);

/* Tells the peer now and ends it at `at_ms`, or when an earlier limit is reached: for draining. From
 * then on this is the reason it ends for, and nothing takes it back. */
void connection_end_at(struct connection *connection, enum closing_reason reason, int64_t at_ms,
                       int64_t reconnect_after_ms);

/* Ends it at `at_ms` without a word before (unless an earlier end stands): lifetime, token expiry. */
void connection_limit(struct connection *connection, enum closing_reason reason, int64_t at_ms);

/* Takes a limit with this reason back. */
void connection_unlimit(struct connection *connection, enum closing_reason reason);

/* The owner's tick should come at `at_ms` at the latest. */
void connection_wake_at(struct connection *connection, int64_t at_ms);

static inline bool connection_is_open(const struct connection *connection)
{
    return connection->state == CONNECTION_OPEN;
}

static inline bool connection_healthy(const struct connection *connection, int64_t now_ms)
{
    return now_ms - connection->last_heard_ms <
           connection->context->config->gateway.timeouts.heartbeat_timeout_ms;
}

/* How long its peer's messages may be. What a stranger may make us hold is what it takes to say who one is. */
static inline const struct websocket_limits *connection_frames(const struct connection *connection)
{
    const struct connection_context *context = connection->context;
    return connection->silent ? &context->stranger_frames
                              : &context->frames[connection->dialect->slot];
}

/* Whether its queue is at the warning level or above. */
static inline bool connection_is_filling(const struct connection *connection)
{
    return connection->warned || connection->overflowed;
}

#endif
