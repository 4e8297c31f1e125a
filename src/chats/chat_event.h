/*
 * What gateways tell each other about a chat, in JSON, on the two topics that a gateway holds while
 * somebody there has the chat open.
 *
 *   chat:<chat>:presence   {"type":"presence_changed", … as presence_event.h …, "except":["u"]}
 *                          {"type":"member_removed", "user_id"}
 *   chat:<chat>:typing     {"type":"typing_changed", "chat_id", "user_id", "typing", "timestamp"}
 *
 * A change of presence is for everybody who has the chat open but those in `except`, and says no more
 * than all of them may see; one whose status is `unknown` takes sight away.
 */
#ifndef ROLLCALL_CHATS_CHAT_EVENT_H
#define ROLLCALL_CHATS_CHAT_EVENT_H

#include "base/buffer.h"
#include "protocol/message.h"

#include <stdbool.h>
#include <stddef.h>

enum { CHAT_EVENT_BYTES_MAX = 4 * 1024 * 1024 }; /* `except` names 10,000 users at most */

enum chat_topic { CHAT_TOPIC_NONE, CHAT_TOPIC_PRESENCE, CHAT_TOPIC_TYPING };

/* Writes the topic's name and returns it; `out` has room for ROUTER_TOPIC_BYTES_MAX. */
struct slice chat_topic_name(char *out, struct slice chat_id, enum chat_topic topic);

/* Which topic of which chat a name is; CHAT_TOPIC_NONE: of none that can be. */
enum chat_topic chat_topic_parse(struct slice name, struct slice *chat_id);

enum chat_event_kind {
    CHAT_EVENT_INVALID,
    CHAT_EVENT_PRESENCE,
    CHAT_EVENT_REMOVED,
    CHAT_EVENT_TYPING
};

struct chat_event {
    enum chat_event_kind kind;
    struct presence_change change; /* of REMOVED only the user, of TYPING the user and the time */
    bool typing;
    const struct slice *except;
    size_t except_count;
    char *text; /* what all slices point into */
};

/* Reads an event. False for anything that is none; nothing is to be freed then. */
bool chat_event_parse(struct slice payload, struct chat_event *out);
void chat_event_free(struct chat_event *event);

void chat_event_write_typing(struct buffer *out, struct slice chat_id, struct slice user_id,
                             bool typing, int64_t timestamp_ms);
void chat_event_write_removed(struct buffer *out, struct slice user_id);

#endif
