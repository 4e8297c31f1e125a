/*
 * The state stores of two gateways on Redis, in real time, for tests of failures between them. Each operation waits for
 * its answer and keeps it.
 *
 * A pair is the state of a cmocka test. The test program opens the fleet once, and each test begins with an empty fleet
 * and new stores.
 */
#ifndef ROLLCALL_TESTS_STATE_PAIR_H
#define ROLLCALL_TESTS_STATE_PAIR_H

#include "store/redis/state/redis_state.h"
#include "support/redis_fleet.h"

enum { STATE_PAIR_WINDOW_MS = 1500, STATE_PAIR_PATIENCE_MS = 30000 };

struct state_pair {
    struct redis_fleet fleet;
    struct state_store *first;  /* gw-1 */
    struct state_store *second; /* gw-2 */
    unsigned fenced;            /* how often a store was fenced */
    unsigned forgotten;
    unsigned returned; /* how often a store heard that a server serves again */
    unsigned waiting;  /* answers that are pending */
    /* The last answer: */
    enum state_status status;
    struct state_transition transition;
    enum redis_claim claim;
};

/* The record of gw-1. */
extern const struct gateway_info STATE_PAIR_INFO;

/* A test that gets this pair. */
#define STATE_PAIR_TEST(name, pair)                                                                \
    cmocka_unit_test_prestate_setup_teardown(name, state_pair_set_up, state_pair_tear_down, pair)

int state_pair_set_up(void **state);
int state_pair_tear_down(void **state);

/* Makes one more store, which the caller frees. */
struct state_store *state_pair_make(struct state_pair *pair, size_t client, const char *gateway);

/* Runs the loop until nothing is pending; until the condition holds; for this long. */
void state_pair_await(struct state_pair *pair);
void state_pair_await_that(struct state_pair *pair, worker_loop_condition holds);
void state_pair_pass(struct state_pair *pair, int64_t ms);

/* Returns the id of a connection. */
struct ulid state_pair_connection(unsigned number);

/* Opens or closes a lease. Returns whether it made a visible transition, -1 without STATE_OK. A lease is opened again
 * for a user who is already connected to the gateway. */
int state_pair_open(struct state_pair *pair, struct state_store *store, struct slice user,
                    unsigned number);
int state_pair_open_again(struct state_pair *pair, struct state_store *store, struct slice user,
                          unsigned number);
int state_pair_close(struct state_pair *pair, struct state_store *store, struct slice user,
                     unsigned number);

/* Claims gw-1; the second function does not wait for the answer. */
enum redis_claim state_pair_claim(struct state_pair *pair, struct state_store *store);
void state_pair_start_claim(struct state_pair *pair, struct state_store *store);

/* For state_pair_await_that(): both stores are available, or none is. */
bool state_pair_is_available(void *pair);
bool state_pair_is_unavailable(void *pair);

#endif
