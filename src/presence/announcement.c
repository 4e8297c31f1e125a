#include "presence/announcement.h"

#include "presence/presence_event.h"

void announcement_begin(struct announcement *announcement, struct router *router,
                        const struct presence_change *change)
{
    *announcement = (struct announcement){
        .router = router,
        .contact = {.type = MESSAGE_CONTACT_PRESENCE, .change = *change},
        .chat = {.type = MESSAGE_CHAT_PRESENCE, .change = *change},
        .hash = ~presence_change_hash(&router->key, change), /* unlike the change's own */
    };
    announcement->contact_broadcast.message = &announcement->contact;
    announcement->chat_broadcast.message = &announcement->chat;
}

bool announcement_is_for_chats(enum presence_announcement kind)
{
    return kind == PRESENCE_ANNOUNCE_ONLINE || kind == PRESENCE_ANNOUNCE_OFFLINE;
}

void announcement_to_contact(struct announcement *announcement, struct endpoint *endpoint)
{
    const struct presence_change *change = &announcement->contact.change;
    if (!endpoint->wants_announcements || change->announcement == PRESENCE_ANNOUNCE_NOTHING)
        return;
    /* Online and in_call are two states, which must not replace each other in an outbound queue. */
    enum message_type kind = announcement_is_for_chats(change->announcement)
                                 ? MESSAGE_CONTACT_PRESENCE
                                 : MESSAGE_CALL_DECLARE_START;
    announcement->router->deliver(endpoint, &announcement->contact_broadcast,
                                  router_key(announcement->router, kind, change->presence.user_id));
}

void announcement_to_chat(struct announcement *announcement, struct endpoint *endpoint)
{
    const struct presence_change *change = &announcement->chat.change;
    if (endpoint->wants_announcements && announcement_is_for_chats(change->announcement) &&
        recent_note(&endpoint->recent, announcement->hash))
        announcement->router->deliver(
            endpoint, &announcement->chat_broadcast,
            router_key(announcement->router, MESSAGE_CHAT_PRESENCE, change->presence.user_id));
}

void announcement_end(struct announcement *announcement)
{
    broadcast_end(&announcement->contact_broadcast);
    broadcast_end(&announcement->chat_broadcast);
}
