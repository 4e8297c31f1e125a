/*
 * Announcements: "a contact came online" and "a member of this chat came online" as two events, for
 * endpoints with `wants_announcements` (routing/router.h). Every endpoint gets a user's new presence once,
 * from the change source (contact or chat) that comes first. These endpoints also get one announcement from
 * each source.
 *
 * Contacts get an announcement when the user came online, left, or joined or left a call. Members of shared
 * chats get one only when the user came online or left, and only once if they share several chats. An
 * announcement is an event, not a state: a change that announces nothing, such as going idle, sends none.
 *
 *   struct announcement announcement;
 *   announcement_begin(&announcement, router, &change);
 *   for each endpoint: announcement_to_contact(&announcement, endpoint);
 *   announcement_end(&announcement);
 *
 * Each event is encoded at most once per dialect. The change is borrowed until announcement_end().
 */
#ifndef ROLLCALL_PRESENCE_ANNOUNCEMENT_H
#define ROLLCALL_PRESENCE_ANNOUNCEMENT_H

#include "protocol/message.h"
#include "routing/router.h"

struct announcement {
    struct router *router;
    struct message contact;
    struct message chat;
    struct broadcast contact_broadcast;
    struct broadcast chat_broadcast;
    uint64_t hash; /* of this change, for the endpoints' record of recent events */
};

void announcement_begin(struct announcement *announcement, struct router *router,
                        const struct presence_change *change);
void announcement_to_contact(struct announcement *announcement, struct endpoint *endpoint);
void announcement_to_chat(struct announcement *announcement, struct endpoint *endpoint);
void announcement_end(struct announcement *announcement);

/* Returns whether members of shared chats get announcements of this kind. */
bool announcement_is_for_chats(enum presence_announcement kind);

#endif
