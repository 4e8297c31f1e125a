/*
 * The life of one connection: messages in, queued blobs out, signs of life, limits, closing. A connection is
 * a WebSocket, or is carried for a while by another transport (`struct connection_transport`).
 *
 *             ┌────── payloads, pings, timers ──────┐
 *   open ──► OPEN ◄─────────────────────────────────┘
 *             │ connection_end()    queues the reason, then a close frame
 *             │ connection_close()  queues a close frame
 *             │ client's close frame is answered
 *             ▼
 *           ENDING   flushes the queue and awaits the client's close frame, close_timeout at most
 *             │ both close frames seen and the queue empty, or time is up
 *             ▼
 *           GONE     the socket is closed; `on_gone` runs and the owner frees
 *
 * A client that vanishes (end of stream, reset) takes the connection from OPEN to GONE. `on_left` runs exactly
 * once, when OPEN ends; from then on the owner sends nothing more to it.
 *
 * Slow consumers: at the warning level of the queue a line is logged. At the critical level the client is
 * sent SLOW_CONSUMER and gets a grace period. Below the warning level it has recovered; otherwise it is ended when
 * the grace period is over. A full queue takes nothing more, and the end is certain.
 *
 * Out of memory: a message that cannot be queued is not dropped silently. connection_fail() ends the
 * connection and sends the client the reason if there is memory for that. A close frame that needs no memory
 * is kept ready, so that every end is signalled.
 *
 * A client that violates the protocol is not read any more. It is sent a close frame and our end of the
 * stream, and its own end is awaited, because a reset could destroy the close frame.
 *
 * States and owed messages: a message with a key is the state of something (presence, typing); the next
 * state or a query makes up for a lost one. A message without a key is owed to the client. From the warning
 * level on, a state that replaces none in the queue is shed, which leaves the space to owed messages. These
 * are never replaced, reordered or removed. From the first one that does not fit they are refused:
 * connection_queue() returns false, and the owner lists them in `sync_from`. When the queue is below the
 * warning level again, `on_caught_up` makes up for shed states.
 *
 * Pending replies: an end that is known in advance (draining, lifetime, token) waits for them,
 * CONNECTION_OWED_MAX_MS at most; `closing` is set meanwhile and new commands are refused.
 *
 * Signs of life: any complete message or control frame. After the unhealthy time without one the client is
 * pinged and `connection_healthy()` is false. After the expiry window the connection is ended.
 *
 * Floods: a client that keeps on beyond its limits is answered, then read more slowly, then closed. Each refusal and
 * each control frame takes from the connection's tolerance. When that is used up, the client is flooding: it is not
 * read for CONNECTION_THROTTLE_MS, so that its bytes stay in the kernel and TCP slows it down, then read a little, and
 * so on. After CONNECTION_FLOOD_MAX_MS the connection is ended with `rate_limited`. A client whose tolerance is whole
 * again has stopped flooding. Control frames of well-behaved clients are far below it.
 *
 * The struct is embedded in its owner's. One timer drives everything timed, so that a heartbeat costs one
 * assignment. One thread.
 */
#ifndef ROLLCALL_CONNECTION_CONNECTION_H
#define ROLLCALL_CONNECTION_CONNECTION_H

#include "base/memory_account.h"
#include "base/random.h"
#include "base/rate_limit.h"
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
struct connection_transport;

struct connection_owner {
    /* A whole text or binary message came. `data` may be written to and is valid until this returns. */
    void (*on_payload)(struct connection *connection, char *data, size_t len, bool binary);
    /* Runs while OPEN when it is due, and when an unhealthy client is heard again. Returns when it is due next
     * (monotonic ms). */
    int64_t (*on_tick)(struct connection *connection);
    /* OPEN has ended. */
    void (*on_left)(struct connection *connection);
    /* May be NULL. Whether replies are pending that an orderly end should wait for. */
    bool (*owes_replies)(const struct connection *connection);
    /* May be NULL. Where the client should start to sync after messages that were not queued; the points are
     * borrowed and used at once. */
    size_t (*sync_from)(const struct connection *connection, const struct sync_point **points);
    /* May be NULL. The queue is below the warning level again after states were shed: send the current states. */
    void (*on_caught_up)(struct connection *connection);
    /* May be NULL: a WebSocket ping is sent. Asks the client for a sign of life; false: out of memory. */
    bool (*send_ping)(struct connection *connection);
    /* May be NULL. Tells the client, in the words of its dialect, that it must not reconnect by itself. */
    void (*send_disconnect)(struct connection *connection);
    /* May be NULL. The connection's user, for the log; empty while unknown. */
    struct slice (*user_id)(const struct connection *connection);
    /* Runs last: frees the memory. */
    void (*on_gone)(struct connection *connection);
    const struct connection_transport *transport; /* of connection_open_on(); may be NULL */
};

/* Carries a connection that has no stream of its own. None of these functions may call back before it
 * returns. */
struct connection_transport {
    /* Something is queued for connection_take_payload(). Called many times per turn. */
    void (*want_write)(struct connection *connection);
    /* Appends a queued frame to what connection_take_payload() collects, in the transport's own form. */
    void (*append_frame)(struct buffer *out, enum websocket_opcode opcode, struct slice payload);
    /* The client is throttled no more: what the transport held back meanwhile may go on. */
    void (*resume)(struct connection *connection);
    /* The connection is over, its queue taken or lost: call connection_gone() once, in a later task. May be
     * called twice. */
    void (*close)(struct connection *connection);
};

/* Shared by all connections of a worker. */
struct connection_context {
    const struct config *config;
    struct loop *loop;
    struct encoder *encoder;
    struct metrics *metrics;
    struct random *random;
    struct websocket_limits frames[DIALECT_SLOT_COUNT];
    struct websocket_limits unauthenticated_frames; /* until the user is known */
    struct outbound_limits outbound;
    struct blob *spare_close;     /* a close frame for use when out of memory */
    int64_t close_timeout_ms;     /* shorter while draining */
    struct memory_account memory; /* what this worker holds, HTTP bodies included */
    size_t count;                 /* connections that are not GONE */
    size_t unhealthy_count;       /* of these: OPEN and silent for the unhealthy time */
};

/* The largest message of a client whose user is not known yet: enough for a token and what is around it. */
enum { CONNECTION_UNAUTHENTICATED_BYTES_MAX = 16384 };

/* How long an end may wait for pending replies: longer than any command may take. */
enum { CONNECTION_OWED_MAX_MS = 10000 };

enum {
    CONNECTION_TOLERATED_PER_SECOND = 20, /* a client that retries when it is told to stays below */
    CONNECTION_TOLERATED_BURST = 100,
    CONNECTION_THROTTLE_MS = 1000, /* and at most a quarter of the heartbeat timeout */
    CONNECTION_FLOOD_MAX_MS = 10000,
};

enum connection_state { CONNECTION_OPEN, CONNECTION_ENDING, CONNECTION_GONE };

struct connection {
    struct stream stream; /* a WebSocket; not open while the connection is `carried` */
    struct wheel_timer timer;
    struct websocket_decoder decoder;
    struct outbound outbound;
    struct connection_context *context;
    const struct connection_owner *owner;
    const struct dialect *dialect;
    int64_t last_heard_ms;
    int64_t ends_at_ms;     /* OPEN: it is ended then; ENDING: the socket is closed then */
    int64_t grace_until_ms; /* of a slow consumer; 0: none */
    struct rate_limit tolerance;
    uint32_t flooding_since_ms; /* the low bits of the time */
    uint8_t state;              /* enum connection_state */
    uint8_t ends_as;            /* enum closing_reason at ends_at_ms */
    bool end_was_sent : 1;      /* connection_closing is queued or sent */
    bool unhealthy : 1;
    bool warned : 1;
    bool overflowed : 1;
    bool shed : 1; /* a state was shed */
    bool close_received : 1;
    bool close_owed : 1; /* ENDING: the close frame could not be queued yet */
    bool closing : 1;    /* its end is due and waits for pending replies */
    bool broken : 1;     /* the client violated the protocol and is not read any more */
    bool flooding : 1;
    bool throttled : 1; /* not read for a while */
    bool silent : 1;    /* the user is not known yet: no messages are sent */
    bool carried : 1;   /* by the owner's transport, not by the stream */
};

/* Returns false when out of memory. */
bool connection_context_init(struct connection_context *context, const struct config *config,
                             struct loop *loop, struct encoder *encoder, struct metrics *metrics,
                             struct random *random);

/* Sets how long messages in a dialect may be; the lowest limit of all holds until the user is known. */
void connection_context_limit(struct connection_context *context, const struct dialect *dialect,
                              size_t message_bytes_max);

/* Call it after the last connection has gone. */
void connection_context_free(struct connection_context *context);

/* Takes over the stream of a finished HTTP handshake and queues `greeting` (the 101 response) first.
 * Returns false when out of memory; `from` is then unchanged. */
bool connection_open(struct connection *connection, struct connection_context *context,
                     const struct connection_owner *owner, const struct dialect *dialect,
                     struct stream *from, struct slice greeting);

/* The same without a stream: the owner's transport carries the connection. Cannot fail. */
void connection_open_on(struct connection *connection, struct connection_context *context,
                        const struct connection_owner *owner, const struct dialect *dialect);

/* Receives a whole message that came by another transport than the stream: it is a sign of life, and goes to
 * the owner's `on_payload` while OPEN. */
void connection_receive(struct connection *connection, char *data, size_t len, bool binary);

/* Moves queued frames, up to `bytes_max` (at least one message), to `out` by the transport's `append_frame`.
 * Bytes are counted as queued, before the transport changes them. Returns whether more messages wait. */
bool connection_take_payload(struct connection *connection, struct buffer *out, size_t bytes_max);

/* A transport calls this last: the connection is GONE and its owner frees it. */
void connection_gone(struct connection *connection);

/* Upgrades: from now on the WebSocket of `from` carries `to`, with what `from` has received of an incomplete
 * message. `from` goes without a message to its client (its owner's `on_left` and `on_gone` run as always). Not
 * to be called within a callback of either. Returns false and changes nothing when `from` has not sent its
 * whole queue, or is closing. */
bool connection_take_over(struct connection *to, struct connection *from);

/* Queues one reference to a blob, taken in every case. `key`: see outbound.h. Returns false when it was not
 * queued; then nothing after it will be either, unless it was a state (see above). */
bool connection_queue(struct connection *connection, struct blob *blob, uint64_t key);

/* Encodes and queues a message for this connection alone. */
void connection_send(struct connection *connection, const struct message *message);

/* Queues one frame that is not an encoded message, such as a control frame, in the queue's reserve. Returns
 * false when it was not queued. `key`: see outbound.h. */
bool connection_send_frame(struct connection *connection, enum websocket_opcode opcode,
                           struct slice payload, uint64_t key);

/* Something could not be sent because memory ran out: the connection takes nothing more and ends in the next
 * turn, so that the caller may be iterating over connections. */
void connection_fail(struct connection *connection);

/* The client sent a control frame or something beyond its limits: takes from its tolerance. May throttle or end the
 * connection, so it is the last thing to do with a message. */
void connection_exceed(struct connection *connection);

/* Sends the client the reason and when to reconnect, then closes. Does nothing unless OPEN. */
void connection_end(struct connection *connection, enum closing_reason reason,
                    int64_t reconnect_after_ms);

/* The same for a connection that holds much memory: what the socket has not begun to send is dropped first, so that
 * the memory is free at once. The client must sync. */
void connection_shed(struct connection *connection, int64_t reconnect_after_ms);

/* What the connection holds: its queue, and a message that has not arrived completely. */
static inline size_t connection_held_bytes(const struct connection *connection)
{
    return outbound_held(&connection->outbound) +
           websocket_decoder_memory_bytes(&connection->decoder);
}

/* Closes with a code and a reason only. Does nothing unless OPEN. */
void connection_close(struct connection *connection, unsigned code, struct slice reason);

/* Ends the connection without waiting for the client: it is GONE after this turn. */
void connection_cut(struct connection *connection);

/* Sends the client the reason at once and ends the connection at `at_ms`, or when an earlier limit is reached:
 * for draining. This reason then stays, and nothing revokes it. */
void connection_end_at(struct connection *connection, enum closing_reason reason, int64_t at_ms,
                       int64_t reconnect_after_ms);

/* Ends the connection at `at_ms`, without a warning before, unless an earlier end is set: lifetime, token expiry. */
void connection_limit(struct connection *connection, enum closing_reason reason, int64_t at_ms);

/* Revokes a limit with this reason. */
void connection_unlimit(struct connection *connection, enum closing_reason reason);

/* Makes the owner's `on_tick` run at `at_ms` at the latest. */
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

/* The limits of the client's messages. An unauthenticated client may send no more than authentication needs. */
static inline const struct websocket_limits *connection_frames(const struct connection *connection)
{
    const struct connection_context *context = connection->context;
    return connection->silent ? &context->unauthenticated_frames
                              : &context->frames[connection->dialect->slot];
}

/* Whether the queue is at the warning level or above. */
static inline bool connection_is_filling(const struct connection *connection)
{
    return connection->warned || connection->overflowed;
}

#endif
