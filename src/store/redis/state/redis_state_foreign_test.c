/* Foreign values under our keys: names that are too long to be real are ignored, because the buffers of their readers
 * fit only real ones. */
#include "store/redis/state/redis_state.h"
#include "support/redis_fleet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum {
    WINDOW_MS = 60000,
    REAPER_WINDOW_MS = 50, /* it does not reap for this long after its start */
    ROUND_TRIPS_MAX = 2,
    TURNS_MAX = 200,
    TURN_MS = 20,
};

static struct redis_fleet fleet;
static struct state_store *store;
static char long_name[GATEWAY_ID_BYTES_MAX + 1];

static struct slice too_long_name(void)
{
    return (struct slice){long_name, sizeof(long_name)};
}

static struct ulid connection(void)
{
    return (struct ulid){{0x01, 0x8b, 0xcf, 0xe5, 0x68, 0x00, 1}};
}

static void on_opened(void *arg, enum state_status status,
                      const struct state_transition *transition)
{
    (void)arg;
    assert_int_equal(status, STATE_OK);
    assert_true(transition->changed);
}

static struct state_store *make_store(struct slice gateway, int64_t window_ms)
{
    struct state_store *made =
        redis_state_make(&(struct redis_state_options){.client = fleet.clients[0],
                                                       .loop = &fleet.worker.loop,
                                                       .random = &fleet.worker.random,
                                                       .metrics = &fleet.worker.metrics,
                                                       .gateway_id = gateway,
                                                       .lease_window_ms = window_ms});
    assert_non_null(made);
    return made;
}

static int set_up(void **state)
{
    (void)state;
    redis_fleet_empty(&fleet);
    memset(long_name, 'g', sizeof(long_name));
    store = make_store(SLICE("gw-1"), WINDOW_MS);
    state_open(store,
               &(struct lease){.conn_id = connection(),
                               .user_id = SLICE("alice"),
                               .device_id = SLICE("phone"),
                               .gateway_id = SLICE("gw-1")},
               on_opened, NULL);
    redis_fleet_settle(&fleet, ROUND_TRIPS_MAX);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    state_store_free(&store);
    redis_fleet_settle(&fleet, ROUND_TRIPS_MAX);
    return 0;
}

/* ---- routes ---- */

static void on_routes(void *arg, enum state_status status, const struct state_routes *routes)
{
    assert_int_equal(status, STATE_OK);
    *(size_t *)arg = routes->count;
    assert_true(slice_is(routes->items[0].gateway_id, "gw-1"));
}

static void gateway_with_a_too_long_name_is_not_a_route(void **state)
{
    (void)state;
    size_t count = 0;
    struct slice alice = SLICE("alice");
    redis_fleet_ask(&fleet, SLICE("user_servers:alice"),
                    REDIS_ARGS(SLICE("SADD"), SLICE("user_servers:alice"), too_long_name()));
    state_routes(store, &alice, 1, on_routes, &count);
    redis_fleet_settle(&fleet, ROUND_TRIPS_MAX);
    assert_int_equal(count, 1);
}

/* ---- leases ---- */

static void on_leases(void *arg, enum state_status status, const struct lease *leases, size_t count)
{
    (void)leases;
    assert_int_equal(status, STATE_OK);
    *(size_t *)arg = count;
}

static size_t count_leases(void)
{
    size_t count = 99;
    state_leases(store, SLICE("alice"), on_leases, &count);
    redis_fleet_settle(&fleet, ROUND_TRIPS_MAX);
    return count;
}

static void lease_with_a_too_long_gateway_or_device_is_skipped(void **state)
{
    (void)state;
    static const char *const FIELDS[] = {"server_id", "device_id"};
    char text[sizeof("connection:") + ULID_TEXT_LEN] = "connection:";
    struct ulid id = connection();
    ulid_write(text + strlen(text), &id);
    struct slice key = slice_of(text);
    assert_int_equal(count_leases(), 1);
    for (size_t i = 0; i < sizeof(FIELDS) / sizeof(FIELDS[0]); i++) {
        redis_fleet_ask(&fleet, key,
                        REDIS_ARGS(SLICE("HSET"), key, slice_of(FIELDS[i]), too_long_name()));
        assert_int_equal(count_leases(), 0);
        redis_fleet_ask(&fleet, key,
                        REDIS_ARGS(SLICE("HSET"), key, slice_of(FIELDS[i]), SLICE("gw-1")));
        assert_int_equal(count_leases(), 1);
    }
}

/* ---- the index ---- */

static void on_reaped(void *arg, enum state_status status,
                      const struct state_transition *transitions, size_t count)
{
    (void)arg;
    (void)transitions;
    assert_int_equal(status, STATE_OK);
    assert_int_equal(count, 0);
}

static const char *index_count(struct slice index)
{
    return redis_fleet_ask(&fleet, index, REDIS_ARGS(SLICE("ZCARD"), index));
}

static int64_t mended_count(void)
{
    return fleet.worker.metrics.values[METRIC_ROUTING_VALUES_MENDED];
}

/* The entry looks like a lease of a user whose id has one byte too many; the index also has a real lease. */
static void too_long_index_entry_is_removed(void **state)
{
    (void)state;
    char name[REDIS_SERVER_REPLY_MAX], member[ULID_TEXT_LEN + 1 + USER_ID_BYTES_MAX + 1];
    struct state_store *reaper = make_store(SLICE("gw-2"), REAPER_WINDOW_MS);
    struct slice index = redis_fleet_find(&fleet, "presence:v_heartbeat*", name);
    int64_t mended = mended_count();
    memset(member, 'm', sizeof(member));
    member[ULID_TEXT_LEN] = ':';
    redis_fleet_ask(
        &fleet, index,
        REDIS_ARGS(SLICE("ZADD"), index, SLICE("1"), (struct slice){member, sizeof(member)}));
    assert_string_equal(index_count(index), "2");
    for (int turn = 0; turn < TURNS_MAX && strcmp(index_count(index), "1") != 0; turn++) {
        worker_loop_run(&fleet.worker, TURN_MS);
        state_reap(reaper, 1, on_reaped, NULL);
        redis_fleet_settle(&fleet, ROUND_TRIPS_MAX);
    }
    assert_string_equal(index_count(index), "1");
    assert_int_equal(mended_count(), mended + 1);
    state_store_free(&reaper);
    redis_fleet_settle(&fleet, ROUND_TRIPS_MAX);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(gateway_with_a_too_long_name_is_not_a_route),
        TEST(lease_with_a_too_long_gateway_or_device_is_skipped),
    };
    const struct CMUnitTest cluster_tests[] = {
        TEST(too_long_index_entry_is_removed),
    };
    redis_fleet_open(&fleet, false);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    redis_fleet_close(&fleet);
    redis_fleet_open(&fleet, true);
    failed += cmocka_run_group_tests(cluster_tests, NULL, NULL);
    redis_fleet_close(&fleet);
    return failed;
}
