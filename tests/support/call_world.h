/*
 * A world for tests of calls: two gateways that share their stores, virtual time, a ledger that the test
 * controls, and devices that show the events they receive.
 *
 * A device's `picture` is the state that a client would show: idle, calling, ringing, talking. Only replies to
 * the device's own commands and events that reach it change the picture; so call_world_check(), which compares
 * it with the call store, finds missing, doubled and misdirected events.
 */
#ifndef ROLLCALL_TESTS_CALL_WORLD_H
#define ROLLCALL_TESTS_CALL_WORLD_H

#include "calls/call_plane.h"
#include "routing/delivery_receiver.h"
#include "store/memory/memory_calls.h"
#include "store/memory/state/memory_state.h"
#include "support/fake_ledger.h"

enum {
    CALL_WORLD_GATEWAYS = 2,
    CALL_WORLD_DEVICES_MAX = 8,
    CALL_WORLD_RING_MS = 30000,
    CALL_WORLD_GRACE_MS = 5000,
    CALL_WORLD_WINDOW_MS = 15000,
    CALL_WORLD_TICK_MS = 500,
};

enum picture { PICTURE_IDLE, PICTURE_CALLING, PICTURE_RINGING, PICTURE_TALKING };

struct call_world;

struct call_gateway {
    struct call_world *world;
    char id[16];
    struct bus bus;
    struct state_store *state;
    struct router router;
    struct encoder encoder;
    struct metrics metrics;
    struct ledger_client ledger;
    struct last_seen last_seen;
    struct presence_plane presence;
    struct delivery delivery;
    struct delivery_receiver receiver;
    struct call_plane calls;
    struct random random;
};

struct device {
    struct endpoint endpoint;
    struct call_gateway *gateway;
    const char *user;
    const char *name;
    struct ulid conn_id;
    bool connected;
    enum picture picture;
    char call_id[CALL_ID_BYTES_MAX + 1]; /* of the call it shows */
    char last_event[64];                 /* the last event: "call_ended hangup" */
    unsigned event_count;
    char signal[256]; /* data of the last call_signal */
};

struct call_world {
    struct config config;
    struct clock clock;
    struct memory_state *state;
    struct memory_calls *calls;
    struct fake_ledger ledger;
    struct call_gateway gateways[CALL_WORLD_GATEWAYS];
    struct device devices[CALL_WORLD_DEVICES_MAX];
    size_t device_count;
    unsigned connections; /* connections made so far */
    struct ledger_request *posted;
    /* of the last command: */
    bool replied;
    const char *problem; /* NULL: success */
    enum error_code code;
    enum picture becomes; /* of the device that sent the command, on success */
    struct device *sender;
};

void call_world_open(struct call_world *world);
void call_world_close(struct call_world *world);

/* Makes a device and connects it to one of the gateways. */
struct device *call_world_device(struct call_world *world, const char *user, const char *name,
                                 size_t gateway);
void call_world_connect(struct device *device);
void call_world_disconnect(struct device *device);

/* The gateway of a device crashes: its parties are not renewed any more. */
void call_world_lose(struct device *device);

/* The call store loses its data. */
void call_world_empty_calls(struct call_world *world);

/* Commands. They return true on success; otherwise world->code is the error. */
bool call_world_request(struct device *device, const char *to, const char *id);
bool call_world_accept(struct device *device, const char *id);
bool call_world_reject(struct device *device, const char *id);
bool call_world_end(struct device *device, const char *id);
bool call_world_signal(struct device *device, const char *id, const char *data);
bool call_world_declare_start(struct device *device);
bool call_world_declare_end(struct device *device);

/* Advances time, with leases, calls and reapers. */
void call_world_pass(struct call_world *world, int64_t duration_ms);

bool call_world_in_call(struct call_world *world, const char *user);

/* Asserts that every connected device's picture, and its user's in_call, match the stores. */
void call_world_check(struct call_world *world);

int64_t call_world_metric(const struct call_world *world, enum metric metric);

#endif
