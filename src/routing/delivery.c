#include "routing/delivery.h"

#include "base/container.h"
#include "base/json.h"
#include "base/log.h"
#include "message/fields.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

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
    struct slice chat; /* of a chat's message, copied */
    int64_t sequence;
    bool has_except;
    struct ulid except;
    char device[DEVICE_ID_BYTES_MAX];
    size_t device_len; /* 0: to all devices */
    void (*done)(void *arg, bool sent);
    void *arg;
    char chat_bytes[];
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
    if (sending->device_len)
        json_write_key_string(&payload, SLICE("device"),
                              (struct slice){sending->device, sending->device_len});
    if (sending->sequence) {
        json_write_key_string(&payload, SLICE("chat"), sending->chat);
        json_write_key_int(&payload, SLICE("sequence"), sending->sequence);
    }
    json_write_object_end(&payload);
    publish(sending->delivery, route->gateway_id, &payload);
}

static void end_sending(struct sending *sending, bool sent)
{
    sending->done(sending->arg, sent);
    buffer_free(&sending->fields);
    free(sending);
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
    end_sending(sending, status == STATE_OK);
}

/* Everything but the routes; NULL when memory is short. */
static struct sending *prepare(struct delivery *delivery, const struct message *message,
                               const struct ulid *except)
{
    bool of_chat = message->type == MESSAGE_MESSAGE;
    struct slice chat = of_chat ? message->chat_message.chat_id : SLICE_NONE;
    struct sending *sending = calloc(1, sizeof(*sending) + chat.len);
    if (!sending)
        return NULL;
    sending->delivery = delivery;
    sending->name = message_name(message);
    sending->has_except = except != NULL;
    if (except)
        sending->except = *except;
    if (of_chat) {
        memcpy(sending->chat_bytes, chat.data, chat.len);
        sending->chat = (struct slice){sending->chat_bytes, chat.len};
        sending->sequence = message->chat_message.sequence;
    }
    json_write_object(&sending->fields);
    fields_encode(&sending->fields, message);
    json_write_object_end(&sending->fields);
    return sending;
}

static void look_up(struct sending *sending, const struct slice *users, size_t count)
{
    if (sending->fields.failed)
        end_sending(sending, false);
    else
        state_routes(sending->delivery->store, users, count, routed, sending);
}

void delivery_send_then(struct delivery *delivery, const struct slice *users, size_t count,
                        const struct message *message, const struct ulid *except,
                        void (*done)(void *arg, bool sent), void *arg)
{
    struct sending *sending = prepare(delivery, message, except);
    if (!sending) {
        done(arg, false);
        return;
    }
    sending->done = done;
    sending->arg = arg;
    look_up(sending, users, count);
}

static void nobody_waits(void *arg, bool sent)
{
    (void)arg, (void)sent;
}

void delivery_send(struct delivery *delivery, const struct slice *users, size_t count,
                   const struct message *message, const struct ulid *except)
{
    delivery_send_then(delivery, users, count, message, except, nobody_waits, NULL);
}

void delivery_send_device(struct delivery *delivery, struct slice user_id, struct slice device_id,
                          const struct message *message)
{
    struct sending *sending = prepare(delivery, message, NULL);
    if (!sending)
        return;
    assert(device_id.len <= sizeof(sending->device));
    memcpy(sending->device, device_id.data, device_id.len);
    sending->device_len = device_id.len;
    sending->done = nobody_waits;
    look_up(sending, &user_id, 1);
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
    struct slice device;
    struct slice chat;
    int64_t sequence;
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
        else if (slice_is(key, "device"))
            json_string(&json, &parcel->device);
        else if (slice_is(key, "chat"))
            json_string(&json, &parcel->chat);
        else if (slice_is(key, "sequence"))
            json_int(&json, &parcel->sequence);
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

/* Whether this message of a chat came here lately; from now on it did. */
static bool is_repetition(struct delivery_recent *recent, const struct parcel *parcel)
{
    if (!parcel->sequence)
        return false;
    uint64_t key =
        XXH3_64bits_withSeed(parcel->chat.data, parcel->chat.len, (uint64_t)parcel->sequence);
    for (size_t i = 0; i < DELIVERY_RECENT_MAX; i++)
        if (recent->keys[i] == key)
            return true;
    recent->keys[recent->next++ % DELIVERY_RECENT_MAX] = key;
    return false;
}

static size_t send_to_device(struct delivery *delivery, struct slice user_id,
                             struct slice device_id, struct broadcast *broadcast)
{
    struct route *route = router_find(delivery->router, user_id);
    struct list *at = route ? route->endpoints.next : NULL;
    size_t sent = 0;
    for (; at && at != &route->endpoints; at = at->next) {
        struct endpoint *endpoint = CONTAINER_OF(at, struct endpoint, of_route);
        if (!delivery->is_device(endpoint, device_id))
            continue;
        delivery->router->deliver(endpoint, broadcast, 0);
        sent++;
    }
    return sent;
}

static void open_parcel(struct delivery *delivery, const struct parcel *parcel)
{
    struct message message = {
        .type = MESSAGE_RELAY,
        .relay = {parcel->type, parcel->fields, parcel->chat, parcel->sequence}};
    struct broadcast broadcast = {.message = &message};
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
        else if (parcel->device.data)
            delivered += send_to_device(delivery, user, parcel->device, &broadcast);
        else
            delivered += router_broadcast_to_user(delivery->router, user, &broadcast,
                                                  find_except(delivery, user, parcel->except));
    }
    broadcast_end(&broadcast);
    metrics_add(delivery->metrics, METRIC_FANOUT_DELIVERED, (int64_t)delivered);
}

void delivery_received(struct delivery *delivery, struct slice payload)
{
    struct parcel parcel;
    struct ulid close_id;
    char *text = malloc(payload.len + 1);
    if (!text)
        return;
    memcpy(text, payload.data, payload.len);
    bool valid = parse(text, payload.len, &parcel) &&
                 (ulid_parse(parcel.close, &close_id) ||
                  (parcel.type.data && parcel.fields.len >= 2 && parcel.fields.data[0] == '{'));
    if (valid && !is_repetition(&delivery->recent, &parcel))
        open_parcel(delivery, &parcel);
    else if (!valid)
        log_warn("bad_delivery_event", "bytes=%zu", payload.len);
    free(text);
}
