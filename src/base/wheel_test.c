#include "base/wheel.h"

#include "base/container.h"
#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TIMERS = 200, NO_LIMIT = 1000000 };

static const int64_t LAST_LEVEL_SPAN_MS = INT64_C(1) << (WHEEL_LEVELS * WHEEL_SLOT_BITS);

struct bench;

/* A timer and its state in the model. */
struct probe {
    struct wheel_timer timer;
    struct bench *bench;
    int64_t expected_ms; /* INT64_MAX: not set */
    size_t advance;      /* the number of the advance in which it was set */
    bool in_order;       /* it was set to a future time */
    size_t fired;
};

struct bench {
    struct wheel wheel;
    struct random random;
    int64_t now_ms; /* the argument of the running advance */
    size_t advances;
    int64_t last_ms;       /* time of the last timer that fired in order */
    bool callbacks_change; /* callbacks set and cancel other timers */
    struct probe probes[TIMERS];
};

static void set(struct probe *probe, int64_t at_ms)
{
    probe->in_order = at_ms > probe->bench->wheel.now_ms;
    wheel_set(&probe->bench->wheel, &probe->timer, at_ms);
    probe->expected_ms = at_ms;
    probe->advance = probe->bench->advances;
    assert_true(wheel_is_set(&probe->timer));
}

static void cancel(struct probe *probe)
{
    wheel_cancel(&probe->bench->wheel, &probe->timer);
    probe->expected_ms = INT64_MAX;
    assert_false(wheel_is_set(&probe->timer));
}

/* Mostly near times, some far, some beyond the last level, some past. */
static int64_t some_time(struct bench *bench)
{
    static const int64_t SPANS_MS[] = {2, 64, 70, 4096, 300000, 20000000, 1200000000, 90000000000};
    int64_t span_ms = SPANS_MS[random_below(&bench->random, sizeof(SPANS_MS) / sizeof(*SPANS_MS))];
    return bench->now_ms - 3 + (int64_t)random_below(&bench->random, (uint64_t)span_ms);
}

static struct probe *some_probe(struct bench *bench)
{
    return &bench->probes[random_below(&bench->random, TIMERS)];
}

static void change_timers(struct bench *bench, struct probe *self)
{
    switch (random_below(&bench->random, 6)) {
    case 0:
        set(self, some_time(bench));
        break;
    case 1:
        set(self, bench->now_ms); /* would loop forever if it fired in this advance */
        break;
    case 2:
        set(some_probe(bench), some_time(bench));
        break;
    case 3:
        cancel(some_probe(bench));
        break;
    default:
        break;
    }
}

static void on_probe_fired(struct wheel_timer *timer)
{
    struct probe *probe = CONTAINER_OF(timer, struct probe, timer);
    struct bench *bench = probe->bench;
    assert_false(wheel_is_set(timer));
    assert_true(probe->expected_ms <= bench->now_ms);
    assert_int_equal(timer->at_ms, probe->expected_ms);
    /* Timers that were set to a future time fire in the order of time. */
    if (probe->in_order) {
        assert_true(timer->at_ms >= bench->last_ms);
        bench->last_ms = timer->at_ms;
    }
    probe->expected_ms = INT64_MAX;
    probe->fired++;
    if (bench->callbacks_change)
        change_timers(bench, probe);
}

static void start(struct bench *bench, uint64_t seed, int64_t now_ms)
{
    memset(bench, 0, sizeof(*bench));
    random_init_seeded(&bench->random, seed);
    wheel_init(&bench->wheel, now_ms);
    bench->now_ms = now_ms;
    bench->last_ms = INT64_MIN;
    for (size_t i = 0; i < TIMERS; i++)
        bench->probes[i] =
            (struct probe){.timer.fire = on_probe_fired, .bench = bench, .expected_ms = INT64_MAX};
}

static size_t advance(struct bench *bench, int64_t now_ms, size_t max)
{
    bench->now_ms = now_ms;
    bench->advances++;
    return wheel_advance(&bench->wheel, now_ms, max);
}

/* Every due timer that was set before the last advance has fired; none fired late. */
static void check(struct bench *bench)
{
    int64_t first_ms = INT64_MAX;
    for (size_t i = 0; i < TIMERS; i++) {
        struct probe *probe = &bench->probes[i];
        assert_int_equal(wheel_is_set(&probe->timer), probe->expected_ms != INT64_MAX);
        if (probe->advance < bench->advances)
            assert_true(probe->expected_ms > bench->now_ms);
        if (probe->expected_ms < first_ms)
            first_ms = probe->expected_ms;
    }
    if (first_ms != INT64_MAX && first_ms > bench->now_ms)
        assert_true(wheel_next_ms(&bench->wheel) <= first_ms);
}

static int64_t some_jump(struct bench *bench)
{
    static const int64_t JUMPS_MS[] = {1, 2, 63, 64, 65, 5000, 300000, 17000000, 2000000000};
    size_t pick = random_below(&bench->random, sizeof(JUMPS_MS) / sizeof(*JUMPS_MS));
    return (int64_t)random_below(&bench->random, (uint64_t)JUMPS_MS[pick] + 1);
}

static void run_against_model(uint64_t seed, bool callbacks_change)
{
    struct bench bench;
    start(&bench, seed, (int64_t)seed * 977);
    wheel_set_phase(&bench.wheel, seed % 2 ? (int64_t)(seed * 25013) % WHEEL_PHASES : 0);
    bench.callbacks_change = callbacks_change;
    for (int step = 0; step < 20000; step++) {
        switch (random_below(&bench.random, 4)) {
        case 0:
            cancel(some_probe(&bench));
            break;
        case 1:
            advance(&bench, bench.now_ms + some_jump(&bench), NO_LIMIT);
            check(&bench);
            break;
        default:
            set(some_probe(&bench), some_time(&bench));
            break;
        }
    }
}

static void wheel_agrees_with_a_model(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++)
        run_against_model(seed, false);
}

static void callbacks_may_set_and_cancel(void **state)
{
    (void)state;
    for (uint64_t seed = 11; seed <= 15; seed++)
        run_against_model(seed, true);
}

static void timer_fires_in_its_millisecond(void **state)
{
    (void)state;
    static const int64_t DELAYS_MS[] = {1, 2, 63, 64, 65, 4095, 4096, 4097, 262143, 262145};
    for (size_t i = 0; i < sizeof(DELAYS_MS) / sizeof(*DELAYS_MS); i++) {
        struct bench bench;
        start(&bench, 1, 1000003);
        int64_t at_ms = bench.now_ms + DELAYS_MS[i];
        set(&bench.probes[0], at_ms);
        assert_int_equal(advance(&bench, at_ms - 1, NO_LIMIT), 0);
        assert_int_equal(advance(&bench, at_ms, NO_LIMIT), 1);
        assert_int_equal(wheel_next_ms(&bench.wheel), INT64_MAX);
    }
}

static size_t advances_until_fired(struct bench *bench, struct probe *probe, int64_t at_ms)
{
    size_t advances = 0;
    while (probe->fired == 0) {
        int64_t next_ms = wheel_next_ms(&bench->wheel);
        assert_true(next_ms <= at_ms);
        advance(bench, next_ms, NO_LIMIT);
        advances++;
    }
    assert_int_equal(bench->now_ms, at_ms);
    return advances;
}

/* A loop that sleeps until wheel_next_ms() fires timers on time and does not wake up needlessly. */
static void sleeping_until_next_ms_suffices(void **state)
{
    (void)state;
    struct bench bench;
    for (int64_t delay_ms = 1; delay_ms < LAST_LEVEL_SPAN_MS * 300; delay_ms = delay_ms * 3 + 1) {
        start(&bench, 1, 123456789);
        int64_t at_ms = bench.now_ms + delay_ms;
        set(&bench.probes[0], at_ms);
        assert_true(advances_until_fired(&bench, &bench.probes[0], at_ms) < WHEEL_LEVELS + 400);
    }
}

/* Time carries into bits above all levels (after 12 days of uptime). */
static void near_time_beyond_the_carry_fires_soon(void **state)
{
    (void)state;
    for (int64_t before = 1; before <= 100000; before *= 10) {
        for (int64_t after = 0; after <= 100000; after = after * 10 + 1) {
            struct bench bench;
            start(&bench, 1, LAST_LEVEL_SPAN_MS * 3 - before);
            set(&bench.probes[0], LAST_LEVEL_SPAN_MS * 3 + after);
            assert_int_equal(advance(&bench, LAST_LEVEL_SPAN_MS * 3 + after - 1, NO_LIMIT), 0);
            assert_int_equal(advance(&bench, LAST_LEVEL_SPAN_MS * 3 + after, NO_LIMIT), 1);
        }
    }
}

static void timer_at_int64_max_waits(void **state)
{
    (void)state;
    struct bench bench;
    start(&bench, 1, 5);
    set(&bench.probes[0], INT64_MAX);
    assert_int_equal(advance(&bench, LAST_LEVEL_SPAN_MS * 5, NO_LIMIT), 0);
    assert_true(wheel_is_set(&bench.probes[0].timer));
}

static void advance_fires_at_most_max_timers(void **state)
{
    (void)state;
    struct bench bench;
    start(&bench, 1, 50);
    for (size_t i = 0; i < TIMERS; i++)
        set(&bench.probes[i], 60 + (int64_t)(i % 3));
    size_t left = TIMERS;
    while (left) {
        size_t expected = left < 30 ? left : 30;
        assert_int_equal(advance(&bench, 1000, 30), expected);
        left -= expected;
        if (left)
            assert_true(wheel_next_ms(&bench.wheel) <= 62);
    }
    assert_int_equal(advance(&bench, 1000, 30), 0);
    for (size_t i = 0; i < TIMERS; i++)
        assert_int_equal(bench.probes[i].fired, 1);
}

static void due_timer_can_be_cancelled_and_moved(void **state)
{
    (void)state;
    struct bench bench;
    start(&bench, 1, 0);
    for (size_t i = 0; i < 10; i++)
        set(&bench.probes[i], 5);
    assert_int_equal(advance(&bench, 10, 1), 1);
    for (size_t i = 0; i < 10; i++)
        if (wheel_is_set(&bench.probes[i].timer) && i % 2)
            cancel(&bench.probes[i]);
        else
            set(&bench.probes[i], 100);
    assert_int_equal(advance(&bench, 99, NO_LIMIT), 0);
    size_t set_again = 0;
    for (size_t i = 0; i < 10; i++)
        set_again += wheel_is_set(&bench.probes[i].timer);
    assert_int_equal(advance(&bench, 100, NO_LIMIT), set_again);
}

static void on_probe_fired_set_to_past(struct wheel_timer *timer)
{
    struct probe *probe = CONTAINER_OF(timer, struct probe, timer);
    probe->fired++;
    wheel_set(&probe->bench->wheel, timer, 0);
}

static void timer_set_to_the_past_fires_at_the_next_advance(void **state)
{
    (void)state;
    struct bench bench;
    start(&bench, 1, 100);
    bench.probes[0].timer.fire = on_probe_fired_set_to_past;
    set(&bench.probes[0], 0);
    set(&bench.probes[1], 101);
    assert_int_equal(wheel_next_ms(&bench.wheel), 100);
    assert_int_equal(advance(&bench, 100, NO_LIMIT), 1);
    assert_int_equal(advance(&bench, 100, NO_LIMIT), 1);
    assert_int_equal(advance(&bench, 101, NO_LIMIT), 2);
    assert_int_equal(bench.probes[0].fired, 3);
    assert_int_equal(bench.probes[1].fired, 1);
}

static void advance_to_an_earlier_time_changes_nothing(void **state)
{
    (void)state;
    struct bench bench;
    start(&bench, 1, 100);
    set(&bench.probes[0], 150);
    assert_int_equal(wheel_advance(&bench.wheel, 90, NO_LIMIT), 0);
    assert_int_equal(bench.wheel.now_ms, 100);
    assert_int_equal(advance(&bench, 150, NO_LIMIT), 1);
}

/* ---- many timers in one slot ---- */

enum { CROWD = 3 * WHEEL_MOVES_MAX };

struct crowd {
    struct wheel wheel;
    struct wheel_timer timers[CROWD];
};

static size_t crowd_fired;
static int64_t crowd_last_ms;

static void on_crowd_fired(struct wheel_timer *timer)
{
    assert_true(timer->at_ms >= crowd_last_ms);
    crowd_last_ms = timer->at_ms;
    crowd_fired++;
}

/* All in the slot of the third level that begins at 4,096 ms. */
static struct crowd *make_crowd(int64_t phase_ms)
{
    struct crowd *crowd = calloc(1, sizeof(*crowd));
    assert_non_null(crowd);
    wheel_init(&crowd->wheel, 10);
    wheel_set_phase(&crowd->wheel, phase_ms);
    crowd_fired = 0;
    crowd_last_ms = 0;
    for (int64_t i = 0; i < CROWD; i++) {
        crowd->timers[i].fire = on_crowd_fired;
        wheel_set(&crowd->wheel, &crowd->timers[i], 4096 + i % 4000);
    }
    return crowd;
}

/* One advance moves a part; the wheel asks to be advanced again at once, and time stands still until then. */
static void timers_of_a_slot_move_in_parts(void **state)
{
    (void)state;
    struct crowd *crowd = make_crowd(0);
    size_t advances = 0;
    do {
        wheel_advance(&crowd->wheel, 4096, NO_LIMIT);
        advances++;
        assert_true(advances <= CROWD);
    } while (wheel_next_ms(&crowd->wheel) <= 4096);
    assert_int_equal(advances, CROWD / WHEEL_MOVES_MAX);
    assert_int_equal(crowd_fired, 1);
    for (int64_t now_ms = 4097; now_ms < 8192; now_ms++)
        wheel_advance(&crowd->wheel, now_ms, NO_LIMIT);
    assert_int_equal(crowd_fired, CROWD);
    free(crowd);
}

static void moving_timers_can_be_cancelled_and_set(void **state)
{
    (void)state;
    struct crowd *crowd = make_crowd(0);
    wheel_advance(&crowd->wheel, 4096, NO_LIMIT);
    assert_true(wheel_next_ms(&crowd->wheel) <= 4096);
    for (size_t i = 0; i < CROWD; i += 2)
        wheel_cancel(&crowd->wheel, &crowd->timers[i]);
    for (size_t i = 1; i < CROWD; i += 4)
        wheel_set(&crowd->wheel, &crowd->timers[i], 9000);
    size_t fired = crowd_fired;
    for (int64_t now_ms = 4096; now_ms < 8192; now_ms++)
        wheel_advance(&crowd->wheel, now_ms, NO_LIMIT);
    assert_int_equal(crowd_fired - fired, CROWD / 4);
    while (wheel_next_ms(&crowd->wheel) <= 9000)
        wheel_advance(&crowd->wheel, 9000, NO_LIMIT);
    assert_int_equal(crowd_fired - fired, CROWD / 2);
    free(crowd);
}

/* With a phase the same timers are in two slots, which come up at another time. */
static void phase_shifts_when_slots_come_up(void **state)
{
    (void)state;
    struct crowd *crowd = make_crowd(2048);
    assert_int_equal(wheel_next_ms(&crowd->wheel), 2048);
    free(crowd);
    crowd = make_crowd(0);
    assert_int_equal(wheel_next_ms(&crowd->wheel), 4096);
    free(crowd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wheel_agrees_with_a_model),
        cmocka_unit_test(callbacks_may_set_and_cancel),
        cmocka_unit_test(timers_of_a_slot_move_in_parts),
        cmocka_unit_test(moving_timers_can_be_cancelled_and_set),
        cmocka_unit_test(phase_shifts_when_slots_come_up),
        cmocka_unit_test(timer_fires_in_its_millisecond),
        cmocka_unit_test(sleeping_until_next_ms_suffices),
        cmocka_unit_test(near_time_beyond_the_carry_fires_soon),
        cmocka_unit_test(timer_at_int64_max_waits),
        cmocka_unit_test(advance_fires_at_most_max_timers),
        cmocka_unit_test(due_timer_can_be_cancelled_and_moved),
        cmocka_unit_test(timer_set_to_the_past_fires_at_the_next_advance),
        cmocka_unit_test(advance_to_an_earlier_time_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
