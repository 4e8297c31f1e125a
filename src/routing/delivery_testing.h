/*
 * The fixture of delivery's tests: a store with fixed routes, a bus that records what is published, and
 * endpoints that record their messages.
 */
#ifndef ROLLCALL_ROUTING_DELIVERY_TESTING_H
#define ROLLCALL_ROUTING_DELIVERY_TESTING_H

#include "base/container.h"
#include "routing/delivery.h"
#include "routing/delivery_payload.h"
#include "routing/delivery_receiver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { FIXTURE_PUBLISHED_MAX = 4, FIXTURE_TEXT_MAX = 1024 };

/* One connection and the last event it got. */
struct fixture_device {
    struct endpoint endpoint;
    struct ulid conn_id;
    const char *device_id;
    unsigned got;
    char last[FIXTURE_TEXT_MAX];
};

struct delivery_fixture {
    struct bus bus;
    struct state_store store;
    struct encoder encoder;
    struct router router;
    struct metrics metrics;
    struct random random;
    struct delivery delivery;
    struct delivery_receiver receiver;
    bool store_is_down;
    bool store_may_lack_routes;
    bool is_cut_off;     /* broadcasts do not leave this process */
    struct slice parked; /* a user with a parked session; empty: none */
    bool store_is_late;  /* completes with fixture_answer() only */
    state_routes_done late_done;
    void *late_arg;
    size_t published_count;
    char topics[FIXTURE_PUBLISHED_MAX][DELIVERY_TOPIC_BYTES_MAX];
    char payloads[FIXTURE_PUBLISHED_MAX][FIXTURE_TEXT_MAX];
    struct fixture_device alice_phone, alice_laptop, bob_phone;
    unsigned closes;
    struct ulid closed;
    enum closing_reason close_reason;
    int result; /* the result of the last completion; -1: none ran yet */
};

static inline void fixture_copy(char *out, size_t capacity, struct slice text)
{
    assert_true(text.len < capacity);
    memcpy(out, text.data, text.len);
    out[text.len] = '\0';
}

static inline void fixture_publish(struct bus *bus, struct slice topic, struct slice payload)
{
    struct delivery_fixture *fixture = CONTAINER_OF(bus, struct delivery_fixture, bus);
    assert_true(fixture->published_count < FIXTURE_PUBLISHED_MAX);
    fixture_copy(fixture->topics[fixture->published_count], DELIVERY_TOPIC_BYTES_MAX, topic);
    fixture_copy(fixture->payloads[fixture->published_count++], FIXTURE_TEXT_MAX, payload);
}

static inline bool fixture_reaches_all(const struct bus *bus)
{
    return !CONTAINER_OF(bus, struct delivery_fixture, bus)->is_cut_off;
}

static const struct bus_operations FIXTURE_BUS = {.publish = fixture_publish,
                                                  .reaches_all = fixture_reaches_all};

/* alice has devices on gw-1 and gw-2, bob on gw-1. */
static inline void fixture_routes(struct state_store *store, const struct slice *user_ids,
                                  size_t count, state_routes_done done, void *arg)
{
    struct delivery_fixture *fixture = CONTAINER_OF(store, struct delivery_fixture, store);
    if (fixture->store_is_late) {
        fixture->late_done = done;
        fixture->late_arg = arg;
        return;
    }
    struct slice here[2], there[1];
    size_t here_count = 0, there_count = 0;
    for (size_t i = 0; i < count; i++) {
        bool is_alice = slice_is(user_ids[i], "alice");
        if (is_alice || slice_is(user_ids[i], "bob"))
            here[here_count++] = user_ids[i];
        if (is_alice)
            there[there_count++] = user_ids[i];
    }
    struct state_route routes[] = {{SLICE("gw-1"), here, here_count},
                                   {SLICE("gw-2"), there, there_count}};
    size_t route_count = there_count ? 2 : here_count ? 1 : 0;
    if (fixture->store_is_down)
        done(arg, STATE_UNAVAILABLE, NULL);
    else
        done(arg, STATE_OK,
             &(struct state_routes){.items = routes,
                                    .count = route_count,
                                    .parked = &fixture->parked,
                                    .parked_count = fixture->parked.len ? 1 : 0});
}

static inline bool fixture_may_lack_routes(void *arg)
{
    const struct delivery_fixture *fixture = arg;
    return fixture->store_may_lack_routes;
}

/* Completes the late operation: the store is unavailable. */
static inline void fixture_answer(struct delivery_fixture *fixture)
{
    fixture->late_done(fixture->late_arg, STATE_UNAVAILABLE, NULL);
}

static const struct state_store_operations FIXTURE_STORE = {.routes = fixture_routes};

/* Remembers that alice is on gw-1. Completes late, with what fixture_confirm() says. */
static inline void fixture_routes_early(struct state_store *store, const struct slice *user_ids,
                                        size_t count, state_routes_remembered early,
                                        state_routes_done done, void *arg)
{
    struct delivery_fixture *fixture = CONTAINER_OF(store, struct delivery_fixture, store);
    struct slice alice = SLICE("alice");
    struct state_route route = {SLICE("gw-1"), &alice, 1};
    (void)user_ids;
    assert_true(count <= STATE_ROUTES_EARLY_MAX);
    fixture->late_done = done;
    fixture->late_arg = arg;
    early(arg, &(struct state_routes){.items = &route, .count = 1});
}

/* The store is sure: alice is on gw-1, and bob is there too if he is `added`. */
static inline void fixture_confirm(struct delivery_fixture *fixture, bool is_bob_added)
{
    const struct slice users[] = {SLICE("alice"), SLICE("bob")};
    const struct state_route all = {SLICE("gw-1"), users, is_bob_added ? 2 : 1};
    const struct state_route new = {SLICE("gw-1"), users + 1, 1};
    const struct state_routes added = {.items = &new, .count = is_bob_added};
    fixture->late_done(fixture->late_arg, STATE_OK,
                       &(struct state_routes){.items = &all, .count = 1, .added = &added});
}

static const struct state_store_operations FIXTURE_STORE_EARLY = {
    .routes = fixture_routes, .routes_early = fixture_routes_early};

static inline struct fixture_device *fixture_device_of(const struct endpoint *endpoint)
{
    return CONTAINER_OF(endpoint, struct fixture_device, endpoint);
}

static inline void fixture_deliver(struct endpoint *endpoint, struct broadcast *broadcast,
                                   uint64_t key)
{
    (void)key;
    struct fixture_device *device = fixture_device_of(endpoint);
    struct buffer text = BUFFER_INIT;
    DIALECT_TABLE_NATIVE.encode(broadcast->message, &text);
    device->got++;
    if (!text.failed)
        fixture_copy(device->last, FIXTURE_TEXT_MAX, buffer_slice(&text));
    buffer_free(&text);
}

static inline bool fixture_is_connection(const struct endpoint *endpoint,
                                         const struct ulid *conn_id)
{
    return ulid_equal(&fixture_device_of(endpoint)->conn_id, conn_id);
}

static inline bool fixture_is_device(const struct endpoint *endpoint, struct slice device_id)
{
    return slice_is(device_id, fixture_device_of(endpoint)->device_id);
}

static inline void fixture_close(void *arg, struct slice user_id, const struct ulid *conn_id,
                                 enum closing_reason reason)
{
    struct delivery_fixture *fixture = arg;
    fixture->close_reason = reason;
    assert_true(slice_is(user_id, "alice"));
    fixture->closes++;
    fixture->closed = *conn_id;
}

static inline void fixture_done(void *arg, enum delivery_result result)
{
    struct delivery_fixture *fixture = arg;
    assert_int_equal(fixture->result, -1); /* it runs once */
    fixture->result = (int)result;
}

static inline void fixture_add(struct delivery_fixture *fixture, struct fixture_device *device,
                               const char *user, const char *device_id, uint8_t number)
{
    device->device_id = device_id;
    device->conn_id.bytes[15] = number;
    assert_true(router_attach(&fixture->router, &device->endpoint, slice_of(user)));
}

static inline int fixture_begin(void **state)
{
    struct delivery_fixture *fixture = calloc(1, sizeof(*fixture));
    assert_non_null(fixture);
    fixture->bus.operations = &FIXTURE_BUS;
    fixture->store.operations = &FIXTURE_STORE;
    fixture->result = -1;
    random_init_seeded(&fixture->random, 7);
    encoder_init(&fixture->encoder);
    assert_true(
        router_init(&fixture->router, 7, &fixture->bus, &fixture->encoder, fixture_deliver));
    fixture->delivery = (struct delivery){.bus = &fixture->bus,
                                          .store = &fixture->store,
                                          .encoder = &fixture->encoder,
                                          .metrics = &fixture->metrics,
                                          .seed = 7,
                                          .broadcasts = true,
                                          .may_lack_routes = fixture_may_lack_routes,
                                          .arg = fixture};
    fixture->receiver = (struct delivery_receiver){.router = &fixture->router,
                                                   .metrics = &fixture->metrics,
                                                   .is_connection = fixture_is_connection,
                                                   .is_device = fixture_is_device,
                                                   .on_close = fixture_close,
                                                   .arg = fixture};
    fixture_add(fixture, &fixture->alice_phone, "alice", "phone", 1);
    fixture_add(fixture, &fixture->alice_laptop, "alice", "laptop", 2);
    fixture_add(fixture, &fixture->bob_phone, "bob", "phone", 3);
    *state = fixture;
    return 0;
}

/* This gateway receives a payload of its own topic. */
static inline void fixture_receive(struct delivery_fixture *fixture, struct slice payload)
{
    delivery_received(&fixture->receiver, SLICE("server:gw-1:deliver"), payload);
}

static inline int fixture_end(void **state)
{
    struct delivery_fixture *fixture = *state;
    router_detach(&fixture->router, &fixture->alice_phone.endpoint);
    router_detach(&fixture->router, &fixture->alice_laptop.endpoint);
    router_detach(&fixture->router, &fixture->bob_phone.endpoint);
    router_free(&fixture->router);
    encoder_free(&fixture->encoder);
    free(fixture);
    return 0;
}

#endif
