/* What command handlers and REST resources of one worker use. app/ makes it; everything else borrows it. */
#ifndef ROLLCALL_SESSION_SESSION_CONTEXT_H
#define ROLLCALL_SESSION_SESSION_CONTEXT_H

#include "auth/verifier.h"
#include "calls/call_plane.h"
#include "chats/chat_plane.h"
#include "config/config.h"
#include "connection/connection.h"
#include "hooks/event_hook.h"
#include "ledger/ledger.h"
#include "limits/budget.h"
#include "messages/message_plane.h"
#include "presence/presence_plane.h"
#include "protocol/fields.h"
#include "routing/delivery.h"
#include "routing/router.h"

struct session;

/* A session has begun, or is about to end. */
typedef void (*session_change_hook)(void *arg, const struct session *session, bool is_connected);

/* Hooks of a dialect that keeps events (`keeps_events`) or whose connections outlive their sessions. app/ fills
 * them in. */
struct session_hooks {
    /* Whether the session was sent this event lately, so that a second copy is dropped. */
    bool (*has_event)(const struct session *session, uint64_t event_id);
    /* The session was sent an event that it is owed. `text` is the event's blob in the text of the dialect;
     * NULL: it could not be queued. */
    void (*on_event)(struct session *session, struct blob *text, uint64_t event_id);
    /* The user leaves: ends the session; the connection stays. */
    void (*leave)(struct session *session);
};

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
    struct verifier *verifier;
    struct loop_task verify;  /* runs the verifier while it has work */
    size_t leases_opening;    /* that the state store has not answered yet */
    struct wheel_timer flush; /* sends collected renewals */
    struct fields_scratch scratch;
    struct budgets budgets;   /* of users */
    struct rate command_rate; /* of a connection */
    struct rate message_rate;
    struct slice gateway_id;
    struct session_hooks *hooks;   /* NULL: no dialect needs any */
    struct hook *connect_hook;     /* NULL: the application is not asked about connections */
    struct event_hook *event_hook; /* NULL: nor about events */
    session_change_hook on_change; /* NULL: nobody asks */
    void *on_change_arg;
    size_t session_count;
    bool draining;
};

/* While this many leases are being opened no further token is verified, so that after the loss of a gateway the store gets the
 * connects of all its clients in a queue that it can answer in time, before renewals that wait behind them. */
enum { SESSION_LEASES_OPENING_MAX = 64 };

/* A lease is being opened; the store has answered. */
void session_context_note_opening(struct session_context *context);
void session_context_note_opened(struct session_context *context);

/* Hands a token to the verifier and makes sure that it runs. Same as verifier_submit(). */
bool session_context_verify(struct session_context *context, struct slice token, verifier_done done,
                            void *arg);

/* Makes collected renewals be sent soon, after some time for more to join them. */
void session_context_flush_soon(struct session_context *context);

/* What this gateway knows of users to whom something is delivered: its own connections, and their last known presence. */
struct delivery_locals session_context_locals(struct session_context *context);

/* Sets up the task, the timer and the rates; config and metrics are set. */
void session_context_init(struct session_context *context);

#endif
