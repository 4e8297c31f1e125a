/*
 * Presence told by the road it comes: "a contact came online" and "somebody in this room came online" as
 * two things, for endpoints that hear roads (routing/router.h). Others are told what a user's presence is
 * now, once, by whichever road is first; these are told that too, and besides, of each road, what is new.
 *
 * As a contact one hears of coming, going, and calls; in a room of coming and going, once however many
 * rooms are shared. What is said is news, not state: a change that is none to a road (going idle) is
 * silent on it.
 *
 *   struct road road;
 *   road_begin(&road, router, &change);
 *   for each endpoint: road_contact(&road, endpoint);
 *   road_end(&road);
 *
 * Encoded at most once per dialect. The change is borrowed until road_end().
 */
#ifndef ROLLCALL_PRESENCE_CHANGE_SOURCE_H
#define ROLLCALL_PRESENCE_CHANGE_SOURCE_H

#include "protocol/message.h"
#include "routing/router.h"

struct road {
    struct router *router;
    struct message contact;
    struct message room;
    struct broadcast contact_broadcast;
    struct broadcast room_broadcast;
    uint64_t hash; /* of this change, for what an endpoint remembers */
};

void road_begin(struct road *road, struct router *router, const struct presence_change *change);
void road_contact(struct road *road, struct endpoint *endpoint);
void road_room(struct road *road, struct endpoint *endpoint);
void road_end(struct road *road);

/* Whether rooms hear of such a change. */
bool road_is_for_rooms(enum presence_news news);

#endif
