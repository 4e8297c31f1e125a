/* The receiving half of delivery.h. */
#include "base/container.h"
#include "log/log.h"
#include "routing/delivery.h"
#include "text/json.h"

#include <stdlib.h>
#include <string.h>

struct parcel {
    struct slice users; /* raw JSON */
    struct slice type;
    struct slice fields; /* raw JSON */
    struct slice close;
    struct slice except;
    struct slice device;
    struct slice chat;
    int64_t sequence;
    struct slice id; /* of other events */
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
        else if (slice_is(key, "id"))
            json_string(&json, &parcel->id);
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
static bool is_repetition(struct delivery *delivery, const struct parcel *parcel)
{
    if (!parcel->sequence ||
        seen_note(&delivery->seen, delivery_place_id(parcel->chat, parcel->sequence)))
        return false;
    metrics_count(delivery->metrics, METRIC_FANOUT_DUPLICATES);
    return true;
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

static uint64_t event_id(const struct parcel *parcel)
{
    char digits[DELIVERY_ID_TEXT_LEN + 1] = {0};
    if (parcel->sequence)
        return delivery_place_id(parcel->chat, parcel->sequence);
    if (parcel->id.len != DELIVERY_ID_TEXT_LEN)
        return 0;
    memcpy(digits, parcel->id.data, DELIVERY_ID_TEXT_LEN);
    return strtoull(digits, NULL, 16);
}

/* A session of the user may have left a moment ago, or be coming back just now. */
static void keep(const struct delivery *delivery, struct slice user, struct broadcast *broadcast)
{
    if (!delivery->recovery || !recovery_expects(delivery->recovery, user))
        return;
    const struct blob *blob =
        broadcast_blob(broadcast, delivery->router->encoder, &DIALECT_TABLE_SOCKETIO);
    if (blob)
        recovery_append(delivery->recovery, &user, 1,
                        &(struct recovery_event){RECOVERY_MISSED,
                                                 broadcast->message->relay.event_id,
                                                 {blob->bytes, blob->len}});
    else
        recovery_disturb(delivery->recovery);
}

static size_t send_to_user(struct delivery *delivery, const struct parcel *parcel,
                           struct slice user, struct broadcast *broadcast)
{
    if (parcel->device.data)
        return send_to_device(delivery, user, parcel->device, broadcast);
    keep(delivery, user, broadcast);
    return router_broadcast_to_user(delivery->router, user, broadcast,
                                    find_except(delivery, user, parcel->except));
}

static void open_parcel(struct delivery *delivery, const struct parcel *parcel)
{
    struct message message = {
        .type = MESSAGE_RELAY,
        .relay = {parcel->type, parcel->fields, parcel->chat, parcel->sequence, event_id(parcel)}};
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
        else
            delivered += send_to_user(delivery, parcel, user, &broadcast);
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
    if (valid && !is_repetition(delivery, &parcel))
        open_parcel(delivery, &parcel);
    else if (!valid)
        log_warn("bad_delivery_event", "bytes=%zu", payload.len);
    free(text);
}
