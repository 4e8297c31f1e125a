#include "feed/kafka/kafka_watermark.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct kafka_watermark watermark;

static int set_up(void **state)
{
    (void)state;
    kafka_watermark_init(&watermark);
    return 0;
}

static void test_watermark_waits_for_the_oldest_open_event(void **state)
{
    (void)state;
    uint64_t numbers[4];
    assert_int_equal(watermark.next_offset, -1);
    for (int i = 0; i < 4; i++)
        numbers[i] = kafka_watermark_open(&watermark, 10 + i);
    assert_int_equal(watermark.next_offset, 10);
    assert_false(kafka_watermark_settle(&watermark, numbers[1]));
    assert_false(kafka_watermark_settle(&watermark, numbers[3]));
    assert_int_equal(watermark.next_offset, 10);
    assert_true(kafka_watermark_settle(&watermark, numbers[0]));
    assert_int_equal(watermark.next_offset, 12);
    assert_true(kafka_watermark_settle(&watermark, numbers[2]));
    assert_int_equal(watermark.next_offset, 14);
}

/* Offsets have gaps where records were compacted or belong to transactions. */
static void test_gaps_between_offsets_are_passed(void **state)
{
    (void)state;
    uint64_t first = kafka_watermark_open(&watermark, 3);
    uint64_t second = kafka_watermark_open(&watermark, 90);
    kafka_watermark_settle(&watermark, first);
    assert_int_equal(watermark.next_offset, 4);
    kafka_watermark_settle(&watermark, second);
    assert_int_equal(watermark.next_offset, 91);
}

static void test_window_is_bounded_by_the_oldest_open_event(void **state)
{
    (void)state;
    uint64_t first = kafka_watermark_open(&watermark, 0);
    for (int64_t offset = 1; offset < KAFKA_WATERMARK_WINDOW; offset++)
        kafka_watermark_settle(&watermark, kafka_watermark_open(&watermark, offset));
    assert_true(kafka_watermark_is_full(&watermark));
    kafka_watermark_settle(&watermark, first);
    assert_false(kafka_watermark_is_full(&watermark));
    assert_int_equal(watermark.next_offset, KAFKA_WATERMARK_WINDOW);
}

/* Against the definition: everything below the watermark is settled, and the event at it is open. */
static void test_watermark_is_right_for_any_order_of_settling(void **state)
{
    (void)state;
    enum { EVENTS = 20000, OPEN_MAX = 300 };
    static bool settled[EVENTS];
    static uint64_t numbers[EVENTS];
    int64_t open[OPEN_MAX];
    int open_count = 0;
    int64_t next = 0, lowest = 0;
    struct random random;
    random_init_seeded(&random, 5);
    while (lowest < EVENTS) {
        bool opens = next < EVENTS && open_count < OPEN_MAX && random_below(&random, 2) &&
                     !kafka_watermark_is_full(&watermark);
        if (opens) {
            numbers[next] = kafka_watermark_open(&watermark, next);
            open[open_count++] = next++;
        } else if (open_count) {
            int chosen = (int)random_below(&random, (uint64_t)open_count);
            int64_t offset = open[chosen];
            open[chosen] = open[--open_count];
            settled[offset] = true;
            while (lowest < EVENTS && settled[lowest])
                lowest++;
            kafka_watermark_settle(&watermark, numbers[offset]);
            assert_int_equal(watermark.next_offset, lowest);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_watermark_waits_for_the_oldest_open_event, set_up),
        cmocka_unit_test_setup(test_gaps_between_offsets_are_passed, set_up),
        cmocka_unit_test_setup(test_window_is_bounded_by_the_oldest_open_event, set_up),
        cmocka_unit_test_setup(test_watermark_is_right_for_any_order_of_settling, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
