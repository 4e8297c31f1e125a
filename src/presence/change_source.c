#include "presence/change_source.h"

#include <xxhash.h>

void change_source_begin(struct change_source *road, struct router *router,
                         const struct presence_change *change)
{
    uint64_t parts[] = {(uint64_t)change->presence.version, (uint64_t)change->timestamp_ms,
                        router_key(router, MESSAGE_ROOM_PRESENCE, change->presence.user_id)};
    *road = (struct change_source){
        .router = router,
        .contact = {.type = MESSAGE_CONTACT_PRESENCE, .change = *change},
        .room = {.type = MESSAGE_ROOM_PRESENCE, .change = *change},
        .hash = XXH3_64bits(parts, sizeof(parts)),
    };
    road->contact_broadcast.message = &road->contact;
    road->room_broadcast.message = &road->room;
}

bool change_source_is_for_rooms(enum presence_news news)
{
    return news == PRESENCE_NEWS_ONLINE || news == PRESENCE_NEWS_OFFLINE;
}

/* Coming and going are one state, calls another: neither takes the place of the other in a queue. */
static uint64_t contact_key(const struct change_source *road)
{
    const struct presence_change *change = &road->contact.change;
    enum message_type kind = change_source_is_for_rooms(change->news) ? MESSAGE_CONTACT_PRESENCE
                                                                      : MESSAGE_CALL_DECLARE_START;
    return router_key(road->router, kind, change->presence.user_id);
}

void change_source_contact(struct change_source *road, struct endpoint *endpoint)
{
    if (endpoint->hears_sources && road->contact.change.news != PRESENCE_NEWS_NONE)
        road->router->deliver(endpoint, &road->contact_broadcast, contact_key(road));
}

void change_source_room(struct change_source *road, struct endpoint *endpoint)
{
    const struct presence_change *change = &road->room.change;
    if (endpoint->hears_sources && change_source_is_for_rooms(change->news) &&
        recent_note(&endpoint->recent, road->hash))
        road->router->deliver(
            endpoint, &road->room_broadcast,
            router_key(road->router, MESSAGE_ROOM_PRESENCE, change->presence.user_id));
}

void change_source_end(struct change_source *road)
{
    broadcast_end(&road->contact_broadcast);
    broadcast_end(&road->room_broadcast);
}
