/* What is replayed from the outbox, by whom and when: alone, and where gateways share a ledger. */
#include "feed/local/local_feed.h"

#include "support/script_ledger.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { START_WALL_MS = 1000000000, OUTBOX_MAX = 8 };

/* An outbox that behaves as the ledger's, and a consumer that settles at once. */
struct fixture {
    struct script_ledger script;
    struct metrics metrics;
    struct random random;
    struct feed *feed;
    struct ledger_message outbox[OUTBOX_MAX];
    size_t count;
    unsigned consumed;
};

static void answer(void *arg, struct ledger_request *request)
{
    struct fixture *fixture = arg;
    if (request->operation == LEDGER_OUTBOX_LIST) {
        request->outcome.messages.messages = fixture->outbox;
        request->outcome.messages.count = fixture->count;
    } else if (request->operation == LEDGER_OUTBOX_REMOVE) {
        size_t removed = request->input.position_count;
        assert_true(removed <= fixture->count);
        fixture->count -= removed;
        memmove(fixture->outbox, fixture->outbox + removed,
                fixture->count * sizeof(fixture->outbox[0]));
    }
}

static void consume(void *arg, struct feed_item *item)
{
    struct fixture *fixture = arg;
    fixture->consumed++;
    feed_settle(fixture->feed, item, FEED_DONE, NULL);
}

static void make(struct fixture *fixture, bool shared)
{
    *fixture = (struct fixture){0};
    script_ledger_init(&fixture->script);
    fixture->script.answer = answer;
    fixture->script.arg = fixture;
    fixture->script.clock.wall_ms = START_WALL_MS;
    random_init_seeded(&fixture->random, 3);
    struct local_feed_options options = {
        .ledger = &fixture->script.client,
        .metrics = &fixture->metrics,
        .random = &fixture->random,
        .replays = true,
        .shared = shared,
        .replay_page = 100,
        .started_at_ms = START_WALL_MS,
    };
    fixture->feed = local_feed_make(&options, consume, fixture);
    assert_non_null(fixture->feed);
}

static void leave(struct fixture *fixture, int64_t sent_at_ms)
{
    fixture->outbox[fixture->count++] = (struct ledger_message){
        .chat = SLICE("c"), .id = SLICE("m"), .sequence = 1, .sent_at_ms = sent_at_ms};
}

static void pass(struct fixture *fixture, int64_t ms)
{
    fixture->script.clock.now_ms += ms;
    fixture->script.clock.wall_ms += ms;
    local_feed_tick(fixture->feed);
    script_ledger_turn(&fixture->script);
}

static void one_alone_takes_what_is_left_of_an_earlier_life_at_once(void **state)
{
    (void)state;
    struct fixture fixture;
    make(&fixture, false);
    leave(&fixture, START_WALL_MS - 1);
    pass(&fixture, 1);
    assert_int_equal(fixture.consumed, 1);
    assert_int_equal(fixture.count, 0);
    feed_free(&fixture.feed);
}

static void where_others_share_it_the_young_may_be_theirs(void **state)
{
    (void)state;
    struct fixture fixture;
    make(&fixture, true);
    leave(&fixture, START_WALL_MS - LOCAL_FEED_SWEEP_AGE_MS - 1000);
    leave(&fixture, START_WALL_MS - 1000);
    pass(&fixture, 1);
    assert_int_equal(fixture.consumed, 1);
    assert_int_equal(fixture.count, 1);
    feed_free(&fixture.feed);
}

static void what_another_left_is_replayed_in_time_and_once(void **state)
{
    (void)state;
    struct fixture fixture;
    make(&fixture, true);
    pass(&fixture, 1);
    leave(&fixture, fixture.script.clock.wall_ms);
    int64_t waited_ms = 0;
    for (; fixture.consumed == 0; waited_ms += 1000)
        pass(&fixture, 1000);
    assert_in_range(waited_ms, LOCAL_FEED_SWEEP_AGE_MS, LOCAL_FEED_REPLAY_WITHIN_MS);
    pass(&fixture, LOCAL_FEED_REPLAY_WITHIN_MS);
    assert_int_equal(fixture.consumed, 1);
    feed_free(&fixture.feed);
}

/* The clock was an hour ahead when it was sent. */
static void what_seems_sent_long_from_now_holds_up_nothing(void **state)
{
    (void)state;
    for (int shared = 0; shared <= 1; shared++) {
        struct fixture fixture;
        make(&fixture, shared);
        leave(&fixture, START_WALL_MS + 3600 * 1000);
        leave(&fixture, START_WALL_MS - LOCAL_FEED_SWEEP_AGE_MS - 1000);
        pass(&fixture, 1);
        assert_int_equal(fixture.consumed, 2);
        assert_int_equal(fixture.count, 0);
        feed_free(&fixture.feed);
    }
}

/* Two that started together do not go on sweeping together. */
static void sweeps_are_spread(void **state)
{
    (void)state;
    struct fixture fixture;
    unsigned asked = 0, ticks = 0, shortest = UINT32_MAX, longest = 0;
    make(&fixture, true);
    for (int second = 0; second < 1000; second++, ticks++) {
        pass(&fixture, 1000);
        if (fixture.script.asked[LEDGER_OUTBOX_LIST] == asked)
            continue;
        asked = fixture.script.asked[LEDGER_OUTBOX_LIST];
        if (asked > 1) {
            shortest = ticks < shortest ? ticks : shortest;
            longest = ticks > longest ? ticks : longest;
        }
        ticks = 0;
    }
    assert_true(shortest >= LOCAL_FEED_SWEEP_INTERVAL_MS / 2000 - 1);
    assert_true(longest <= LOCAL_FEED_SWEEP_INTERVAL_MS / 1000 + 1);
    assert_true(longest > shortest + 1);
    feed_free(&fixture.feed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_alone_takes_what_is_left_of_an_earlier_life_at_once),
        cmocka_unit_test(where_others_share_it_the_young_may_be_theirs),
        cmocka_unit_test(what_another_left_is_replayed_in_time_and_once),
        cmocka_unit_test(what_seems_sent_long_from_now_holds_up_nothing),
        cmocka_unit_test(sweeps_are_spread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
