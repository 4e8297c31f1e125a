#include "routing/everyone.h"

#include "base/container.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { USERS = 2000 };

struct listening {
    struct endpoint endpoint;
    unsigned got;
};

struct fixture {
    struct clock clock;
    struct wheel wheel;
    struct encoder encoder;
    struct bus bus;
    struct router router;
    struct metrics metrics;
    struct everyone everyone;
    struct listening users[USERS];
};

static void hear(struct endpoint *endpoint, struct broadcast *broadcast, uint64_t key)
{
    (void)key;
    assert_true(slice_is(broadcast->message->relay.name, "delivery"));
    assert_true(slice_is(broadcast->message->relay.fields, "{\"data\":1}"));
    CONTAINER_OF(endpoint, struct listening, endpoint)->got++;
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    char id[32];
    *state = fixture;
    fixture->clock.now_ms = 1000;
    wheel_init(&fixture->wheel, fixture->clock.now_ms);
    encoder_init(&fixture->encoder);
    if (!router_init(&fixture->router, 7, &fixture->bus, &fixture->encoder, hear))
        return -1;
    everyone_init(&fixture->everyone, &fixture->router, &fixture->wheel, &fixture->clock,
                  &fixture->metrics);
    for (int i = 0; i < USERS; i++) {
        int len = snprintf(id, sizeof(id), "user-%d", i);
        router_attach(&fixture->router, &fixture->users[i].endpoint,
                      (struct slice){id, (size_t)len});
    }
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    everyone_free(&fixture->everyone);
    for (int i = 0; i < USERS; i++)
        router_detach(&fixture->router, &fixture->users[i].endpoint);
    router_free(&fixture->router);
    encoder_free(&fixture->encoder);
    free(fixture);
    return 0;
}

static void begin(struct fixture *fixture)
{
    char name[] = "delivery", fields[] = "{\"data\":1}";
    everyone_begin(&fixture->everyone, slice_of(name), slice_of(fields), 5, NULL);
    name[0] = fields[0] = 'x'; /* they were copied */
}

static unsigned heard(const struct fixture *fixture)
{
    unsigned sum = 0;
    for (int i = 0; i < USERS; i++)
        sum += fixture->users[i].got;
    return sum;
}

static void step(struct fixture *fixture)
{
    fixture->clock.now_ms += EVERYONE_STEP_MS;
    wheel_advance(&fixture->wheel, fixture->clock.now_ms, 10);
}

static void event_reaches_each_user_once_a_few_in_each_step(void **state)
{
    struct fixture *fixture = *state;
    unsigned steps = 0;
    begin(fixture);
    assert_int_equal(heard(fixture), 0);
    for (unsigned before = 0; fixture->everyone.pending_count; steps++) {
        step(fixture);
        assert_true(heard(fixture) - before <= 2 * EVERYONE_USERS_PER_STEP);
        before = heard(fixture);
        assert_true(steps < 100);
    }
    assert_true(steps >= USERS / (2 * EVERYONE_USERS_PER_STEP));
    for (int i = 0; i < USERS; i++)
        assert_int_equal(fixture->users[i].got, 1);
}

static void one_event_too_many_makes_the_oldest_finish(void **state)
{
    struct fixture *fixture = *state;
    for (int i = 0; i < EVERYONE_PENDING_MAX; i++)
        begin(fixture);
    assert_int_equal(heard(fixture), 0);
    begin(fixture);
    assert_int_equal(heard(fixture), USERS);
    assert_int_equal(fixture->everyone.pending_count, EVERYONE_PENDING_MAX);
}

static void users_may_leave_and_come_during_an_event(void **state)
{
    struct fixture *fixture = *state;
    begin(fixture);
    for (int i = 0; fixture->everyone.pending_count; i += 2) {
        char id[32];
        int len = snprintf(id, sizeof(id), "new-%d", i);
        router_detach(&fixture->router, &fixture->users[i].endpoint);
        step(fixture);
        router_attach(&fixture->router, &fixture->users[i].endpoint,
                      (struct slice){id, (size_t)len});
        assert_true(i < 200);
    }
    for (int i = 1; i < USERS; i += 2)
        assert_int_equal(fixture->users[i].got, 1);
}

#define with_fixture(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_fixture(event_reaches_each_user_once_a_few_in_each_step),
        with_fixture(one_event_too_many_makes_the_oldest_finish),
        with_fixture(users_may_leave_and_come_during_an_event),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
