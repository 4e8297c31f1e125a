#include "routing/delivery_receiver.h"

#include "base/container.h"
#include "base/hash_key.h"
#include "log/log.h"
#include "routing/delivery_payload.h"
#include "text/json.h"

#include <stdlib.h>
#include <string.h>

enum { RECEIVED_USER_BYTES_MAX = UINT8_MAX }; /* of a user who can have a route (router.h) */

/* ---- events ---- */

struct received_event {
    struct slice users; /* raw JSON */
    struct slice type;
    struct slice fields; /* raw JSON */
    struct slice except;
    struct slice device;
    struct slice chat;
    int64_t sequence;
    struct slice id;
    bool comes_twice;
    bool is_kept;
};

static bool received_event_parse(struct json *json, struct received_event *event)
{
    struct slice key;
    while (json_member(json, &key)) {
        if (slice_is(key, "users"))
            json_raw(json, &event->users);
        else if (slice_is(key, "type"))
            json_string(json, &event->type);
        else if (slice_is(key, "fields"))
            json_raw(json, &event->fields);
        else if (slice_is(key, "except"))
            json_string(json, &event->except);
        else if (slice_is(key, "device"))
            json_string(json, &event->device);
        else if (slice_is(key, "chat"))
            json_string(json, &event->chat);
        else if (slice_is(key, "sequence"))
            json_int(json, &event->sequence);
        else if (slice_is(key, "id"))
            json_string(json, &event->id);
        else if (slice_is(key, "twice"))
            json_bool(json, &event->comes_twice);
        else if (slice_is(key, "kept"))
            json_bool(json, &event->is_kept);
        else
            json_skip(json);
    }
    return json_done(json) && event->users.data && event->type.data && event->fields.len >= 2 &&
           event->fields.data[0] == '{';
}

/* Returns the endpoint of the user that must not get the event; NULL: all get it. */
static const struct endpoint *delivery_find_except(const struct delivery_receiver *receiver,
                                                   struct slice user_id, struct slice except)
{
    struct ulid conn_id;
    struct route *route = router_find(receiver->router, user_id);
    if (!route || !ulid_parse(except, &conn_id))
        return NULL;
    for (struct list *at = route->endpoints.next; at != &route->endpoints; at = at->next) {
        const struct endpoint *endpoint = CONTAINER_OF(at, struct endpoint, of_route);
        if (receiver->is_connection(endpoint, &conn_id))
            return endpoint;
    }
    return NULL;
}

static size_t delivery_send_to_local_device(struct delivery_receiver *receiver,
                                            struct slice user_id, struct slice device_id,
                                            struct broadcast *broadcast)
{
    struct route *route = router_find(receiver->router, user_id);
    struct list *at = route ? route->endpoints.next : NULL;
    size_t delivered = 0;
    for (; at && at != &route->endpoints; at = at->next) {
        struct endpoint *endpoint = CONTAINER_OF(at, struct endpoint, of_route);
        if (!receiver->is_device(endpoint, device_id))
            continue;
        receiver->router->deliver(endpoint, broadcast, 0);
        delivered++;
    }
    return delivered;
}

/* Returns 0 if the event has no id, as a chat message of an earlier version; it is never a duplicate. */
static uint64_t received_event_id(const struct received_event *event)
{
    char digits[DELIVERY_ID_TEXT_LEN + 1] = {0};
    if (event->id.len != DELIVERY_ID_TEXT_LEN)
        return 0;
    memcpy(digits, event->id.data, DELIVERY_ID_TEXT_LEN);
    return strtoull(digits, NULL, 16);
}

/* Keeps the event for a session of the user that left a moment ago, or is coming back just now. */
static void delivery_keep_received_event(const struct delivery_receiver *receiver,
                                         struct slice user, struct broadcast *broadcast)
{
    if (!receiver->recovery || !recovery_expects(receiver->recovery, user))
        return;
    const struct blob *blob =
        broadcast_blob(broadcast, receiver->router->encoder, receiver->recovery_dialect);
    if (blob)
        recovery_append(receiver->recovery, &user, 1,
                        &(struct recovery_event){RECOVERY_MISSED,
                                                 broadcast->message->relay.event_id,
                                                 {blob->bytes, blob->len}});
    else
        recovery_invalidate(receiver->recovery);
}

/* An event that comes by routes and by broadcast names other users each time, so it is recognised user by user. */
static bool delivery_is_second_copy(struct delivery_receiver *receiver,
                                    const struct received_event *event, struct slice user)
{
    char key[DELIVERY_ID_TEXT_LEN + RECEIVED_USER_BYTES_MAX];
    if (!event->comes_twice || event->id.len != DELIVERY_ID_TEXT_LEN ||
        user.len > RECEIVED_USER_BYTES_MAX)
        return false;
    memcpy(key, event->id.data, DELIVERY_ID_TEXT_LEN);
    memcpy(key + DELIVERY_ID_TEXT_LEN, user.data, user.len);
    struct slice whole = {key, DELIVERY_ID_TEXT_LEN + user.len};
    bool is_new = seen_note(&receiver->seen, hash_key_hash(&receiver->router->key, whole));
    metrics_add(receiver->metrics, METRIC_FANOUT_DUPLICATES, !is_new);
    return !is_new;
}

static bool delivery_receive_event(struct delivery_receiver *receiver, struct json *json)
{
    struct received_event event = {0};
    if (!received_event_parse(json, &event))
        return false;
    receiver->is_kept = event.is_kept;
    uint64_t id = received_event_id(&event);
    bool was_seen = event.sequence && id && !seen_note(&receiver->seen, id);
    if (was_seen && !event.comes_twice) {
        metrics_count(receiver->metrics, METRIC_FANOUT_DUPLICATES);
        return true;
    }
    struct message message = {.type = MESSAGE_RELAY,
                              .relay = {event.type, event.fields, event.chat, event.sequence, id}};
    struct broadcast broadcast = {.message = &message};
    struct json users;
    struct slice user;
    size_t delivered = 0;
    json_init(&users, (char *)event.users.data, event.users.len);
    json_array(&users);
    while (json_element(&users) && json_string(&users, &user)) {
        if (delivery_is_second_copy(receiver, &event, user))
            continue;
        if (receiver->on_call && slice_starts_with(event.type, SLICE("call_")))
            receiver->on_call(receiver->call_arg, user, event.type, event.fields);
        if (event.device.data) {
            delivered += delivery_send_to_local_device(receiver, user, event.device, &broadcast);
            continue;
        }
        delivery_keep_received_event(receiver, user, &broadcast);
        delivered += router_broadcast_to_user(receiver->router, user, &broadcast,
                                              delivery_find_except(receiver, user, event.except));
    }
    broadcast_end(&broadcast);
    metrics_add(receiver->metrics, METRIC_FANOUT_DELIVERED, (int64_t)delivered);
    return true;
}

/* ---- other kinds ---- */

static bool delivery_receive_close(struct delivery_receiver *receiver, struct json *json)
{
    struct slice key, users = SLICE_NONE, conn_text = SLICE_NONE, user, name;
    struct ulid conn_id;
    enum closing_reason reason = CLOSING_ADMIN;
    while (json_member(json, &key)) {
        if (slice_is(key, "users"))
            json_raw(json, &users);
        else if (slice_is(key, "conn_id"))
            json_string(json, &conn_text);
        else if (slice_is(key, "reason") && json_string(json, &name))
            reason = closing_reason_parse(name);
        else
            json_skip(json);
    }
    if (!json_done(json) || !users.data || !ulid_parse(conn_text, &conn_id) ||
        reason == CLOSING_REASON_COUNT)
        return false;
    struct json list;
    json_init(&list, (char *)users.data, users.len);
    json_array(&list);
    while (json_element(&list) && json_string(&list, &user))
        receiver->on_close(receiver->arg, user, &conn_id, reason);
    return true;
}

static bool delivery_receive_presence(struct delivery_receiver *receiver, struct json *json)
{
    return !receiver->on_presence || receiver->on_presence(receiver->presence_arg, json);
}

/* Nobody keeps the event for parked sessions, so they cannot be recovered. */
static bool delivery_receive_everyone(struct delivery_receiver *receiver, struct json *json)
{
    struct received_event event = {0};
    if (!received_event_parse(json, &event))
        return false;
    uint64_t id = received_event_id(&event);
    if (id && !seen_note(&receiver->seen, id)) {
        metrics_count(receiver->metrics, METRIC_FANOUT_DUPLICATES);
        return true;
    }
    if (receiver->recovery)
        recovery_invalidate(receiver->recovery);
    if (receiver->everyone)
        everyone_begin(receiver->everyone, event.type, event.fields, id, NULL);
    return true;
}

void delivery_receive_local(struct delivery_receiver *receiver, const struct delivery_local *local)
{
    struct message message = {
        .type = MESSAGE_RELAY,
        .relay = {.name = SLICE("delivery"), .fields = local->fields, .event_id = local->event_id}};
    struct broadcast broadcast = {.message = &message};
    if (local->to_everyone) {
        if (receiver->recovery)
            recovery_invalidate(receiver->recovery);
        if (receiver->everyone)
            everyone_begin(receiver->everyone, message.relay.name, local->fields, local->event_id,
                           &local->users);
        return;
    }
    size_t delivered = 0;
    for (size_t i = 0; i < local->users.count; i++) {
        delivery_keep_received_event(receiver, local->users.ids[i], &broadcast);
        delivered +=
            router_broadcast_to_user(receiver->router, local->users.ids[i], &broadcast, NULL);
    }
    broadcast_end(&broadcast);
    metrics_add(receiver->metrics, METRIC_FANOUT_DELIVERED, (int64_t)delivered);
}

static bool delivery_receive_kind(struct delivery_receiver *receiver, struct json *json)
{
    static bool (*const receivers[DELIVERY_KINDS])(struct delivery_receiver *, struct json *) = {
        [DELIVERY_EVENT] = delivery_receive_event,
        [DELIVERY_CLOSE] = delivery_receive_close,
        [DELIVERY_PRESENCE] = delivery_receive_presence,
        [DELIVERY_EVERYONE] = delivery_receive_everyone,
    };
    struct slice key, name;
    json_object(json);
    if (!json_member(json, &key) || !slice_is(key, "kind") || !json_string(json, &name))
        return false;
    for (int kind = 0; kind < DELIVERY_KINDS; kind++)
        if (slice_equal(name, delivery_kind_name((enum delivery_kind)kind)))
            return receivers[kind](receiver, json);
    return false;
}

static void delivery_receive_payload(struct delivery_receiver *receiver, struct slice payload)
{
    struct json json;
    char *text = malloc(payload.len + 1);
    if (!text)
        return;
    memcpy(text, payload.data, payload.len);
    json_init(&json, text, payload.len);
    if (!delivery_receive_kind(receiver, &json))
        log_warn("bad_delivery_event", "bytes=%zu", payload.len);
    free(text);
}

void delivery_received(struct delivery_receiver *receiver, struct slice topic, struct slice payload)
{
    receiver->is_kept = false;
    delivery_receive_payload(receiver, payload);
    if (receiver->recovery && slice_equal(topic, BUS_TOPIC_ALL) && !receiver->is_kept)
        recovery_invalidate(receiver->recovery);
}
