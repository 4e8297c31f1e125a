/*
 * The Socket.IO side of one worker. app/gateway/gateway_compose.c makes it and connects it to the API by `transport` and to
 * the sessions by `hooks`, the only way in which those see Socket.IO.
 *
 *   HTTP request ──► api_routes.c ──api_transport.routes──► socketio_resource.c
 *   event for a session ──► session_deliver() ──session_hooks──► socketio_recovery.c
 *
 * One thread, that of the worker's loop.
 */
#ifndef ROLLCALL_SOCKETIO_SOCKETIO_CONTEXT_H
#define ROLLCALL_SOCKETIO_SOCKETIO_CONTEXT_H

#include "api/api_context.h"
#include "base/container.h"
#include "base/list.h"
#include "base/table.h"
#include "session/session_context.h"
#include "socketio/engine.h"

struct handover_board;
struct recovery_store;

enum { UPGRADED_SIDS_MAX = 64 };

/* The ids of the last Engine.IO sessions that upgraded; a new one replaces the oldest. */
struct upgraded_sids {
    char sids[UPGRADED_SIDS_MAX][ENGINE_SID_LEN];
    size_t next;
};

struct socketio_context {
    struct api_transport transport;
    struct session_hooks hooks;
    struct api_context *api;
    struct session_context *sessions;
    struct recovery_store *recovery; /* NULL: cut sessions are not kept */
    struct handover_board *board;    /* the workers of the process; NULL: this one alone */
    struct engine_place place;       /* of this worker */
    struct table polling;            /* clients without a WebSocket, by sid (polling.h) */
    struct upgraded_sids upgraded;   /* clients that had one, and upgraded lately */
    struct list waiting;             /* clients that are not connected yet (socketio_join.h) */
    struct list joining;             /* clients that are being admitted */
    size_t waiting_count;            /* in both lists */
};

/* Connects the context to the API and the sessions. The caller sets `recovery`, `board` and `place`. Returns false
 * when out of memory. */
bool socketio_context_init(struct socketio_context *context, struct api_context *api,
                           struct session_context *sessions, uint64_t hash_seed);

/* Call it after the last connection is gone. */
void socketio_context_free(struct socketio_context *context);

/* Sets the limits of Socket.IO's dialects. After connection_context_init(). */
void socketio_context_limit(struct connection_context *connections);

static inline struct socketio_context *socketio_context_of(const struct exchange *exchange)
{
    return CONTAINER_OF(api_context_of(exchange)->transport, struct socketio_context, transport);
}

static inline struct socketio_context *socketio_context_of_sessions(
    const struct session_context *sessions)
{
    return CONTAINER_OF(sessions->hooks, struct socketio_context, hooks);
}

#endif
