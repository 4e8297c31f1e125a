#include "presence/push.h"

#include "presence/presence_event.h"
#include "routing/delivery.h"
#include "text/json.h"

#include <stdlib.h>

/* A push under way: all of it but the receivers, while their routes are looked up. */
struct sending {
    struct presence_plane *plane;
    struct buffer head;
    struct buffer everybody; /* the whole of it, for all gateways */
};

static void write_ids(struct buffer *out, struct slice key, const struct slice *ids, size_t count)
{
    json_write_key(out, key);
    json_write_array(out);
    for (size_t i = 0; i < count; i++)
        json_write_string(out, ids[i]);
    json_write_array_end(out);
}

static void write_head(struct buffer *out, const struct push *push)
{
    json_write_object(out);
    json_write_key(out, SLICE("presence"));
    presence_event_write(
        out, &(struct presence_event){.kind = PRESENCE_EVENT_CHANGED, .change = push->change});
    if (push->chats.count)
        write_ids(out, SLICE("chats"), push->chats.ids, push->chats.count);
    if (!push->exposes)
        return;
    json_write_key_int(out, SLICE("view"), push->view);
    json_write_key_bool(out, SLICE("contacts"), push->contacts);
}

static void write_whole(struct buffer *out, const struct sending *sending,
                        const struct slice *users, size_t count)
{
    buffer_append_slice(out, buffer_slice(&sending->head));
    write_ids(out, SLICE("users"), users, count);
    json_write_object_end(out);
}

static void publish(struct sending *sending, const struct state_route *route)
{
    char name[ROUTER_TOPIC_BYTES_MAX];
    struct buffer payload = BUFFER_INIT;
    write_whole(&payload, sending, route->users, route->count);
    if (!payload.failed)
        bus_publish(sending->plane->bus, delivery_topic(name, route->gateway_id),
                    buffer_slice(&payload));
    buffer_free(&payload);
}

/* A lost sight must not wait until the store is back, or knows again who is where. Of a mere change nothing was
 * kept: without the store there are no changes, and who looks is told that what is known is stale. */
static void tell_all(struct sending *sending, struct slice topic)
{
    if (sending->everybody.len && !sending->everybody.failed)
        bus_publish(sending->plane->bus, topic, buffer_slice(&sending->everybody));
}

static void free_sending(struct sending *sending)
{
    buffer_free(&sending->everybody);
    buffer_free(&sending->head);
    free(sending);
}

static void routed(void *arg, enum state_status status, const struct state_routes *routes)
{
    struct sending *sending = arg;
    struct presence_plane *plane = sending->plane;
    bool known =
        status == STATE_OK && !(sending->everybody.len && resync_may_have_forgotten(plane));
    metrics_count(plane->metrics, METRIC_ROUTING_LOOKUPS);
    metrics_add(plane->metrics, METRIC_ROUTING_LOOKUP_ERRORS, status != STATE_OK);
    for (size_t i = 0; known && i < routes->count; i++)
        publish(sending, &routes->items[i]);
    if (!known)
        tell_all(sending, BUS_TOPIC_ALL);
    else if (bus_has_lost(plane->bus))
        tell_all(sending, BUS_TOPIC_LOST);
    free_sending(sending);
}

void push_send(struct presence_plane *plane, const struct graph_list *users,
               const struct push *push)
{
    struct sending *sending = users->count ? malloc(sizeof(*sending)) : NULL;
    if (!sending)
        return;
    *sending = (struct sending){.plane = plane};
    write_head(&sending->head, push);
    if (sending->head.failed) {
        free_sending(sending);
        return;
    }
    if (push->exposes)
        write_whole(&sending->everybody, sending, users->ids, users->count);
    state_routes(plane->store, users->ids, users->count, routed, sending);
}
