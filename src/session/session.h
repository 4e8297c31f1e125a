/*
 * A session is an authenticated user on a connection: the connection itself, its place in routing, its
 * lease, its limits and its requests under way.
 *
 *   token verified, lease registered ──session_open()──► commands are dispatched (dispatch.h)
 *   connection leaves OPEN ──► lease closed, routes and subscriptions gone, requests orphaned
 *   socket gone ──► freed
 *
 * Memory: one allocation, sized for the device id. Nothing else is held while it is idle.
 *
 * session.c has its life and what goes in and out, session_lease.c keeps its lease and its user's activity.
 */
#ifndef ROLLCALL_SESSION_SESSION_H
#define ROLLCALL_SESSION_SESSION_H

#include "auth/identity.h"
#include "base/container.h"
#include "connection/connection.h"
#include "connection/rate_limit.h"
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
    struct missed_messages
        *missed; /* chats' messages that found no room; NULL as long as all did */
    struct pending_reply *requests; /* answers that are still owed */
    int64_t active_at_ms;
    int64_t lifetime_ends_at_ms;
    int64_t renew_at_ms;
    uint32_t request_count;
    bool idle;
    uint8_t device_len;
    char device[];
};

static inline struct slice session_user(const struct session *session)
{
    return route_user(session->endpoint.route);
}

/* The session that stands in this place among its user's (struct route). */
static inline struct session *session_on_route(struct list *place)
{
    return CONTAINER_OF(CONTAINER_OF(place, struct endpoint, of_route), struct session, endpoint);
}

/* Takes over an HTTP connection whose lease is registered and greets the client. `greeting` is the 101
 * answer. NULL when memory is short; the stream is then still the caller's, and so is the lease. */
struct session *session_open(struct session_context *context, struct stream *from,
                             struct slice greeting, const struct identity *identity,
                             const struct ulid *conn_id, struct slice device_id);

/*
 * The same in parts, for an owner whose connection is there before its user is known, and may outlive
 * it: session_init() once; session_attach() and session_begin() when a user has come; session_detach()
 * when they go or the connection leaves OPEN.
 */
void session_init(struct session *session, struct session_context *context);

/* Puts the session on its user's route. There must be room for the device id. False: memory is short. */
bool session_attach(struct session *session, const struct identity *identity,
                    const struct ulid *conn_id, struct slice device_id);

/* Greets the client; from now on it is counted, limited and told about calls. */
void session_begin(struct session *session, const struct identity *identity);

/* Closes the lease, takes it off its route, orphans its requests. */
void session_detach(struct session *session);

/* The lease was registered a moment ago, and its user is there. Part of session_attach(). */
void session_start_lease(struct session *session);

/* A command that was decoded. */
void session_receive(struct session *session, const struct message *message);

/* For its connection_owner. */
int64_t session_tick(struct connection *connection);
bool session_owes(const struct connection *connection);
void session_recovered(struct connection *connection);
size_t session_sync_from(const struct connection *connection, const struct sync_point **points);
struct slice session_user_of(const struct connection *connection);

/* The user did something (or is known to do nothing) on this device. */
void session_set_activity(struct session *session, enum activity activity);

/* The token is good until then (wall clock). */
void session_limit_token(struct session *session, int64_t expires_at_wall_ms);

/* router->deliver */
void session_deliver(struct endpoint *endpoint, struct broadcast *broadcast, uint64_t key);

/* presence_plane->lost: the store forgot a lease of ours; register it again. */
void session_lease_lost(void *arg, struct slice user_id, const struct ulid *conn_id);

/* presence_plane->known_since: when the first of the user's connections here was made. */
int64_t session_known_since(void *arg, struct slice user_id);

/* presence_plane->unrenewed: tries again soon. */
void session_renew_again(void *arg, struct slice user_id, const struct ulid *conn_id);

/* The store forgot this gateway: every lease is renewed soon, and opened again where it was lost. Paced. */
void session_renew_all(struct session_context *context);

/* The session of this connection id on this gateway, if the user is known; NULL: none. */
struct session *session_find(struct session_context *context, struct slice user_id,
                             const struct ulid *conn_id);

/* delivery.is_connection */
bool session_is_connection(const struct endpoint *endpoint, const struct ulid *conn_id);

/* delivery.is_device */
bool session_is_device(const struct endpoint *endpoint, struct slice device_id);

/* call_plane.is_connected; `arg` is the handler context. */
bool session_is_connected(void *arg, struct slice user_id, const struct ulid *conn_id);

/* The device as calls know it. Borrows from the session. */
struct call_device session_device(const struct session *session);

/* Refuses a command: the error names its id and, of a send_message, its client_message_id. A
 * `retry_after_ms` < 0 is not said. */
void session_refuse(struct session *session, const struct message *command, enum error_code code,
                    const char *text, int64_t retry_after_ms);

/* Sends an error that answers `id` (SLICE_NONE: nothing in particular). */
void session_error(struct session *session, struct slice id, enum error_code code,
                   const char *text);

#endif
