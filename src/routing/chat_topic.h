/*
 * The two topics of a chat, which a gateway subscribes to while somebody there has the chat open:
 *
 *   chat:<chat>:presence   presence of members, and members who were removed (chats/chat_event.h)
 *   chat:<chat>:typing     who types (typing/typing_event.h)
 */
#ifndef ROLLCALL_ROUTING_CHAT_TOPIC_H
#define ROLLCALL_ROUTING_CHAT_TOPIC_H

#include "routing/router.h"

enum chat_topic { CHAT_TOPIC_NONE, CHAT_TOPIC_PRESENCE, CHAT_TOPIC_TYPING };

/* The view of a subscription to a chat's topics: only OPEN subscriptions receive events. */
enum chat_view { CHAT_VIEW_PENDING, CHAT_VIEW_OPEN };

/* Writes the topic's name to `out`, which has ROUTER_TOPIC_BYTES_MAX bytes, and returns it. */
struct slice chat_topic_name(char *out, struct slice chat_id, enum chat_topic topic);

/* Returns which topic of which chat this is; CHAT_TOPIC_NONE: it is no topic of a valid chat id. */
enum chat_topic chat_topic_parse(struct slice name, struct slice *chat_id);

/* Returns the router's topic; NULL while nobody on this gateway has the chat open. */
struct topic *chat_topic_of(const struct router *router, struct slice chat_id,
                            enum chat_topic topic);

#endif
