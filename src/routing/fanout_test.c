#include "routing/fanout.h"

#include "base/container.h"
#include "feed/local/local_feed.h"
#include "support/script_ledger.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

enum { PUBLISHED_MAX = 64, PAYLOAD_BYTES_MAX = 512 };

/* One gateway: fan-out and feed are real, everything around them is scripted. */
struct fixture {
    struct script_ledger script;
    struct state_store store;
    bool was_broadcast;
    struct bus bus;
    struct delivery delivery;
    struct metrics metrics;
    struct random random;
    struct config_retry retry;
    struct wheel wheel;
    struct fanout fanout;
    struct local_feed *feed;
    /* the answers of ledger and store */
    enum ledger_status chat_status;
    uint64_t version;
    size_t member_count;
    enum state_status routes_status;
    struct ledger_message outbox[8];
    size_t outbox_count;
    /* the results */
    char published[PUBLISHED_MAX][PAYLOAD_BYTES_MAX];
    size_t published_count;
    size_t removed;
    char dead_letter[64];
    unsigned publish_answers;
};

static const struct slice MEMBERS[] = {{"alice", 5}, {"bob", 3}, {"carol", 5}};

static void answer_outbox(struct fixture *fixture, struct ledger_request *request)
{
    request->outcome.messages.messages = fixture->outbox;
    request->outcome.messages.count = fixture->outbox_count;
    if (request->input.limit == 1)
        request->outcome.messages.count = fixture->outbox_count > 0;
    else
        fixture->outbox_count = 0;
}

static void answer_ledger_request(void *arg, struct ledger_request *request)
{
    struct fixture *fixture = arg;
    switch (request->operation) {
    case LEDGER_CHAT_GET:
        request->outcome.chat =
            (struct ledger_chat_outcome){.status = fixture->chat_status,
                                         .chat = {.members = MEMBERS,
                                                  .member_count = fixture->member_count,
                                                  .members_version = fixture->version}};
        break;
    case LEDGER_OUTBOX_REMOVE:
        fixture->removed += request->input.position_count;
        break;
    case LEDGER_OUTBOX_LIST:
        answer_outbox(fixture, request);
        break;
    case LEDGER_DEAD_LETTER_PUT:
        snprintf(fixture->dead_letter, sizeof(fixture->dead_letter), "%llu %.*s",
                 (unsigned long long)request->input.sequence, SLICE_FORMAT(request->input.text));
        break;
    default:
        assert_int_equal(request->operation, LEDGER_DEAD_LETTERS_LIST);
        break;
    }
}

static void routes(struct state_store *store, const struct slice *users, size_t count,
                   state_routes_done done, void *arg)
{
    struct fixture *fixture = CONTAINER_OF(store, struct fixture, store);
    struct state_route route = {.gateway_id = SLICE("gw"), .users = users, .count = count};
    done(arg, fixture->routes_status, &(struct state_routes){.items = &route, .count = 1});
}

static const struct state_store_operations STORE = {.routes = routes};

static void fake_publish(struct bus *bus, struct slice topic, struct slice payload)
{
    struct fixture *fixture = CONTAINER_OF(bus, struct fixture, bus);
    fixture->was_broadcast = slice_equal(topic, BUS_TOPIC_ALL);
    assert_true(fixture->was_broadcast || slice_is(topic, "server:gw:deliver"));
    assert_true(fixture->published_count < PUBLISHED_MAX);
    snprintf(fixture->published[fixture->published_count++], PAYLOAD_BYTES_MAX, "%.*s",
             SLICE_FORMAT(payload));
}

static const struct bus_operations BUS = {.publish = fake_publish};

static void make_fanout_and_feed(struct fixture *fixture)
{
    struct local_feed_options options = {.ledger = &fixture->script.client,
                                         .metrics = &fixture->metrics,
                                         .random = &fixture->random,
                                         .replays = true,
                                         .replay_page = 100,
                                         .started_at_ms = fixture->script.clock.wall_ms};
    random_init_seeded(&fixture->random, 1);
    fixture->retry = (struct config_retry){3, 100, 1000};
    fixture->delivery = (struct delivery){.bus = &fixture->bus,
                                          .store = &fixture->store,
                                          .metrics = &fixture->metrics,
                                          .broadcasts = true};
    fixture->fanout = (struct fanout){.retry = &fixture->retry,
                                      .clock = &fixture->script.clock,
                                      .wheel = &fixture->wheel,
                                      .ledger = &fixture->script.client,
                                      .delivery = &fixture->delivery,
                                      .metrics = &fixture->metrics};
    fixture->feed = local_feed_make(&options, fanout_on_item, &fixture->fanout);
    assert_true(fanout_init(&fixture->fanout, 1));
}

static int set_up(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){
        .store.operations = &STORE, .bus.operations = &BUS, .version = 1, .member_count = 2};
    script_ledger_init(&fixture.script);
    fixture.script.answer = answer_ledger_request;
    fixture.script.arg = &fixture;
    wheel_init(&fixture.wheel, fixture.script.clock.now_ms);
    make_fanout_and_feed(&fixture);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    fixture->fanout.stopped = true;
    local_feed_stop(fixture->feed);
    script_ledger_turn(&fixture->script);
    fanout_free(&fixture->fanout);
    local_feed_free(&fixture->feed);
    return 0;
}

static void on_event_published(void *arg, bool published)
{
    ((struct fixture *)arg)->publish_answers += published;
}

static void publish_event(struct fixture *fixture, uint64_t sequence, uint64_t version)
{
    struct feed_event event = {.chat = SLICE("c"),
                               .message_id = SLICE("m"),
                               .sender = SLICE("alice"),
                               .body = SLICE("text"),
                               .sequence = sequence,
                               .members_version = version,
                               .sent_at_ms = fixture->script.clock.wall_ms};
    feed_publish(local_feed_producer(fixture->feed), &event, INT64_MAX, on_event_published,
                 fixture);
}

static void pass_time(struct fixture *fixture, int64_t ms)
{
    fixture->script.clock.now_ms += ms;
    fixture->script.clock.wall_ms += ms;
    wheel_advance(&fixture->wheel, fixture->script.clock.now_ms, 100);
    script_ledger_turn(&fixture->script);
}

static void assert_published(const struct fixture *fixture, size_t index, const char *text)
{
    assert_true(index < fixture->published_count);
    assert_non_null(strstr(fixture->published[index], text));
}

static void one_publish_per_gateway_carries_all_recipients(void **state)
{
    struct fixture *fixture = *state;
    publish_event(fixture, 1, 1);
    assert_int_equal(fixture->publish_answers, 1);
    assert_int_equal(feed_lag(local_feed_consumer(fixture->feed)), 1);
    script_ledger_turn(&fixture->script);
    assert_int_equal(fixture->published_count, 1);
    assert_published(fixture, 0, "{\"kind\":\"event\",\"type\":\"message\"");
    assert_published(fixture, 0, "\"users\":[\"alice\",\"bob\"]}");
    assert_published(fixture, 0, "\"chat\":\"c\",\"sequence\":1");
    assert_int_equal(fixture->removed, 1);
    assert_int_equal(feed_lag(local_feed_consumer(fixture->feed)), 0);
}

static void members_are_read_once_until_they_change(void **state)
{
    struct fixture *fixture = *state;
    for (uint64_t n = 1; n <= 10; n++) {
        publish_event(fixture, n, 1);
        script_ledger_turn(&fixture->script);
    }
    assert_int_equal(fixture->script.submitted[LEDGER_CHAT_GET], 1);
    fixture->version = 2;
    fixture->member_count = 3;
    publish_event(fixture, 11, 2);
    script_ledger_turn(&fixture->script);
    assert_int_equal(fixture->script.submitted[LEDGER_CHAT_GET], 2);
    assert_published(fixture, 10, "\"carol\"");
    assert_int_equal(fixture->removed, 11);
}

/* The event was left by another gateway, or sent again: it may be newer than the cached members. */
static void event_without_version_reads_members_again(void **state)
{
    struct fixture *fixture = *state;
    fixture->member_count = 3;
    publish_event(fixture, 1, 1);
    script_ledger_turn(&fixture->script);
    fixture->version = 2; /* carol is removed without an event for fan-out */
    fixture->member_count = 2;
    publish_event(fixture, 2, 0);
    publish_event(fixture, 3, 0);
    script_ledger_turn(&fixture->script);
    assert_int_equal(fixture->published_count, 3);
    assert_published(fixture, 0, "\"carol\"");
    for (size_t i = 1; i < 3; i++)
        assert_null(strstr(fixture->published[i], "carol"));
    assert_int_equal(fixture->removed, 3);
}

static void order_is_kept_while_members_are_read(void **state)
{
    struct fixture *fixture = *state;
    fixture->script.holding = true;
    publish_event(fixture, 1, 1);
    publish_event(fixture, 2, 1);
    publish_event(fixture, 3, 2); /* arrived after the read began, and needs newer members */
    fixture->script.holding = false;
    assert_int_equal(fixture->script.submitted[LEDGER_CHAT_GET], 1);
    script_ledger_turn(&fixture->script);
    assert_int_equal(fixture->published_count, 2);
    assert_true(fixture->script.submitted[LEDGER_CHAT_GET] >= 2);
    fixture->version = 2;
    pass_time(fixture, 100);
    assert_int_equal(fixture->published_count, 3);
    for (size_t i = 0; i < 3; i++) {
        char sequence[32];
        snprintf(sequence, sizeof(sequence), "\"sequence\":%zu", i + 1);
        assert_published(fixture, i, sequence);
    }
}

static void item_is_skipped_after_three_attempts_with_back_off(void **state)
{
    struct fixture *fixture = *state;
    fixture->chat_status = LEDGER_UNAVAILABLE;
    publish_event(fixture, 1, 1);
    script_ledger_turn(&fixture->script);
    pass_time(fixture, 99);
    assert_int_equal(fixture->script.submitted[LEDGER_CHAT_GET], 1);
    pass_time(fixture, 1);
    assert_int_equal(fixture->script.submitted[LEDGER_CHAT_GET], 2);
    pass_time(fixture, 199);
    assert_int_equal(fixture->script.submitted[LEDGER_CHAT_GET], 2);
    pass_time(fixture, 1);
    assert_int_equal(fixture->script.submitted[LEDGER_CHAT_GET], 3);
    pass_time(fixture, 10000);
    assert_int_equal(fixture->script.submitted[LEDGER_CHAT_GET], 3);
    assert_int_equal(fixture->metrics.values[METRIC_FANOUT_RETRY_COUNT], 2);
    assert_int_equal(fixture->metrics.values[METRIC_FANOUT_SKIPPED], 1);
    assert_int_equal(fixture->removed, 1);
    assert_int_equal(feed_lag(local_feed_consumer(fixture->feed)), 0);
}

static void back_off_grows_to_its_bound_and_stays_there(void **state)
{
    struct fixture *fixture = *state;
    fixture->retry.max_attempts = 100;
    fixture->chat_status = LEDGER_TIMEOUT;
    publish_event(fixture, 1, 1);
    script_ledger_turn(&fixture->script);
    for (int64_t wait_ms = 100; wait_ms < fixture->retry.max_backoff_ms; wait_ms *= 2)
        pass_time(fixture, wait_ms);
    for (unsigned reads = fixture->script.submitted[LEDGER_CHAT_GET]; reads < 100; reads++) {
        pass_time(fixture, fixture->retry.max_backoff_ms / 2);
        assert_int_equal(fixture->script.submitted[LEDGER_CHAT_GET], reads);
        pass_time(fixture, fixture->retry.max_backoff_ms / 2);
        assert_int_equal(fixture->script.submitted[LEDGER_CHAT_GET], reads + 1);
    }
    assert_int_equal(feed_lag(local_feed_consumer(fixture->feed)), 0);
}

static void broadcast_counts_as_success(void **state)
{
    struct fixture *fixture = *state;
    fixture->routes_status = STATE_UNAVAILABLE;
    publish_event(fixture, 1, 1);
    script_ledger_turn(&fixture->script);
    assert_int_equal(fixture->published_count, 1);
    assert_true(fixture->was_broadcast);
    assert_int_equal(fixture->removed, 1);
    fixture->routes_status = STATE_OK;
    pass_time(fixture, 10000);
    assert_int_equal(fixture->published_count, 1);
    assert_int_equal(fixture->metrics.values[METRIC_FANOUT_RETRY_COUNT], 0);
}

/* Sync heals what was not delivered; a queue of retries would only grow while Redis is down. */
static void unknown_routes_skip_the_item_without_a_retry(void **state)
{
    struct fixture *fixture = *state;
    fixture->delivery.broadcasts = false;
    fixture->routes_status = STATE_UNAVAILABLE;
    publish_event(fixture, 1, 1);
    script_ledger_turn(&fixture->script);
    assert_int_equal(fixture->removed, 1);
    assert_int_equal(fixture->published_count, 0);
    assert_int_equal(fixture->metrics.values[METRIC_FANOUT_SKIPPED], 1);
    assert_int_equal(fixture->metrics.values[METRIC_FANOUT_RETRY_COUNT], 0);
    assert_int_equal(fixture->metrics.values[METRIC_FANOUT_EVENTS], 0);
    fixture->routes_status = STATE_OK;
    pass_time(fixture, 10000);
    assert_int_equal(fixture->published_count, 0);
    publish_event(fixture, 2, 1);
    script_ledger_turn(&fixture->script);
    assert_int_equal(fixture->published_count, 1);
    assert_int_equal(fixture->metrics.values[METRIC_FANOUT_EVENTS], 1);
}

static void poison_becomes_a_dead_letter(void **state)
{
    struct fixture *fixture = *state;
    fixture->chat_status = LEDGER_NOT_FOUND;
    publish_event(fixture, 9, 1);
    script_ledger_turn(&fixture->script);
    assert_string_equal(fixture->dead_letter, "9 there is no such chat");
    assert_int_equal(fixture->metrics.values[METRIC_FANOUT_DLQ_DEPTH], 1);
    assert_int_equal(feed_lag(local_feed_consumer(fixture->feed)), 0);
    assert_int_equal(fixture->removed, 0);
}

static void outbox_from_before_the_start_is_replayed(void **state)
{
    struct fixture *fixture = *state;
    int64_t now_ms = fixture->script.clock.wall_ms;
    for (size_t i = 0; i < 3; i++)
        fixture->outbox[i] = (struct ledger_message){.chat = SLICE("c"),
                                                     .id = SLICE("m"),
                                                     .sender = SLICE("alice"),
                                                     .body = SLICE("left behind"),
                                                     .sequence = i + 1,
                                                     .sent_at_ms = now_ms - 2 + (int64_t)i};
    fixture->outbox_count = 3; /* the last one is from after the start, so it is under way */
    pass_time(fixture, LOCAL_FEED_START_DELAY_MS);
    local_feed_tick(fixture->feed);
    script_ledger_turn(&fixture->script);
    assert_int_equal(fixture->published_count, 2);
    assert_int_equal(fixture->removed, 2);
    local_feed_tick(fixture->feed);
    assert_int_equal(fixture->script.submitted[LEDGER_OUTBOX_LIST], 2); /* a look, then a page */
    pass_time(fixture, LOCAL_FEED_SWEEP_INTERVAL_MS);
    local_feed_tick(fixture->feed);
    assert_int_equal(fixture->script.submitted[LEDGER_OUTBOX_LIST], 3);
}

static void feed_refuses_events_beyond_its_bound(void **state)
{
    struct fixture *fixture = *state;
    fixture->script.holding = true;
    for (uint64_t n = 1; n <= LOCAL_FEED_EVENTS_MAX + 5; n++)
        publish_event(fixture, n, 1);
    assert_int_equal(fixture->publish_answers, LOCAL_FEED_EVENTS_MAX);
    assert_false(feed_available(local_feed_producer(fixture->feed)));
}

static void stop_ends_deliveries(void **state)
{
    struct fixture *fixture = *state;
    fixture->script.holding = true;
    publish_event(fixture, 1, 1);
    fixture->fanout.stopped = true;
    local_feed_stop(fixture->feed);
    publish_event(fixture, 2, 1);
    assert_int_equal(fixture->publish_answers, 1);
    script_ledger_turn(&fixture->script);
    assert_int_equal(fixture->published_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_publish_per_gateway_carries_all_recipients, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(members_are_read_once_until_they_change, set_up, tear_down),
        cmocka_unit_test_setup_teardown(event_without_version_reads_members_again, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(order_is_kept_while_members_are_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(item_is_skipped_after_three_attempts_with_back_off, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(back_off_grows_to_its_bound_and_stays_there, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(broadcast_counts_as_success, set_up, tear_down),
        cmocka_unit_test_setup_teardown(unknown_routes_skip_the_item_without_a_retry, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(poison_becomes_a_dead_letter, set_up, tear_down),
        cmocka_unit_test_setup_teardown(outbox_from_before_the_start_is_replayed, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(feed_refuses_events_beyond_its_bound, set_up, tear_down),
        cmocka_unit_test_setup_teardown(stop_ends_deliveries, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
