/*
 * An Engine.IO session: the layer between a transport and Socket.IO, independent of the transport.
 *
 *                        ┌──────────────── struct connection ───────────────┐
 *   WebSocket frames ──► │ connection_receive() ──► owner->on_payload()     │ ──► engine_receive()
 *   polling, POST    ──► │   (each packet once, as in a WebSocket frame)    │       │ ping, pong, close
 *                        │                                                  │       ▼ ENGINE_MESSAGE
 *   WebSocket frames ◄── │ outbound queue ◄── connection_queue(), …_frame() │ ◄── Socket.IO
 *   polling, GET     ◄── │   connection_take_payload()                      │
 *                        └──────────────────────────────────────────────────┘
 *
 * A WebSocket is the connection's own stream; any other transport is a `struct connection_transport` (connection.h):
 * it passes packets in with connection_receive(), takes queued ones with connection_take_payload() after
 * `want_write`, and ends after `close`. An upgrade is connection_take_over(): the queue, the limits and the Engine.IO
 * session stay in place, and from then on frames leave by the probed WebSocket.
 *
 * The states of an Engine.IO session, which socketio_session.h keeps:
 *
 *   handshake ──engine_open(): "0{sid…}"──► OPENED ◄──────────── "41", user:disconnect ──┐
 *                                             │ "40{auth}"                               │
 *                                             ▼                                          │
 *                                          JOINING ──token good, lease registered──► CONNECTED
 *                                             │ refused: "44{message}"
 *                                             └──► OPENED
 *
 *   The connection ends, and the Engine.IO session with it, after connect_timeout_ms in OPENED, ping_timeout_ms
 *   without a pong, a close packet ("1"), or a malformed packet. connection.h has those states.
 *
 * Every packet is a sign of life of the connection, so leases hold as long as pongs come. Pings are sent every
 * ping_interval_ms, and also when the connection has been silent for the unhealthy time: the expiry window may be
 * shorter than the interval sent to the client, and an extra ping does no harm.
 *
 * The owner embeds the struct beside its connection; it needs no destructor. One thread.
 */
#ifndef ROLLCALL_SOCKETIO_ENGINE_H
#define ROLLCALL_SOCKETIO_ENGINE_H

#include "base/random.h"
#include "connection/connection.h"
#include "socketio/codec/engineio.h"

/* The id of an Engine.IO session has 4 bytes for the process, 2 for its worker and 16 random ones, in base64url. */
enum { ENGINE_SID_RANDOM_BYTES = 16, ENGINE_SID_LEN = 30 };

/* The worker that has an Engine.IO session. */
struct engine_place {
    uint32_t process; /* random, new at each start; visible to clients */
    uint16_t worker;
};

struct engine {
    int64_t ping_at_ms; /* when to ping next; while a pong is awaited, when it is too late */
    bool awaits_pong;
    char sid[ENGINE_SID_LEN];
};

/* What a received packet means to Socket.IO. */
enum engine_verdict {
    ENGINE_HANDLED, /* nothing, the engine has handled it */
    ENGINE_MESSAGE, /* its data is a Socket.IO packet */
    ENGINE_LEAVES,  /* the client closes the Engine.IO session */
    ENGINE_BROKEN,  /* the client broke the protocol: close */
};

/* Writes the id of a new Engine.IO session. Returns false when out of memory. */
bool engine_make_sid(char out[ENGINE_SID_LEN], struct random *random,
                     const struct engine_place *place);

/* Reads the place from the id of an Engine.IO session. Returns false when it is malformed. */
bool engine_sid_place(struct slice sid, struct engine_place *out);

/* Starts an Engine.IO session on an open connection by sending the open packet. `upgrades`: the client may upgrade to
 * a WebSocket. The caller has set engine->sid. */
void engine_open(struct engine *engine, struct connection *connection, bool upgrades);

/* Handles a packet in the form of a WebSocket frame; *packet is set unless the result is BROKEN. The packets of
 * an upgrade ("2probe", "5") go to probe.h instead. */
enum engine_verdict engine_receive(struct engine *engine, struct connection *connection, char *data,
                                   size_t len, bool binary, struct engineio_packet *packet);

/* Pings when that is due, and ends the connection when a pong is too late. Returns when to run next. */
int64_t engine_tick(struct engine *engine, struct connection *connection);

/* connection_owner.send_ping: pings now, unless a pong is awaited. Returns false when out of memory. */
bool engine_ping(struct engine *engine, struct connection *connection);

static inline struct slice engine_sid(const struct engine *engine)
{
    return (struct slice){engine->sid, ENGINE_SID_LEN};
}

#endif
