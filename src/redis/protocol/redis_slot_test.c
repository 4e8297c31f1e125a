/* The expected slots were computed by CLUSTER KEYSLOT. */
#include "redis/protocol/redis_slot.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void slots_equal_those_of_redis(void **state)
{
    (void)state;
    assert_int_equal(redis_slot(SLICE("123456789")), 0x31c3);
    assert_int_equal(redis_slot(SLICE("foo")), 12182);
    assert_int_equal(redis_slot(SLICE("bar")), 5061);
    assert_int_equal(redis_slot(SLICE("")), 0);
}

static void only_the_hash_tag_decides(void **state)
{
    (void)state;
    assert_int_equal(redis_slot(SLICE("a{foo}b")), 12182);
    assert_int_equal(redis_slot(SLICE("{foo}{bar}")), 12182);
    assert_int_equal(redis_slot(SLICE("x{foo")), redis_slot(SLICE("x{foo")));
    assert_int_not_equal(redis_slot(SLICE("x{foo")), 12182);
    assert_int_not_equal(redis_slot(SLICE("{}foo")), redis_slot(SLICE("{}bar")));
    assert_int_equal(redis_slot(SLICE("foo{{bar}}")), redis_slot(SLICE("{bar")));
}

static void every_slot_has_a_tag(void **state)
{
    (void)state;
    for (unsigned slot = 0; slot < REDIS_SLOTS; slot++) {
        char key[] = "presence:online:{....}";
        redis_slot_write_tag(key + sizeof("presence:online:{") - 1, (uint16_t)slot);
        assert_int_equal(redis_slot(slice_of(key)), slot);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_equal_those_of_redis),
        cmocka_unit_test(only_the_hash_tag_decides),
        cmocka_unit_test(every_slot_has_a_tag),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
