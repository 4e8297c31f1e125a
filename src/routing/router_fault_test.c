/* Out of memory while endpoints attach and subscribe: each refusal is reported and leaves nothing behind. */
#include "routing/router.h"

#include "support/alloc_fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { ENDPOINTS = 6, TOPICS = 6 };

struct counting_bus {
    struct bus bus;
    int subscribed;
};

static void subscribe(struct bus *bus, struct slice topic)
{
    (void)topic;
    ((struct counting_bus *)bus)->subscribed++;
}

static void unsubscribe(struct bus *bus, struct slice topic)
{
    (void)topic;
    ((struct counting_bus *)bus)->subscribed--;
}

static const struct bus_operations COUNTING = {.subscribe = subscribe, .unsubscribe = unsubscribe};

static void deliver(struct endpoint *endpoint, struct broadcast *broadcast, uint64_t key)
{
    (void)endpoint;
    (void)broadcast;
    (void)key;
}

/* Returns how many attachments and subscriptions were refused. */
static size_t attach_and_subscribe_all(struct router *router, struct endpoint endpoints[ENDPOINTS])
{
    size_t refused = 0;
    for (size_t e = 0; e < ENDPOINTS; e++) {
        char text[16];
        struct slice user = {text, (size_t)snprintf(text, sizeof(text), "user-%zu", e % 2)};
        if (!router_attach(router, &endpoints[e], user)) {
            refused++;
            continue;
        }
        for (size_t t = 0; t < TOPICS; t++) {
            struct slice topic = {text, (size_t)snprintf(text, sizeof(text), "topic-%zu", t)};
            struct subscription *made = router_subscribe(router, &endpoints[e], topic);
            assert_ptr_equal(router_subscription(&endpoints[e], topic), made);
            refused += made == NULL;
        }
    }
    return refused;
}

static void refused_operations_leave_nothing_behind(void **state)
{
    (void)state;
    for (size_t n = 1, failed = 1; failed > 0; n++) {
        struct counting_bus bus = {.bus.operations = &COUNTING};
        struct endpoint endpoints[ENDPOINTS] = {0};
        struct router router;
        alloc_fault_after(n);
        bool made = router_init(&router, 1, &bus.bus, NULL, deliver);
        size_t refused = made ? attach_and_subscribe_all(&router, endpoints) : 1;
        failed = alloc_fault_off();
        assert_int_equal(refused, failed);
        if (!made)
            continue;
        assert_int_equal(bus.subscribed, router.topics.size);
        for (size_t e = 0; e < ENDPOINTS; e++)
            router_detach(&router, &endpoints[e]);
        assert_int_equal(bus.subscribed, 0);
        router_free(&router);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(refused_operations_leave_nothing_behind)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
