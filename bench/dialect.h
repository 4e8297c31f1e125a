/*
 * What the load generator says to each kind of server, and how it knows the answers.
 *
 * A dialect is a table of texts. The jobs are the same for all: become ready, send a heartbeat and
 * see its answer, watch a user and see it change. `native` drives Rollcall and the ws peer,
 * `socketio` drives Rollcall's Socket.IO door and the Socket.IO peer, `floor` drives the floor.
 *
 * An answer is known by a text it contains: JSON fields have no order.
 */
#ifndef ROLLCALL_BENCH_DIALECT_H
#define ROLLCALL_BENCH_DIALECT_H

#include <stdbool.h>
#include <stddef.h>

/* The user that everybody watches in the fan-out job. */
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

    /* Begins what a server may say besides once one is ready, and nobody asked for; NULL: nothing. */
    const char *greeting;

    /* A text that is exactly `probe` is answered with `probe_reply`; NULL if there is none. */
    const char *probe;
    const char *probe_reply;

    const char *heartbeat;
    const char *heartbeat_active;
    const char *heartbeat_reply;

    /* Watching the star. NULL `subscribe`: everyone hears everything. */
    const char *subscribe;
    const char *subscribed;
    const char *changed;

    /* What the star says to be heard; NULL: it connects and disconnects instead. */
    const char *announcement;
};

/* NULL if there is none of that name. */
const struct dialect *dialect_find(const char *name);

bool dialect_contains(const char *text, size_t count, const char *part);

bool dialect_starts_with(const char *text, size_t count, const char *part);

#endif
