/* heartbeat, subscribe_presence, unsubscribe_presence, query_presence */
#include "presence/presence_query.h"
#include "presence/subscription.h"
#include "session/dispatch.h"
#include "session/pending_reply.h"

/* The latency of one heartbeat in so many is measured, because reading the clock costs time. */
enum { HEARTBEAT_SAMPLING = 64 };

void handle_heartbeat(struct session *session, const struct message *message)
{
    struct session_context *context = session->context;
    int64_t wall_ms = context->loop->clock.wall_ms;
    session_set_activity(session, message->heartbeat);
    if (message->id.data) {
        connection_send(&session->connection, &(struct message){.type = MESSAGE_HEARTBEAT_ACK,
                                                                .id = message->id,
                                                                .server_time_ms = wall_ms});
    } else {
        struct blob *ack =
            encoder_heartbeat_ack(context->encoder, session->connection.dialect, wall_ms);
        if (ack)
            connection_queue(&session->connection, ack, 0);
        else
            connection_fail(&session->connection);
    }
    metrics_count(context->metrics, METRIC_HEARTBEATS);
    if (context->metrics->values[METRIC_HEARTBEATS] % HEARTBEAT_SAMPLING == 0)
        metrics_latency(context->metrics, LATENCY_HEARTBEAT, loop_turn_us(context->loop));
}

/* Returns true after refusing a command that names too many users. */
static bool refuse_too_many_users(struct session *session, const struct message *message)
{
    if (message->users.count <= session->context->config->presence.max_query_users)
        return false;
    session_error(session, message->id, ERROR_INVALID_MESSAGE, "user_ids has too many items");
    return true;
}

static void on_session_presence_read(void *arg, bool ok, const struct presence *presences,
                                     size_t count)
{
    struct pending_reply *pending = arg;
    if (ok && pending->session)
        subscription_told(pending->session->context->presence, &pending->session->endpoint,
                          presences, count);
    if (ok)
        pending_reply_send(&pending, &(struct message){.type = MESSAGE_PRESENCE_SNAPSHOT,
                                                       .snapshot = {presences, count}});
    else
        pending_reply_error(&pending, ERROR_SERVICE_UNAVAILABLE,
                            "privacy settings cannot be read now");
}

/* Sets the views before the state is read, so that no change is lost between the two. */
static void on_subscription_views_decided(void *arg, const struct slice *users,
                                          const struct privacy_decision *decisions, size_t count)
{
    struct pending_reply *pending = arg;
    if (pending->session)
        subscription_decide(&pending->session->endpoint, users, decisions, count);
}

/* A command that failed leaves no subscriptions behind, unless another pending command of the client may need the
 * same ones. */
static void withdraw_subscriptions(struct pending_reply *failed, const struct slice *users,
                                   size_t count)
{
    struct session *session = failed->session;
    for (const struct pending_reply *at = session->pending_replies; at; at = at->next)
        if (at != failed && at->type == MESSAGE_SUBSCRIBE_PRESENCE)
            return;
    subscription_withdraw(session->context->presence, &session->endpoint, users, count);
}

static void on_subscription_views_undecided(void *arg, const struct slice *users, size_t count)
{
    struct pending_reply *pending = arg;
    if (pending->session)
        withdraw_subscriptions(pending, users, count);
}

static void query_presence_for_session(struct session *session, struct pending_reply *pending,
                                       const struct id_list *users, bool subscribing)
{
    struct presence_query_handler handler = {
        .on_decided = subscribing ? on_subscription_views_decided : NULL,
        .on_undecided = subscribing ? on_subscription_views_undecided : NULL,
        .done = on_session_presence_read,
        .arg = pending};
    presence_query(session->context->presence, session_user(session), users->ids, users->count,
                   &handler);
}

void handle_subscribe_presence(struct session *session, const struct message *message)
{
    struct presence_plane *plane = session->context->presence;
    const struct id_list *users = &message->users;
    if (refuse_too_many_users(session, message))
        return;
    if (subscription_count_with(&session->endpoint, users->ids, users->count) >
        plane->config->presence.max_subscriptions) {
        session_error(session, message->id, ERROR_SUBSCRIPTION_LIMIT,
                      "this connection would hold too many presence subscriptions");
        return;
    }
    struct pending_reply *pending = pending_reply_open(session, message);
    if (!pending)
        return;
    if (subscription_add(plane, &session->endpoint, users->ids, users->count)) {
        query_presence_for_session(session, pending, users, true);
        return;
    }
    withdraw_subscriptions(pending, users->ids, users->count);
    pending_reply_error(&pending, ERROR_SERVER_BUSY, "out of memory");
}

void handle_unsubscribe_presence(struct session *session, const struct message *message)
{
    subscription_remove(session->context->presence, &session->endpoint, message->users.ids,
                        message->users.count);
    session_confirm(session, message->id);
}

void handle_query_presence(struct session *session, const struct message *message)
{
    if (refuse_too_many_users(session, message))
        return;
    struct pending_reply *pending = pending_reply_open(session, message);
    if (pending)
        query_presence_for_session(session, pending, &message->users, false);
}
