/*
 * A fleet for tests of the state store. Every call below makes one call of the port, waits for the
 * answer and gives it back by value.
 *
 * The harness itself checks what holds for every answer: that it comes once, that STATE_OK came with
 * it, and that versions grow with each change of a user and stay the same without one, whichever
 * gateway is asked.
 */
#ifndef ROLLCALL_TESTS_STATE_STORE_HARNESS_H
#define ROLLCALL_TESTS_STATE_STORE_HARNESS_H

#include "conformance/state_store_suite.h"

enum {
    HARNESS_PORTS = 3,
    HARNESS_USERS_MAX = 64,
    HARNESS_ANSWERS_MAX = 512,
    HARNESS_PATIENCE_SECONDS = 20,
    HARNESS_VISIT_STEPS = 3
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
    /* Versions of the users met last; the oldest is replaced. */
    struct harness_user users[HARNESS_USERS_MAX];
    size_t user_count;
    /* The answer to the last call; ids are copied to `texts`. */
    struct state_transition transitions[HARNESS_ANSWERS_MAX];
    struct presence presences[HARNESS_ANSWERS_MAX];
    struct lease leases[HARNESS_ANSWERS_MAX];
    struct gateway_info gateways[HARNESS_ANSWERS_MAX];
    struct state_history history[HARNESS_ANSWERS_MAX];
    struct harness_route routes[HARNESS_ANSWERS_MAX]; /* one for each user on each gateway */
    size_t count;
    char texts[1 << 18];
    size_t texts_len;
};

void harness_start(struct harness *harness, const struct state_store_suite_backend *backend,
                   int64_t grace_ms);
void harness_stop(struct harness *harness);

/* Connection ids by number; the same number is the same connection. */
struct ulid harness_connection(unsigned number);

/* The gateway of a port: "gateway-0", … */
struct slice harness_gateway(size_t port);

/* `port` says which gateway asks. Slices in answers last until the next call. */
struct state_transition harness_open(struct harness *harness, size_t port, struct slice user,
                                     unsigned connection, bool idle);
struct state_transition harness_set_idle(struct harness *harness, size_t port, struct slice user,
                                         unsigned connection, bool idle);
struct state_transition harness_set_call(struct harness *harness, size_t port, struct slice user,
                                         bool in_call);
struct state_transition harness_close(struct harness *harness, size_t port, struct slice user,
                                      unsigned connection);

/* Opens a lease, makes it idle and closes it, without waiting for an answer in between; then all three are in
 * harness->transitions, in this order. */
void harness_visit(struct harness *harness, size_t port, struct slice user, unsigned connection);

/* Whether the store still knew it. The last heartbeat is now. */
bool harness_renew(struct harness *harness, size_t port, struct slice user, unsigned connection);
void harness_renew_many(struct harness *harness, size_t port, struct lease_renewal *renewals,
                        size_t count);

struct presence harness_read(struct harness *harness, size_t port, struct slice user);
void harness_read_many(struct harness *harness, size_t port, const struct slice *users,
                       size_t count);

/* The counts of what is then in harness->transitions, leases, history and gateways. */
size_t harness_reap(struct harness *harness, size_t port, size_t max);
size_t harness_leases(struct harness *harness, size_t port, struct slice user);
size_t harness_history(struct harness *harness, size_t port, struct slice user);
size_t harness_gateways(struct harness *harness, size_t port);
void harness_put_gateway(struct harness *harness, size_t port, struct gateway_info info);

/* How many users are on gateways, counted on each; then whether one is on the gateway of port `at`. */
size_t harness_routes(struct harness *harness, size_t port, const struct slice *users,
                      size_t count);
bool harness_routed(const struct harness *harness, size_t at, struct slice user);

/* NULL when no such lease is known. */
const struct lease *harness_find(struct harness *harness, size_t port, unsigned connection);

void harness_pass(struct harness *harness, int64_t duration_ms);
int64_t harness_wall_ms(const struct harness *harness);

/* The same moment, as far as the backend's clock can tell. */
void harness_assert_time(const struct harness *harness, int64_t actual_ms, int64_t expected_ms);

#endif
