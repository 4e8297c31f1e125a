#include "routing/router.h"

#include "base/container.h"
#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { ENDPOINTS = 24, TOPICS = 12, USERS = 5 };

/* A bus that counts: each topic is subscribed and unsubscribed in turns. */
struct counting_bus {
    struct bus bus;
    int subscribed[TOPICS];
};

static struct slice topic_named(char text[16], size_t topic)
{
    return (struct slice){text, (size_t)snprintf(text, 16, "topic-%zu", topic)};
}

static size_t topic_number(struct slice name)
{
    char text[16] = {0};
    memcpy(text, name.data, name.len);
    return strtoul(text + 6, NULL, 10);
}

static void count_subscribe(struct bus *bus, struct slice topic)
{
    int *count = &CONTAINER_OF(bus, struct counting_bus, bus)->subscribed[topic_number(topic)];
    assert_int_equal(*count, 0);
    ++*count;
}

static void count_unsubscribe(struct bus *bus, struct slice topic)
{
    int *count = &CONTAINER_OF(bus, struct counting_bus, bus)->subscribed[topic_number(topic)];
    assert_int_equal(*count, 1);
    --*count;
}

static const struct bus_operations COUNTING = {.subscribe = count_subscribe,
                                               .unsubscribe = count_unsubscribe};

struct probe {
    struct endpoint endpoint;
    bool attached;
    size_t user;
    bool subscribed[TOPICS];
    uint8_t views[TOPICS];
    /* the last delivery */
    struct broadcast *broadcast;
    const struct message *message;
    uint64_t key;
    unsigned deliveries;
};

struct fixture {
    struct counting_bus bus;
    struct router router;
    struct random random;
    struct probe probes[ENDPOINTS];
    int64_t version; /* of the last event */
};

static void deliver(struct endpoint *endpoint, struct broadcast *broadcast, uint64_t key)
{
    struct probe *probe = CONTAINER_OF(endpoint, struct probe, endpoint);
    probe->broadcast = broadcast;
    probe->message = broadcast->message;
    probe->key = key;
    probe->deliveries++;
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    fixture->bus.bus.operations = &COUNTING;
    random_init_seeded(&fixture->random, 5);
    *state = fixture;
    return router_init(&fixture->router, 9, &fixture->bus.bus, NULL, deliver) ? 0 : -1;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    for (size_t i = 0; i < ENDPOINTS; i++)
        router_detach(&fixture->router, &fixture->probes[i].endpoint);
    for (size_t t = 0; t < TOPICS; t++)
        assert_int_equal(fixture->bus.subscribed[t], 0);
    router_free(&fixture->router);
    free(fixture);
    return 0;
}

static void attach(struct fixture *fixture, size_t index, size_t user)
{
    char text[16];
    struct probe *probe = &fixture->probes[index];
    struct slice id = {text, (size_t)snprintf(text, sizeof(text), "user-%zu", user)};
    assert_true(router_attach(&fixture->router, &probe->endpoint, id));
    assert_true(slice_equal(route_user(probe->endpoint.route), id));
    probe->attached = true;
    probe->user = user;
}

static void detach(struct fixture *fixture, size_t index)
{
    struct probe *probe = &fixture->probes[index];
    router_detach(&fixture->router, &probe->endpoint);
    assert_null(probe->endpoint.route);
    assert_null(probe->endpoint.subscriptions);
    assert_int_equal(probe->endpoint.subscription_count, 0);
    probe->attached = false;
    memset(probe->subscribed, 0, sizeof(probe->subscribed));
}

static void subscribe(struct fixture *fixture, size_t index, size_t topic, uint8_t view)
{
    char text[16];
    struct probe *probe = &fixture->probes[index];
    struct slice name = topic_named(text, topic);
    struct subscription *known = router_subscription(&probe->endpoint, name);
    struct subscription *made = router_subscribe(&fixture->router, &probe->endpoint, name);
    assert_int_equal(known != NULL, probe->subscribed[topic]);
    if (known)
        assert_ptr_equal(made, known);
    made->view = view;
    probe->subscribed[topic] = true;
    probe->views[topic] = view;
}

static void unsubscribe(struct fixture *fixture, size_t index, size_t topic)
{
    char text[16];
    struct probe *probe = &fixture->probes[index];
    struct subscription *known = router_subscription(&probe->endpoint, topic_named(text, topic));
    assert_int_equal(known != NULL, probe->subscribed[topic]);
    if (known)
        router_unsubscribe(&fixture->router, known);
    probe->subscribed[topic] = false;
}

static size_t subscribers(const struct fixture *fixture, size_t topic)
{
    size_t count = 0;
    for (size_t i = 0; i < ENDPOINTS; i++)
        count += fixture->probes[i].subscribed[topic];
    return count;
}

/* Fans out two variants, one for odd views and one for view 2, and checks the receivers of each. */
static void check_fan_out(struct fixture *fixture, struct topic *topic, size_t number)
{
    struct message first = {.type = MESSAGE_OK}, second = {.type = MESSAGE_ERROR};
    struct broadcast odd = {.message = &first}, even = {.message = &second};
    struct broadcast *variants[ROUTER_VIEWS_MAX] = {NULL, &odd, &even, &odd};
    unsigned before[ENDPOINTS];
    size_t expected = 0;
    for (size_t i = 0; i < ENDPOINTS; i++)
        before[i] = fixture->probes[i].deliveries;
    size_t delivered = router_fan_out(&fixture->router, topic, variants, 77, ++fixture->version, 0);
    for (size_t i = 0; i < ENDPOINTS; i++) {
        const struct probe *probe = &fixture->probes[i];
        bool gets = probe->subscribed[number] && variants[probe->views[number]];
        assert_int_equal(probe->deliveries - before[i], gets);
        expected += gets;
        if (gets) {
            assert_ptr_equal(probe->broadcast, variants[probe->views[number]]);
            assert_int_equal(probe->key, 77);
        }
    }
    assert_int_equal(delivered, expected);
}

static void check_user(struct fixture *fixture, size_t user, const struct probe *except)
{
    char text[16];
    struct slice id = {text, (size_t)snprintf(text, sizeof(text), "user-%zu", user)};
    struct message message = {.type = MESSAGE_OK};
    size_t expected = 0, attached = 0;
    for (size_t i = 0; i < ENDPOINTS; i++) {
        struct probe *probe = &fixture->probes[i];
        bool is_theirs = probe->attached && probe->user == user;
        attached += is_theirs;
        expected += is_theirs && probe != except;
        probe->message = NULL;
    }
    assert_int_equal(router_find(&fixture->router, id) != NULL, attached > 0);
    const struct endpoint *left_out = except ? &except->endpoint : NULL;
    assert_int_equal(router_send_to_user(&fixture->router, id, &message, left_out), expected);
    for (size_t i = 0; i < ENDPOINTS; i++) {
        const struct probe *probe = &fixture->probes[i];
        bool gets = probe->attached && probe->user == user && probe != except;
        assert_int_equal(probe->message == &message, gets);
    }
}

static size_t users_multi_device(const struct fixture *fixture)
{
    size_t devices[USERS] = {0}, users = 0;
    for (size_t i = 0; i < ENDPOINTS; i++)
        if (fixture->probes[i].attached)
            users += ++devices[fixture->probes[i].user] == 2;
    return users;
}

static void check_all(struct fixture *fixture)
{
    assert_int_equal(fixture->router.users_multi_device, users_multi_device(fixture));
    for (size_t t = 0; t < TOPICS; t++) {
        char text[16];
        struct topic *topic = router_topic(&fixture->router, topic_named(text, t));
        size_t expected = subscribers(fixture, t);
        assert_int_equal(topic ? topic->count : 0, expected);
        assert_int_equal(fixture->bus.subscribed[t], expected > 0);
        if (topic)
            check_fan_out(fixture, topic, t);
    }
    size_t user = random_below(&fixture->random, USERS);
    size_t except = random_below(&fixture->random, ENDPOINTS * 2);
    check_user(fixture, user, except < ENDPOINTS ? &fixture->probes[except] : NULL);
}

static void random_operations_match_a_model(void **state)
{
    struct fixture *fixture = *state;
    for (int step = 0; step < 20000; step++) {
        size_t index = random_below(&fixture->random, ENDPOINTS);
        size_t topic = random_below(&fixture->random, TOPICS);
        uint64_t choice = random_below(&fixture->random, 10);
        if (!fixture->probes[index].attached)
            attach(fixture, index, random_below(&fixture->random, USERS));
        else if (choice == 0)
            detach(fixture, index);
        else if (choice < 6)
            subscribe(fixture, index, topic,
                      (uint8_t)random_below(&fixture->random, ROUTER_VIEWS_MAX));
        else
            unsubscribe(fixture, index, topic);
        if (step % 20 == 0)
            check_all(fixture);
    }
}

static void detaching_in_any_order_frees_routes_and_topics(void **state)
{
    struct fixture *fixture = *state;
    for (size_t first = 0; first < 3; first++) {
        for (size_t i = 0; i < 3; i++) {
            attach(fixture, i, 0);
            for (size_t t = 0; t < TOPICS; t++)
                subscribe(fixture, i, t, 1);
        }
        for (size_t i = 0; i < 3; i++) {
            detach(fixture, (first + i) % 3);
            check_all(fixture);
        }
        assert_int_equal(fixture->router.topics.size + fixture->router.routes.size, 0);
    }
}

static void detaching_twice_is_harmless(void **state)
{
    struct fixture *fixture = *state;
    attach(fixture, 0, 1);
    detach(fixture, 0);
    detach(fixture, 0);
}

static void fan_out_reaches_ten_thousand_subscribers(void **state)
{
    enum { MANY = 10000 };
    struct fixture *fixture = *state;
    struct probe *probes = calloc(MANY, sizeof(*probes));
    for (size_t i = 0; i < MANY; i++) {
        router_attach(&fixture->router, &probes[i].endpoint, SLICE("crowd"));
        router_subscribe(&fixture->router, &probes[i].endpoint, SLICE("topic-1"));
    }
    struct broadcast broadcast = {0};
    struct broadcast *variants[ROUTER_VIEWS_MAX] = {&broadcast};
    struct topic *topic = router_topic(&fixture->router, SLICE("topic-1"));
    assert_int_equal(router_fan_out(&fixture->router, topic, variants, 1, 1, 0), MANY);
    for (size_t i = 0; i < MANY; i++) {
        assert_int_equal(probes[i].deliveries, 1);
        router_detach(&fixture->router, &probes[i].endpoint);
    }
    free(probes);
}

static void fan_out_skips_what_a_subscriber_was_told(void **state)
{
    static const struct {
        int64_t version;
        uint8_t told;
        bool news;
    } events[] = {{5, 1, true},  {5, 1, false}, {4, 2, false}, {6, 2, true}, {7, 2, false},
                  {7, 1, false}, {8, 1, true},  {9, 0, true},  {10, 0, true}};
    struct fixture *fixture = *state;
    struct probe probe = {0};
    struct broadcast broadcast = {0};
    struct broadcast *variants[ROUTER_VIEWS_MAX] = {&broadcast};
    router_attach(&fixture->router, &probe.endpoint, SLICE("a"));
    router_subscribe(&fixture->router, &probe.endpoint, SLICE("topic-1"));
    struct topic *topic = router_topic(&fixture->router, SLICE("topic-1"));
    for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++)
        assert_int_equal(
            router_fan_out(&fixture->router, topic, variants, 1, events[i].version, events[i].told),
            events[i].news);
    router_detach(&fixture->router, &probe.endpoint);
}

static void router_keys_differ_by_kind_and_name(void **state)
{
    struct fixture *fixture = *state;
    uint64_t keys[MESSAGE_TYPE_COUNT * 8];
    size_t count = 0;
    for (int kind = 0; kind < MESSAGE_TYPE_COUNT; kind++) {
        for (size_t name = 0; name < 8; name++) {
            char text[16];
            struct slice named = topic_named(text, name);
            uint64_t key = router_key(&fixture->router, (enum message_type)kind, named);
            assert_int_equal(key % 2, 1);
            assert_true(key == router_key(&fixture->router, (enum message_type)kind, named));
            for (size_t i = 0; i < count; i++)
                assert_true(keys[i] != key);
            keys[count++] = key;
        }
    }
}

static void user_ids_may_hold_any_bytes(void **state)
{
    struct fixture *fixture = *state;
    char user[128];
    memset(user, 0xff, sizeof(user));
    struct slice id = {user, sizeof(user)};
    struct endpoint endpoint;
    assert_true(router_attach(&fixture->router, &endpoint, id));
    assert_non_null(router_find(&fixture->router, id));
    assert_null(router_find(&fixture->router, (struct slice){user, sizeof(user) - 1}));
    router_detach(&fixture->router, &endpoint);
    assert_null(router_find(&fixture->router, id));
}

#define with_fixture(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_fixture(random_operations_match_a_model),
        with_fixture(detaching_in_any_order_frees_routes_and_topics),
        with_fixture(detaching_twice_is_harmless),
        with_fixture(fan_out_reaches_ten_thousand_subscribers),
        with_fixture(fan_out_skips_what_a_subscriber_was_told),
        with_fixture(router_keys_differ_by_kind_and_name),
        with_fixture(user_ids_may_hold_any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
