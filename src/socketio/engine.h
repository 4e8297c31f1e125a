/*
 * An Engine.IO session: what stands between a transport and Socket.IO, and does not know the transport.
 *
 *                        ┌──────────────── struct connection ───────────────┐
 *   WebSocket frames ──► │ connection_receive() ──► owner->payload()        │ ──► engine_receive()
 *   polling, POST    ──► │   (each packet once, as in a WebSocket frame)    │       │ ping, pong, close
 *                        │                                                  │       ▼ ENGINE_MESSAGE
 *   WebSocket frames ◄── │ outbound queue ◄── connection_queue(), …_text()  │ ◄── Socket.IO
 *   polling, GET     ◄── │   connection_take_payload()                      │
 *                        └──────────────────────────────────────────────────┘
 *
 * So a transport is what connection.h calls one: a WebSocket is the connection's own stream; any other
 * is a `struct connection_transport`, which feeds packets in with connection_receive(), is told by
 * `want_write` that something waits, takes it with connection_take_payload(), and is told by `close` that
 * all is over. An upgrade is connection_take_over(): the queue, the limits and the session above stay
 * where they are, and from then on frames leave by the WebSocket that was probed.
 *
 * The life of an engine, seen from above (socketio/socketio_session.h):
 *
 *   handshake ──engine_open(): "0{sid…}"──► OPENED ◄──────────── "41", user:disconnect ──┐
 *                                             │ "40{auth}"                               │
 *                                             ▼                                          │
 *                                          JOINING ──token good, lease registered──► CONNECTED
 *                                             │ refused: "44{message}"
 *                                             └──► OPENED
 *
 *   OPENED for connect_timeout_ms, a pong that does not come for ping_timeout_ms, "1", a packet that is
 *   none: the connection ends (connection.h has those states), and the engine with it.
 *
 * Signs of life: every packet is one, to the connection; so leases hold as long as pongs come. Pings go
 * out every ping_interval_ms, and when the connection has been silent for the unhealthy time: the lease
 * window may be shorter than the interval the client was told, and a ping too many harms nobody.
 *
 * The struct is embedded beside the connection's in the owner's and needs no end of its own. One thread.
 */
#ifndef ROLLCALL_SOCKETIO_ENGINE_H
#define ROLLCALL_SOCKETIO_ENGINE_H

#include "base/random.h"
#include "connection/connection.h"
#include "socketio/codec/engineio.h"

/* A session id is 4 bytes that name the process, 2 that name its worker, and 16 of chance, in base64url. */
enum { ENGINE_SID_RANDOM_BYTES = 16, ENGINE_SID_LEN = 30 };

/* Where a session lives. */
struct engine_place {
    uint32_t process; /* by chance, anew at each start; clients see it */
    uint16_t worker;
};

struct engine {
    int64_t ping_at_ms; /* the next ping; or, while a pong is awaited, when it comes too late */
    bool awaits_pong;
    char sid[ENGINE_SID_LEN];
};

/* What a packet was, to those above. */
enum engine_verdict {
    ENGINE_HANDLED, /* nothing to do */
    ENGINE_MESSAGE, /* what it holds is for Socket.IO */
    ENGINE_LEAVES,  /* the peer closes in good order */
    ENGINE_BROKEN,  /* the peer breaks the protocol: close */
};

/* False when memory is short. */
bool engine_make_sid(char out[ENGINE_SID_LEN], struct random *random,
                     const struct engine_place *place);

/* The place a session id names. False: it is no session id. */
bool engine_sid_place(struct slice sid, struct engine_place *out);

/* Starts the engine over an open connection: makes it speak first. `upgrades`: the client may change to
 * a WebSocket. engine->sid is set by the caller. */
void engine_open(struct engine *engine, struct connection *connection, bool upgrades);

/* A packet came, as in a WebSocket frame; *packet is what it holds, unless it is BROKEN. A probe of a
 * transport ("2probe", "5") is for those who probe, not for here. */
enum engine_verdict engine_receive(struct engine *engine, struct connection *connection, char *data,
                                   size_t len, bool binary, struct engineio_packet *packet);

/* Sends what is due and ends the connection when the pong is; answers when to come again. */
int64_t engine_tick(struct engine *engine, struct connection *connection);

/* connection_owner.send_ping: asks for a sign of life now. False: for want of memory it could not. */
bool engine_ping(struct engine *engine, struct connection *connection);

static inline struct slice engine_sid(const struct engine *engine)
{
    return (struct slice){engine->sid, ENGINE_SID_LEN};
}

#endif
