#include "routing/delivery.h"

#include "protocol/fields.h"
#include "text/json.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

struct slice delivery_topic(char *out, struct slice gateway_id)
{
    int len =
        snprintf(out, ROUTER_TOPIC_BYTES_MAX, "server:%.*s:deliver", SLICE_FORMAT(gateway_id));
    return (struct slice){out, (size_t)len};
}

/* A message under way: its fields are encoded while the routes are looked up. */
struct sending {
    struct delivery *delivery;
    struct slice name;
    struct buffer fields;
    uint64_t id;               /* of an event that no sequence tells from others */
    const struct slice *users; /* borrowed while the call lasts that looks the routes up */
    size_t user_count;
    struct buffer everybody; /* the same as JSON, for later */
    bool *ended;             /* told when it is over within that call */
    struct slice chat;       /* of a chat's message, copied */
    int64_t sequence;
    bool has_except;
    struct ulid except;
    char device[DEVICE_ID_BYTES_MAX];
    size_t device_len; /* 0: to all devices */
    void (*done)(void *arg, bool sent);
    void *arg;
    char chat_bytes[];
};

static void write_user_list(struct buffer *out, const struct slice *users, size_t count)
{
    json_write_array(out);
    for (size_t i = 0; i < count; i++)
        json_write_string(out, users[i]);
    json_write_array_end(out);
}

static void write_users(struct buffer *out, const struct slice *users, size_t count)
{
    json_write_key(out, SLICE("users"));
    write_user_list(out, users, count);
}

static void write_conn_id(struct buffer *out, struct slice key, const struct ulid *conn_id)
{
    char text[ULID_TEXT_LEN];
    ulid_write(text, conn_id);
    json_write_key_string(out, key, (struct slice){text, sizeof(text)});
}

static void publish(struct delivery *delivery, struct slice topic, struct buffer *payload)
{
    if (!payload->failed)
        bus_publish(delivery->router->bus, topic, buffer_slice(payload));
    buffer_free(payload);
}

/* All but the users. */
static void write_rest(struct buffer *out, const struct sending *sending)
{
    json_write_key_string(out, SLICE("type"), sending->name);
    json_write_key(out, SLICE("fields"));
    json_write_raw(out, buffer_slice(&sending->fields));
    if (sending->has_except)
        write_conn_id(out, SLICE("except"), &sending->except);
    if (sending->device_len)
        json_write_key_string(out, SLICE("device"),
                              (struct slice){sending->device, sending->device_len});
    if (sending->sequence) {
        json_write_key_string(out, SLICE("chat"), sending->chat);
        json_write_key_int(out, SLICE("sequence"), sending->sequence);
    } else {
        char id[DELIVERY_ID_TEXT_LEN + 1];
        snprintf(id, sizeof(id), "%016llx", (unsigned long long)sending->id);
        json_write_key_string(out, SLICE("id"), (struct slice){id, DELIVERY_ID_TEXT_LEN});
    }
}

static void send_to_gateway(const struct sending *sending, const struct state_route *route)
{
    char name[ROUTER_TOPIC_BYTES_MAX];
    struct buffer payload = BUFFER_INIT;
    json_write_object(&payload);
    write_users(&payload, route->users, route->count);
    write_rest(&payload, sending);
    json_write_object_end(&payload);
    publish(sending->delivery, delivery_topic(name, route->gateway_id), &payload);
}

/* Nobody knows where they are: all gateways that the topic means hear of it, and each tells those it has.
 * False when memory is short. */
static bool broadcast(const struct sending *sending, struct slice topic)
{
    struct buffer payload = BUFFER_INIT;
    json_write_object(&payload);
    if (sending->users) {
        write_users(&payload, sending->users, sending->user_count);
    } else {
        json_write_key(&payload, SLICE("users"));
        json_write_raw(&payload, buffer_slice(&sending->everybody));
    }
    write_rest(&payload, sending);
    json_write_object_end(&payload);
    bool whole = !payload.failed && !sending->everybody.failed;
    if (whole) {
        metrics_count(sending->delivery->metrics, METRIC_BROADCASTS);
        bus_publish(sending->delivery->router->bus, topic, buffer_slice(&payload));
    }
    buffer_free(&payload);
    return whole;
}

static void end_sending(struct sending *sending, bool sent)
{
    if (sending->ended)
        *sending->ended = true;
    sending->done(sending->arg, sent);
    buffer_free(&sending->everybody);
    buffer_free(&sending->fields);
    free(sending);
}

uint64_t delivery_place_id(struct slice chat_id, int64_t sequence)
{
    return XXH3_64bits_withSeed(chat_id.data, chat_id.len, (uint64_t)sequence);
}

void delivery_disturbed(struct delivery *delivery)
{
    if (delivery->recovery)
        recovery_disturb(delivery->recovery);
}

/* Those who lost their connection a moment ago get it when they come back. */
static void keep(const struct sending *sending, const struct slice *users, size_t count)
{
    struct delivery *delivery = sending->delivery;
    if (!delivery->recovery || sending->device_len || count == 0)
        return;
    struct blob *blob =
        encoder_encode(delivery->router->encoder, &DIALECT_TABLE_SOCKETIO,
                       &(struct message){.type = MESSAGE_RELAY,
                                         .id = SLICE_NONE,
                                         .relay = {.name = sending->name,
                                                   .fields = buffer_slice(&sending->fields)}});
    uint64_t id =
        sending->sequence ? delivery_place_id(sending->chat, sending->sequence) : sending->id;
    if (blob)
        recovery_append(delivery->recovery, users, count,
                        &(struct recovery_event){RECOVERY_MISSED, id, {blob->bytes, blob->len}});
    else
        delivery_disturbed(delivery);
    blob_drop(&blob);
}

/* Where only the recovery store knows who they are. */
static void keep_for_all(const struct sending *sending, const struct slice *users, size_t count)
{
    struct recovery_store *recovery = sending->delivery->recovery;
    if (recovery && !recovery_is_empty(recovery))
        keep(sending, users, count);
}

static void routed(void *arg, enum state_status status, const struct state_routes *routes)
{
    struct sending *sending = arg;
    struct metrics *metrics = sending->delivery->metrics;
    bool known = status == STATE_OK;
    bool sent = known;
    metrics_count(metrics, METRIC_ROUTING_LOOKUPS);
    metrics_set(metrics, METRIC_BROADCAST_MODE, !known);
    for (size_t i = 0; known && i < routes->count; i++)
        send_to_gateway(sending, &routes->items[i]);
    if (known)
        keep(sending, routes->parked, routes->parked_count);
    if (!known) {
        metrics_count(metrics, METRIC_ROUTING_LOOKUP_ERRORS);
        delivery_disturbed(sending->delivery);
        sent = broadcast(sending, BUS_TOPIC_ALL);
    } else if (bus_has_lost(sending->delivery->router->bus)) {
        broadcast(sending, BUS_TOPIC_LOST);
    }
    end_sending(sending, sent);
}

/* Unlike that of any other event: counted by each gateway, and gateways differ by seed or by address. */
static uint64_t next_id(struct delivery *delivery)
{
    uint64_t parts[] = {++delivery->sent_count, (uintptr_t)delivery};
    return XXH3_64bits_withSeed(parts, sizeof(parts), delivery->router->seed);
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
    sending->id = next_id(delivery);
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
    bool ended = false;
    if (sending->fields.failed) {
        end_sending(sending, false);
        return;
    }
    keep_for_all(sending, users, count);
    sending->users = users;
    sending->user_count = count;
    sending->ended = &ended;
    state_routes(sending->delivery->store, users, count, routed, sending);
    if (ended)
        return;
    sending->users = NULL;
    sending->ended = NULL;
    write_user_list(&sending->everybody, users, count);
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
    char name[ROUTER_TOPIC_BYTES_MAX];
    struct buffer payload = BUFFER_INIT;
    json_write_object(&payload);
    write_conn_id(&payload, SLICE("close"), conn_id);
    write_users(&payload, &user_id, 1);
    json_write_object_end(&payload);
    publish(delivery, delivery_topic(name, gateway_id), &payload);
}
