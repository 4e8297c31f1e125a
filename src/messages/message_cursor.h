/*
 * Acknowledgements of devices: up to which sequence each device has the messages of a chat.
 *
 * The first acknowledgement goes to the ledger at once. Those that follow for the same device and chat while
 * it is in flight become one, the highest. So a device that acknowledges every message of a burst costs one
 * write per commit, not one per message. At most MESSAGE_CURSORS_MAX are in flight; further ones are dropped,
 * and so are those that the ledger refuses: the next acknowledgement makes up for them. There is no completion.
 */
#ifndef ROLLCALL_MESSAGES_MESSAGE_CURSOR_H
#define ROLLCALL_MESSAGES_MESSAGE_CURSOR_H

#include "messages/message_plane.h"

enum { MESSAGE_CURSORS_MAX = 4096 };

/* The device of acknowledgements over REST, which come from no device. */
#define MESSAGE_CURSOR_REST_DEVICE "rest"

bool message_cursor_init(struct message_plane *plane, uint64_t seed);

/* Call it after the ledger's last completion. */
void message_cursor_free(struct message_plane *plane);

/* Tells others how far the user has read, if a cursor that was stored moved the read mark and may be shown. */
void message_cursor_announce(const struct message_plane *plane, struct slice chat,
                             struct slice user, const struct ledger_cursor_outcome *outcome);

/* Notes that the user's device has all messages of the chat up to `sequence`. */
void message_cursor_advance(struct message_plane *plane, struct slice chat, struct slice user,
                            struct slice device, uint64_t sequence);

#endif
