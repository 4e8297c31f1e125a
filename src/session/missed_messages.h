/*
 * What a connection missed: per chat, the last message before the first that found no room in its queue,
 * so that connection_closing can name what to sync after.
 *
 * Made only when something is missed, which is followed by the connection's end. At most
 * MISSED_CHATS_MAX chats are named; a client that is told so many of them syncs all of its chats anyway.
 */
#ifndef ROLLCALL_SESSION_MISSED_MESSAGES_H
#define ROLLCALL_SESSION_MISSED_MESSAGES_H

#include "protocol/message.h"

enum { MISSED_CHATS_MAX = 1024 };

struct missed_messages;

/* Notes a missed message, unless an earlier one of its chat was. Without memory nothing is noted. */
void missed_messages_note(struct missed_messages **missed, struct slice chat, int64_t sequence);

/* How many chats there are, and the `after_sequence` to sync each with; they last until the next note. */
size_t missed_messages_points(const struct missed_messages *missed,
                              const struct sync_point **points);

void missed_messages_free(struct missed_messages **missed);

#endif
