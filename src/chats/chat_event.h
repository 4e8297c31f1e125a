/*
 * The events on a chat's presence topic (routing/chat_topic.h), in JSON:
 *
 *   {"type":"presence_changed", … as presence_event.h …, "except":["u"]}
 *   {"type":"member_removed", "user_id"}
 *   {"type":"chat_changed", "user_id"}                          the members or their roles have changed
 *   {"type":"receipt", "user_id", "sequence", "except":["u"]}   the user has read up to there
 *
 * A presence change is for everybody who has the chat open except the users in `except`, and shows no
 * more than all of them may see; the status `unknown` takes visibility away. presence/notify.h writes it.
 */
#ifndef ROLLCALL_CHATS_CHAT_EVENT_H
#define ROLLCALL_CHATS_CHAT_EVENT_H

#include "base/buffer.h"
#include "base/id_list.h"
#include "protocol/message.h"

#include <stdbool.h>

enum { CHAT_EVENT_BYTES_MAX = 4 * 1024 * 1024 }; /* `except` names at most 10,000 users */

enum chat_event_kind {
    CHAT_EVENT_INVALID,
    CHAT_EVENT_PRESENCE,
    CHAT_EVENT_REMOVED,
    CHAT_EVENT_CHANGED,
    CHAT_EVENT_RECEIPT,
};

struct chat_event {
    enum chat_event_kind kind;
    struct presence_change change; /* others than PRESENCE set only the user id */
    int64_t sequence;              /* of a RECEIPT */
    struct id_list except;
    char *text; /* all slices point into it */
};

/* Reads an event. Returns false if it is invalid, or when out of memory; then there is nothing to free. */
bool chat_event_parse(struct slice payload, struct chat_event *out);
void chat_event_free(struct chat_event *event);

void chat_event_write_removed(struct buffer *out, struct slice user_id);
void chat_event_write_changed(struct buffer *out, struct slice user_id);
void chat_event_write_receipt(struct buffer *out, struct slice user_id, int64_t sequence,
                              const struct id_list *except);

#endif
