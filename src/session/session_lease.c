/* A session's lease and its renewal, and its user's activity, which the lease records. */
#include "base/container.h"
#include "log/log.h"
#include "presence/sync_required.h"
#include "session/session.h"

#include <stdlib.h>
#include <string.h>

enum {
    /* of the window; the rest is for a store that is slow or unavailable */
    LEASE_RENEWAL_PERCENT = 75,
    LEASE_LATE_MS = 100,
    LEASE_RETRY_MS = 500,
    /* when all sessions need a renewal before its time */
    LEASES_RETRIED_PER_SECOND = 8000,
    SESSIONS_COMPARED_MAX = 256,
};

/* The lease as the store should record it. Borrows from the session. */
static struct lease current_session_lease(const struct session *session)
{
    const struct clock *clock = &session->context->loop->clock;
    return (struct lease){
        .conn_id = session->conn_id,
        .user_id = session_user(session),
        .device_id = {session->device, session->device_len},
        .gateway_id = session->context->gateway_id,
        .connected_at_ms = ulid_time_ms(&session->conn_id),
        .last_heartbeat_ms = clock->wall_ms - (clock->now_ms - session->connection.last_heard_ms),
        .idle = session->idle,
    };
}

/* Looks at SESSIONS_COMPARED_MAX of the user's sessions at most, so that an open stays cheap whatever the limit is. */
void session_limit_lease(const struct session_context *context, struct lease *lease)
{
    const struct clock *clock = &context->loop->clock;
    const struct route *route = router_find(context->router, lease->user_id);
    const struct session *most_silent = NULL;
    struct list *at = route ? route->endpoints.next : NULL;
    lease->user_leases_max = context->config->limits.connections_per_user;
    if (lease->user_leases_max == 0)
        return;
    for (size_t i = 0; at && at != &route->endpoints && i < SESSIONS_COMPARED_MAX; i++) {
        const struct session *session = session_on_route(at);
        if (!ulid_equal(&session->conn_id, &lease->conn_id) &&
            (!most_silent ||
             session->connection.last_heard_ms < most_silent->connection.last_heard_ms))
            most_silent = session;
        at = at->next;
    }
    if (!most_silent)
        return;
    lease->silent_conn_id = most_silent->conn_id;
    lease->silent_heard_ms =
        clock->wall_ms - (clock->now_ms - most_silent->connection.last_heard_ms);
}

/* ---- activity ---- */

static void set_session_idle(struct session *session, bool idle)
{
    if (session->idle == idle)
        return;
    session->idle = idle;
    presence_set_idle(session->context->presence, session_user(session), &session->conn_id, idle);
}

void session_set_activity(struct session *session, enum activity activity)
{
    if (activity == ACTIVITY_UNSPECIFIED)
        return;
    if (activity == ACTIVITY_ACTIVE) {
        session->active_at_ms = session->context->loop->clock.now_ms;
        connection_wake_at(&session->connection,
                           session->active_at_ms + session->context->config->presence.idle_ms);
    }
    set_session_idle(session, activity == ACTIVITY_IDLE);
}

/* ---- renewals ---- */

static int64_t lease_renewal_period_ms(const struct config *config)
{
    return config->presence.expiry_window_ms * LEASE_RENEWAL_PERCENT / 100;
}

void session_start_lease(struct session *session)
{
    session->idle = false;
    session->active_at_ms = session->context->loop->clock.now_ms;
    session->renew_at_ms =
        session->active_at_ms + lease_renewal_period_ms(session->context->config);
}

/* Renews together with others, unless it is late: then the rest of the lease may be too short. */
static void renew_session_lease(struct session *session, int64_t now_ms)
{
    struct session_context *context = session->context;
    struct lease lease = current_session_lease(session);
    bool late = now_ms - session->renew_at_ms > LEASE_LATE_MS;
    session->renew_at_ms = now_ms + lease_renewal_period_ms(context->config);
    presence_renew(context->presence, lease.user_id, &lease.conn_id, lease.last_heartbeat_ms);
    if (late)
        presence_flush(context->presence);
    else
        session_context_flush_soon(context);
}

/* A connection that has been silent for the unhealthy time is renewed once more, if it was heard after the last
 * renewal, so that its lease lasts at least a window from its last sign of life; after that the lease runs out.
 * The next sign of life makes the timer fire at once. */
int64_t session_on_tick(struct connection *connection)
{
    struct session *session = session_of_connection(connection);
    const struct config *config = session->context->config;
    int64_t now_ms = session->context->loop->clock.now_ms;
    int64_t idle_at_ms = session->active_at_ms + config->presence.idle_ms;
    int64_t renewed_at_ms = session->renew_at_ms - lease_renewal_period_ms(config);
    bool healthy = connection_healthy(connection, now_ms);
    if (healthy ? now_ms >= session->renew_at_ms : connection->last_heard_ms > renewed_at_ms)
        renew_session_lease(session, now_ms);
    if (now_ms >= idle_at_ms)
        set_session_idle(session, true);
    int64_t renew_at_ms = healthy ? session->renew_at_ms : INT64_MAX;
    return session->idle || renew_at_ms < idle_at_ms ? renew_at_ms : idle_at_ms;
}

/* ---- after the store lost leases, or was unavailable ---- */

/* Renews before its time, at a random moment, so that a store that has just come back is not overloaded. */
static void renew_session_lease_soon(struct session *session)
{
    struct session_context *context = session->context;
    uint64_t spread_ms = context->session_count * 1000 / LEASES_RETRIED_PER_SECOND;
    int64_t soon_ms = context->loop->clock.now_ms + LEASE_RETRY_MS +
                      (int64_t)random_below(context->random, spread_ms + 1);
    if (soon_ms < session->renew_at_ms)
        session->renew_at_ms = soon_ms;
    connection_wake_at(&session->connection, session->renew_at_ms);
}

void session_on_lease_unrenewed(void *arg, struct slice user_id, const struct ulid *conn_id)
{
    struct session *session = session_find(arg, user_id, conn_id);
    if (session)
        renew_session_lease_soon(session);
}

static void renew_leases_of_route(struct table_node *node, void *arg)
{
    struct route *route = CONTAINER_OF(node, struct route, node);
    (void)arg;
    for (struct list *at = route->endpoints.next; at != &route->endpoints; at = at->next)
        renew_session_lease_soon(session_on_route(at));
}

void session_renew_all(struct session_context *context)
{
    table_each(&context->router->routes, renew_leases_of_route, NULL);
}

/* A lost lease that is being opened again. */
struct lease_return {
    struct session_context *context;
    struct ulid conn_id;
    size_t user_id_len;
    char user_id[USER_ID_BYTES_MAX];
};

/* The device had no route for a while. After an outage everybody is told to sync anyway. */
static void on_lease_reopened(void *arg, bool registered)
{
    struct lease_return lost = *(struct lease_return *)arg;
    free(arg);
    if (!registered) {
        log_warn("lease_not_registered", "reason=state_store_unavailable");
        return;
    }
    struct session_context *context = lost.context;
    struct session *session =
        session_find(context, (struct slice){lost.user_id, lost.user_id_len}, &lost.conn_id);
    if (session && !context->presence->resync.needs_syncs)
        sync_required_send(context->router, context->metrics, &session->endpoint, SYNC_LEASE_LOST);
}

void session_on_lease_lost(void *arg, struct slice user_id, const struct ulid *conn_id)
{
    struct session_context *context = arg;
    struct session *session = session_find(context, user_id, conn_id);
    if (!session)
        return;
    renew_session_lease_soon(session); /* which also checks whether the store took it */
    struct lease_return *lost = malloc(sizeof(*lost));
    if (!lost)
        return;
    *lost =
        (struct lease_return){.context = context, .conn_id = *conn_id, .user_id_len = user_id.len};
    memcpy(lost->user_id, user_id.data, user_id.len);
    struct lease lease = current_session_lease(session);
    lease.known_since_ms = lease.connected_at_ms;
    session_limit_lease(context, &lease);
    presence_open(context->presence, &lease, on_lease_reopened, lost);
    struct call_device device = session_device(session);
    call_plane_attach(context->calls, &device); /* the lost device may have been in a call */
}

int64_t session_known_since(void *arg, struct slice user_id)
{
    const struct session_context *context = arg;
    const struct route *route = router_find(context->router, user_id);
    if (!route)
        return 0;
    return ulid_time_ms(&session_on_route(route->endpoints.next)->conn_id);
}
