/*
 * Sends a change of a user's presence to users without a subscription:
 *
 *   subscribers      by the topic `presence:<user>` (presence_plane.c), not here
 *   contacts online  by a push to their gateways (push.h), unless the user hides from contacts
 *   open chats       by the topic `chat:<chat>:presence`, if the user shows presence to everybody; not to
 *                    the users in `except`: the blocked users, and contacts if they see more than others
 *
 * Contacts and chats come from the user's social graph (contacts/graph_reader.h). If the graph cannot be
 * read, a change reaches no contact and no chat; a presence query still shows it.
 *
 * Part of the presence plane, on its thread. A plane without a graph store does nothing here.
 */
#ifndef ROLLCALL_PRESENCE_NOTIFY_H
#define ROLLCALL_PRESENCE_NOTIFY_H

#include "protocol/message.h"
#include "store/graph_store.h"

struct presence_plane;

/* A push to contacts names at most so many chats of the user; with more chats it names none. */
enum { NOTIFY_CHATS_NAMED_MAX = 64 };

/* Records in the graph store whether the user is online. */
void notify_record_online(struct presence_plane *plane, const struct presence *presence);

/* Sends the change to contacts and open chats, as far as privacy allows. */
void notify_change(struct presence_plane *plane, const struct presence_change *change);

/* Publishes a change that everybody in these chats may see, except the users in the two lists. */
void notify_chats(struct presence_plane *plane, const struct id_list *chats,
                  const struct presence_change *change, const struct id_list *except,
                  const struct id_list *except_too);

#endif
