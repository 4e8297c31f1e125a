/*
 * The messages that the load generator sends to each kind of server, and how it recognises the answers.
 *
 * A dialect is a table of texts. The jobs are the same for all: become ready, send a heartbeat and
 * wait for its answer, watch a user and wait for a change. `native` drives Rollcall and the ws peer,
 * `socketio` drives Rollcall's Socket.IO dialect and the Socket.IO peer, `floor` drives the floor.
 *
 * An answer is recognised by a text that it contains, because JSON fields have no order.
 */
#ifndef ROLLCALL_BENCH_DIALECT_H
#define ROLLCALL_BENCH_DIALECT_H

#include <stdbool.h>
#include <stddef.h>

/* The user that all clients watch in the fan-out job. */
#define DIALECT_STAR "star"

struct dialect {
    const char *name;
    const char *path;

    /* Reaching readiness: without `ready` the upgrade itself is enough. A text that starts with
     * `opening` is answered with the token between `opening_reply` and `opening_reply_end`; one
     * that contains `ready` ends the handshake. */
    const char *opening;
    const char *opening_reply;
    const char *opening_reply_end;
    const char *ready;

    /* The start of a message that a server may send once a client is ready; NULL: none. */
    const char *greeting;

    /* A text that is exactly `probe` is answered with `probe_reply`; NULL if there is none. */
    const char *probe;
    const char *probe_reply;

    const char *heartbeat;
    const char *heartbeat_active;
    const char *heartbeat_reply;

    /* Watching the star. NULL `subscribe`: every client receives everything. */
    const char *subscribe;
    const char *subscribed;
    const char *changed;

    /* The message that makes the server announce the star; NULL: the star connects and disconnects instead. */
    const char *announcement;
};

/* Returns NULL if no dialect has that name. */
const struct dialect *dialect_find(const char *name);

bool dialect_contains(const char *text, size_t count, const char *part);

bool dialect_starts_with(const char *text, size_t count, const char *part);

#endif
