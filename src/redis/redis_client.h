/*
 * The Redis client of a worker, used by stores and the bus: one server or a cluster, given by a URL.
 *
 * Every command is answered exactly once. `done` gets the server's reply, which is valid until `done` returns
 * and may be an error (RESP_ERROR), or NULL: Redis cannot be reached, and it is unknown whether the command was
 * executed. A reply never arrives before the sending function returns, but NULL may (nothing could be queued), so do
 * not retry from within `done`. Commands for one key are executed and answered in the order in which they
 * were given, except around a redirection or a refusal.
 *
 * Time: a command is answered within REDIS_COMMAND_LIMIT_MS of its last sending and, with redirections and
 * retries, at most REDIS_REQUEST_LIMIT_MS later. While Redis is known to be unreachable the answer is NULL at
 * once; no command is kept for later.
 *
 * Keys decide where a command goes: all keys of one command or script must be in one slot (redis_slot.h).
 *
 * redis_available() is what readiness shows: whether commands, including writes, can be expected to succeed.
 * A server that is loading, out of memory, or a replica is not available, though it may still answer reads.
 * It is a signal, not a gate. It starts false.
 *
 * One thread, that of the loop. Callbacks may send commands; they must not free the client.
 */
#ifndef ROLLCALL_REDIS_REDIS_CLIENT_H
#define ROLLCALL_REDIS_REDIS_CLIENT_H

#include "base/list.h"
#include "base/random.h"
#include "metrics/metrics.h"
#include "net/stream.h"
#include "redis/protocol/redis_args.h"
#include "redis/protocol/redis_problem.h"
#include "redis/protocol/redis_slot.h"
#include "redis/protocol/redis_url.h"
#include "redis/protocol/resp.h"
#include "redis/redis_connection.h"
#include "redis/redis_pending.h"
#include "redis/redis_report.h"
#include "redis/redis_script.h"

#include <stdbool.h>

enum { REDIS_NAME_MAX = 64 };

struct redis_client;
struct redis_cluster;

struct redis_client_options {
    struct loop *loop;
    struct stream_set *streams;
    struct random *random;
    struct metrics *metrics;
    const struct redis_url *url; /* copied */
    struct tls_context *tls;     /* shared; needed for a URL with TLS */
    const char *name;            /* of its connections: the gateway's id; copied. May be NULL */
    struct redis_report *report; /* shared with other clients, outlives them. May be NULL */
};

/* Receives changes of the client's state. The caller owns the memory. */
struct redis_observer {
    struct list place;
    /* Redis became available or unavailable. May be NULL. */
    void (*on_availability_changed)(struct redis_observer *observer, bool available);
    /* Other servers than before serve some slots. May be NULL. */
    void (*on_slots_moved)(struct redis_observer *observer);
    /* A server serves that did not a moment ago: it may be a replica that took over, or have started again, and may have
     * lost what was written last. Its first commands are those that are sent now. May be NULL. */
    void (*on_server_returned)(struct redis_observer *observer);
    /* A key that was read with redis_read_tracked() has changed; SLICE_NONE: any of them may have. May be NULL. */
    void (*on_invalidated)(struct redis_observer *observer, struct slice key);
};

/* Starts to connect; the server need not be up yet. Returns NULL when out of memory. */
struct redis_client *redis_client_make(const struct redis_client_options *options);

/* Ends all connections and answers pending commands with NULL, as it answers every later one. Only while the loop
 * makes no turn, and while the client's users exist. */
void redis_client_close(struct redis_client *client);

/* Closes and frees. Free the client's users (pub/sub, the INFO poll) before it. */
void redis_client_free(struct redis_client **client);

bool redis_available(const struct redis_client *client);

/* What is wrong; REDIS_FINE when nothing is. A cluster can be available and have a problem: a part of it
 * failed. */
enum redis_problem redis_client_problem(const struct redis_client *client);

/* Whether a command for this key would be sent now. */
bool redis_reaches(const struct redis_client *client, struct slice key);

bool redis_is_cluster(const struct redis_client *client);

/* Returns a number for the server that serves the slot now, unlike those of the others until something changes. A script may
 * use keys of several slots of one server. 0: there is none. */
size_t redis_server_of(const struct redis_client *client, uint16_t slot);

/* Reports changes from now on, but not the present state. */
void redis_observe(struct redis_client *client, struct redis_observer *observer);
void redis_unobserve(struct redis_observer *observer);

/* Sends a command; its arguments (redis_args.h) are copied. `key` decides where it goes; SLICE_NONE: to any
 * master. `done` may be NULL. */
void redis_command(struct redis_client *client, struct slice key, struct redis_args args,
                   redis_reply_done done, void *arg);

/* Runs a script; the first key decides where. The script must outlive the reply. */
void redis_eval(struct redis_client *client, const struct redis_script *script,
                struct redis_args keys, struct redis_args arguments, redis_reply_done done,
                void *arg);

/* Sends PUBLISH, or SPUBLISH on a cluster; the reply is the number of receivers on that server. */
void redis_publish(struct redis_client *client, struct slice channel, struct slice message,
                   redis_reply_done done, void *arg);

/* Tracked reads, for values that are kept. A server that tracks reports on_invalidated() when a key that was read so
 * changes, in order with the replies of the same connection (redis_connection.h).
 *
 * redis_tracking() returns a number for the connection that serves the slot now (on a single server, any slot); 0: its
 * server does not track. A kept value is good at a reply of that connection to a command sent after the value was kept (redis_await()),
 * if it was not invalidated, and if the number was the same when the value's read was sent and answered and is so still: else the
 * connection was lost or the slot has moved, and changes went unnoticed. */
uint64_t redis_tracking(const struct redis_client *client, uint16_t slot);

/* Sends a reading command to the server of the slot. A redirection is not followed: its error is the reply. Returns false
 * when the server does not track, or nothing can be sent; then `done` does not run. */
bool redis_read_tracked(struct redis_client *client, uint16_t slot, struct redis_args args,
                        redis_reply_done done, void *arg);

/* Waits for any reply of the server of the slot to a command from now on (redis_connection_await()). Returns false when
 * nothing can be sent; then the barrier's `done` does not run. */
bool redis_await(struct redis_client *client, uint16_t slot, struct redis_barrier *barrier);

/* Sends an EXISTS for a key of the slot to the server of the slot: its reply is an error if the slot has moved away. Returns
 * false when it cannot be sent; then `done` does not run. */
bool redis_confirm(struct redis_client *client, uint16_t slot, struct slice key,
                   redis_reply_done done, void *arg);

/* The masters known now, numbered from 0 until something changes: for commands about servers rather than
 * keys (INFO, SCAN). */
size_t redis_master_count(const struct redis_client *client);
void redis_command_on(struct redis_client *client, size_t master, struct redis_args args,
                      redis_reply_done done, void *arg);

/* For pub/sub, which has connections of its own. */
struct redis_cluster *redis_client_cluster(struct redis_client *client);

#endif
