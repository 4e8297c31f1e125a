/* The expected slots are what CLUSTER KEYSLOT answers. */
#include "redis/protocol/redis_slot.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void slots_are_those_redis_computes(void **state)
{
    (void)state;
    assert_int_equal(redis_slot(SLICE("123456789")), 0x31c3);
    assert_int_equal(redis_slot(SLICE("foo")), 12182);
    assert_int_equal(redis_slot(SLICE("bar")), 5061);
    assert_int_equal(redis_slot(SLICE("")), 0);
}

static void a_tag_decides_alone(void **state)
{
    (void)state;
    assert_int_equal(redis_slot(SLICE("a{foo}b")), 12182);
    assert_int_equal(redis_slot(SLICE("{foo}{bar}")), 12182);
    assert_int_equal(redis_slot(SLICE("x{foo")), redis_slot(SLICE("x{foo")));
    assert_int_not_equal(redis_slot(SLICE("x{foo")), 12182);
    assert_int_not_equal(redis_slot(SLICE("{}foo")), redis_slot(SLICE("{}bar")));
    assert_int_equal(redis_slot(SLICE("foo{{bar}}")), redis_slot(SLICE("{bar")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_are_those_redis_computes),
        cmocka_unit_test(a_tag_decides_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
