/*
 * A gateway as delivery sees it, for its tests: a store that knows fixed routes, a bus that keeps what
 * was published, and endpoints that keep what they were given.
 */
#ifndef ROLLCALL_ROUTING_DELIVERY_TESTING_H
#define ROLLCALL_ROUTING_DELIVERY_TESTING_H

#include "base/container.h"
#include "routing/delivery.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { OFFICE_PUBLISHED_MAX = 4, OFFICE_TEXT_MAX = 1024 };

/* One connection: whose, which, and what it got last. */
struct office_device {
    struct endpoint endpoint;
    struct ulid conn_id;
    const char *device_id;
    unsigned got;
    char last[OFFICE_TEXT_MAX];
};

struct office {
    struct bus bus;
    struct state_store store;
    struct encoder encoder;
    struct router router;
    struct metrics metrics;
    struct delivery delivery;
    bool store_is_down;
    struct slice parked; /* a user who has a session parked; empty: none */
    bool store_is_late;  /* answers when office_answer() says so */
    state_routes_done late_done;
    void *late_arg;
    size_t published_count;
    char topics[OFFICE_PUBLISHED_MAX][ROUTER_TOPIC_BYTES_MAX];
    char payloads[OFFICE_PUBLISHED_MAX][OFFICE_TEXT_MAX];
    struct office_device alice_phone, alice_laptop, bob_phone;
    unsigned closes;
    struct ulid closed;
    int sent; /* of the last done: -1 none yet */
};

static inline void office_copy(char *out, size_t room, struct slice text)
{
    assert_true(text.len < room);
    memcpy(out, text.data, text.len);
    out[text.len] = '\0';
}

static inline void office_publish(struct bus *bus, struct slice topic, struct slice payload)
{
    struct office *office = CONTAINER_OF(bus, struct office, bus);
    assert_true(office->published_count < OFFICE_PUBLISHED_MAX);
    office_copy(office->topics[office->published_count], ROUTER_TOPIC_BYTES_MAX, topic);
    office_copy(office->payloads[office->published_count++], OFFICE_TEXT_MAX, payload);
}

static const struct bus_operations OFFICE_BUS = {.publish = office_publish};

/* alice has devices on gw-1 and gw-2, bob on gw-1. */
static inline void office_routes(struct state_store *store, const struct slice *user_ids,
                                 size_t count, state_routes_done done, void *arg)
{
    struct office *office = CONTAINER_OF(store, struct office, store);
    if (office->store_is_late) {
        office->late_done = done;
        office->late_arg = arg;
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
    if (office->store_is_down)
        done(arg, STATE_UNAVAILABLE, NULL);
    else
        done(arg, STATE_OK,
             &(struct state_routes){.items = routes,
                                    .count = route_count,
                                    .parked = &office->parked,
                                    .parked_count = office->parked.len ? 1 : 0});
}

/* What the late store says in the end: nothing is known. */
static inline void office_answer(struct office *office)
{
    office->late_done(office->late_arg, STATE_UNAVAILABLE, NULL);
}

static const struct state_store_operations OFFICE_STORE = {.routes = office_routes};

static inline struct office_device *office_device_of(const struct endpoint *endpoint)
{
    return CONTAINER_OF(endpoint, struct office_device, endpoint);
}

static inline void office_deliver(struct endpoint *endpoint, struct broadcast *broadcast,
                                  uint64_t key)
{
    (void)key;
    struct office_device *device = office_device_of(endpoint);
    struct buffer text = BUFFER_INIT;
    DIALECT_TABLE_NATIVE.encode(broadcast->message, &text);
    device->got++;
    if (!text.failed)
        office_copy(device->last, OFFICE_TEXT_MAX, buffer_slice(&text));
    buffer_free(&text);
}

static inline bool office_is_connection(const struct endpoint *endpoint, const struct ulid *conn_id)
{
    return ulid_equal(&office_device_of(endpoint)->conn_id, conn_id);
}

static inline bool office_is_device(const struct endpoint *endpoint, struct slice device_id)
{
    return slice_is(device_id, office_device_of(endpoint)->device_id);
}

static inline void office_close(void *arg, struct slice user_id, const struct ulid *conn_id)
{
    struct office *office = arg;
    assert_true(slice_is(user_id, "alice"));
    office->closes++;
    office->closed = *conn_id;
}

static inline void office_done(void *arg, bool sent)
{
    struct office *office = arg;
    assert_int_equal(office->sent, -1); /* once */
    office->sent = sent;
}

static inline void office_add(struct office *office, struct office_device *device, const char *user,
                              const char *device_id, uint8_t number)
{
    device->device_id = device_id;
    device->conn_id.bytes[15] = number;
    assert_true(router_attach(&office->router, &device->endpoint, slice_of(user)));
}

static inline int office_begin(void **state)
{
    struct office *office = calloc(1, sizeof(*office));
    assert_non_null(office);
    office->bus.operations = &OFFICE_BUS;
    office->store.operations = &OFFICE_STORE;
    office->sent = -1;
    encoder_init(&office->encoder);
    assert_true(router_init(&office->router, 7, &office->bus, &office->encoder, office_deliver));
    office->delivery = (struct delivery){.router = &office->router,
                                         .store = &office->store,
                                         .metrics = &office->metrics,
                                         .is_connection = office_is_connection,
                                         .is_device = office_is_device,
                                         .close = office_close,
                                         .arg = office};
    office_add(office, &office->alice_phone, "alice", "phone", 1);
    office_add(office, &office->alice_laptop, "alice", "laptop", 2);
    office_add(office, &office->bob_phone, "bob", "phone", 3);
    *state = office;
    return 0;
}

static inline int office_end(void **state)
{
    struct office *office = *state;
    router_detach(&office->router, &office->alice_phone.endpoint);
    router_detach(&office->router, &office->alice_laptop.endpoint);
    router_detach(&office->router, &office->bob_phone.endpoint);
    router_free(&office->router);
    encoder_free(&office->encoder);
    free(office);
    return 0;
}

#endif
