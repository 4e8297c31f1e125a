/* What handlers and resources of one worker work with. Made by gateway.c, borrowed by everybody else. */
#ifndef ROLLCALL_SESSION_SESSION_CONTEXT_H
#define ROLLCALL_SESSION_SESSION_CONTEXT_H

#include "auth/verifier.h"
#include "base/list.h"
#include "calls/call_plane.h"
#include "chats/chat_plane.h"
#include "config/config.h"
#include "connection/connection.h"
#include "ledger/ledger.h"
#include "messages/message_plane.h"
#include "presence/presence_plane.h"
#include "protocol/fields.h"
#include "routing/delivery.h"
#include "routing/router.h"

struct recovery_store;

struct session_context {
    const struct config *config;
    struct loop *loop;
    struct random *random;
    struct metrics *metrics;
    struct connection_context connections;
    struct encoder *encoder;
    struct router *router;
    struct delivery *delivery;
    struct presence_plane *presence;
    struct call_plane *calls;
    struct chat_plane *chats;
    struct typing_plane *typing;
    struct ledger_client *ledger;
    struct message_plane *messages;
    struct recovery_store *recovery; /* NULL: cut Socket.IO sessions are not kept */
    struct verifier *verifier;
    struct loop_task verify;  /* runs the verifier while it has work */
    struct wheel_timer flush; /* sends collected renewals */
    struct fields_scratch scratch;
    struct slice gateway_id;
    struct list waiting; /* Socket.IO clients that are not connected yet (socketio_join.h) */
    struct list joining; /* those of them that are about to be */
    size_t waiting_count;
    size_t session_count;
    bool draining;
};

/* Hands a token to the verifier and makes sure it runs. As verifier_submit(). */
bool session_context_verify(struct session_context *context, struct slice token,
                            void (*done)(void *arg, enum jwt_result result,
                                         const struct identity *identity),
                            void *arg);

/* Sends collected renewals when some more have had time to join them, if that is not due already. */
void session_context_flush_soon(struct session_context *context);

/* Sets up the task, the timer and the list. */
void session_context_init_tasks(struct session_context *context);

#endif
