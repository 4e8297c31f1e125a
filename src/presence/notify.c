#include "presence/notify.h"

#include "presence/announcement.h"
#include "presence/presence_event.h"
#include "presence/presence_plane.h"
#include "presence/push.h"
#include "presence/visibility/privacy.h"
#include "routing/chat_topic.h"
#include "text/json.h"

#include <stdlib.h>
#include <string.h>

/* A change that waits for its user's graph; it outlives the transition that made it. */
struct notification {
    struct presence_plane *plane;
    struct presence_change change;
    char user_id[];
};

void notify_chats(struct presence_plane *plane, const struct id_list *chats,
                  const struct presence_change *change, const struct id_list *except,
                  const struct id_list *except_too)
{
    char name[ROUTER_TOPIC_BYTES_MAX];
    struct buffer payload = BUFFER_INIT;
    if (chats->count == 0)
        return;
    json_write_object(&payload);
    presence_event_write_change(&payload, change);
    json_write_key(&payload, SLICE("except"));
    json_write_array(&payload);
    for (size_t i = 0; i < except->count; i++)
        json_write_string(&payload, except->ids[i]);
    for (size_t i = 0; i < except_too->count; i++)
        json_write_string(&payload, except_too->ids[i]);
    json_write_array_end(&payload);
    json_write_object_end(&payload);
    for (size_t i = 0; !payload.failed && i < chats->count && i < GRAPH_READER_CHATS_MAX; i++)
        bus_publish(plane->bus, chat_topic_name(name, chats->ids[i], CHAT_TOPIC_PRESENCE),
                    buffer_slice(&payload));
    buffer_free(&payload);
}

/* Contacts come first: if they see last seen and others do not, the chats' variant of the change, which
 * shows less, must not reach a contact before the contact's own variant. */
static void notify_send(const struct notification *notification, const struct social_graph *graph)
{
    struct ledger_settings settings = {(enum ledger_visibility)graph->presence_visibility,
                                       (enum ledger_visibility)graph->last_seen_visibility};
    struct presence_plane *plane = notification->plane;
    struct presence_change change = notification->change;
    struct privacy_decision contact = privacy_of_contact(&settings);
    struct privacy_decision other = privacy_of_other(&settings);
    const struct id_list none = {0};
    bool names_chats = announcement_is_for_chats(change.announcement) &&
                       graph->chats.count <= NOTIFY_CHATS_NAMED_MAX;
    if (contact.view == PRIVACY_HIDDEN)
        return;
    change.presence = privacy_apply(&notification->change.presence, contact, plane->clock->wall_ms);
    push_send(plane, &graph->contacts,
              &(struct push){.change = change, .chats = names_chats ? graph->chats : none});
    if (other.view == PRIVACY_HIDDEN)
        return;
    change.presence = privacy_apply(&notification->change.presence, other, plane->clock->wall_ms);
    notify_chats(plane, &graph->chats, &change, &graph->blocked,
                 other.view == contact.view ? &none : &graph->contacts);
}

static void on_notify_graph_read(void *arg, const struct social_graph *graph)
{
    struct notification *notification = arg;
    if (graph)
        notify_send(notification, graph);
    free(notification);
}

void notify_record_online(struct presence_plane *plane, const struct presence *presence)
{
    if (plane->graphs.store)
        graph_set_online(plane->graphs.store, presence->user_id,
                         presence->status != PRESENCE_OFFLINE, presence->version);
}

void notify_change(struct presence_plane *plane, const struct presence_change *change)
{
    struct slice user_id = change->presence.user_id;
    if (!plane->graphs.store)
        return;
    struct notification *notification = malloc(sizeof(*notification) + user_id.len);
    if (!notification)
        return;
    *notification = (struct notification){.plane = plane, .change = *change};
    memcpy(notification->user_id, user_id.data, user_id.len);
    notification->change.presence.user_id.data = notification->user_id;
    graph_reader_read(&plane->graphs, user_id, on_notify_graph_read, notification);
}
