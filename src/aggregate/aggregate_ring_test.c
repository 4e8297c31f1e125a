/* The ring of aggregators: slots are spread, and only those of an aggregator that goes away move. */
#include "aggregate/aggregate_ring.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { SLOTS = 16384, COUNT = 4 };

static const char *const ADDRESSES[COUNT] = {"a:1", "b:1", "c:1", "d:1"};

static void test_slots_are_spread_over_all_aggregators(void **unused)
{
    (void)unused;
    struct aggregate_ring ring;
    bool usable[COUNT] = {true, true, true, true};
    size_t counts[COUNT] = {0};
    assert_true(aggregate_ring_init(&ring, ADDRESSES, COUNT));
    for (unsigned slot = 0; slot < SLOTS; slot++)
        counts[aggregate_ring_find(&ring, (uint16_t)slot, usable)]++;
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(counts[i] > SLOTS / COUNT / 2);
        assert_true(counts[i] < SLOTS / COUNT * 3 / 2);
    }
    aggregate_ring_free(&ring);
}

static void test_only_the_slots_of_a_lost_aggregator_move_and_to_all_others(void **unused)
{
    (void)unused;
    struct aggregate_ring ring;
    bool all[COUNT] = {true, true, true, true}, without[COUNT] = {true, false, true, true};
    size_t moved[COUNT] = {0};
    assert_true(aggregate_ring_init(&ring, ADDRESSES, COUNT));
    for (unsigned slot = 0; slot < SLOTS; slot++) {
        size_t before = aggregate_ring_find(&ring, (uint16_t)slot, all);
        size_t after = aggregate_ring_find(&ring, (uint16_t)slot, without);
        if (before != 1)
            assert_int_equal(after, before);
        else
            moved[after]++;
    }
    assert_int_equal(moved[1], 0);
    for (size_t i = 0; i < COUNT; i++)
        assert_true(i == 1 || moved[i] > 0);
    aggregate_ring_free(&ring);
}

static void test_gateways_agree_whatever_the_order_of_their_lists(void **unused)
{
    (void)unused;
    static const char *const REVERSED[COUNT] = {"d:1", "c:1", "b:1", "a:1"};
    bool usable[COUNT] = {true, true, true, true};
    struct aggregate_ring one, other;
    assert_true(aggregate_ring_init(&one, ADDRESSES, COUNT));
    assert_true(aggregate_ring_init(&other, REVERSED, COUNT));
    for (unsigned slot = 0; slot < SLOTS; slot++)
        assert_int_equal(aggregate_ring_find(&one, (uint16_t)slot, usable),
                         COUNT - 1 - aggregate_ring_find(&other, (uint16_t)slot, usable));
    aggregate_ring_free(&one);
    aggregate_ring_free(&other);
}

static void test_no_usable_aggregator_is_none(void **unused)
{
    (void)unused;
    struct aggregate_ring ring;
    bool usable[COUNT] = {false};
    assert_true(aggregate_ring_init(&ring, ADDRESSES, COUNT));
    assert_int_equal(aggregate_ring_find(&ring, 7, usable), AGGREGATE_NONE);
    aggregate_ring_free(&ring);
    assert_true(aggregate_ring_init(&ring, ADDRESSES, 0));
    assert_int_equal(aggregate_ring_find(&ring, 7, usable), AGGREGATE_NONE);
    aggregate_ring_free(&ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slots_are_spread_over_all_aggregators),
        cmocka_unit_test(test_only_the_slots_of_a_lost_aggregator_move_and_to_all_others),
        cmocka_unit_test(test_gateways_agree_whatever_the_order_of_their_lists),
        cmocka_unit_test(test_no_usable_aggregator_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
