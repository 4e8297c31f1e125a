#include "routing/delivery.h"

#include "base/container.h"
#include "base/json.h"
#include "base/log.h"
#include "message/fields.h"

#include <stdio.h>
#include <stdlib.h>

struct slice delivery_topic(char *out, struct slice gateway_id)
{
    int len =
        snprintf(out, ROUTER_TOPIC_BYTES_MAX, "server:%.*s:deliver", SLICE_FORMAT(gateway_id));
    return (struct slice){out, (size_t)len};
}

/* ---- sending ---- */

/* A message under way: its fields are encoded while the routes are looked up. */
struct sending {
    struct delivery *delivery;
    struct slice name;
    struct buffer fields;
    bool has_except;
    struct ulid except;
};

static void write_users(struct buffer *out, const struct slice *users, size_t count)
{
    json_write_key(out, SLICE("users"));
    json_write_array(out);
    for (size_t i = 0; i < count; i++)
        json_write_string(out, users[i]);
    json_write_array_end(out);
}

static void write_conn_id(struct buffer *out, struct slice key, const struct ulid *conn_id)
{
    char text[ULID_TEXT_LEN];
    ulid_write(text, conn_id);
    json_write_key_string(out, key, (struct slice){text, sizeof(text)});
}

static void publish(struct delivery *delivery, struct slice gateway_id, struct buffer *payload)
{
    char name[ROUTER_TOPIC_BYTES_MAX];
    if (!payload->failed)
        bus_publish(delivery->router->bus, delivery_topic(name, gateway_id), buffer_slice(payload));
    buffer_free(payload);
}

static void send_to_gateway(const struct sending *sending, const struct state_route *route)
{
    struct buffer payload = BUFFER_INIT;
    json_write_object(&payload);
    write_users(&payload, route->users, route->count);
    json_write_key_string(&payload, SLICE("type"), sending->name);
    json_write_key(&payload, SLICE("fields"));
    json_write_raw(&payload, buffer_slice(&sending->fields));
    if (sending->has_except)
        write_conn_id(&payload, SLICE("except"), &sending->except);
    json_write_object_end(&payload);
    publish(sending->delivery, route->gateway_id, &payload);
}

static void routed(void *arg, enum state_status status, const struct state_route *routes,
                   size_t count)
{
    struct sending *sending = arg;
    struct metrics *metrics = sending->delivery->metrics;
    metrics_count(metrics, METRIC_ROUTING_LOOKUPS);
    if (status != STATE_OK)
        metrics_count(metrics, METRIC_ROUTING_LOOKUP_ERRORS);
    else
        for (size_t i = 0; i < count; i++)
            send_to_gateway(sending, &routes[i]);
    buffer_free(&sending->fields);
    free(sending);
}

void delivery_send(struct delivery *delivery, const struct slice *users, size_t count,
                   const struct message *message, const struct ulid *except)
{
    struct sending *sending = calloc(1, sizeof(*sending));
    if (!sending)
        return;
    sending->delivery = delivery;
    sending->name = message_name(message);
    sending->has_except = except != NULL;
    if (except)
        sending->except = *except;
    json_write_object(&sending->fields);
    fields_encode(&sending->fields, message);
    json_write_object_end(&sending->fields);
    if (sending->fields.failed) {
        buffer_free(&sending->fields);
        free(sending);
        return;
    }
    state_routes(delivery->store, users, count, routed, sending);
}

void delivery_close(struct delivery *delivery, struct slice gateway_id, struct slice user_id,
                    const struct ulid *conn_id)
{
    struct buffer payload = BUFFER_INIT;
    json_write_object(&payload);
    write_conn_id(&payload, SLICE("close"), conn_id);
    write_users(&payload, &user_id, 1);
    json_write_object_end(&payload);
    publish(delivery, gateway_id, &payload);
}

/* ---- receiving ---- */

struct parcel {
    struct slice users; /* raw JSON */
    struct slice type;
    struct slice fields; /* raw JSON */
    struct slice close;
    struct slice except;
};

static bool parse(char *text, size_t len, struct parcel *parcel)
{
    struct json json;
    struct slice key;
    *parcel = (struct parcel){0};
    json_init(&json, text, len);
    json_object(&json);
    while (json_member(&json, &key)) {
        if (slice_is(key, "users"))
            json_raw(&json, &parcel->users);
        else if (slice_is(key, "type"))
            json_string(&json, &parcel->type);
        else if (slice_is(key, "fields"))
            json_raw(&json, &parcel->fields);
        else if (slice_is(key, "close"))
            json_string(&json, &parcel->close);
        else if (slice_is(key, "except"))
            json_string(&json, &parcel->except);
        else
            json_skip(&json);
    }
    return json_done(&json) && parcel->users.data;
}

/* The endpoint on a route that must not get it; NULL: all get it. */
static const struct endpoint *find_except(const struct delivery *delivery, struct slice user_id,
                                          struct slice except)
{
    struct ulid conn_id;
    struct route *route = router_find(delivery->router, user_id);
    if (!route || !ulid_parse(except, &conn_id))
        return NULL;
    for (struct list *at = route->endpoints.next; at != &route->endpoints; at = at->next) {
        const struct endpoint *endpoint = CONTAINER_OF(at, struct endpoint, of_route);
        if (delivery->is_connection(endpoint, &conn_id))
            return endpoint;
    }
    return NULL;
}

static void open_parcel(struct delivery *delivery, const struct parcel *parcel)
{
    struct message message = {.type = MESSAGE_RELAY, .relay = {parcel->type, parcel->fields}};
    struct ulid close_id;
    bool closes = ulid_parse(parcel->close, &close_id);
    struct json json;
    struct slice user;
    size_t delivered = 0;
    json_init(&json, (char *)parcel->users.data, parcel->users.len);
    json_array(&json);
    while (json_element(&json) && json_string(&json, &user)) {
        if (closes)
            delivery->close(delivery->arg, user, &close_id);
        else
            delivered += router_send_to_user(delivery->router, user, &message,
                                             find_except(delivery, user, parcel->except));
    }
    metrics_add(delivery->metrics, METRIC_FANOUT_DELIVERED, (int64_t)delivered);
}

void delivery_received(struct delivery *delivery, struct slice payload)
{
    struct parcel parcel;
    char *text = malloc(payload.len + 1);
    if (!text)
        return;
    memcpy(text, payload.data, payload.len);
    bool valid = parse(text, payload.len, &parcel) &&
                 (parcel.close.data ||
                  (parcel.type.data && parcel.fields.len >= 2 && parcel.fields.data[0] == '{'));
    if (valid)
        open_parcel(delivery, &parcel);
    else
        log_warn("bad_delivery_event", "bytes=%zu", payload.len);
    free(text);
}
