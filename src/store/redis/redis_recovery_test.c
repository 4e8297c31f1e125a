/* The recovery store on Redis, on a single server and on a cluster: the suite of all backends, and tests of its own. */
#include "conformance/recovery_store_suite.h"
#include "store/recovery_local.h"
#include "store/redis/redis_recovery.h"
#include "store/redis/state/redis_state.h"
#include "support/redis_fleet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RECOVERY_MS = 60000 };

static struct redis_fleet the_fleet;

static struct recovery_store *make_store(struct redis_fleet *fleet, size_t client)
{
    struct recovery_store *store =
        redis_recovery_make(&(struct redis_recovery_options){.client = fleet->clients[client],
                                                             .recovery_ms = RECOVERY_MS,
                                                             .clock = &fleet->clock,
                                                             .script_clock = &fleet->clock});
    assert_non_null(store);
    return store;
}

static struct recovery_store *make_port(void *context)
{
    return make_store(context, redis_fleet_next_client(context));
}

static void settle(void *context)
{
    redis_fleet_settle(context, 2); /* twice, since a script's source may have to be sent */
}

static void pass(void *context, int64_t duration_ms)
{
    redis_fleet_pass(context, duration_ms);
    ((struct redis_fleet *)context)->clock.now_ms += duration_ms;
}

/* ---- tests of its own ---- */

struct answers {
    size_t count;
    size_t found;
    char events[64];
};

static void on_session_taken(void *arg, const struct parked_session *session)
{
    struct answers *answers = arg;
    answers->count++;
    answers->found += session != NULL;
    answers->events[0] = '\0';
    for (size_t i = 0; session && i < session->event_count; i++)
        snprintf(answers->events + strlen(answers->events),
                 sizeof(answers->events) - strlen(answers->events), "%.*s ",
                 SLICE_FORMAT(session->events[i].frames));
}

struct fixture {
    struct redis_fleet *fleet;
    struct recovery_store *store;
    struct answers answers; /* of takes */
};

static int set_up(void **state)
{
    static struct fixture fixture;
    redis_fleet_empty(&the_fleet);
    fixture = (struct fixture){.fleet = &the_fleet, .store = make_store(&the_fleet, 0)};
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    recovery_store_free(&fixture->store);
    return 0;
}

static void park_session(struct fixture *fixture)
{
    const struct recovery_event sent = {10, 1010, SLICE("ten")};
    recovery_park(fixture->store, &(struct parked_session){.user_id = SLICE("ann"),
                                                           .pid = SLICE("secret"),
                                                           .sid = SLICE("public"),
                                                           .events = &sent,
                                                           .event_count = 1});
}

static void append_event(struct fixture *fixture, uint64_t id, const char *frames)
{
    recovery_append(fixture->store, &SLICE("ann"), 1,
                    &(struct recovery_event){RECOVERY_MISSED, id, slice_of(frames)});
}

static void take_session(struct fixture *fixture)
{
    recovery_take(fixture->store, SLICE("ann"), SLICE("secret"), 9, on_session_taken,
                  &fixture->answers);
}

static long ask_number(struct redis_fleet *fleet, const char *command, const char *name)
{
    struct slice key = slice_of(name);
    return strtol(redis_fleet_ask(fleet, key, REDIS_ARGS(slice_of(command), key)), NULL, 10);
}

static void all_keys_expire_with_the_recovery_time(void **state)
{
    struct fixture *fixture = *state;
    const char *const names[2][3] = {
        {"recoveries:ann", "recovery:ann:secret", "recovery_events:ann:secret"},
        {"recoveries:{ann}", "recovery:{ann}:secret", "recovery_events:{ann}:secret"}};
    park_session(fixture);
    append_event(fixture, 11, "eleven");
    settle(fixture->fleet);
    for (size_t i = 0; i < 3; i++)
        assert_in_range(ask_number(fixture->fleet, "PTTL", names[fixture->fleet->cluster][i]), 1,
                        RECOVERY_MS);
    take_session(fixture);
    settle(fixture->fleet);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(ask_number(fixture->fleet, "EXISTS", names[fixture->fleet->cluster][i]),
                         0);
}

static void event_that_arrives_during_a_take_is_included_once(void **state)
{
    struct fixture *fixture = *state;
    park_session(fixture);
    append_event(fixture, 11, "eleven");
    take_session(fixture);
    assert_int_equal(fixture->answers.count, 0);
    assert_true(recovery_expects(fixture->store, SLICE("ann")));
    append_event(fixture, 11, "eleven"); /* the sender has already appended it */
    append_event(fixture, 12, "twelve");
    append_event(fixture, 12, "twelve");
    settle(fixture->fleet);
    assert_int_equal(fixture->answers.found, 1);
    assert_string_equal(fixture->answers.events, "ten eleven twelve ");
}

static void too_many_events_during_a_take_make_it_fail(void **state)
{
    struct fixture *fixture = *state;
    park_session(fixture);
    take_session(fixture);
    for (uint64_t i = 0; i < RECOVERY_EVENTS_MAX; i++)
        append_event(fixture, 100 + i, "x");
    settle(fixture->fleet);
    assert_int_equal(fixture->answers.count, 1);
    assert_int_equal(fixture->answers.found, 0);
}

static void late_events_are_expected_for_a_while_after_parking(void **state)
{
    struct fixture *fixture = *state;
    park_session(fixture);
    pass(fixture->fleet, RECOVERY_RECENT_MS - 1);
    assert_true(recovery_expects(fixture->store, SLICE("ann")));
    pass(fixture->fleet, 1);
    assert_false(recovery_expects(fixture->store, SLICE("ann")));
    settle(fixture->fleet);
}

struct routes_answer {
    size_t answers;
    size_t routes;
    size_t parked;
};

static void on_routes(void *arg, enum state_status status, const struct state_routes *routes)
{
    struct routes_answer *named = arg;
    assert_int_equal(status, STATE_OK);
    named->answers++;
    named->routes = routes->count;
    named->parked = routes->parked_count;
    for (size_t i = 0; i < routes->parked_count; i++)
        assert_true(slice_is(routes->parked[i], "ann"));
}

/* Delivery depends on this, even when none of the users is connected. */
static void routes_name_users_with_parked_sessions(void **state)
{
    struct fixture *fixture = *state;
    struct state_store *routes = redis_state_make(&(struct redis_state_options){
        .client = fixture->fleet->clients[0],
        .loop = &fixture->fleet->worker.loop,
        .random = &fixture->fleet->worker.random,
        .metrics = &fixture->fleet->worker.metrics,
        .gateway_id = SLICE("gateway"),
        .lease_window_ms = 60000,
    });
    const struct slice users[] = {SLICE("bob"), SLICE("ann"), SLICE("carol")};
    struct routes_answer named = {0};
    static const size_t parked[] = {0, 1, 0};
    for (size_t i = 0; i < 3; i++) {
        if (i == 1)
            park_session(fixture);
        if (i == 2)
            take_session(fixture);
        settle(fixture->fleet);
        state_routes(routes, users, 3, on_routes, &named);
        settle(fixture->fleet);
        assert_int_equal(named.answers, i + 1);
        assert_int_equal(named.routes, 0);
        assert_int_equal(named.parked, parked[i]);
    }
    state_store_free(&routes);
}

static void foreign_values_are_removed(void **state)
{
    struct fixture *fixture = *state;
    struct slice key =
        fixture->fleet->cluster ? SLICE("recoveries:{ann}") : SLICE("recoveries:ann");
    redis_fleet_ask(fixture->fleet, key, REDIS_ARGS(SLICE("SET"), key, SLICE("not a set")));
    park_session(fixture);
    take_session(fixture);
    settle(fixture->fleet);
    assert_int_equal(fixture->answers.found, 1);
    redis_fleet_ask(fixture->fleet, key,
                    REDIS_ARGS(SLICE("ZADD"), key, SLICE("9e15"), SLICE("secret")));
    append_event(fixture, 11, "eleven");
    take_session(fixture);
    settle(fixture->fleet);
    assert_int_equal(fixture->answers.count, 2);
    assert_int_equal(fixture->answers.found, 1);
}

static void freeing_the_store_completes_pending_takes_once(void **state)
{
    struct fixture *fixture = *state;
    park_session(fixture);
    take_session(fixture);
    append_event(fixture, 11, "eleven");
    recovery_store_free(&fixture->store);
    assert_int_equal(fixture->answers.count, 1);
    settle(fixture->fleet);
    assert_int_equal(fixture->answers.count, 1);
    assert_int_equal(fixture->answers.found, 0);
}

static void nothing_is_recovered_while_redis_is_out_of_reach(void **state)
{
    struct fixture *fixture = *state;
    redis_fleet_kill(fixture->fleet);
    park_session(fixture);
    append_event(fixture, 11, "eleven");
    take_session(fixture);
    worker_loop_run(&fixture->fleet->worker, 200);
    assert_int_equal(fixture->answers.count, 1);
    assert_int_equal(fixture->answers.found, 0);
}

static int run(bool cluster)
{
    const struct recovery_store_suite_backend backend = {
        .name = cluster ? "redis_recovery_cluster" : "redis_recovery",
        .context = &the_fleet,
        .recovery_ms = RECOVERY_MS,
        .start = redis_fleet_empty,
        .port = make_port,
        .stop = settle,
        .pass = pass,
        .settle = settle,
    };
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(all_keys_expire_with_the_recovery_time),
        TEST(event_that_arrives_during_a_take_is_included_once),
        TEST(too_many_events_during_a_take_make_it_fail),
        TEST(late_events_are_expected_for_a_while_after_parking),
        TEST(routes_name_users_with_parked_sessions),
        TEST(foreign_values_are_removed),
        TEST(freeing_the_store_completes_pending_takes_once),
        TEST(nothing_is_recovered_while_redis_is_out_of_reach),
    };
    redis_fleet_open(&the_fleet, cluster);
    int failed = recovery_store_suite_run(&backend) +
                 cmocka_run_group_tests_name("redis_recovery_own", tests, NULL, NULL);
    redis_fleet_close(&the_fleet);
    return failed;
}

int main(void)
{
    return run(false) + run(true);
}
