/*
 * A connection to one Redis server on a worker's loop, made again whenever it breaks.
 *
 * The commands of a turn leave in one system call; replies are matched to them in order. Every command that
 * was accepted is answered exactly once, in the order of sending: with the server's reply, or with NULL when
 * the connection broke, was ended, or the time limit passed. NULL means that it is unknown
 * whether the server has executed the command.
 *
 * It uses a socket (redis_socket.h) and opens it again after a jittered back-off whenever it broke. It
 * accepts commands while the socket is open, and before the first attempt has failed; later, while the
 * server cannot be reached, it refuses them at once instead of keeping them. The server counts as dead when
 * its oldest reply is overdue (REDIS_COMMAND_LIMIT_MS); when no reply is pending it is pinged
 * (REDIS_PING_INTERVAL_MS), so a hanging server is detected within the sum of both, and sooner where it is used.
 *
 * A server that answers but cannot serve (loading, out of memory, …) stays connected: its problem is noted,
 * and it is probed with a script that writes nothing but is refused as writes are, until it serves again.
 * redis_connection_problem() is REDIS_FINE only while commands can be expected to succeed.
 *
 * Where its owner `tracks`, the server is asked to track what is read with redis_connection_send_tracked()
 * (CLIENT TRACKING ON OPTIN): when such a key changes, is removed or expires, it pushes "invalidate" on the same
 * connection, in order with the replies. So whoever keeps a value that was read so knows, at any later reply of this
 * connection, whether the value was still right when the server made that reply.
 *
 * Bounds: REDIS_PENDING_MAX commands, and those of the socket.
 * One thread. No callback runs inside redis_connection_make() and redis_connection_send(); callbacks may run
 * inside the other functions, may send, and may end the connection.
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
#include "redis/redis_report.h"
#include "redis/redis_script.h"

#include <stdbool.h>

enum {
    REDIS_COMMAND_LIMIT_MS = 1500,
    REDIS_CONNECT_LIMIT_MS = 1500, /* name lookup, connection, TLS and handshake together */
    REDIS_PING_INTERVAL_MS = 500,  /* of silence */
    REDIS_QUIET_PING_INTERVAL_MS =
        6000,                      /* the same, on a connection on which little can be missed */
    REDIS_PROBE_INTERVAL_MS = 500, /* while the server has a problem */
    REDIS_BACKOFF_MIN_MS = 50,
    REDIS_BACKOFF_MAX_MS = 1000,
    REDIS_STABLE_MS = 1000, /* open for so long: the back-off starts again at its minimum */
};

/* Shared by all connections of a client; outlives them. */
struct redis_connection_context {
    struct loop *loop;
    struct stream_set *streams;
    struct random *random;
    struct metrics *metrics;
    struct tls_context *tls; /* NULL: plain */
    struct redis_identity identity;
    struct redis_report *report; /* NULL: every connection logs its problems */
    bool quiet;                  /* the owner logs problems itself */
    struct list ending;      /* connections that were ended and whose sockets are not closed yet */
    uint64_t tracking_count; /* numbers of tracking that were given out */
};

struct redis_connection;

struct redis_connection_owner {
    /* redis_connection_problem() changed. */
    void (*on_problem_changed)(struct redis_connection *connection, void *arg);
    /* The server sent a push. May be NULL: ignore it. */
    void (*on_push)(struct redis_connection *connection, void *arg, const struct resp_value *push);
    bool tracks; /* redis_connection_send_tracked() may be called */
};

/* Starts to connect. Returns NULL when out of memory. */
struct redis_connection *redis_connection_make(struct redis_connection_context *context,
                                               const struct redis_address *address,
                                               const struct redis_connection_owner *owner,
                                               void *arg);

/* Answers pending commands with NULL; no callback runs after that. The memory is freed when the socket is
 * closed, at the end of a turn. */
void redis_connection_end(struct redis_connection **connection);

/* Frees ended connections at once. Only while the loop makes no turn. */
void redis_connection_context_reap(struct redis_connection_context *context);

/* Sends a whole encoded command, which is copied. Returns false when it was refused; `done`, which may be
 * NULL, does not run then. */
bool redis_connection_send(struct redis_connection *connection, struct slice command,
                           redis_reply_done done, void *arg);

/* Sends commands that are answered by pushes or by an error, as SUBSCRIBE is, and a PING after them. `done`
 * gets the first error of them, or else the reply to the PING, when all were answered. */
bool redis_connection_send_fenced(struct redis_connection *connection, struct slice commands,
                                  redis_reply_done done, void *arg);

/* Returns the number of the present tracking, unlike that of any other connection or socket of this client; 0: the server
 * does not track. A value that was read under another number may have changed unnoticed. */
uint64_t redis_connection_tracking(const struct redis_connection *connection);

/* Sends a reading command whose keys the server tracks from then on, provided that redis_connection_tracking() is the
 * same, and not 0, before the command is sent and when its reply arrives. */
bool redis_connection_send_tracked(struct redis_connection *connection, struct slice command,
                                   redis_reply_done done, void *arg);

/* Waits for the reply to any command that the server executes from now on: at that reply, all changes that the server made
 * before now have been reported. A command that was given but not written yet will do, whoever gave it. Only if there is
 * none, an EXISTS for the barrier's key is sent, or without a key a PING, and not before the last one of these was answered:
 * so many barriers share one command.
 *
 * Part of its owner's memory until `done` has run, exactly once, as a completion of a command does. `is_passed` is false when
 * the connection was lost, or the reply was an error. */
enum { REDIS_BARRIER_KEY_MAX = 16 };

struct redis_barrier {
    /* The owner sets these. */
    char key[REDIS_BARRIER_KEY_MAX]; /* of a slot of this server, which refuses when it has moved */
    size_t key_len;
    void (*done)(struct redis_barrier *barrier, bool is_passed);

    struct list place;
    uint64_t after; /* replies to so many commands came too early */
};

/* Returns false when nothing can be sent; then `done` does not run. */
bool redis_connection_await(struct redis_connection *connection, struct redis_barrier *barrier);

/* Whether a command would be accepted now, apart from the bounds. */
bool redis_connection_takes(const struct redis_connection *connection);

/* A quiet connection is pinged more rarely. Commands are answered in time all the same: only a server that hangs while
 * nobody uses the connection is detected later. */
void redis_connection_set_quiet(struct redis_connection *connection, bool is_quiet);

enum redis_problem redis_connection_problem(const struct redis_connection *connection);
const struct redis_address *redis_connection_address(const struct redis_connection *connection);
size_t redis_connection_pending(const struct redis_connection *connection);

/* The scripts that were sent to the server on the present socket. */
struct redis_known_scripts *redis_connection_scripts(struct redis_connection *connection);

#endif
