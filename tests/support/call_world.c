#include "support/call_world.h"

#include "base/container.h"
#include "log/log.h"
#include "presence/presence_event.h"
#include "routing/delivery_payload.h"
#include "text/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* ---- events reach devices ---- */

static struct device *device_of(const struct endpoint *endpoint)
{
    return CONTAINER_OF(endpoint, struct device, endpoint);
}

static struct slice find_json_member(struct slice object, const char *name, bool raw)
{
    static char copy[64 * 1024];
    struct json json;
    struct slice key, value = SLICE_NONE;
    assert_true(object.len < sizeof(copy));
    memcpy(copy, object.data, object.len);
    json_init(&json, copy, object.len);
    json_object(&json);
    while (json_member(&json, &key)) {
        if (!slice_is(key, name))
            json_skip(&json);
        else if (raw)
            json_raw(&json, &value);
        else
            json_string(&json, &value);
    }
    return value;
}

static void copy_text(char *out, size_t capacity, struct slice text)
{
    assert_true(text.len < capacity);
    if (text.len)
        memcpy(out, text.data, text.len);
    out[text.len] = '\0';
}

static void set_picture(struct device *device, enum picture picture, struct slice call_id)
{
    device->picture = picture;
    copy_text(device->call_id, sizeof(device->call_id),
              picture == PICTURE_IDLE ? SLICE_NONE : call_id);
}

/* A device ignores the end of a call that it does not show. */
static void apply_call_event(struct device *device, struct slice name, struct slice call_id)
{
    bool is_own = slice_is(call_id, device->call_id);
    if (slice_is(name, "call_incoming"))
        set_picture(device, PICTURE_RINGING, call_id);
    else if (slice_is(name, "call_ringing"))
        set_picture(device, PICTURE_CALLING, call_id);
    else if (slice_is(name, "call_accepted"))
        set_picture(device, PICTURE_TALKING, call_id);
    else if (is_own && (slice_is(name, "call_ended") || slice_is(name, "call_rejected")))
        set_picture(device, PICTURE_IDLE, SLICE_NONE);
}

static void on_device_event(struct endpoint *endpoint, struct broadcast *broadcast, uint64_t key)
{
    (void)key;
    struct device *device = device_of(endpoint);
    const struct message *message = broadcast->message;
    if (message->type == MESSAGE_PRESENCE_SNAPSHOT) /* after a disturbance of the store */
        return;
    assert_int_equal(message->type, MESSAGE_RELAY);
    struct slice name = message->relay.name;
    struct slice reason = find_json_member(message->relay.fields, "reason", false);
    snprintf(device->last_event, sizeof(device->last_event), "%.*s%s%.*s", SLICE_FORMAT(name),
             reason.len ? " " : "", (int)reason.len, reason.data ? reason.data : "");
    device->event_count++;
    if (slice_is(name, "call_signal")) {
        struct slice data = find_json_member(message->relay.fields, "data", true);
        copy_text(device->signal, sizeof(device->signal),
                  slice_first(data, sizeof(device->signal) - 1));
    }
    apply_call_event(device, name, find_json_member(message->relay.fields, "call_id", false));
}

static bool is_connection(const struct endpoint *endpoint, const struct ulid *conn_id)
{
    return ulid_equal(&device_of(endpoint)->conn_id, conn_id);
}

static bool is_device(const struct endpoint *endpoint, struct slice device_id)
{
    return slice_is(device_id, device_of(endpoint)->name);
}

static bool is_connected(void *arg, struct slice user_id, const struct ulid *conn_id)
{
    const struct call_gateway *gateway = arg;
    for (size_t i = 0; i < gateway->world->device_count; i++) {
        const struct device *device = &gateway->world->devices[i];
        if (device->connected && device->gateway == gateway && slice_is(user_id, device->user) &&
            ulid_equal(&device->conn_id, conn_id))
            return true;
    }
    return false;
}

/* ---- gateways ---- */

static void ignore_topic(struct bus *bus, struct slice topic)
{
    (void)bus;
    (void)topic;
}

static void publish_delivery(struct bus *bus, struct slice topic, struct slice payload)
{
    struct call_world *world = CONTAINER_OF(bus, struct call_gateway, bus)->world;
    for (size_t i = 0; i < CALL_WORLD_GATEWAYS; i++) {
        char name[DELIVERY_TOPIC_BYTES_MAX];
        struct call_gateway *gateway = &world->gateways[i];
        if (slice_equal(topic, delivery_topic(name, slice_of(gateway->id))))
            delivery_received(&gateway->receiver, topic, payload);
    }
}

static const struct bus_operations BUS = {
    .subscribe = ignore_topic, .unsubscribe = ignore_topic, .publish = publish_delivery};

static void on_request_done(void *arg, struct ledger_request *done)
{
    struct call_world *world = arg;
    struct ledger_request **at = &world->posted;
    while (*at)
        at = &(*at)->next;
    *at = done;
}

static void complete_requests(struct call_world *world)
{
    for (size_t i = 0; i < CALL_WORLD_GATEWAYS; i++) /* requests that failed when out of memory */
        ledger_client_expire(&world->gateways[i].ledger);
    while (world->posted) {
        struct ledger_request *posted = world->posted;
        world->posted = NULL;
        ledger_complete(posted);
    }
}

static void open_gateway(struct call_world *world, struct call_gateway *gateway, size_t index)
{
    snprintf(gateway->id, sizeof(gateway->id), "gateway-%zu", index);
    gateway->world = world;
    gateway->bus.operations = &BUS;
    gateway->state = memory_state_store(world->state, &world->clock);
    gateway->calls.store = memory_calls_store(world->calls, &world->clock);
    encoder_init(&gateway->encoder);
    random_init_seeded(&gateway->random, index);
    assert_true(
        router_init(&gateway->router, 1, &gateway->bus, &gateway->encoder, on_device_event));
    ledger_client_init(&gateway->ledger, &world->ledger.ledger, &world->clock, on_request_done,
                       world);
    assert_true(last_seen_init(&gateway->last_seen, &gateway->ledger, 1));
    gateway->presence.config = &world->config;
    gateway->presence.clock = &world->clock;
    gateway->presence.store = gateway->state;
    gateway->presence.bus = &gateway->bus;
    gateway->presence.router = &gateway->router;
    gateway->presence.ledger = &gateway->ledger;
    gateway->presence.last_seen = &gateway->last_seen;
    gateway->presence.metrics = &gateway->metrics;
    presence_init(&gateway->presence);
    gateway->delivery = (struct delivery){
        .bus = &gateway->bus, .store = gateway->state, .metrics = &gateway->metrics, .seed = 1};
    gateway->receiver = (struct delivery_receiver){.router = &gateway->router,
                                                   .metrics = &gateway->metrics,
                                                   .is_connection = is_connection,
                                                   .is_device = is_device,
                                                   .on_call = call_told_note,
                                                   .call_arg = &gateway->calls};
    gateway->calls.presence = &gateway->presence;
    gateway->calls.delivery = &gateway->delivery;
    gateway->calls.random = &gateway->random;
    gateway->calls.is_connected = is_connected;
    gateway->calls.arg = gateway;
    assert_true(call_plane_init(&gateway->calls, 1));
}

static void close_gateway(struct call_gateway *gateway)
{
    call_plane_free(&gateway->calls);
    call_store_free(&gateway->calls.store);
    presence_free(&gateway->presence);
    last_seen_free(&gateway->last_seen);
    router_free(&gateway->router);
    encoder_free(&gateway->encoder);
    state_store_free(&gateway->state);
}

static struct memory_calls *make_calls(void)
{
    return memory_calls_make(&(struct memory_calls_options){
        .ring_timeout_ms = CALL_WORLD_RING_MS,
        .reconnect_grace_ms = CALL_WORLD_GRACE_MS,
        .lease_window_ms = CALL_WORLD_WINDOW_MS,
        .hash_seed = 1,
    });
}

void call_world_empty_calls(struct call_world *world)
{
    for (size_t i = 0; i < CALL_WORLD_GATEWAYS; i++)
        call_store_free(&world->gateways[i].calls.store);
    memory_calls_free(&world->calls);
    world->calls = make_calls();
    for (size_t i = 0; i < CALL_WORLD_GATEWAYS; i++) {
        struct call_plane *plane = &world->gateways[i].calls;
        plane->store = memory_calls_store(world->calls, &world->clock);
        plane->sync.store = plane->store;
    }
}

void call_world_open(struct call_world *world)
{
    memset(world, 0, sizeof(*world));
    log_init(LOG_LEVEL_ERROR, false);
    world->config.presence.expiry_window_ms = CALL_WORLD_WINDOW_MS;
    world->config.presence.reap_batch_max = 100;
    world->config.call.ring_timeout_ms = CALL_WORLD_RING_MS;
    world->config.call.reconnect_grace_ms = CALL_WORLD_GRACE_MS;
    world->config.call.history_max = 100;
    world->clock = (struct clock){.now_ms = 1000, .wall_ms = 1700000000000};
    world->state = memory_state_make(&(struct memory_state_options){
        .lease_window_ms = CALL_WORLD_WINDOW_MS, .offline_records_max = 1000, .hash_seed = 1});
    world->calls = make_calls();
    fake_ledger_init(&world->ledger);
    for (size_t i = 0; i < CALL_WORLD_GATEWAYS; i++)
        open_gateway(world, &world->gateways[i], i);
}

void call_world_close(struct call_world *world)
{
    for (size_t i = 0; i < world->device_count; i++)
        if (world->devices[i].connected)
            call_world_disconnect(&world->devices[i]);
    complete_requests(world);
    for (size_t i = 0; i < CALL_WORLD_GATEWAYS; i++)
        close_gateway(&world->gateways[i]);
    struct ledger *ledger = &world->ledger.ledger;
    ledger_close(&ledger);
    memory_calls_free(&world->calls);
    memory_state_free(&world->state);
}

/* ---- devices ---- */

static struct call_device call_device_of(const struct device *device)
{
    return (struct call_device){slice_of(device->user), slice_of(device->name), device->conn_id};
}

struct device *call_world_device(struct call_world *world, const char *user, const char *name,
                                 size_t gateway)
{
    assert_true(world->device_count < CALL_WORLD_DEVICES_MAX);
    struct device *device = &world->devices[world->device_count++];
    *device = (struct device){.gateway = &world->gateways[gateway], .user = user, .name = name};
    call_world_connect(device);
    return device;
}

static void on_lease_opened(void *arg, bool registered)
{
    (void)arg;
    assert_true(registered);
}

void call_world_connect(struct device *device)
{
    struct call_gateway *gateway = device->gateway;
    struct call_world *world = gateway->world;
    device->conn_id = (struct ulid){{0}};
    world->connections++;
    memcpy(device->conn_id.bytes, &world->connections, sizeof(world->connections));
    struct lease lease = {.conn_id = device->conn_id,
                          .user_id = slice_of(device->user),
                          .device_id = slice_of(device->name),
                          .gateway_id = slice_of(gateway->id),
                          .last_heartbeat_ms = world->clock.wall_ms};
    presence_open(&gateway->presence, &lease, on_lease_opened, NULL);
    assert_true(router_attach(&gateway->router, &device->endpoint, slice_of(device->user)));
    device->connected = true;
    struct call_device self = call_device_of(device);
    call_plane_attach(&gateway->calls, &self);
    complete_requests(world);
}

static void detach_device(struct device *device)
{
    device->connected = false;
    set_picture(device, PICTURE_IDLE, SLICE_NONE);
    router_detach(&device->gateway->router, &device->endpoint);
}

void call_world_disconnect(struct device *device)
{
    detach_device(device);
    presence_close(&device->gateway->presence, slice_of(device->user), &device->conn_id);
    call_plane_detach(&device->gateway->calls, slice_of(device->user), &device->conn_id);
    complete_requests(device->gateway->world);
}

void call_world_lose(struct device *device)
{
    detach_device(device);
    call_bindings_remove(&device->gateway->calls.bindings, &device->conn_id);
}

/* ---- commands ---- */

static void on_call_reply(void *arg, const struct call_reply *reply)
{
    struct call_world *world = arg;
    assert_false(world->replied);
    world->replied = true;
    world->problem = reply->problem;
    world->code = reply->code;
    if (!reply->problem && world->sender)
        set_picture(world->sender, world->becomes, reply->call ? reply->call->id : SLICE_NONE);
}

/* `sender` NULL: the command does not change the device's picture. */
static struct call_world *begin_command(struct device *device, struct device *sender,
                                        enum picture becomes)
{
    struct call_world *world = device->gateway->world;
    world->replied = false;
    world->sender = sender;
    world->becomes = becomes;
    return world;
}

static bool finish_command(struct call_world *world)
{
    complete_requests(world);
    assert_true(world->replied);
    return world->problem == NULL;
}

bool call_world_request(struct device *device, const char *to, const char *id)
{
    struct call_world *world = begin_command(device, device, PICTURE_CALLING);
    struct call_device self = call_device_of(device);
    call_plane_request(&device->gateway->calls, &self, slice_of(to), slice_of(id), on_call_reply,
                       world);
    return finish_command(world);
}

bool call_world_accept(struct device *device, const char *id)
{
    struct call_world *world = begin_command(device, device, PICTURE_TALKING);
    struct call_device self = call_device_of(device);
    call_plane_accept(&device->gateway->calls, &self, slice_of(id), on_call_reply, world);
    return finish_command(world);
}

bool call_world_reject(struct device *device, const char *id)
{
    struct call_world *world = begin_command(device, device, PICTURE_IDLE);
    struct call_device self = call_device_of(device);
    call_plane_reject(&device->gateway->calls, &self, slice_of(id), on_call_reply, world);
    return finish_command(world);
}

bool call_world_end(struct device *device, const char *id)
{
    struct call_world *world = begin_command(device, device, PICTURE_IDLE);
    struct call_device self = call_device_of(device);
    call_plane_end(&device->gateway->calls, &self, slice_of(id), on_call_reply, world);
    return finish_command(world);
}

bool call_world_signal(struct device *device, const char *id, const char *data)
{
    struct call_world *world = begin_command(device, NULL, PICTURE_IDLE);
    struct call_device self = call_device_of(device);
    call_plane_signal(&device->gateway->calls, &self, slice_of(id), slice_of(data), on_call_reply,
                      world);
    return finish_command(world);
}

bool call_world_declare_start(struct device *device)
{
    struct call_world *world = begin_command(device, NULL, PICTURE_IDLE);
    struct call_device self = call_device_of(device);
    call_plane_declare_start(&device->gateway->calls, &self, on_call_reply, world);
    return finish_command(world);
}

bool call_world_declare_end(struct device *device)
{
    struct call_world *world = begin_command(device, device, PICTURE_IDLE);
    struct call_device self = call_device_of(device);
    call_plane_declare_end(&device->gateway->calls, &self, on_call_reply, world);
    return finish_command(world);
}

/* ---- time ---- */

static void tick_world(struct call_world *world)
{
    for (size_t i = 0; i < world->device_count; i++) {
        struct device *device = &world->devices[i];
        if (device->connected)
            presence_renew(&device->gateway->presence, slice_of(device->user), &device->conn_id,
                           world->clock.wall_ms);
    }
    for (size_t i = 0; i < CALL_WORLD_GATEWAYS; i++) {
        presence_flush(&world->gateways[i].presence);
        presence_reap(&world->gateways[i].presence);
        call_plane_tick(&world->gateways[i].calls);
    }
    complete_requests(world);
}

void call_world_pass(struct call_world *world, int64_t duration_ms)
{
    for (int64_t left_ms = duration_ms; left_ms > 0; left_ms -= CALL_WORLD_TICK_MS) {
        int64_t step_ms = left_ms < CALL_WORLD_TICK_MS ? left_ms : CALL_WORLD_TICK_MS;
        world->clock.now_ms += step_ms;
        world->clock.wall_ms += step_ms;
        tick_world(world);
    }
}

/* ---- the stored state ---- */

static void on_presence_read(void *arg, enum state_status status, const struct presence *presences,
                             size_t count)
{
    assert_int_equal(status, STATE_OK);
    assert_int_equal(count, 1);
    *(struct presence *)arg = presences[0];
}

bool call_world_in_call(struct call_world *world, const char *user)
{
    struct presence presence;
    struct slice id = slice_of(user);
    state_read(world->gateways[0].state, &id, 1, on_presence_read, &presence);
    return presence.in_call;
}

/* A user's call as the store has it. */
struct stored_call {
    bool has_call;
    bool is_declared;
    bool is_caller;
    enum call_state state;
    char id[CALL_ID_BYTES_MAX + 1];
    char device[DEVICE_ID_BYTES_MAX + 1]; /* the user's device in the call, or "" */
};

struct call_read {
    const char *user;
    struct stored_call *stored;
};

static void on_call_read(void *arg, const struct call_answer *answer)
{
    const struct call_read *read = arg;
    struct stored_call *stored = read->stored;
    *stored = (struct stored_call){.has_call = answer->result == CALL_DONE};
    if (!stored->has_call)
        return;
    stored->is_caller = slice_is(answer->call->caller.user_id, read->user);
    stored->is_declared = !answer->call->callee.user_id.data;
    stored->state = answer->call->state;
    struct slice device =
        stored->is_caller ? answer->call->caller.device_id : answer->call->callee.device_id;
    copy_text(stored->id, sizeof(stored->id), answer->call->id);
    copy_text(stored->device, sizeof(stored->device), device);
}

static enum picture expected_picture(const struct stored_call *stored, const struct device *device)
{
    bool takes_part = strcmp(stored->device, device->name) == 0;
    if (!stored->has_call || stored->is_declared)
        return PICTURE_IDLE;
    if (stored->state == CALL_ACCEPTED)
        return takes_part ? PICTURE_TALKING : PICTURE_IDLE;
    if (!stored->is_caller)
        return PICTURE_RINGING;
    return takes_part ? PICTURE_CALLING : PICTURE_IDLE;
}

static void check_device(struct call_world *world, const struct device *device)
{
    struct stored_call stored;
    struct call_read read = {device->user, &stored};
    call_store_get(device->gateway->calls.store, SLICE_NONE, slice_of(device->user), on_call_read,
                   &read);
    enum picture expected = expected_picture(&stored, device);
    if (device->picture != expected ||
        strcmp(device->call_id, expected == PICTURE_IDLE ? "" : stored.id) != 0)
        fail_msg("%s's %s shows %d of %s, but the store has %d of %s (last event: %s)",
                 device->user, device->name, (int)device->picture, device->call_id, (int)expected,
                 stored.id, device->last_event);
    bool in_call = stored.has_call && stored.state == CALL_ACCEPTED;
    assert_int_equal(call_world_in_call(world, device->user), in_call);
}

void call_world_check(struct call_world *world)
{
    for (size_t i = 0; i < world->device_count; i++)
        if (world->devices[i].connected)
            check_device(world, &world->devices[i]);
}

int64_t call_world_metric(const struct call_world *world, enum metric metric)
{
    int64_t sum = 0;
    for (size_t i = 0; i < CALL_WORLD_GATEWAYS; i++)
        sum += world->gateways[i].metrics.values[metric];
    return sum;
}
