/*
 * Announcements: "a contact came online" and "a member of this chat came online" as two events, for
 * endpoints that want them (routing/router.h, `wants_announcements`). Every endpoint is told once what a
 * user's presence is now, whichever change source (contact or chat) brings it first; these endpoints are
 * told in addition, for each source, what is new.
 *
 * As a contact one hears that the user came, left, or joined or left a call; in a chat only that the user
 * came or left, once however many chats they share. An announcement is an event, not a state: a change
 * that announces nothing, such as going idle, is silent.
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

/* Returns whether chats hear such a change. */
bool announcement_is_for_chats(enum presence_announcement kind);

#endif
