/*
 * Several gateways for tests of the state store. Each function below runs one operation of the port, waits for
 * the answer and returns it by value.
 *
 * The harness itself checks what holds for every answer: it comes once and with STATE_OK, and a user's version
 * grows with each change and stays the same without one, on every gateway.
 */
#ifndef ROLLCALL_TESTS_STATE_STORE_HARNESS_H
#define ROLLCALL_TESTS_STATE_STORE_HARNESS_H

#include "conformance/state_store_suite.h"

enum {
    HARNESS_PORTS = 3,
    HARNESS_USERS_MAX = 64,
    HARNESS_ANSWERS_MAX = 512,
    HARNESS_PATIENCE_SECONDS = 60,
    HARNESS_PIPELINED = 3
};

struct harness_user {
    char id[USER_ID_BYTES_MAX];
    size_t id_len;
    int64_t version;
};

struct harness_route {
    struct slice gateway_id;
    struct slice user_id;
};

struct harness {
    const struct state_store_suite_backend *backend;
    struct state_store *ports[HARNESS_PORTS];
    bool waiting;
    int64_t began_ms; /* wall clock: the operation that waits */
    /* The versions of the last HARNESS_USERS_MAX users; the oldest is replaced. */
    struct harness_user users[HARNESS_USERS_MAX];
    size_t user_count;
    /* The answer of the last operation; ids are copied to `texts`. */
    struct state_transition transitions[HARNESS_ANSWERS_MAX];
    struct presence presences[HARNESS_ANSWERS_MAX];
    struct lease leases[HARNESS_ANSWERS_MAX];
    struct gateway_info gateways[HARNESS_ANSWERS_MAX];
    struct state_history history[HARNESS_ANSWERS_MAX];
    struct slice online[HARNESS_ANSWERS_MAX];
    struct slice next;                                /* of a page of users who are online */
    struct harness_route routes[HARNESS_ANSWERS_MAX]; /* one for each user on each gateway */
    size_t count;
    char texts[1 << 18];
    size_t texts_len;
};

void harness_start(struct harness *harness, const struct state_store_suite_backend *backend,
                   int64_t grace_ms);
void harness_stop(struct harness *harness);

/* Returns the connection id for a number. */
struct ulid harness_connection(unsigned number);

/* Returns the gateway id of a port: "gateway-0", … */
struct slice harness_gateway(size_t port);

/* `port` is the gateway that runs the operation. Slices in answers last until the next operation. */
struct state_transition harness_open(struct harness *harness, size_t port, struct slice user,
                                     unsigned connection, bool idle);
/* The same for a user who may have `max` leases; `silent` is the connection to this gateway that was heard longest ago,
 * `silent_ms` before now; 0: there is none. `displaced` of the answer is valid, its gateway only until the next
 * operation. */
struct state_transition harness_open_limited(struct harness *harness, size_t port,
                                             struct slice user, unsigned connection, uint32_t max,
                                             unsigned silent, int64_t silent_ms);
struct state_transition harness_set_idle(struct harness *harness, size_t port, struct slice user,
                                         unsigned connection, bool idle);
struct state_transition harness_set_call(struct harness *harness, size_t port, struct slice user,
                                         bool in_call);
struct state_transition harness_close(struct harness *harness, size_t port, struct slice user,
                                      unsigned connection);

/* Claims that the lease ended at this time, on the wall clock. */
struct state_transition harness_settle(struct harness *harness, size_t port, struct slice user,
                                       unsigned connection, int64_t left_at_ms);

/* Opens a lease, makes it idle and closes it, without waiting for an answer in between. The three answers are then
 * in harness->transitions, in this order. */
void harness_open_idle_close(struct harness *harness, size_t port, struct slice user,
                             unsigned connection);

/* Returns whether the store has the lease. The last heartbeat is now. */
bool harness_renew(struct harness *harness, size_t port, struct slice user, unsigned connection);
void harness_renew_many(struct harness *harness, size_t port, struct lease_renewal *renewals,
                        size_t count);

struct presence harness_read(struct harness *harness, size_t port, struct slice user);
void harness_read_many(struct harness *harness, size_t port, const struct slice *users,
                       size_t count);

/* Return how many items are then in harness->transitions, leases, history or gateways. */
size_t harness_reap(struct harness *harness, size_t port, size_t max);
size_t harness_leases(struct harness *harness, size_t port, struct slice user);
void harness_forget(struct harness *harness, size_t port, struct slice user);
size_t harness_history(struct harness *harness, size_t port, struct slice user);
size_t harness_gateways(struct harness *harness, size_t port);

/* Returns how many users of this page are then in harness->online; harness->next is where the next one begins. */
size_t harness_online(struct harness *harness, size_t port, struct slice after, size_t limit);
size_t harness_count_online(struct harness *harness, size_t port);

void harness_put_gateway(struct harness *harness, size_t port, struct gateway_info info);

/* Returns the number of pairs of user and gateway; harness_routed() then returns whether one of them is this user
 * on the gateway of port `at`. */
size_t harness_routes(struct harness *harness, size_t port, const struct slice *users,
                      size_t count);
bool harness_routed(const struct harness *harness, size_t at, struct slice user);

/* Returns NULL when there is no such lease. */
const struct lease *harness_find(struct harness *harness, size_t port, unsigned connection);

void harness_pass(struct harness *harness, int64_t duration_ms);
int64_t harness_wall_ms(const struct harness *harness);

/* Asserts that two times are the same, within the backend's tolerance. */
void harness_assert_time(const struct harness *harness, int64_t actual_ms, int64_t expected_ms);

#endif
