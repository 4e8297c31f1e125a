#include "routing/delivery.h"

#include "base/json.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>

struct slice delivery_topic(char *out, struct slice gateway_id)
{
    int len = snprintf(out, ROUTER_TOPIC_BYTES_MAX, "server:%.*s:deliver", SLICE_FORMAT(gateway_id));
    return (struct slice){out, (size_t)len};
}

static void publish(struct bus *bus, struct slice gateway_id, struct buffer *payload)
{
    char name[ROUTER_TOPIC_BYTES_MAX];
    json_write_object_end(payload);
    if (!payload->failed)
        bus_publish(bus, delivery_topic(name, gateway_id), buffer_slice(payload));
    buffer_free(payload);
}

void delivery_publish(struct bus *bus, struct slice gateway_id, const struct slice *users,
                      size_t count, struct slice data)
{
    struct buffer payload = BUFFER_INIT;
    json_write_object(&payload);
    json_write_key(&payload, SLICE("users"));
    json_write_array(&payload);
    for (size_t i = 0; i < count; i++)
        json_write_string(&payload, users[i]);
    json_write_array_end(&payload);
    json_write_key(&payload, SLICE("data"));
    json_write_raw(&payload, data);
    publish(bus, gateway_id, &payload);
}

void delivery_publish_close(struct bus *bus, struct slice gateway_id, struct slice user_id,
                            const struct ulid *conn_id)
{
    char text[ULID_TEXT_LEN];
    struct buffer payload = BUFFER_INIT;
    ulid_write(text, conn_id);
    json_write_object(&payload);
    json_write_key_string(&payload, SLICE("close"), (struct slice){text, sizeof(text)});
    json_write_key_string(&payload, SLICE("user"), user_id);
    publish(bus, gateway_id, &payload);
}

struct order {
    struct slice users; /* raw JSON */
    struct slice data;  /* raw JSON */
    struct slice close;
    struct slice user;
};

static bool parse(char *text, size_t len, struct order *order)
{
    struct json json;
    struct slice key;
    *order = (struct order){0};
    json_init(&json, text, len);
    json_object(&json);
    while (json_member(&json, &key)) {
        if (slice_is(key, "users"))
            json_raw(&json, &order->users);
        else if (slice_is(key, "data"))
            json_raw(&json, &order->data);
        else if (slice_is(key, "close"))
            json_string(&json, &order->close);
        else if (slice_is(key, "user"))
            json_string(&json, &order->user);
        else
            json_skip(&json);
    }
    return json_done(&json);
}

static void deliver_to_users(struct router *router, const struct order *order)
{
    struct message message = {.type = MESSAGE_DELIVERY, .data = order->data};
    struct json json;
    struct slice user;
    json_init(&json, (char *)order->users.data, order->users.len);
    json_array(&json);
    while (json_element(&json) && json_string(&json, &user))
        router_send_to_user(router, user, &message, NULL);
}

void delivery_received(struct delivery_target *target, struct slice payload)
{
    struct order order;
    struct ulid conn_id;
    char *text = malloc(payload.len + 1);
    if (!text)
        return;
    memcpy(text, payload.data, payload.len);
    if (!parse(text, payload.len, &order))
        log_warn("bad_delivery_event", "bytes=%zu", payload.len);
    else if (order.users.data && order.data.data)
        deliver_to_users(target->router, &order);
    else if (ulid_parse(order.close, &conn_id))
        target->close(target->arg, order.user, &conn_id);
    free(text);
}
