/* Runs the conformance suite on the state store in memory, and tests its bounds, counts and locks. */
#include "conformance/state_store_suite.h"
#include "store/memory/state/memory_state.h"
#include "support/virtual_clock.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { WINDOW_MS = 60000, GRACE_MS = 5000 };

struct memory_backend {
    struct clock clock; /* first: see virtual_clock.h */
    struct memory_state *state;
};

static void start_memory_state(void *context, int64_t grace_ms)
{
    struct memory_backend *backend = context;
    backend->clock = virtual_clock_begin();
    backend->state = memory_state_make(&(struct memory_state_options){
        .lease_window_ms = WINDOW_MS,
        .offline_grace_ms = grace_ms,
        .offline_records_max = 100000,
        .hash_seed = 42,
        .started_at_ms = backend->clock.wall_ms,
    });
    assert_non_null(backend->state);
}

static struct state_store *make_port(void *context)
{
    struct memory_backend *backend = context;
    return memory_state_store(backend->state, &backend->clock);
}

static void stop_memory_state(void *context)
{
    memory_state_free(&((struct memory_backend *)context)->state);
}

/* ---- the bound on offline users ---- */

static void on_transition_keep(void *arg, enum state_status status,
                               const struct state_transition *transition)
{
    assert_int_equal(status, STATE_OK);
    if (arg)
        *(struct state_transition *)arg = *transition;
}

static void on_presence_read(void *arg, enum state_status status, const struct presence *presences,
                             size_t count)
{
    assert_int_equal(status, STATE_OK);
    assert_int_equal(count, 1);
    *(struct presence *)arg = presences[0];
}

static struct slice numbered(char text[16], unsigned number)
{
    return (struct slice){text, (size_t)snprintf(text, 16, "user-%u", number)};
}

static struct lease lease_of(struct slice user, unsigned number)
{
    struct lease lease = {.user_id = user, .gateway_id = SLICE("g")};
    memcpy(lease.conn_id.bytes, &number, sizeof(number));
    return lease;
}

static int64_t open_and_close(struct state_store *store, unsigned number)
{
    char text[16];
    struct state_transition gone;
    struct lease lease = lease_of(numbered(text, number), number);
    state_open(store, &lease, on_transition_keep, NULL);
    state_close(store, lease.user_id, &lease.conn_id, on_transition_keep, &gone);
    assert_true(gone.changed);
    return gone.presence.version;
}

static struct presence read_one(struct state_store *store, unsigned number)
{
    char text[16];
    struct presence presence;
    struct slice user = numbered(text, number);
    state_read(store, &user, 1, on_presence_read, &presence);
    return presence;
}

static void users_longest_offline_are_forgotten_beyond_the_bound(void **state)
{
    (void)state;
    enum { USERS = 20000, BOUND = 2000 };
    static int64_t versions[USERS];
    struct clock clock = {.now_ms = 5, .wall_ms = 1700000000000};
    struct memory_state *memory =
        memory_state_make(&(struct memory_state_options){.lease_window_ms = WINDOW_MS,
                                                         .offline_records_max = BOUND,
                                                         .hash_seed = 3,
                                                         .started_at_ms = clock.wall_ms});
    struct state_store *store = memory_state_store(memory, &clock);
    for (unsigned i = 0; i < USERS; i++)
        versions[i] = open_and_close(store, i);

    size_t remembered = 0;
    for (unsigned i = 0; i < USERS; i++) {
        struct presence presence = read_one(store, i);
        assert_int_equal(presence.status, PRESENCE_OFFLINE);
        bool known = presence.last_seen_ms != TIME_NONE;
        remembered += known;
        if (i < USERS / 2)
            assert_false(known);
        if (i >= USERS - BOUND / 4)
            assert_true(known);
        assert_true(presence.version >=
                    versions[i]); /* versions never decrease, not even of forgotten users */
    }
    assert_in_range(remembered, BOUND / 2, BOUND + MEMORY_SHARDS);
    for (unsigned i = 0; i < 100; i++)
        assert_true(open_and_close(store, i) > versions[i]);
    state_store_free(&store);
    memory_state_free(&memory);
}

/* ---- counts ---- */

static void assert_counts(struct memory_state *memory, int64_t now_ms,
                          struct memory_state_counts expected)
{
    struct memory_state_counts counts = memory_state_count(memory, now_ms);
    assert_int_equal(counts.leases, expected.leases);
    assert_int_equal(counts.users_online, expected.users_online);
    assert_int_equal(counts.users_multi_device, expected.users_multi_device);
    assert_int_equal(counts.leases_overdue, expected.leases_overdue);
}

static void on_reaped_ignore(void *arg, enum state_status status,
                             const struct state_transition *transitions, size_t count)
{
    (void)arg;
    (void)status;
    (void)transitions;
    (void)count;
}

static void counts_follow_opens_closes_and_reaping(void **state)
{
    (void)state;
    struct memory_backend backend;
    start_memory_state(&backend, 0);
    struct state_store *store = make_port(&backend);
    struct lease leases[] = {lease_of(SLICE("a"), 1), lease_of(SLICE("a"), 2),
                             lease_of(SLICE("b"), 3)};
    for (size_t i = 0; i < 3; i++)
        state_open(store, &leases[i], on_transition_keep, NULL);
    assert_counts(backend.state, backend.clock.now_ms, (struct memory_state_counts){3, 2, 1, 0});
    virtual_clock_pass(&backend, WINDOW_MS);
    assert_counts(backend.state, backend.clock.now_ms, (struct memory_state_counts){3, 2, 1, 3});
    state_close(store, SLICE("a"), &leases[0].conn_id, on_transition_keep, NULL);
    assert_counts(backend.state, backend.clock.now_ms, (struct memory_state_counts){2, 2, 0, 2});
    state_reap(store, 10, on_reaped_ignore, NULL);
    assert_counts(backend.state, backend.clock.now_ms, (struct memory_state_counts){0, 0, 0, 0});
    state_store_free(&store);
    stop_memory_state(&backend);
}

static void on_opened_keep_status(void *arg, enum state_status status,
                                  const struct state_transition *transition)
{
    (void)transition;
    *(enum state_status *)arg = status;
}

static void store_is_unavailable_to_gateways_beyond_the_bound(void **state)
{
    (void)state;
    struct memory_backend backend;
    start_memory_state(&backend, 0);
    struct state_store *store = make_port(&backend);
    for (unsigned i = 0; i < MEMORY_GATEWAYS_MAX + 5; i++) {
        char text[16];
        enum state_status status;
        struct lease lease = lease_of(SLICE("a"), i);
        lease.gateway_id = numbered(text, i);
        state_open(store, &lease, on_opened_keep_status, &status);
        assert_int_equal(status, i < MEMORY_GATEWAYS_MAX ? STATE_OK : STATE_UNAVAILABLE);
    }
    state_store_free(&store);
    stop_memory_state(&backend);
}

/* ---- several threads ---- */

enum { THREADS = 4, ROUNDS = 3000, SHARED_USERS = 8 };

struct racer {
    pthread_t thread;
    struct memory_state *memory;
    struct clock clock;
    unsigned index;
    int balance; /* changes to online less changes to offline that this thread got */
};

static void count_change(struct racer *racer, const struct state_transition *transition)
{
    if (transition->changed)
        racer->balance += transition->presence.status == PRESENCE_ONLINE ? 1 : -1;
}

static void on_transition_count(void *arg, enum state_status status,
                                const struct state_transition *transition)
{
    assert_int_equal(status, STATE_OK);
    count_change(arg, transition);
}

static void on_reaped_count(void *arg, enum state_status status,
                            const struct state_transition *transitions, size_t count)
{
    assert_int_equal(status, STATE_OK);
    for (size_t i = 0; i < count; i++)
        count_change(arg, &transitions[i]);
}

static void *run_racer(void *arg)
{
    struct racer *racer = arg;
    struct state_store *store = memory_state_store(racer->memory, &racer->clock);
    for (unsigned i = 0; i < ROUNDS; i++) {
        char text[16];
        struct slice user = numbered(text, i % SHARED_USERS);
        struct lease lease = lease_of(user, racer->index * ROUNDS + i);
        state_open(store, &lease, on_transition_count, racer);
        read_one(store, i % SHARED_USERS);
        if (i % 3) /* leave the others to expire */
            state_close(store, user, &lease.conn_id, on_transition_count, racer);
        state_put_gateway(store, &(struct gateway_info){.gateway_id = SLICE("g")});
        racer->clock.now_ms += WINDOW_MS / 100;
        racer->clock.wall_ms += WINDOW_MS / 100;
        if (i % 10 == 0)
            state_reap(store, 50, on_reaped_count, racer);
    }
    state_store_free(&store);
    return NULL;
}

/* If each change is returned to exactly one thread, their balances add up to the users online. */
static void each_change_is_returned_to_one_of_many_threads(void **state)
{
    (void)state;
    struct memory_backend backend;
    static struct racer racers[THREADS];
    start_memory_state(&backend, 0);
    for (unsigned i = 0; i < THREADS; i++) {
        racers[i] = (struct racer){.memory = backend.state, .clock = backend.clock, .index = i};
        assert_int_equal(pthread_create(&racers[i].thread, NULL, run_racer, &racers[i]), 0);
    }
    int balance = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(racers[i].thread, NULL);
        balance += racers[i].balance;
    }
    assert_int_equal(memory_state_count(backend.state, 0).users_online, balance);
    stop_memory_state(&backend);
}

int main(void)
{
    struct memory_backend memory;
    const struct state_store_suite_backend backend = {
        .name = "memory",
        .context = &memory,
        .lease_window_ms = WINDOW_MS,
        .offline_grace_ms = GRACE_MS,
        .start = start_memory_state,
        .port = make_port,
        .stop = stop_memory_state,
        .pass = virtual_clock_pass,
        .wall_ms = virtual_clock_wall_ms,
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(users_longest_offline_are_forgotten_beyond_the_bound),
        cmocka_unit_test(counts_follow_opens_closes_and_reaping),
        cmocka_unit_test(store_is_unavailable_to_gateways_beyond_the_bound),
        cmocka_unit_test(each_change_is_returned_to_one_of_many_threads),
    };
    return state_store_suite_run(&backend) +
           cmocka_run_group_tests_name("memory_state", tests, NULL, NULL);
}
