/* Offers best-effort events while memory runs out: each is sent once or counted as dropped. */
#include "support/alloc_fault.h"
#include "support/script_ledger.h"
#include "support/script_server.h"
#include "webhooks/webhook_sender.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define TAKEN "HTTP/1.1 204 No Content\r\n\r\n"

enum { EVENTS = 3, TURNS_MAX = 2000, STEP_MS = 25 };

static void step_clock(struct clock *clock)
{
    clock->now_ms += STEP_MS;
    clock->wall_ms += STEP_MS;
}

static uint64_t count_settled(const struct metrics *metrics)
{
    return (uint64_t)(atomic_load(&metrics->values[METRIC_WEBHOOKS_SENT]) +
                      atomic_load(&metrics->values[METRIC_WEBHOOKS_DROPPED]));
}

static void offer_all(struct webhook_sender *sender)
{
    for (int i = 0; i < EVENTS; i++)
        webhook_sender_offer(sender, &(struct ledger_event){.type = LEDGER_EVENT_PRESENCE_CHANGED,
                                                            .subject = SLICE("alice"),
                                                            .time_ms = 1000 + i,
                                                            .data = SLICE("{}")});
}

static size_t offer_without_memory(alloc_fault_start fail_at, size_t n)
{
    static struct script_server server;
    static struct script_ledger ledger;
    static struct webhook_endpoints endpoints;
    struct metrics *metrics = calloc(1, sizeof(*metrics));
    struct config config = {.webhooks = {.batch_max = 10,
                                         .batch_ms = 50,
                                         .give_up_ms = 1000000,
                                         .timeout_ms = 1000000,
                                         .ca_file = ""}};
    struct loop loop;
    struct random random;
    script_server_start(&server);
    script_ledger_init(&ledger);
    for (int i = 0; i < SCRIPT_SERVER_EXCHANGES_MAX; i++)
        script_server_then(&server, TAKEN);
    assert_true(loop_init(&loop));
    loop.advance = step_clock;
    random_init_seeded(&random, n);
    endpoints = (struct webhook_endpoints){.count = 1};
    endpoints.items[0].types = LEDGER_EVENT_TYPES_ALL;
    snprintf(endpoints.items[0].url, sizeof(endpoints.items[0].url), "%s/", server.url);
    fail_at(n);
    struct webhook_sender *sender =
        webhook_sender_make(&(struct webhook_sender_parts){.config = &config,
                                                           .endpoints = &endpoints,
                                                           .loop = &loop,
                                                           .random = &random,
                                                           .metrics = metrics,
                                                           .ledger = &ledger.client,
                                                           .holder = SLICE("gw")});
    if (sender) {
        webhook_sender_start(sender);
        offer_all(sender);
        for (int i = 0; i < TURNS_MAX && count_settled(metrics) < EVENTS; i++) {
            loop_turn(&loop, 1);
            script_server_serve(&server);
        }
    }
    size_t failed = alloc_fault_off();
    if (sender) {
        assert_int_equal(count_settled(metrics), EVENTS);
        webhook_sender_stop(sender);
    }
    webhook_sender_free(&sender);
    loop_free(&loop);
    script_server_stop(&server);
    free(metrics);
    return failed;
}

static void every_event_is_sent_or_counted_when_memory_runs_out(void **state)
{
    (void)state;
    assert_true(alloc_fault_sweep(alloc_fault_after, offer_without_memory) > EVENTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_event_is_sent_or_counted_when_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
