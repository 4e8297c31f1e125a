#include "routing/delivery_payload.h"

#include "base/container.h"
#include "text/json.h"

#include <assert.h>
#include <stdio.h>

struct slice delivery_kind_name(enum delivery_kind kind)
{
    static const struct slice names[DELIVERY_KINDS] = {
        [DELIVERY_EVENT] = {"event", 5},
        [DELIVERY_CLOSE] = {"close", 5},
        [DELIVERY_PRESENCE] = {"presence", 8},
        [DELIVERY_EVERYONE] = {"everyone", 8},
    };
    return names[kind];
}

struct slice delivery_topic(char *out, struct slice gateway_id)
{
    int len =
        snprintf(out, DELIVERY_TOPIC_BYTES_MAX, "server:%.*s:deliver", SLICE_FORMAT(gateway_id));
    return (struct slice){out, (size_t)len};
}

void delivery_payload_begin(struct delivery_payload *payload, enum delivery_kind kind)
{
    json_write_object(&payload->head);
    json_write_key_string(&payload->head, SLICE("kind"), delivery_kind_name(kind));
}

static void delivery_payload_write_users(struct buffer *out, const struct slice *users,
                                         size_t count)
{
    json_write_array(out);
    for (size_t i = 0; i < count; i++)
        json_write_string(out, users[i]);
    json_write_array_end(out);
}

/* Publishes the head with these users. Returns false when out of memory. */
static bool delivery_payload_publish_to(const struct delivery_payload *payload, struct slice topic,
                                        const struct slice *users, size_t count)
{
    struct buffer whole = BUFFER_INIT;
    buffer_append_slice(&whole, buffer_slice(&payload->head));
    json_write_key(&whole, SLICE("users"));
    if (users)
        delivery_payload_write_users(&whole, users, count);
    else
        json_write_raw(&whole, buffer_slice(&payload->users_json));
    json_write_object_end(&whole);
    bool published = !whole.failed;
    if (published)
        bus_publish(payload->bus, topic, buffer_slice(&whole));
    buffer_free(&whole);
    return published;
}

size_t delivery_payload_publish(const struct delivery_payload *payload,
                                const struct state_routes *routes)
{
    char topic[DELIVERY_TOPIC_BYTES_MAX];
    size_t named = 0;
    for (size_t i = 0; i < routes->count; i++) {
        const struct state_route *route = &routes->items[i];
        if (delivery_payload_publish_to(payload, delivery_topic(topic, route->gateway_id),
                                        route->users, route->count))
            named += route->count;
    }
    return named;
}

bool delivery_payload_broadcast(const struct delivery_payload *payload, struct slice topic)
{
    assert(payload->broadcasts);
    return !payload->users_json.failed &&
           delivery_payload_publish_to(payload, topic, payload->users.ids, payload->users.count);
}

static void on_delivery_payload_routed(void *arg, enum state_status status,
                                       const struct state_routes *routes)
{
    struct delivery_payload *payload = arg;
    metrics_count(payload->metrics, METRIC_ROUTING_LOOKUPS);
    metrics_add(payload->metrics, METRIC_ROUTING_LOOKUP_ERRORS, status != STATE_OK);
    payload->on_routed(payload, status, routes);
}

static void on_delivery_payload_routed_early(void *arg, const struct state_routes *routes)
{
    struct delivery_payload *payload = arg;
    payload->on_early(payload, routes);
}

void delivery_payload_route(struct delivery_payload *payload, const struct slice *users,
                            size_t count)
{
    bool ended = false;
    assert(!payload->head.failed);
    payload->users = (struct id_list){users, count};
    payload->ended = &ended;
    if (payload->on_early)
        state_routes_early(payload->store, users, count, on_delivery_payload_routed_early,
                           on_delivery_payload_routed, payload);
    else
        state_routes(payload->store, users, count, on_delivery_payload_routed, payload);
    if (ended)
        return;
    payload->users = (struct id_list){0};
    payload->ended = NULL;
    if (payload->broadcasts)
        delivery_payload_write_users(&payload->users_json, users, count);
}

void delivery_payload_end(struct delivery_payload *payload)
{
    if (payload->ended)
        *payload->ended = true;
    buffer_free(&payload->users_json);
    buffer_free(&payload->head);
}
