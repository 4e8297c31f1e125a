/*
 * Erasing what a user has left behind, where no other operation does: the messages, which become tombstones, direct chats, the
 * history of calls and the last-seen time. A part of the ledger port; ledger.h has its promises.
 *
 * Everything is done in slices, each a request of its own that is repeated as long as there is more: others' writes come
 * in between, and an erasure that broke off is simply begun again.
 */
#ifndef ROLLCALL_LEDGER_LEDGER_ERASURE_H
#define ROLLCALL_LEDGER_LEDGER_ERASURE_H

#include "ledger/ledger.h"

enum { LEDGER_ERASED_MESSAGES_MAX = 128 }; /* of one request */

/* Makes the next messages of the user in this chat tombstones and frees their client_message_ids; `changed`: there may be more.
 * When there are none, the chat is none of ledger_former_chats_list() any more, and the user also leaves it if it is a direct one,
 * so that its two users may open another. */
void ledger_messages_erase(struct ledger_client *client, struct slice chat, struct slice user,
                           ledger_change_done done, void *arg);

/* Lists groups that the user has left and in which there may be messages of the user, by id, after `after` (SLICE_NONE: from the
 * start). A user who comes back finds them among the chats again, not here. */
void ledger_former_chats_list(struct ledger_client *client, struct slice user, struct slice after,
                              uint32_t limit, ledger_ids_done done, void *arg);

/* Forgets the user's own history of calls and when the user was last seen; the presence version stays. */
void ledger_user_forget(struct ledger_client *client, struct slice user, ledger_change_done done,
                        void *arg);

#endif
