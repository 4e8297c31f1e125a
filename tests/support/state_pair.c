#include "support/state_pair.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

const struct gateway_info STATE_PAIR_INFO = {.gateway_id = {"gw-1", 4},
                                             .started_at_ms = 1700000000000};

/* ---- two gateways ---- */

static void on_fenced(void *arg)
{
    ((struct state_pair *)arg)->fenced++;
}

static void on_forgotten(void *arg)
{
    ((struct state_pair *)arg)->forgotten++;
}

static void on_server_returned(void *arg)
{
    ((struct state_pair *)arg)->returned++;
}

struct state_store *state_pair_make(struct state_pair *pair, size_t client, const char *gateway)
{
    struct worker_loop *worker = &pair->fleet.worker;
    return redis_state_make(&(struct redis_state_options){
        .client = pair->fleet.clients[client],
        .loop = &worker->loop,
        .random = &worker->random,
        .metrics = &worker->metrics,
        .gateway_id = slice_of(gateway),
        .lease_window_ms = STATE_PAIR_WINDOW_MS,
        .on_fenced = on_fenced,
        .on_forgotten = on_forgotten,
        .on_server_returned = on_server_returned,
        .arg = pair,
    });
}

int state_pair_set_up(void **state)
{
    struct state_pair *pair = *state;
    redis_fleet_empty(&pair->fleet);
    pair->fenced = pair->forgotten = pair->returned = 0;
    pair->first = state_pair_make(pair, 0, "gw-1");
    pair->second = state_pair_make(pair, 1, "gw-2");
    return 0;
}

int state_pair_tear_down(void **state)
{
    struct state_pair *pair = *state;
    state_store_free(&pair->first);
    state_store_free(&pair->second);
    redis_fleet_settle(&pair->fleet, 3);
    return 0;
}

/* ---- time ---- */

static bool is_answered(void *arg)
{
    return ((struct state_pair *)arg)->waiting == 0;
}

void state_pair_await_that(struct state_pair *pair, worker_loop_condition holds)
{
    assert_true(worker_loop_until(&pair->fleet.worker, holds, pair, STATE_PAIR_PATIENCE_MS));
}

void state_pair_await(struct state_pair *pair)
{
    state_pair_await_that(pair, is_answered);
}

void state_pair_pass(struct state_pair *pair, int64_t ms)
{
    worker_loop_run(&pair->fleet.worker, ms);
}

bool state_pair_is_available(void *arg)
{
    struct state_pair *pair = arg;
    return state_available(pair->first) && state_available(pair->second);
}

bool state_pair_is_unavailable(void *arg)
{
    struct state_pair *pair = arg;
    return !state_available(pair->first) && !state_available(pair->second);
}

/* ---- leases ---- */

struct ulid state_pair_connection(unsigned number)
{
    struct ulid id = {{0x01, 0x8b, 0xcf, 0xe5, 0x68, 0x00}};
    memcpy(id.bytes + 8, &number, sizeof(number));
    return id;
}

static void on_transition(void *arg, enum state_status status,
                          const struct state_transition *transition)
{
    struct state_pair *pair = arg;
    pair->waiting--;
    pair->status = status;
    pair->transition = *transition;
}

static int await_change(struct state_pair *pair)
{
    state_pair_await(pair);
    return pair->status == STATE_OK ? pair->transition.changed : -1;
}

static int open_lease(struct state_pair *pair, struct state_store *store, struct slice user,
                      unsigned number, int64_t known_since_ms)
{
    struct lease lease = {.conn_id = state_pair_connection(number),
                          .user_id = user,
                          .device_id = SLICE("line\r\nbreak"),
                          .gateway_id = store == pair->second ? SLICE("gw-2") : SLICE("gw-1"),
                          .connected_at_ms = pair->fleet.worker.loop.clock.wall_ms,
                          .known_since_ms = known_since_ms};
    pair->waiting = 1;
    state_open(store, &lease, on_transition, pair);
    return await_change(pair);
}

int state_pair_open(struct state_pair *pair, struct state_store *store, struct slice user,
                    unsigned number)
{
    return open_lease(pair, store, user, number, 0);
}

int state_pair_open_again(struct state_pair *pair, struct state_store *store, struct slice user,
                          unsigned number)
{
    return open_lease(pair, store, user, number, pair->fleet.worker.loop.clock.wall_ms);
}

int state_pair_close(struct state_pair *pair, struct state_store *store, struct slice user,
                     unsigned number)
{
    struct ulid id = state_pair_connection(number);
    pair->waiting = 1;
    state_close(store, user, &id, on_transition, pair);
    return await_change(pair);
}

/* ---- claims ---- */

static void on_claim(void *arg, enum redis_claim claim, struct slice since)
{
    struct state_pair *pair = arg;
    pair->waiting--;
    pair->claim = claim;
    assert_int_equal(since.len > 0, claim == REDIS_CLAIM_TAKEN);
}

void state_pair_start_claim(struct state_pair *pair, struct state_store *store)
{
    pair->waiting = 1;
    redis_state_claim(store, &STATE_PAIR_INFO, on_claim, pair);
}

enum redis_claim state_pair_claim(struct state_pair *pair, struct state_store *store)
{
    state_pair_start_claim(pair, store);
    state_pair_await(pair);
    return pair->claim;
}
