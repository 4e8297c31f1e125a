/*
 * Presence told by the road it comes: "a contact came online" and "somebody in this room came online" as
 * two things, for endpoints that hear roads (routing/router.h). Others are told what a user's presence is
 * now, once, by whichever road is first; these are told that too, and besides, of each road, what is new.
 *
 * As a contact one hears of coming, going, and calls; in a room of coming and going, once however many
 * rooms are shared. What is said is news, not state: a change that is none to a road (going idle) is
 * silent on it.
 *
 *   struct change_source road;
 *   change_source_begin(&road, router, &change);
 *   for each endpoint: change_source_contact(&road, endpoint);
 *   change_source_end(&road);
 *
 * Encoded at most once per dialect. The change is borrowed until change_source_end().
 */
#ifndef ROLLCALL_PRESENCE_CHANGE_SOURCE_H
#define ROLLCALL_PRESENCE_CHANGE_SOURCE_H

#include "protocol/message.h"
#include "routing/router.h"

struct change_source {
    struct router *router;
    struct message contact;
    struct message room;
    struct broadcast contact_broadcast;
    struct broadcast room_broadcast;
    uint64_t hash; /* of this change, for what an endpoint remembers */
};

void change_source_begin(struct change_source *road, struct router *router,
                         const struct presence_change *change);
void change_source_contact(struct change_source *road, struct endpoint *endpoint);
void change_source_room(struct change_source *road, struct endpoint *endpoint);
void change_source_end(struct change_source *road);

/* Whether rooms hear of such a change. */
bool change_source_is_for_rooms(enum presence_news news);

#endif
