/*
 * A link is one connection to one Redis server, made again whenever it breaks, on a worker's loop.
 *
 * Commands of a turn are written into one buffer and leave in one system call; answers are matched to
 * them in order. Every command that was taken is answered exactly once, in the order in which they
 * were taken: with the server's reply, or with NULL when the link broke, was ended, or the time limit
 * passed. After NULL nobody knows whether the server has executed it.
 *
 * Under it is a wire (redis_socket.h), opened again after a back-off, jittered, whenever it broke. Commands
 * are taken while it is open, and before the first attempt has failed; later, while the server is out of
 * reach, they are refused at once rather than kept. The server counts as dead when its oldest
 * answer is overdue (REDIS_COMMAND_LIMIT_MS); when there is nothing to answer it is asked
 * (REDIS_PING_INTERVAL_MS), so that one that hangs is known within the sum of both.
 *
 * A server that answers but cannot serve (loading, out of memory, …) stays connected: its problem is
 * noted, and it is probed with a script that writes nothing but is refused as writes are, until it
 * serves again. redis_connection_problem() is REDIS_FINE only while commands can be expected to succeed.
 *
 * Bounds: REDIS_PENDING_MAX commands, and those of the wire.
 * One thread. No callback is called from within redis_connection_make() and redis_connection_send(); others may
 * be, and may send, and may end the link.
 */
#ifndef ROLLCALL_REDIS_REDIS_CONNECTION_H
#define ROLLCALL_REDIS_REDIS_CONNECTION_H

#include "base/list.h"
#include "base/random.h"
#include "metrics/metrics.h"
#include "net/stream.h"
#include "redis/protocol/redis_handshake.h"
#include "redis/protocol/redis_url.h"
#include "redis/protocol/resp.h"
#include "redis/redis_pending.h"
#include "redis/redis_script.h"

#include <stdbool.h>

enum {
    REDIS_COMMAND_LIMIT_MS = 1500,
    REDIS_CONNECT_LIMIT_MS = 1500, /* name, connection, TLS and handshake together */
    REDIS_PING_INTERVAL_MS = 500,
    REDIS_BACKOFF_MIN_MS = 50,
    REDIS_BACKOFF_MAX_MS = 1000,
    REDIS_STABLE_MS = 1000, /* ready for so long: the back-off begins anew */
};

/* What all links of a client share; outlives them. */
struct redis_connection_context {
    struct loop *loop;
    struct stream_set *streams;
    struct random *random;
    struct metrics *metrics;
    struct tls_context *tls; /* NULL: plain */
    struct redis_identity identity;
    struct list ending; /* links that were ended and whose sockets are not closed yet */
};

struct redis_connection;

struct redis_connection_owner {
    /* The problem changed: see redis_connection_problem(). */
    void (*on_problem_changed)(struct redis_connection *link, void *arg);
    /* Something nobody asked for; NULL where it can only be ignored. */
    void (*on_push)(struct redis_connection *link, void *arg, const struct resp_value *push);
};

/* Starts to connect. NULL when memory is short. */
struct redis_connection *redis_connection_make(struct redis_connection_context *links,
                                               const struct redis_endpoint *endpoint,
                                               const struct redis_connection_owner *owner,
                                               void *arg);

/* Answers what waits with NULL; nothing is called after that. The memory goes when the socket is closed,
 * at the end of a turn. */
void redis_connection_end(struct redis_connection **link);

/* Frees the ended ones at once. Only while the loop makes no turn. */
void redis_connection_context_reap(struct redis_connection_context *links);

/* Sends a whole encoded command, which is copied. False: it was not taken, nothing will be called. `done`
 * may be NULL. Its reply lasts the call. */
bool redis_connection_send(struct redis_connection *link, struct slice command,
                           redis_reply_done done, void *arg);

/* Sends commands that are answered by pushes or by an error, as SUBSCRIBE is, and a PING after them. `done`
 * gets the first error of them, or the PING's answer, when all are through. */
bool redis_connection_send_fenced(struct redis_connection *link, struct slice commands,
                                  redis_reply_done done, void *arg);

/* Whether a command would be taken now, bounds aside. */
bool redis_connection_takes(const struct redis_connection *link);

enum redis_problem redis_connection_problem(const struct redis_connection *link);
const struct redis_endpoint *redis_connection_endpoint(const struct redis_connection *link);
size_t redis_connection_pending(const struct redis_connection *link);

/* What the server was sent on the connection that lasts, or is being made. */
struct redis_known_scripts *redis_connection_scripts(struct redis_connection *link);

#endif
