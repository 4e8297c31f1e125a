/* Fan-out when out of memory: every item is settled once, delivered whole or skipped, and the next one is delivered. */
#include "routing/fanout.h"

#include "base/container.h"
#include "support/alloc_fault.h"
#include "support/script_ledger.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { LONG_MS = 60000, TRIES_MAX = 3 };

/* The sending half alone: no gateway, no router, no feed. */
struct fixture {
    struct script_ledger script;
    struct state_store store;
    struct bus bus;
    struct metrics metrics;
    struct delivery delivery;
    struct wheel wheel;
    struct fanout fanout;
    struct feed_consumer consumer;
    unsigned published;
    unsigned settled[FEED_POISON + 1];
};

static struct fixture fixture;
static const struct slice MEMBERS[] = {{"alice", 5}, {"bob", 3}};
static const struct config_retry RETRY = {TRIES_MAX, 100, 1000};

static void answer_with_members(void *arg, struct ledger_request *request)
{
    (void)arg;
    request->outcome.chat.chat =
        (struct ledger_chat){.members = MEMBERS, .member_count = 2, .members_version = 1};
}

static void route_to_one_gateway(struct state_store *store, const struct slice *users, size_t count,
                                 state_routes_done done, void *arg)
{
    (void)store;
    struct state_route route = {SLICE("gw"), users, count};
    done(arg, STATE_OK, &(struct state_routes){.items = &route, .count = 1});
}

static void count_publish(struct bus *bus, struct slice topic, struct slice payload)
{
    (void)bus;
    assert_true(slice_is(topic, "server:gw:deliver"));
    assert_memory_equal(payload.data + payload.len - 2, "]}", 2); /* whole */
    fixture.published++;
}

static void count_settled(struct feed_item *item, enum feed_result result, const char *reason)
{
    (void)reason;
    list_remove(&item->link);
    fixture.settled[result]++;
}

static const struct state_store_operations STORE = {.routes = route_to_one_gateway};
static const struct bus_operations BUS = {.publish = count_publish};
static const struct feed_consumer_operations CONSUMER = {.settle = count_settled};

static void open_fixture(void)
{
    memset(&fixture, 0, sizeof(fixture));
    script_ledger_init(&fixture.script);
    fixture.script.answer = answer_with_members;
    fixture.store.operations = &STORE;
    fixture.bus.operations = &BUS;
    wheel_init(&fixture.wheel, fixture.script.clock.now_ms);
    fixture.delivery = (struct delivery){
        .bus = &fixture.bus, .store = &fixture.store, .metrics = &fixture.metrics, .seed = 1};
    fixture.fanout = (struct fanout){.retry = &RETRY,
                                     .clock = &fixture.script.clock,
                                     .wheel = &fixture.wheel,
                                     .ledger = &fixture.script.client,
                                     .delivery = &fixture.delivery,
                                     .metrics = &fixture.metrics};
    fixture.consumer = (struct feed_consumer){
        .operations = &CONSUMER, .on_item = fanout_on_item, .on_item_arg = &fixture.fanout};
    assert_true(fanout_init(&fixture.fanout, 1));
}

static void close_fixture(void)
{
    script_ledger_turn(&fixture.script);
    fanout_free(&fixture.fanout);
}

static void fan_out(struct feed_item *item, uint64_t sequence)
{
    *item = (struct feed_item){.consumer = &fixture.consumer,
                               .event = {.chat = SLICE("c"),
                                         .message_id = SLICE("01ARYZ6S41TSV4RRFFQ69G5FAV"),
                                         .sender = SLICE("alice"),
                                         .body = SLICE("text"),
                                         .sequence = sequence,
                                         .members_version = 1}};
    list_init(&item->link);
    fanout_on_item(&fixture.fanout, item);
}

/* Lets the ledger answer and all retries come due. */
static void pass_time(void)
{
    for (int64_t passed_ms = 0; passed_ms < LONG_MS; passed_ms += RETRY.initial_backoff_ms) {
        fixture.script.clock.now_ms += RETRY.initial_backoff_ms;
        ledger_client_expire(&fixture.script.client);
        script_ledger_turn(&fixture.script);
        wheel_advance(&fixture.wheel, fixture.script.clock.now_ms, 100);
    }
}

static size_t fan_out_without_memory(alloc_fault_start fail_at, size_t n)
{
    struct feed_item first, second;
    open_fixture();
    fail_at(n);
    fan_out(&first, 1);
    pass_time();
    size_t failed = alloc_fault_off();
    assert_int_equal(fixture.settled[FEED_DONE] + fixture.settled[FEED_SKIPPED], 1);
    assert_int_equal(fixture.metrics.values[METRIC_FANOUT_SKIPPED], fixture.settled[FEED_SKIPPED]);
    assert_true(fixture.metrics.values[METRIC_FANOUT_RETRY_COUNT] < TRIES_MAX);
    unsigned done = fixture.settled[FEED_DONE];
    fixture.published = 0;
    fan_out(&second, 2);
    pass_time();
    assert_int_equal(fixture.settled[FEED_DONE], done + 1);
    assert_int_equal(fixture.published, 1);
    close_fixture();
    return failed;
}

static void one_failed_allocation_costs_a_retry_at_most(void **state)
{
    (void)state;
    alloc_fault_sweep(alloc_fault_after, fan_out_without_memory);
}

static void lasting_lack_of_memory_skips_the_item(void **state)
{
    (void)state;
    alloc_fault_sweep(alloc_fault_from, fan_out_without_memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_failed_allocation_costs_a_retry_at_most),
        cmocka_unit_test(lasting_lack_of_memory_skips_the_item),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
