/*
 * A session is an authenticated user on a connection: the connection itself, its endpoint in routing, its
 * lease, its limits and its pending replies.
 *
 *   token verified, lease registered ──session_open()──► commands are dispatched (dispatch.h)
 *   connection leaves OPEN ──► lease closed, route and subscriptions removed, pending replies orphaned
 *   socket closed ──► freed
 *
 * Memory: one allocation, sized for the device id. An idle session holds nothing else.
 *
 * session.c has the session's life, input and output; session_lease.c its lease and its user's activity.
 */
#ifndef ROLLCALL_SESSION_SESSION_H
#define ROLLCALL_SESSION_SESSION_H

#include "auth/identity.h"
#include "base/container.h"
#include "base/rate_limit.h"
#include "connection/connection.h"
#include "routing/router.h"
#include "session/session_context.h"

struct missed_messages;
struct pending_reply;

struct session {
    struct connection connection;
    struct endpoint endpoint;
    struct session_context *context;
    struct ulid conn_id;
    struct rate_limit commands;
    struct rate_limit messages;
    struct missed_messages *missed; /* NULL until a chat message could not be queued */
    struct pending_reply *pending_replies;
    int64_t active_at_ms;
    int64_t lifetime_ends_at_ms;
    int64_t renew_at_ms;
    uint32_t pending_reply_count;
    uint32_t issued_at_s; /* of the token (session_token.h); 0: it does not say */
    uint32_t key_tag;     /* of the key that verified it */
    bool idle;
    uint8_t device_len;
    char device[];
};

static inline struct slice session_user(const struct session *session)
{
    return route_user(session->endpoint.route);
}

/* The session of a connection whose owner is a session. */
static inline struct session *session_of_connection(struct connection *connection)
{
    return CONTAINER_OF(connection, struct session, connection);
}

/* The session of an item of `endpoints` in struct route. */
static inline struct session *session_on_route(struct list *item)
{
    return CONTAINER_OF(CONTAINER_OF(item, struct endpoint, of_route), struct session, endpoint);
}

/* Takes over an HTTP connection whose lease is registered and greets the client, by its `display_name` if it has one
 * (SLICE_NONE: none). `greeting` is the 101 response. Returns NULL when out of memory; the caller then still owns the stream and the lease. */
struct session *session_open(struct session_context *context, struct stream *from,
                             struct slice greeting, const struct identity *identity,
                             const struct ulid *conn_id, struct slice device_id,
                             struct slice display_name);

/*
 * The same in steps, for an owner whose connection exists before its user is known and may outlive the
 * session: session_init() once; session_attach() and session_begin() when a user is admitted;
 * session_detach() when the user leaves or the connection leaves OPEN.
 */
void session_init(struct session *session, struct session_context *context);

/* Adds the session to its user's route. `device` must have space for the device id. Returns false when out of
 * memory. */
bool session_attach(struct session *session, const struct identity *identity,
                    const struct ulid *conn_id, struct slice device_id);

/* Greets the client; from now on the session is counted, limited and attached to its calls. */
void session_begin(struct session *session, const struct identity *identity,
                   struct slice display_name);

/* Closes the lease, removes the session from its route, orphans its pending replies. */
void session_detach(struct session *session);

/* Starts to keep a lease that was registered a moment ago, with an active user. Part of session_attach(). */
void session_start_lease(struct session *session);

/* Receives a decoded command. */
void session_receive(struct session *session, const struct message *message);

/* Hooks for the connection_owner of a session. */
int64_t session_on_tick(struct connection *connection);
bool session_owes_replies(const struct connection *connection);
void session_on_caught_up(struct connection *connection);
size_t session_sync_from(const struct connection *connection, const struct sync_point **points);
struct slice session_user_of(const struct connection *connection);

/* Notes whether the user is active on this device. */
void session_set_activity(struct session *session, enum activity activity);

/* For router_init(): queues an event for the session of an endpoint. */
void session_deliver(struct endpoint *endpoint, struct broadcast *broadcast, uint64_t key);

/* Hook of the presence plane: the store lost a lease of ours; opens it again. */
void session_on_lease_lost(void *arg, struct slice user_id, const struct ulid *conn_id);

/* Hook of the presence plane: when the user's first connection here was made. */
int64_t session_known_since(void *arg, struct slice user_id);

/* Sets how many leases the user may have, and which connection of the user to this gateway has been silent longest. */
void session_limit_lease(const struct session_context *context, struct lease *lease);

/* Hook of the presence plane: a lease could not be renewed; tries again soon. */
void session_on_lease_unrenewed(void *arg, struct slice user_id, const struct ulid *conn_id);

/* The store lost this gateway: renews every lease soon, paced, and opens again those that were lost. */
void session_renew_all(struct session_context *context);

/* The user's session with this connection id on this gateway; NULL: none. */
struct session *session_find(struct session_context *context, struct slice user_id,
                             const struct ulid *conn_id);

/* For delivery_receiver.is_connection. */
bool session_is_connection(const struct endpoint *endpoint, const struct ulid *conn_id);

/* For delivery_receiver.is_device. */
bool session_is_device(const struct endpoint *endpoint, struct slice device_id);

/* For call_plane.is_connected; `arg` is the session context. */
bool session_is_connected(void *arg, struct slice user_id, const struct ulid *conn_id);

/* The device for the call plane. Borrows from the session. */
struct call_device session_device(const struct session *session);

/* Refuses a command: the error names its id and, for send_message, its client_message_id. A negative
 * `retry_after_ms` is left out. */
void session_refuse(struct session *session, const struct message *command, enum error_code code,
                    const char *text, int64_t retry_after_ms);

/* Refuses a command that is beyond a limit; a client that keeps on is throttled and closed. */
void session_refuse_rate(struct session *session, const struct message *command, const char *text,
                         int64_t retry_after_ms);

/* Replies ok to the command `id`. */
void session_confirm(struct session *session, struct slice id);

/* Sends an error in reply to `id` (SLICE_NONE: to no command). */
void session_error(struct session *session, struct slice id, enum error_code code,
                   const char *text);

#endif
