/* The Redis backend, on one server and on a cluster, against the suite that every backend must pass; and what
 * is its own. */
#include "conformance/recovery_store_suite.h"
#include "store/redis_recovery.h"
#include "store/redis_state.h"
#include "support/redis_fleet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { WINDOW_MS = 60000 };

static struct redis_fleet the_fleet;

static struct recovery_store *make(struct redis_fleet *fleet, size_t client)
{
    struct recovery_store *store =
        redis_recovery_make(&(struct redis_recovery_options){.client = fleet->clients[client],
                                                             .window_ms = WINDOW_MS,
                                                             .clock = &fleet->clock,
                                                             .script_clock = &fleet->clock});
    assert_non_null(store);
    return store;
}

static struct recovery_store *port(void *context)
{
    return make(context, redis_fleet_next_client(context));
}

static void settle(void *context)
{
    redis_fleet_settle(context, 2); /* twice: a script may be asked for */
}

static void pass(void *context, int64_t duration_ms)
{
    redis_fleet_pass(context, duration_ms);
    ((struct redis_fleet *)context)->clock.now_ms += duration_ms;
}

/* ---- what is its own ---- */

struct answers {
    size_t count;
    size_t found;
    char events[64];
};

static void note(void *arg, const struct recovery_record *record)
{
    struct answers *answers = arg;
    answers->count++;
    answers->found += record != NULL;
    answers->events[0] = '\0';
    for (size_t i = 0; record && i < record->event_count; i++)
        snprintf(answers->events + strlen(answers->events),
                 sizeof(answers->events) - strlen(answers->events), "%.*s ",
                 SLICE_FORMAT(record->events[i].frames));
}

static int set_up(void **state)
{
    redis_fleet_empty(&the_fleet);
    *state = &the_fleet;
    return 0;
}

static void park(struct recovery_store *store)
{
    const struct recovery_event sent = {10, 1010, SLICE("ten")};
    recovery_park(store, &(struct recovery_record){.user_id = SLICE("ann"),
                                                   .pid = SLICE("secret"),
                                                   .sid = SLICE("public"),
                                                   .events = &sent,
                                                   .event_count = 1});
}

static void append(struct recovery_store *store, uint64_t id, const char *frames)
{
    recovery_append(store, &SLICE("ann"), 1,
                    &(struct recovery_event){RECOVERY_MISSED, id, slice_of(frames)});
}

static void take(struct recovery_store *store, struct answers *answers)
{
    recovery_take(store, SLICE("ann"), SLICE("secret"), 9, note, answers);
}

static long ask_number(struct redis_fleet *fleet, const char *command, const char *name)
{
    struct slice key = slice_of(name);
    return strtol(redis_fleet_ask(fleet, key, REDIS_WORDS(slice_of(command), key)), NULL, 10);
}

static void all_keys_end_with_the_window(void **state)
{
    struct redis_fleet *fleet = *state;
    struct recovery_store *store = make(fleet, 0);
    const char *const names[2][3] = {
        {"recoveries:ann", "recovery:ann:secret", "recovery_events:ann:secret"},
        {"recoveries:{ann}", "recovery:{ann}:secret", "recovery_events:{ann}:secret"}};
    park(store);
    append(store, 11, "eleven");
    settle(fleet);
    for (size_t i = 0; i < 3; i++)
        assert_in_range(ask_number(fleet, "PTTL", names[fleet->cluster][i]), 1, WINDOW_MS);
    struct answers answers = {0};
    take(store, &answers);
    settle(fleet);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(ask_number(fleet, "EXISTS", names[fleet->cluster][i]), 0);
    recovery_store_free(&store);
}

static void an_event_that_arrives_while_it_is_taken_is_given_too(void **state)
{
    struct redis_fleet *fleet = *state;
    struct recovery_store *store = make(fleet, 0);
    struct answers answers = {0};
    park(store);
    append(store, 11, "eleven");
    take(store, &answers);
    assert_int_equal(answers.count, 0);
    assert_true(recovery_expects(store, SLICE("ann")));
    append(store, 11, "eleven"); /* the sender had kept it as well */
    append(store, 12, "twelve");
    append(store, 12, "twelve");
    settle(fleet);
    assert_int_equal(answers.found, 1);
    assert_string_equal(answers.events, "ten eleven twelve ");
    recovery_store_free(&store);
}

static void too_much_that_arrives_meanwhile_spoils_it(void **state)
{
    struct redis_fleet *fleet = *state;
    struct recovery_store *store = make(fleet, 0);
    struct answers answers = {0};
    park(store);
    take(store, &answers);
    for (uint64_t i = 0; i < RECOVERY_EVENTS_MAX; i++)
        append(store, 100 + i, "x");
    settle(fleet);
    assert_int_equal(answers.count, 1);
    assert_int_equal(answers.found, 0);
    recovery_store_free(&store);
}

static void late_events_are_expected_for_a_moment(void **state)
{
    struct redis_fleet *fleet = *state;
    struct recovery_store *store = make(fleet, 0);
    park(store);
    pass(fleet, REDIS_RECOVERY_LATELY_MS - 1);
    assert_true(recovery_expects(store, SLICE("ann")));
    pass(fleet, 1);
    assert_false(recovery_expects(store, SLICE("ann")));
    settle(fleet);
    recovery_store_free(&store);
}

struct named {
    size_t answers;
    size_t routes;
    size_t parked;
};

static void note_routes(void *arg, enum state_status status, const struct state_routes *routes)
{
    struct named *named = arg;
    assert_int_equal(status, STATE_OK);
    named->answers++;
    named->routes = routes->count;
    named->parked = routes->parked_count;
    for (size_t i = 0; i < routes->parked_count; i++)
        assert_true(slice_is(routes->parked[i], "ann"));
}

/* What delivery goes by; nobody need be connected. */
static void the_routes_name_who_is_parked(void **state)
{
    struct redis_fleet *fleet = *state;
    struct recovery_store *store = make(fleet, 0);
    struct state_store *routes = redis_state_make(&(struct redis_state_options){
        .client = fleet->clients[0],
        .loop = &fleet->worker.loop,
        .random = &fleet->worker.random,
        .metrics = &fleet->worker.metrics,
        .gateway_id = SLICE("gateway"),
        .lease_window_ms = WINDOW_MS,
    });
    const struct slice users[] = {SLICE("bob"), SLICE("ann"), SLICE("carol")};
    struct named named = {0};
    struct answers answers = {0};
    static const size_t parked[] = {0, 1, 0};
    for (size_t i = 0; i < 3; i++) {
        if (i == 1)
            park(store);
        if (i == 2)
            take(store, &answers);
        settle(fleet);
        state_routes(routes, users, 3, note_routes, &named);
        settle(fleet);
        assert_int_equal(named.answers, i + 1);
        assert_int_equal(named.routes, 0);
        assert_int_equal(named.parked, parked[i]);
    }
    state_store_free(&routes);
    recovery_store_free(&store);
}

static void foreign_values_do_no_harm(void **state)
{
    struct redis_fleet *fleet = *state;
    struct recovery_store *store = make(fleet, 0);
    struct answers answers = {0};
    struct slice key = fleet->cluster ? SLICE("recoveries:{ann}") : SLICE("recoveries:ann");
    redis_fleet_ask(fleet, key, REDIS_WORDS(SLICE("SET"), key, SLICE("not a set")));
    park(store);
    take(store, &answers);
    settle(fleet);
    assert_int_equal(answers.found, 1);
    redis_fleet_ask(fleet, key, REDIS_WORDS(SLICE("ZADD"), key, SLICE("9e15"), SLICE("secret")));
    append(store, 11, "eleven");
    take(store, &answers);
    settle(fleet);
    assert_int_equal(answers.count, 2);
    assert_int_equal(answers.found, 1);
    recovery_store_free(&store);
}

/* The store goes first: whoever waits is told that there is nothing, once. */
static void freeing_answers_what_is_taken(void **state)
{
    struct redis_fleet *fleet = *state;
    struct recovery_store *store = make(fleet, 0);
    struct answers answers = {0};
    park(store);
    take(store, &answers);
    append(store, 11, "eleven");
    recovery_store_free(&store);
    assert_int_equal(answers.count, 1);
    settle(fleet);
    assert_int_equal(answers.count, 1);
    assert_int_equal(answers.found, 0);
}

static void out_of_reach_there_is_nothing_to_recover(void **state)
{
    struct redis_fleet *fleet = *state;
    struct recovery_store *store = make(fleet, 0);
    struct answers answers = {0};
    redis_fleet_kill(fleet);
    park(store);
    append(store, 11, "eleven");
    take(store, &answers);
    worker_loop_run(&fleet->worker, 200);
    assert_int_equal(answers.count, 1);
    assert_int_equal(answers.found, 0);
    recovery_store_free(&store);
}

static int run(bool cluster)
{
    const struct recovery_store_suite_backend backend = {
        .name = cluster ? "redis_recovery_cluster" : "redis_recovery",
        .context = &the_fleet,
        .window_ms = WINDOW_MS,
        .start = redis_fleet_empty,
        .port = port,
        .stop = settle,
        .pass = pass,
        .settle = settle,
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(all_keys_end_with_the_window, set_up),
        cmocka_unit_test_setup(an_event_that_arrives_while_it_is_taken_is_given_too, set_up),
        cmocka_unit_test_setup(too_much_that_arrives_meanwhile_spoils_it, set_up),
        cmocka_unit_test_setup(late_events_are_expected_for_a_moment, set_up),
        cmocka_unit_test_setup(the_routes_name_who_is_parked, set_up),
        cmocka_unit_test_setup(foreign_values_do_no_harm, set_up),
        cmocka_unit_test_setup(freeing_answers_what_is_taken, set_up),
        cmocka_unit_test_setup(out_of_reach_there_is_nothing_to_recover, set_up),
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
