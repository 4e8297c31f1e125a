/* Of too many events in a queue on DynamoDB the oldest give way; the bound is held by samples, so about. */
#include "conformance/ledger_harness.h"
#include "ledger/dynamodb/dynamodb_event_bound.h"
#include "ledger/dynamodb/dynamodb_events.h"
#include "ledger/dynamodb/dynamodb_test_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { EVENTS = 1500, BOUND = 5 * DYNAMODB_EVENT_SAMPLE };

static const struct ledger_event_queue QUEUE = {{"q", 1}, 1 << LEDGER_EVENT_CALL_STARTED, BOUND};

struct fixture {
    struct dynamodb_test_server server;
    struct ledger *ledger;
    struct harness harness;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    dynamodb_test_server_make_tables(&fixture->server);
    fixture->ledger = dynamodb_test_server_open(&fixture->server);
    harness_init(&fixture->harness, fixture->ledger);
    fixture->harness.client.event_queues = &QUEUE;
    fixture->harness.client.event_queue_count = 1;
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    ledger_close(&fixture->ledger);
    harness_free(&fixture->harness);
    free(fixture);
    return 0;
}

static long count_items(const struct fixture *fixture, const char *partition)
{
    const char *answer = dynamodb_test_server_call(
        &fixture->server, "Query",
        "{'TableName':'@queues','Select':'COUNT','KeyConditionExpression':'queue_name = :q',"
        "'ConsistentRead':true,'ExpressionAttributeValues':{':q':{'S':'%s'}}}",
        partition);
    const char *count = strstr(answer, "\"Count\":");
    assert_non_null(count);
    return strtol(count + strlen("\"Count\":"), NULL, 10);
}

static long count_events(const struct fixture *fixture)
{
    long count = 0;
    for (unsigned shard = 0; shard < DYNAMODB_EVENT_SHARDS; shard++) {
        char partition[32];
        snprintf(partition, sizeof(partition), "event#%u#q", shard);
        count += count_items(fixture, partition);
    }
    return count;
}

static void add_events(struct fixture *fixture, int count)
{
    for (int i = 0; i < count; i++) {
        char id[16];
        snprintf(id, sizeof(id), "k%d", i);
        fixture->harness.clock.wall_ms++;
        assert_string_equal(
            harness_call_event(&fixture->harness, LEDGER_EVENT_CALL_STARTED, id, "alice", "bob"),
            "ok changed");
    }
}

static void renew_lease(struct fixture *fixture, int times)
{
    for (int i = 0; i < times; i++)
        assert_memory_equal(harness_event_lease(&fixture->harness, "q", "me", 0), "ok", 2);
}

static uint64_t read_dropped(struct fixture *fixture)
{
    harness_event_queue(&fixture->harness, "q");
    return fixture->harness.queue_dropped;
}

static void surplus_gives_way_and_is_counted(void **state)
{
    struct fixture *fixture = *state;
    add_events(fixture, EVENTS);
    assert_int_equal(count_events(fixture), EVENTS);
    assert_true(count_items(fixture, "event_samples#q") > BOUND / DYNAMODB_EVENT_SAMPLE + 1);
    renew_lease(fixture, DYNAMODB_EVENT_BOUND_RENEWALS + 8);
    long left = count_events(fixture);
    assert_true(left >= BOUND / 4 && left < EVENTS);
    assert_int_equal(count_items(fixture, "event_samples#q"), BOUND / DYNAMODB_EVENT_SAMPLE + 1);
    assert_int_equal(read_dropped(fixture), EVENTS - left);
    assert_memory_equal(harness_events(&fixture->harness, "q", 1), "ok call.started", 15);
}

static void samples_go_with_their_events(void **state)
{
    struct fixture *fixture = *state;
    add_events(fixture, BOUND);
    while (count_events(fixture) > 0) {
        assert_memory_equal(harness_events(&fixture->harness, "q", 8), "ok call", 7);
        assert_memory_equal(harness_events_remove(&fixture->harness, "q", 0, 8), "ok", 2);
    }
    assert_int_equal(count_items(fixture, "event_samples#q"), 0);
    renew_lease(fixture, DYNAMODB_EVENT_BOUND_RENEWALS + 1);
    assert_int_equal(read_dropped(fixture), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(surplus_gives_way_and_is_counted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(samples_go_with_their_events, set_up, tear_down),
    };
    if (!dynamodb_test_server_init())
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
