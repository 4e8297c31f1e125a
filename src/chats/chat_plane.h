/*
 * Open chats: the chats that connections show to their users.
 *
 *   closed ──chat_begin()──► PENDING ──member: chat_confirm()──► OPEN ──chat_close(), removal──► closed
 *
 * An endpoint with a chat open is subscribed to the chat's two topics (routing/chat_topic.h). It subscribes
 * while PENDING already, before its membership and the snapshot are read, so that no event falls in
 * between; but only an OPEN endpoint receives events. A member who is removed loses the chat on all
 * gateways at once, also while PENDING: a membership that was read before the removal confirms nothing.
 *
 * Presence changes of members arrive on the chat's topic and reach each endpoint once (routing/recent.h),
 * unless the endpoint has a subscription of its own.
 *
 * One per worker, on its thread. The router owns the subscriptions; the plane keeps nothing else.
 */
#ifndef ROLLCALL_CHATS_CHAT_PLANE_H
#define ROLLCALL_CHATS_CHAT_PLANE_H

#include "config/config.h"
#include "metrics/metrics.h"
#include "routing/chat_topic.h"
#include "typing/typing_plane.h"

struct chat_plane {
    const struct config *config;
    const struct clock *clock;
    struct router *router;
    struct metrics *metrics;
    struct typing_plane *typing;
};

enum chat_begin { CHAT_BEGUN, CHAT_TOO_MANY, CHAT_NO_MEMORY };

/* Begins to open a chat; one that is open stays open. CHAT_TOO_MANY: beyond presence.max_open_chats. */
enum chat_begin chat_begin(struct chat_plane *plane, struct endpoint *endpoint,
                           struct slice chat_id);

/* The endpoint's user is a member. Returns false if the chat was closed meanwhile. */
bool chat_confirm(struct endpoint *endpoint, struct slice chat_id);

/* Undoes chat_begin(), unless the chat was open before: the ledger did not answer. */
void chat_give_up(struct chat_plane *plane, struct endpoint *endpoint, struct slice chat_id);

/* Closes a chat, pending or open, and ends this device's typing in it. */
void chat_close(struct chat_plane *plane, struct endpoint *endpoint, struct slice chat_id);

/* The endpoint leaves: closes all its chats and ends its typing. */
void chat_leave(struct chat_plane *plane, struct endpoint *endpoint);

bool chat_is_open(const struct endpoint *endpoint, struct slice chat_id);

/* Publishes to all gateways that a user was removed from the chat. */
void chat_publish_removal(struct chat_plane *plane, struct slice chat_id, struct slice user_id);

/* Tells everybody who has the chat open that its members, their roles or its rights have changed; `user_id` is the
 * user concerned. */
void chat_publish_changed(struct chat_plane *plane, struct slice chat_id, struct slice user_id);

/* Tells everybody else who has the chat open, except the users in `hidden_from`, how far a user has read. */
void chat_publish_receipt(struct chat_plane *plane, struct slice chat_id, struct slice user_id,
                          uint64_t sequence, const struct id_list *hidden_from);

/* Handles an event on one of a chat's topics. */
void chat_received(struct chat_plane *plane, enum chat_topic topic, struct slice chat_id,
                   struct slice payload);

#endif
