/* Replays of the local feed from the outbox: alone, and with other gateways on the same ledger. */
#include "feed/local/local_feed.h"

#include "support/script_ledger.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { START_WALL_MS = 1000000000, OUTBOX_MAX = 8 };

/* An outbox that behaves like the ledger's, and a consumer that settles at once. */
struct fixture {
    struct script_ledger script;
    struct metrics metrics;
    struct random random;
    struct local_feed *feed;
    struct ledger_message outbox[OUTBOX_MAX];
    size_t count;
    unsigned consumed;
    bool keeps; /* the consumer keeps the next item */
    struct feed_item *kept;
};

static void answer_request(void *arg, struct ledger_request *request)
{
    struct fixture *fixture = arg;
    if (request->operation == LEDGER_OUTBOX_LIST) {
        size_t limit = request->input.limit;
        request->outcome.messages.messages = fixture->outbox;
        request->outcome.messages.count = fixture->count < limit ? fixture->count : limit;
        request->outcome.messages.has_more = fixture->count > limit;
    } else if (request->operation == LEDGER_OUTBOX_REMOVE) {
        size_t removed = request->input.position_count;
        assert_true(removed <= fixture->count);
        fixture->count -= removed;
        memmove(fixture->outbox, fixture->outbox + removed,
                fixture->count * sizeof(fixture->outbox[0]));
    }
}

static void ignore_published(void *arg, bool published)
{
    (void)arg;
    assert_true(published);
}

static void settle_item(void *arg, struct feed_item *item)
{
    struct fixture *fixture = arg;
    fixture->consumed++;
    if (fixture->keeps) {
        fixture->kept = item;
        return;
    }
    feed_settle(item, FEED_DONE, NULL);
}

static void make_feed(struct fixture *fixture, bool shared)
{
    *fixture = (struct fixture){0};
    script_ledger_init(&fixture->script);
    fixture->script.answer = answer_request;
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
    fixture->feed = local_feed_make(&options, settle_item, fixture);
    assert_non_null(fixture->feed);
}

static void leave_in_outbox(struct fixture *fixture, int64_t sent_at_ms)
{
    fixture->outbox[fixture->count++] = (struct ledger_message){
        .chat = SLICE("c"), .id = SLICE("m"), .sequence = 1, .sent_at_ms = sent_at_ms};
}

static void pass_time(struct fixture *fixture, int64_t ms)
{
    fixture->script.clock.now_ms += ms;
    fixture->script.clock.wall_ms += ms;
    local_feed_tick(fixture->feed);
    script_ledger_turn(&fixture->script);
}

static void test_single_gateway_replays_older_messages_at_its_start(void **state)
{
    (void)state;
    struct fixture fixture;
    make_feed(&fixture, false);
    leave_in_outbox(&fixture, START_WALL_MS - 1);
    pass_time(&fixture, LOCAL_FEED_START_DELAY_MS - 1); /* recipients are coming back */
    assert_int_equal(fixture.consumed, 0);
    pass_time(&fixture, 1);
    assert_int_equal(fixture.consumed, 1);
    assert_int_equal(fixture.count, 0);
    local_feed_free(&fixture.feed);
}

static void test_shared_outbox_keeps_recent_messages_at_the_start(void **state)
{
    (void)state;
    struct fixture fixture;
    make_feed(&fixture, true);
    leave_in_outbox(&fixture, START_WALL_MS - LOCAL_FEED_SWEEP_AGE_MS - 1000);
    leave_in_outbox(&fixture, START_WALL_MS);
    pass_time(&fixture, LOCAL_FEED_START_DELAY_MS);
    assert_int_equal(fixture.consumed, 1);
    assert_int_equal(fixture.count, 1);
    local_feed_free(&fixture.feed);
}

static void test_message_of_another_gateway_is_replayed_once_and_in_time(void **state)
{
    (void)state;
    struct fixture fixture;
    make_feed(&fixture, true);
    pass_time(&fixture, 1);
    leave_in_outbox(&fixture, fixture.script.clock.wall_ms);
    int64_t waited_ms = 0;
    for (; fixture.consumed == 0; waited_ms += 1000)
        pass_time(&fixture, 1000);
    assert_in_range(waited_ms, LOCAL_FEED_SWEEP_AGE_MS, LOCAL_FEED_REPLAY_WITHIN_MS);
    pass_time(&fixture, LOCAL_FEED_REPLAY_WITHIN_MS);
    assert_int_equal(fixture.consumed, 1);
    local_feed_free(&fixture.feed);
}

/* Its own messages wait for something else than a sweep; those of others are then left to others. */
static void test_feed_that_is_behind_takes_over_nothing(void **state)
{
    (void)state;
    struct fixture fixture;
    make_feed(&fixture, true);
    fixture.keeps = true;
    feed_publish(
        local_feed_producer(fixture.feed),
        &(struct feed_event){.chat = SLICE("c"), .sequence = 9, .sent_at_ms = START_WALL_MS},
        INT64_MAX, ignore_published, NULL);
    leave_in_outbox(&fixture, START_WALL_MS); /* its own */
    leave_in_outbox(&fixture, START_WALL_MS - LOCAL_FEED_SWEEP_AGE_MS - 1000);
    pass_time(&fixture, LOCAL_FEED_SWEEP_AGE_MS + 1);
    assert_int_equal(fixture.script.submitted[LEDGER_OUTBOX_LIST], 0);
    feed_settle(fixture.kept, FEED_DONE, NULL);
    fixture.keeps = false;
    pass_time(&fixture, 1);
    pass_time(&fixture, 1);
    assert_int_equal(fixture.script.submitted[LEDGER_OUTBOX_LIST], 2); /* a look, and the page */
    local_feed_free(&fixture.feed);
}

/* The clock was an hour ahead when the message was sent. */
static void test_message_from_the_future_delays_nothing(void **state)
{
    (void)state;
    for (int shared = 0; shared <= 1; shared++) {
        struct fixture fixture;
        make_feed(&fixture, shared);
        leave_in_outbox(&fixture, START_WALL_MS + 3600 * 1000);
        leave_in_outbox(&fixture, START_WALL_MS - LOCAL_FEED_SWEEP_AGE_MS - 1000);
        pass_time(&fixture, LOCAL_FEED_START_DELAY_MS);
        assert_int_equal(fixture.consumed, 2);
        assert_int_equal(fixture.count, 0);
        local_feed_free(&fixture.feed);
    }
}

/* Two gateways that started together do not keep sweeping together. */
static void test_sweeps_are_spread_at_random(void **state)
{
    (void)state;
    struct fixture fixture;
    enum { TICK_MS = 100 };
    unsigned sweeps = 0, ticks = 0, shortest = UINT32_MAX, longest = 0;
    make_feed(&fixture, true);
    for (int tick = 0; tick < 10000; tick++, ticks++) {
        pass_time(&fixture, TICK_MS);
        if (fixture.script.submitted[LEDGER_OUTBOX_LIST] == sweeps)
            continue;
        sweeps = fixture.script.submitted[LEDGER_OUTBOX_LIST];
        if (sweeps > 1) {
            shortest = ticks < shortest ? ticks : shortest;
            longest = ticks > longest ? ticks : longest;
        }
        ticks = 0;
    }
    assert_true(shortest >= LOCAL_FEED_SWEEP_INTERVAL_MS / 2 / TICK_MS - 1);
    assert_true(longest <= LOCAL_FEED_SWEEP_INTERVAL_MS / TICK_MS + 1);
    assert_true(longest > shortest + 1);
    local_feed_free(&fixture.feed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_single_gateway_replays_older_messages_at_its_start),
        cmocka_unit_test(test_shared_outbox_keeps_recent_messages_at_the_start),
        cmocka_unit_test(test_message_of_another_gateway_is_replayed_once_and_in_time),
        cmocka_unit_test(test_feed_that_is_behind_takes_over_nothing),
        cmocka_unit_test(test_message_from_the_future_delays_nothing),
        cmocka_unit_test(test_sweeps_are_spread_at_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
