#include "store/redis/state/redis_route_cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { TRACKING = 7, SLOT = 3, USERS_MAX = 4 };

static const struct redis_route_answer ON_GW_1 = {.gateways = SLICE("\4gw-1"), .devices = 2};

static int set_up(void **state)
{
    static struct redis_route_cache cache;
    assert_true(redis_route_cache_init(&cache, 1, USERS_MAX));
    *state = &cache;
    return 0;
}

static int tear_down(void **state)
{
    redis_route_cache_free(*state);
    return 0;
}

static void keep(struct redis_route_cache *cache, struct slice user)
{
    uint64_t reading = redis_route_cache_begin(cache, user, TRACKING, SLOT);
    redis_route_cache_end(cache, user, reading, &ON_GW_1);
}

static void answer_is_found_when_its_reading_has_ended(void **state)
{
    struct slice alice = SLICE("alice");
    uint64_t reading = redis_route_cache_begin(*state, alice, TRACKING, SLOT);
    assert_null(redis_route_cache_find(*state, alice));
    redis_route_cache_end(*state, alice, reading, &ON_GW_1);
    const struct redis_cached_route *route = redis_route_cache_find(*state, alice);
    assert_non_null(route);
    assert_int_equal(route->tracking, TRACKING);
    assert_int_equal(route->slot, SLOT);
    assert_int_equal(route->devices, 2);
    assert_memory_equal(route->gateways, "\4gw-1", 5);
}

static void change_during_a_reading_leaves_no_entry(void **state)
{
    struct slice alice = SLICE("alice");
    uint64_t reading = redis_route_cache_begin(*state, alice, TRACKING, SLOT);
    redis_route_cache_drop(*state, alice);
    redis_route_cache_end(*state, alice, reading, &ON_GW_1);
    assert_null(redis_route_cache_find(*state, alice));
}

static void change_during_a_reading_is_not_hidden_by_a_later_one(void **state)
{
    struct slice alice = SLICE("alice");
    uint64_t early = redis_route_cache_begin(*state, alice, TRACKING, SLOT);
    redis_route_cache_drop(*state, alice);
    uint64_t late = redis_route_cache_begin(*state, alice, TRACKING, SLOT);
    redis_route_cache_end(*state, alice, early, &ON_GW_1);
    assert_null(redis_route_cache_find(*state, alice));
    redis_route_cache_end(*state, alice, late, &(struct redis_route_answer){.devices = 0});
    assert_null(redis_route_cache_find(*state, alice)->gateways);
}

static void second_reading_at_the_same_time_is_not_kept(void **state)
{
    struct slice alice = SLICE("alice");
    assert_true(redis_route_cache_begin(*state, alice, TRACKING, SLOT) > 0);
    assert_int_equal(redis_route_cache_begin(*state, alice, TRACKING, SLOT), 0);
}

/* A reading whose connection was lost may never end. */
static void reading_on_a_new_connection_replaces_the_old_one(void **state)
{
    struct slice alice = SLICE("alice");
    uint64_t old = redis_route_cache_begin(*state, alice, TRACKING, SLOT);
    uint64_t new = redis_route_cache_begin(*state, alice, TRACKING + 1, SLOT);
    assert_true(new > old);
    redis_route_cache_end(*state, alice, old, NULL);
    redis_route_cache_end(*state, alice, new, &ON_GW_1);
    assert_int_equal(redis_route_cache_find(*state, alice)->tracking, TRACKING + 1);
}

static void failed_reading_leaves_no_entry(void **state)
{
    struct slice alice = SLICE("alice");
    redis_route_cache_end(*state, alice, redis_route_cache_begin(*state, alice, TRACKING, SLOT),
                          NULL);
    assert_null(redis_route_cache_find(*state, alice));
    assert_int_equal(((struct redis_route_cache *)*state)->users.size, 0);
}

static void users_beyond_the_bound_push_out_those_not_used_lately(void **state)
{
    struct redis_route_cache *cache = *state;
    keep(cache, SLICE("first"));
    keep(cache, SLICE("second"));
    for (int i = 0; i < 10 * USERS_MAX; i++) {
        char text[16];
        struct slice user = {text, (size_t)snprintf(text, sizeof(text), "user-%d", i)};
        assert_non_null(redis_route_cache_find(cache, SLICE("first")));
        keep(cache, user);
        assert_true(cache->users.size <= USERS_MAX);
    }
    assert_null(redis_route_cache_find(cache, SLICE("second")));
}

static void clearing_drops_entries_and_readings(void **state)
{
    keep(*state, SLICE("alice"));
    uint64_t reading = redis_route_cache_begin(*state, SLICE("bob"), TRACKING, SLOT);
    redis_route_cache_clear(*state);
    redis_route_cache_end(*state, SLICE("bob"), reading, &ON_GW_1);
    assert_null(redis_route_cache_find(*state, SLICE("alice")));
    assert_null(redis_route_cache_find(*state, SLICE("bob")));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(answer_is_found_when_its_reading_has_ended),
        TEST(change_during_a_reading_leaves_no_entry),
        TEST(change_during_a_reading_is_not_hidden_by_a_later_one),
        TEST(second_reading_at_the_same_time_is_not_kept),
        TEST(reading_on_a_new_connection_replaces_the_old_one),
        TEST(failed_reading_leaves_no_entry),
        TEST(users_beyond_the_bound_push_out_those_not_used_lately),
        TEST(clearing_drops_entries_and_readings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
