#include "routing/delivery.h"

#include "base/container.h"
#include "protocol/fields.h"
#include "routing/delivery_payload.h"
#include "text/json.h"

#include <assert.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* An event on its way: it is encoded before its routes are looked up. */
struct event_sending {
    struct delivery_payload payload;
    struct delivery *delivery;
    struct slice name;
    size_t fields_at; /* where the fields stand in the payload's head */
    size_t fields_len;
    uint64_t id;        /* the same on the sending and the receiving gateways */
    bool to_one_device; /* such an event is not kept for parked sessions */
    delivery_done done;
    delivery_counted counted; /* instead of `done` */
    const struct delivery_locals *locals;
    struct id_list users; /* of a counted event, borrowed */
    size_t user_count;    /* of them, those with a device */
    bool counts_devices;  /* of its only user, instead of users */
    bool goes_twice;      /* by routes and by broadcast */
    void *arg;
};

uint64_t delivery_chat_message_id(struct slice message_id)
{
    struct ulid ulid;
    uint64_t random_bits;
    if (!ulid_parse(message_id, &ulid))
        return 0;
    memcpy(&random_bits, ulid.bytes + sizeof(ulid.bytes) - sizeof(random_bits),
           sizeof(random_bits));
    return be64toh(random_bits);
}

/* Events pass without being kept for the parked sessions. */
static void delivery_invalidate_parked(struct delivery *delivery)
{
    if (delivery->recovery)
        recovery_invalidate(delivery->recovery);
}

static void delivery_write_conn_id(struct buffer *out, struct slice key, const struct ulid *conn_id)
{
    char text[ULID_TEXT_LEN];
    ulid_write(text, conn_id);
    json_write_key_string(out, key, (struct slice){text, sizeof(text)});
}

/* Keeps the event for users who lost their connection a moment ago. */
static void event_sending_keep(const struct event_sending *sending, const struct slice *users,
                               size_t count)
{
    struct delivery *delivery = sending->delivery;
    if (!delivery->recovery || sending->to_one_device || count == 0)
        return;
    struct slice fields = {sending->payload.head.data + sending->fields_at, sending->fields_len};
    struct blob *blob =
        encoder_encode(delivery->encoder, delivery->recovery_dialect,
                       &(struct message){.type = MESSAGE_RELAY,
                                         .id = SLICE_NONE,
                                         .relay = {.name = sending->name, .fields = fields}});
    if (blob)
        recovery_append(
            delivery->recovery, users, count,
            &(struct recovery_event){RECOVERY_MISSED, sending->id, {blob->bytes, blob->len}});
    else
        delivery_invalidate_parked(delivery);
    blob_drop(&blob);
}

static void event_sending_end(struct event_sending *sending, enum delivery_result result)
{
    delivery_done done = sending->done;
    delivery_counted counted = sending->counted;
    size_t user_count = sending->user_count;
    void *arg = sending->arg;
    delivery_payload_end(&sending->payload);
    free(sending);
    if (done)
        done(arg, result);
    else if (counted)
        counted(arg, result, user_count);
}

/* Without routes. */
static enum delivery_result event_sending_broadcast(struct event_sending *sending)
{
    delivery_invalidate_parked(sending->delivery);
    if (!sending->payload.broadcasts)
        return DELIVERY_SKIPPED;
    return delivery_payload_broadcast(&sending->payload, BUS_TOPIC_ALL) ? DELIVERY_SENT
                                                                        : DELIVERY_FAILED;
}

/* ---- counted events ---- */

static size_t event_sending_local_devices(const struct event_sending *sending, struct slice user)
{
    return sending->locals->devices(sending->locals->arg, user);
}

static bool event_sending_is_known(const struct event_sending *sending, struct slice user,
                                   enum delivery_known known)
{
    return sending->locals->known(sending->locals->arg, user) == known;
}

/* Without routes: a user who is not here may be on any gateway that the broadcast reaches. */
static enum delivery_result event_sending_count_unrouted(struct event_sending *sending)
{
    bool reaches_all = bus_reaches_all(sending->payload.bus);
    size_t counted = 0;
    for (size_t i = 0; i < sending->users.count; i++) {
        struct slice user = sending->users.ids[i];
        size_t devices = event_sending_local_devices(sending, user);
        if (!devices && !reaches_all)
            return DELIVERY_SKIPPED;
        if (devices)
            counted += sending->counts_devices ? devices : 1;
        else
            counted += !event_sending_is_known(sending, user, DELIVERY_KNOWN_OFFLINE);
    }
    enum delivery_result result = event_sending_broadcast(sending);
    sending->user_count = result == DELIVERY_SENT ? counted : 0;
    return result;
}

static void mark_routed_users(const struct event_sending *sending, const struct state_route *route,
                              bool *marks)
{
    for (size_t i = 0; i < route->count; i++) {
        const struct slice *user = id_list_sorted_find(&sending->users, route->users[i]);
        if (user)
            marks[user - sending->users.ids] = true;
    }
}

/* After the routes: to all gateways if routes may be missing, or else to those that the store has lost. Parked sessions have
 * been served by then, which "kept" tells the receivers. Returns false when out of memory for what must not be missed. */
static bool event_sending_broadcast_too(struct event_sending *sending)
{
    struct delivery_payload *payload = &sending->payload;
    if (sending->goes_twice)
        json_write_key_bool(&payload->head, SLICE("kept"), true);
    else if (!bus_has_lost(payload->bus))
        return true;
    bool is_sent =
        !payload->head.failed &&
        delivery_payload_broadcast(payload, sending->goes_twice ? BUS_TOPIC_ALL : BUS_TOPIC_LOST);
    metrics_add(payload->metrics, METRIC_BROADCASTS, is_sent);
    return is_sent || !sending->goes_twice;
}

/* Counts the users with a route, or whose route may be missing, and serves those whom this gateway holds without one. */
static enum delivery_result event_sending_count(struct event_sending *sending,
                                                const struct state_routes *routes)
{
    size_t count = sending->users.count, missing = 0;
    bool *routed = calloc(2 * count + 1, sizeof(*routed)), *routed_here = routed + count;
    struct slice *locals = calloc(count + 1, sizeof(*locals));
    struct slice here = sending->locals->gateway_id;
    for (size_t i = 0; routed && locals && i < routes->count; i++) {
        mark_routed_users(sending, &routes->items[i], routed);
        if (slice_equal(routes->items[i].gateway_id, here))
            mark_routed_users(sending, &routes->items[i], routed_here);
    }
    for (size_t i = 0; routed && locals && i < count; i++) {
        struct slice user = sending->users.ids[i];
        if (!routed_here[i] && event_sending_local_devices(sending, user)) {
            locals[missing++] = user;
            routed[i] = true;
        }
        routed[i] |= sending->goes_twice && !routed[i] &&
                     event_sending_is_known(sending, user, DELIVERY_KNOWN_ONLINE);
        sending->user_count += routed[i];
    }
    struct state_route route = {here, locals, missing};
    if (missing)
        delivery_payload_publish(&sending->payload,
                                 &(struct state_routes){.items = &route, .count = 1});
    enum delivery_result result = routed && locals ? DELIVERY_SENT : DELIVERY_FAILED;
    free(routed);
    free(locals);
    return result;
}

/* Each gateway with a route has a device, and so has this one, whatever the store knows. */
static size_t event_sending_count_devices(const struct state_routes *routes)
{
    size_t least = routes->count ? routes->count : 1;
    return routes->devices > least ? routes->devices : least;
}

/* Publishes to the gateways of these routes, and keeps the event for the parked sessions. */
static void event_sending_publish(struct event_sending *sending, const struct state_routes *routes)
{
    metrics_add(sending->delivery->metrics, METRIC_FANOUT_SENT,
                (int64_t)delivery_payload_publish(&sending->payload, routes));
    event_sending_keep(sending, routes->parked, routes->parked_count);
}

static void on_event_routed_early(struct delivery_payload *payload,
                                  const struct state_routes *routes)
{
    struct event_sending *sending = CONTAINER_OF(payload, struct event_sending, payload);
    event_sending_publish(sending, routes);
}

static void on_event_routed(struct delivery_payload *payload, enum state_status status,
                            const struct state_routes *routes)
{
    struct event_sending *sending = CONTAINER_OF(payload, struct event_sending, payload);
    struct delivery *delivery = sending->delivery;
    bool is_routed = status == STATE_OK;
    enum delivery_result result = DELIVERY_SENT;
    metrics_set(delivery->metrics, METRIC_BROADCAST_MODE, !is_routed);
    if (!is_routed) {
        result = sending->counted ? event_sending_count_unrouted(sending)
                                  : event_sending_broadcast(sending);
        metrics_add(delivery->metrics, METRIC_BROADCASTS, result == DELIVERY_SENT);
    } else {
        event_sending_publish(sending, routes->added ? routes->added : routes);
        if (sending->counted)
            result = event_sending_count(sending, routes);
        if (sending->counts_devices && sending->user_count)
            sending->user_count = event_sending_count_devices(routes);
        if (!event_sending_broadcast_too(sending))
            result = DELIVERY_FAILED;
    }
    event_sending_end(sending, result);
}

/* Returns an id unlike that of any other event: each gateway counts its own events, and gateways differ by
 * seed or, within a process, by number. */
static uint64_t delivery_next_event_id(struct delivery *delivery)
{
    uint64_t parts[] = {++delivery->sent_count, delivery->number};
    return XXH3_64bits_withSeed(parts, sizeof(parts), delivery->seed);
}

/* Writes an event of this kind without its users. `device_id` SLICE_NONE: to all devices. Returns NULL when out of memory. */
static struct event_sending *event_sending_make(struct delivery *delivery, enum delivery_kind kind,
                                                const struct message *message,
                                                const struct ulid *except, struct slice device_id)
{
    struct event_sending *sending = calloc(1, sizeof(*sending));
    if (!sending)
        return NULL;
    struct buffer *head = &sending->payload.head;
    sending->payload.bus = delivery->bus;
    sending->payload.store = delivery->store;
    sending->payload.metrics = delivery->metrics;
    sending->payload.on_routed = on_event_routed;
    sending->payload.on_early = on_event_routed_early;
    sending->payload.broadcasts = delivery->broadcasts;
    sending->delivery = delivery;
    sending->name = message_name(message);
    sending->to_one_device = device_id.len > 0;
    delivery_payload_begin(&sending->payload, kind);
    json_write_key_string(head, SLICE("type"), sending->name);
    json_write_key(head, SLICE("fields"));
    sending->fields_at = head->len;
    json_write_object(head);
    fields_encode(head, message);
    json_write_object_end(head);
    sending->fields_len = head->len - sending->fields_at;
    if (except)
        delivery_write_conn_id(head, SLICE("except"), except);
    if (device_id.len)
        json_write_key_string(head, SLICE("device"), device_id);
    if (message->type == MESSAGE_MESSAGE && message->chat_message.sequence) {
        const struct chat_message *chat_message = &message->chat_message;
        sending->id = delivery_chat_message_id(chat_message->message_id);
        json_write_key_string(head, SLICE("chat"), chat_message->chat_id);
        json_write_key_int(head, SLICE("sequence"), chat_message->sequence);
    } else {
        sending->id = delivery_next_event_id(delivery);
    }
    char id[DELIVERY_ID_TEXT_LEN + 1];
    snprintf(id, sizeof(id), "%016llx", (unsigned long long)sending->id);
    json_write_key_string(head, SLICE("id"), (struct slice){id, DELIVERY_ID_TEXT_LEN});
    return sending;
}

static void event_sending_route(struct event_sending *sending, const struct slice *users,
                                size_t count)
{
    struct recovery_store *recovery = sending->delivery->recovery;
    if (sending->goes_twice || state_may_route_early(sending->payload.store, count))
        json_write_key_bool(&sending->payload.head, SLICE("twice"), true);
    if (sending->payload.head.failed) {
        event_sending_end(sending, DELIVERY_FAILED);
        return;
    }
    /* Routes may not name the users with parked sessions; then only the recovery store has them. */
    if (recovery && !recovery_is_empty(recovery))
        event_sending_keep(sending, users, count);
    delivery_payload_route(&sending->payload, users, count);
}

void delivery_send_then(struct delivery *delivery, const struct slice *users, size_t count,
                        const struct message *message, const struct ulid *except,
                        delivery_done done, void *arg)
{
    struct event_sending *sending =
        event_sending_make(delivery, DELIVERY_EVENT, message, except, SLICE_NONE);
    if (!sending) {
        if (done)
            done(arg, DELIVERY_FAILED);
        return;
    }
    sending->done = done;
    sending->arg = arg;
    event_sending_route(sending, users, count);
}

/* Whether routes alone may miss devices that a broadcast reaches. */
static bool delivery_needs_broadcast(const struct delivery *delivery)
{
    return delivery->broadcasts && delivery->may_lack_routes &&
           delivery->may_lack_routes(delivery->arg) && bus_reaches_all(delivery->bus);
}

static void event_sending_start_counted(struct delivery *delivery, struct id_list users,
                                        bool counts_devices, const struct message *message,
                                        const struct delivery_locals *locals, delivery_counted done,
                                        void *arg)
{
    struct event_sending *sending =
        event_sending_make(delivery, DELIVERY_EVENT, message, NULL, SLICE_NONE);
    if (!sending) {
        done(arg, DELIVERY_FAILED, 0);
        return;
    }
    sending->counted = done;
    sending->locals = locals;
    sending->users = users;
    sending->counts_devices = counts_devices;
    sending->goes_twice = delivery_needs_broadcast(delivery);
    sending->arg = arg;
    event_sending_route(sending, users.ids, users.count);
}

void delivery_send_counted(struct delivery *delivery, const struct slice *users, size_t count,
                           const struct message *message, const struct delivery_locals *locals,
                           delivery_counted done, void *arg)
{
    event_sending_start_counted(delivery, (struct id_list){users, count}, false, message, locals,
                                done, arg);
}

void delivery_send_to_devices(struct delivery *delivery, const struct slice *user,
                              const struct message *message, const struct delivery_locals *locals,
                              delivery_counted done, void *arg)
{
    event_sending_start_counted(delivery, (struct id_list){user, 1}, true, message, locals, done,
                                arg);
}

/* Writes an event for everyone, which names nobody. Returns NULL when out of memory. */
static struct event_sending *event_sending_make_everyone(struct delivery *delivery,
                                                         const struct message *message)
{
    static const struct slice NOBODY = {NULL, 0};
    struct event_sending *sending =
        event_sending_make(delivery, DELIVERY_EVERYONE, message, NULL, SLICE_NONE);
    if (sending)
        sending->payload.users = (struct id_list){&NOBODY, 0};
    return sending;
}

enum delivery_result delivery_broadcast_everyone(struct delivery *delivery,
                                                 const struct message *message)
{
    if (!bus_reaches_all(delivery->bus))
        return DELIVERY_SKIPPED;
    struct event_sending *sending = event_sending_make_everyone(delivery, message);
    if (!sending)
        return DELIVERY_FAILED;
    enum delivery_result result =
        sending->payload.head.failed ? DELIVERY_FAILED : event_sending_broadcast(sending);
    metrics_add(delivery->metrics, METRIC_BROADCASTS, result == DELIVERY_SENT);
    event_sending_end(sending, result);
    return result;
}

bool delivery_send_everyone(struct delivery *delivery, const struct slice *gateway_ids,
                            size_t count, const struct message *message)
{
    struct event_sending *sending = event_sending_make_everyone(delivery, message);
    bool needs_broadcast = delivery_needs_broadcast(delivery);
    struct slice nobody = SLICE_NONE;
    bool is_written = sending && !sending->payload.head.failed;
    for (size_t i = 0; is_written && i < count; i++) {
        struct state_route route = {gateway_ids[i], &nobody, 0};
        delivery_payload_publish(&sending->payload,
                                 &(struct state_routes){.items = &route, .count = 1});
    }
    if (is_written && (needs_broadcast || bus_has_lost(delivery->bus)))
        delivery_payload_broadcast(&sending->payload,
                                   needs_broadcast ? BUS_TOPIC_ALL : BUS_TOPIC_LOST);
    if (sending)
        event_sending_end(sending, DELIVERY_SENT);
    return is_written;
}

void delivery_send(struct delivery *delivery, const struct slice *users, size_t count,
                   const struct message *message, const struct ulid *except)
{
    delivery_send_then(delivery, users, count, message, except, NULL, NULL);
}

void delivery_send_device(struct delivery *delivery, struct slice user_id, struct slice device_id,
                          const struct message *message)
{
    struct event_sending *sending =
        event_sending_make(delivery, DELIVERY_EVENT, message, NULL, device_id);
    if (sending)
        event_sending_route(sending, &user_id, 1);
}

void delivery_close(struct delivery *delivery, struct slice gateway_id, struct slice user_id,
                    const struct ulid *conn_id, enum closing_reason reason)
{
    struct delivery_payload payload = {.bus = delivery->bus};
    struct state_route route = {gateway_id, &user_id, 1};
    delivery_payload_begin(&payload, DELIVERY_CLOSE);
    delivery_write_conn_id(&payload.head, SLICE("conn_id"), conn_id);
    json_write_key_string(&payload.head, SLICE("reason"), slice_of(closing_reason_name(reason)));
    if (!payload.head.failed)
        delivery_payload_publish(&payload, &(struct state_routes){.items = &route, .count = 1});
    delivery_payload_end(&payload);
}
