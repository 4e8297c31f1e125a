#include "presence/push.h"

#include "base/container.h"
#include "presence/presence_event.h"
#include "routing/delivery_payload.h"
#include "text/json.h"

#include <stdlib.h>

/* A push whose routes are being looked up. */
struct push_sending {
    struct delivery_payload payload;
    struct presence_plane *plane;
};

/* A visibility change must not wait until the store is back and has its routes again, so it is broadcast.
 * Other changes are not: without the store there are none, and query results are marked stale. */
static void on_push_routed(struct delivery_payload *payload, enum state_status status,
                           const struct state_routes *routes)
{
    struct push_sending *sending = CONTAINER_OF(payload, struct push_sending, payload);
    bool known =
        status == STATE_OK && !(payload->broadcasts && resync_is_disturbed(sending->plane));
    if (known)
        delivery_payload_publish(payload, routes);
    if (payload->broadcasts && !known)
        delivery_payload_broadcast(payload, BUS_TOPIC_ALL);
    else if (payload->broadcasts && bus_has_lost(payload->bus))
        delivery_payload_broadcast(payload, BUS_TOPIC_LOST);
    delivery_payload_end(payload);
    free(sending);
}

void push_send(struct presence_plane *plane, const struct id_list *users, const struct push *push)
{
    struct push_sending *sending = users->count ? malloc(sizeof(*sending)) : NULL;
    if (!sending)
        return;
    *sending = (struct push_sending){.plane = plane,
                                     .payload = {.bus = plane->bus,
                                                 .store = plane->store,
                                                 .metrics = plane->metrics,
                                                 .on_routed = on_push_routed,
                                                 .broadcasts = push->changes_view}};
    struct buffer *head = &sending->payload.head;
    delivery_payload_begin(&sending->payload, DELIVERY_PRESENCE);
    json_write_key(head, SLICE("presence"));
    presence_event_write(
        head, &(struct presence_event){.kind = PRESENCE_EVENT_CHANGED, .change = push->change});
    if (push->chats.count) {
        json_write_key(head, SLICE("chats"));
        json_write_array(head);
        for (size_t i = 0; i < push->chats.count; i++)
            json_write_string(head, push->chats.ids[i]);
        json_write_array_end(head);
    }
    if (push->changes_view) {
        json_write_key_int(head, SLICE("view"), push->view);
        json_write_key_bool(head, SLICE("contacts"), push->contacts);
    }
    if (head->failed) {
        delivery_payload_end(&sending->payload);
        free(sending);
        return;
    }
    delivery_payload_route(&sending->payload, users->ids, users->count);
}
