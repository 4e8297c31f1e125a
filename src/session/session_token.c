/* The token of a session: until when it holds, and what ends it before that. */
#include "session/session_token.h"

enum { KEY_REMOVED_ENDS_PER_MS = 50 };

void session_take_token(struct session *session, const struct identity *identity)
{
    const struct clock *clock = &session->context->loop->clock;
    session->key_tag = identity->key_tag;
    session->issued_at_s = identity->issued_at_s < UINT32_MAX ? (uint32_t)identity->issued_at_s : 0;
    connection_unlimit(&session->connection, CLOSING_TOKEN_EXPIRED);
    connection_limit(&session->connection, CLOSING_MAX_LIFETIME, session->lifetime_ends_at_ms);
    connection_limit(&session->connection, CLOSING_TOKEN_EXPIRED,
                     clock->now_ms + identity->expires_at_wall_ms - clock->wall_ms);
}

void session_end_revoked(struct session_context *context, struct slice user_id,
                         int64_t revoked_at_s)
{
    struct route *route = router_find(context->router, user_id);
    struct list *at = route ? route->endpoints.next : NULL;
    while (at && at != &route->endpoints) {
        struct session *session = session_on_route(at);
        at = at->next == &route->endpoints ? NULL : at->next; /* the route goes with its last one */
        if (session->issued_at_s <= revoked_at_s)
            connection_end(&session->connection, CLOSING_TOKEN_REVOKED, -1);
    }
}

struct key_removal {
    const struct session_context *context;
    int64_t ended;
};

/* The connection's timer ends it, so that many are spread over several turns. */
static void end_route_without_key(struct table_node *node, void *arg)
{
    struct key_removal *removal = arg;
    const struct session_context *context = removal->context;
    struct route *route = CONTAINER_OF(node, struct route, node);
    for (struct list *at = route->endpoints.next; at != &route->endpoints; at = at->next) {
        struct session *session = session_on_route(at);
        if (key_set_has_tag(context->verifier->keys, session->key_tag))
            continue;
        connection_limit(&session->connection, CLOSING_KEY_REMOVED,
                         context->loop->clock.now_ms + removal->ended / KEY_REMOVED_ENDS_PER_MS);
        removal->ended++;
    }
}

void session_end_without_key(struct session_context *context)
{
    struct key_removal removal = {.context = context};
    table_each(&context->router->routes, end_route_without_key, &removal);
}
