/*
 * Acknowledgements of devices: how far each has a chat's messages.
 *
 * The first acknowledgement goes to the ledger at once; those that follow for the same device and chat
 * while it is on its way become one, the highest. So a device that acknowledges every message of a
 * storm costs a write per commit, not per message. At most CURSORS_MAX are under way; more are dropped,
 * as is what the ledger refuses: the next acknowledgement makes up for it. Nobody is answered.
 */
#ifndef ROLLCALL_MESSAGES_MESSAGE_CURSOR_H
#define ROLLCALL_MESSAGES_MESSAGE_CURSOR_H

#include "messages/message_plane.h"

enum { CURSORS_MAX = 4096 };

bool cursor_init(struct message_plane *plane, uint64_t seed);

/* After the ledger's last completion. */
void cursor_free(struct message_plane *plane);

/* The device of the user has everything of the chat up to `sequence`. */
void cursor_advance(struct message_plane *plane, struct slice chat, struct slice user,
                    struct slice device, uint64_t sequence);

#endif
