/* What stands under our keys and was not written by us: names that nobody can have lead nowhere, since those
 * who get them have room for real ones only. */
#include "store/redis_state.h"
#include "support/redis_fleet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { WINDOW_MS = 60000, JOURNEYS_MAX = 2 };

static struct redis_fleet fleet;
static struct state_store *store;
static char long_name[GATEWAY_ID_BYTES_MAX + 1];

static struct slice too_long(void)
{
    return (struct slice){long_name, sizeof(long_name)};
}

static struct ulid connection(void)
{
    return (struct ulid){{0x01, 0x8b, 0xcf, 0xe5, 0x68, 0x00, 1}};
}

static void opened(void *arg, enum state_status status, const struct state_transition *transition)
{
    (void)arg;
    assert_int_equal(status, STATE_OK);
    assert_true(transition->changed);
}

static int set_up(void **state)
{
    (void)state;
    redis_fleet_empty(&fleet);
    memset(long_name, 'g', sizeof(long_name));
    store = redis_state_make(&(struct redis_state_options){.client = fleet.clients[0],
                                                           .loop = &fleet.worker.loop,
                                                           .random = &fleet.worker.random,
                                                           .metrics = &fleet.worker.metrics,
                                                           .gateway_id = SLICE("gw-1"),
                                                           .lease_window_ms = WINDOW_MS});
    assert_non_null(store);
    state_open(store,
               &(struct lease){.conn_id = connection(),
                               .user_id = SLICE("alice"),
                               .device_id = SLICE("phone"),
                               .gateway_id = SLICE("gw-1")},
               opened, NULL);
    redis_fleet_settle(&fleet, JOURNEYS_MAX);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    state_store_free(&store);
    redis_fleet_settle(&fleet, JOURNEYS_MAX);
    return 0;
}

/* ---- routes ---- */

static void take_routes(void *arg, enum state_status status, const struct state_routes *routes)
{
    assert_int_equal(status, STATE_OK);
    *(size_t *)arg = routes->count;
    assert_true(slice_is(routes->items[0].gateway_id, "gw-1"));
}

static void a_server_with_an_impossible_name_is_no_route(void **state)
{
    (void)state;
    size_t count = 0;
    struct slice alice = SLICE("alice");
    redis_fleet_ask(&fleet, SLICE("user_servers:alice"),
                    REDIS_WORDS(SLICE("SADD"), SLICE("user_servers:alice"), too_long()));
    state_routes(store, &alice, 1, take_routes, &count);
    redis_fleet_settle(&fleet, JOURNEYS_MAX);
    assert_int_equal(count, 1);
}

/* ---- leases ---- */

static void take_leases(void *arg, enum state_status status, const struct lease *leases,
                        size_t count)
{
    (void)leases;
    assert_int_equal(status, STATE_OK);
    *(size_t *)arg = count;
}

static size_t count_leases(void)
{
    size_t count = 99;
    state_leases(store, SLICE("alice"), take_leases, &count);
    redis_fleet_settle(&fleet, JOURNEYS_MAX);
    return count;
}

static void a_lease_on_such_a_server_or_device_is_none(void **state)
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
                        REDIS_WORDS(SLICE("HSET"), key, slice_of(FIELDS[i]), too_long()));
        assert_int_equal(count_leases(), 0);
        redis_fleet_ask(&fleet, key,
                        REDIS_WORDS(SLICE("HSET"), key, slice_of(FIELDS[i]), SLICE("gw-1")));
        assert_int_equal(count_leases(), 1);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_server_with_an_impossible_name_is_no_route),
        TEST(a_lease_on_such_a_server_or_device_is_none),
    };
    redis_fleet_open(&fleet, false);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    redis_fleet_close(&fleet);
    return failed;
}
