/*
 * The messages a connection missed: per chat, the sequence before the first message that its full queue
 * refused, so that connection_closing can name where to sync from.
 *
 * Allocated only when a message is missed, which ends the connection soon. At most MISSED_CHATS_MAX chats are
 * named; a client with so many syncs all of its chats anyway.
 */
#ifndef ROLLCALL_SESSION_MISSED_MESSAGES_H
#define ROLLCALL_SESSION_MISSED_MESSAGES_H

#include "protocol/message.h"

enum { MISSED_CHATS_MAX = 1024 };

struct missed_messages;

/* Notes a missed message, unless an earlier one of its chat is noted. Notes nothing when out of memory. */
void missed_messages_note(struct missed_messages **missed, struct slice chat, int64_t sequence);

/* Returns how many chats there are; `points` have the `after_sequence` of each and last until the next note. */
size_t missed_messages_points(const struct missed_messages *missed,
                              const struct sync_point **points);

void missed_messages_free(struct missed_messages **missed);

#endif
