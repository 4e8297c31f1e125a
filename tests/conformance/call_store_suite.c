#include "conformance/call_store_harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct call_device alice(void)
{
    return suite_device("alice", 0, 1);
}

static struct call_device bob(void)
{
    return suite_device("bob", 0, 1);
}

static void ring(struct suite_world *world)
{
    assert_int_equal(suite_request(world, "c", alice(), "bob"), CALL_DONE);
    assert_int_equal(world->call.state, CALL_RINGING);
}

static void talk(struct suite_world *world)
{
    ring(world);
    assert_int_equal(suite_answer(world, "c", bob()), CALL_DONE);
    assert_int_equal(world->call.state, CALL_ACCEPTED);
}

/* The last answer's call is over for this reason, and both may call again. */
static void expect_over(struct suite_world *world, enum call_reason reason)
{
    assert_int_equal(world->call.state, CALL_ENDED);
    assert_int_equal(world->call.reason, reason);
    assert_int_equal(world->call.ended_at_ms, world->backend->wall_ms(world->backend->context));
    assert_int_equal(suite_get(world, NULL, "alice"), CALL_NOT_FOUND);
    assert_int_equal(suite_get(world, NULL, "bob"), CALL_NOT_FOUND);
    assert_int_equal(suite_request(world, "next", bob(), "alice"), CALL_DONE);
}

static void expect_reaped(struct suite_world *world, enum call_reason reason)
{
    assert_int_equal(suite_reap(world, CALL_REAP_MAX), 1);
    assert_true(slice_is(world->ended[0].id, "c"));
    world->call = world->ended[0];
    assert_int_equal(suite_reap(world, CALL_REAP_MAX), 0);
    expect_over(world, reason);
}

static void a_call_rings_is_answered_and_ends(void **state)
{
    struct suite_world *world = *state;
    int64_t start_ms = world->backend->wall_ms(world->backend->context);
    ring(world);
    assert_true(slice_is(world->call.id, "c"));
    assert_true(slice_is(world->call.caller.user_id, "alice"));
    assert_true(slice_is(world->call.caller.device_id, "device-0"));
    assert_true(slice_is(world->call.callee.user_id, "bob"));
    assert_null(world->call.callee.device_id.data);
    assert_int_equal(world->call.started_at_ms, start_ms);
    assert_int_equal(world->call.answered_at_ms, 0);
    suite_pass(world, 1000);
    assert_int_equal(suite_answer(world, "c", suite_device("bob", 2, 7)), CALL_DONE);
    assert_true(slice_is(world->call.callee.device_id, "device-2"));
    assert_int_equal(world->call.answered_at_ms, start_ms + 1000);
    suite_pass(world, 1000);
    assert_int_equal(suite_end(world, "c", "bob"), CALL_DONE);
    assert_int_equal(world->call.started_at_ms, start_ms);
    assert_int_equal(world->call.answered_at_ms, start_ms + 1000);
    expect_over(world, CALL_REASON_HANGUP);
}

static void state_and_side_make_the_reason(void **state)
{
    struct suite_world *world = *state;
    ring(world);
    assert_int_equal(suite_end(world, "c", "alice"), CALL_DONE);
    assert_int_equal(world->call.reason, CALL_REASON_CANCELLED);
    assert_int_equal(suite_request(world, "d", alice(), "bob"), CALL_DONE);
    assert_int_equal(suite_end(world, "d", "bob"), CALL_DONE);
    assert_int_equal(world->call.reason, CALL_REASON_REJECTED);
    assert_int_equal(suite_request(world, "e", alice(), "bob"), CALL_DONE);
    assert_int_equal(suite_reject(world, "e", "bob"), CALL_DONE);
    expect_over(world, CALL_REASON_REJECTED);
}

static void the_first_answer_wins(void **state)
{
    struct suite_world *world = *state;
    talk(world);
    assert_int_equal(suite_answer(world, "c", suite_device("bob", 1, 1)), CALL_WRONG_STATE);
    assert_int_equal(world->call.state, CALL_ACCEPTED);
    assert_true(slice_is(world->call.callee.device_id, "device-0"));
    assert_int_equal(suite_answer(world, "c", bob()), CALL_REPEATED);
}

static void only_the_callee_answers_and_rejects(void **state)
{
    struct suite_world *world = *state;
    ring(world);
    assert_int_equal(suite_answer(world, "c", alice()), CALL_WRONG_PARTY);
    assert_int_equal(suite_reject(world, "c", "alice"), CALL_WRONG_PARTY);
    assert_int_equal(suite_get(world, "c", "bob"), CALL_DONE);
    assert_int_equal(world->call.state, CALL_RINGING);
}

static void others_find_nothing(void **state)
{
    struct suite_world *world = *state;
    struct call_device eve = suite_device("eve", 0, 1);
    talk(world);
    assert_int_equal(suite_answer(world, "c", eve), CALL_NOT_FOUND);
    assert_int_equal(suite_reject(world, "c", "eve"), CALL_NOT_FOUND);
    assert_int_equal(suite_end(world, "c", "eve"), CALL_NOT_FOUND);
    assert_int_equal(suite_get(world, "c", "eve"), CALL_NOT_FOUND);
    assert_int_equal(suite_get(world, NULL, "eve"), CALL_NOT_FOUND);
    assert_int_equal(suite_get(world, "no such call", "alice"), CALL_NOT_FOUND);
    assert_int_equal(suite_attach(world, eve), CALL_NOT_FOUND);
    assert_int_equal(suite_detach(world, eve), CALL_NOT_FOUND);
    assert_false(suite_renew(world, eve));
    assert_int_equal(suite_get(world, "c", "alice"), CALL_DONE);
    assert_int_equal(world->call.state, CALL_ACCEPTED);
}

static void one_call_per_user(void **state)
{
    struct suite_world *world = *state;
    ring(world);
    for (int accepted = 0; accepted < 2; accepted++) {
        assert_int_equal(suite_request(world, "d", alice(), "carol"), CALL_CALLER_BUSY);
        assert_true(slice_is(world->call.id, "c"));
        assert_int_equal(suite_request(world, "d", bob(), "carol"), CALL_CALLER_BUSY);
        assert_int_equal(suite_request(world, "d", suite_device("carol", 0, 1), "alice"),
                         CALL_CALLEE_BUSY);
        assert_int_equal(suite_request(world, "d", suite_device("carol", 0, 1), "bob"),
                         CALL_CALLEE_BUSY);
        assert_int_equal(suite_declare(world, "d", alice()), CALL_CALLER_BUSY);
        suite_answer(world, "c", bob());
    }
    assert_int_equal(suite_get(world, NULL, "carol"), CALL_NOT_FOUND);
}

static void ids_are_not_shared(void **state)
{
    struct suite_world *world = *state;
    struct call_device carol = suite_device("carol", 0, 1);
    ring(world);
    assert_int_equal(suite_request(world, "c", alice(), "bob"), CALL_REPEATED);
    assert_int_equal(suite_request(world, "c", carol, "dave"), CALL_ID_TAKEN);
    assert_int_equal(suite_declare(world, "c", carol), CALL_ID_TAKEN);
    assert_int_equal(suite_request(world, "c", suite_device("alice", 1, 1), "bob"),
                     CALL_CALLER_BUSY);
    assert_int_equal(suite_end(world, "c", "alice"), CALL_DONE);
    assert_int_equal(suite_request(world, "c", alice(), "bob"), CALL_ID_TAKEN);
    suite_pass(world, CALL_ENDED_KEPT_MS);
    suite_reap(world, CALL_REAP_MAX);
    assert_int_equal(suite_request(world, "c", alice(), "bob"), CALL_DONE);
}

static void crossing_requests_become_one_call(void **state)
{
    struct suite_world *world = *state;
    ring(world);
    assert_int_equal(suite_request(world, "d", bob(), "alice"), CALL_GLARE);
    assert_true(slice_is(world->call.id, "c"));
    assert_int_equal(world->call.state, CALL_ACCEPTED);
    assert_true(slice_is(world->call.caller.user_id, "alice"));
    assert_true(slice_is(world->call.callee.device_id, "device-0"));
    assert_int_equal(suite_get(world, "d", "bob"), CALL_NOT_FOUND);
    assert_int_equal(suite_end(world, "c", "alice"), CALL_DONE);
    expect_over(world, CALL_REASON_HANGUP);
}

static void who_is_late_hears_that_it_ended(void **state)
{
    struct suite_world *world = *state;
    ring(world);
    suite_end(world, "c", "alice");
    assert_int_equal(suite_answer(world, "c", bob()), CALL_WRONG_STATE);
    assert_int_equal(world->call.state, CALL_ENDED);
    assert_int_equal(suite_reject(world, "c", "bob"), CALL_WRONG_STATE);
    assert_int_equal(suite_end(world, "c", "bob"), CALL_WRONG_STATE);
    assert_int_equal(world->call.reason, CALL_REASON_CANCELLED);
    assert_int_equal(suite_end(world, "c", "eve"), CALL_NOT_FOUND);
    suite_pass(world, CALL_ENDED_KEPT_MS);
    assert_int_equal(suite_reap(world, CALL_REAP_MAX), 0);
    assert_int_equal(suite_end(world, "c", "bob"), CALL_NOT_FOUND);
}

static void rings_end(void **state)
{
    struct suite_world *world = *state;
    ring(world);
    suite_pass(world, world->backend->ring_timeout_ms - 1);
    suite_renew(world, alice());
    assert_int_equal(suite_reap(world, CALL_REAP_MAX), 0);
    suite_pass(world, 1);
    expect_reaped(world, CALL_REASON_TIMEOUT);
}

static void answered_calls_do_not_time_out(void **state)
{
    struct suite_world *world = *state;
    talk(world);
    for (int i = 0; i < 10; i++) {
        suite_pass(world, world->backend->ring_timeout_ms / 2);
        assert_true(suite_renew(world, alice()));
        assert_true(suite_renew(world, bob()));
        assert_int_equal(suite_reap(world, CALL_REAP_MAX), 0);
    }
}

static void a_device_may_come_back_within_the_grace(void **state)
{
    struct suite_world *world = *state;
    struct call_device back = suite_device("bob", 0, 2);
    talk(world);
    assert_int_equal(suite_detach(world, bob()), CALL_DONE);
    assert_int_equal(suite_detach(world, bob()), CALL_NOT_FOUND);
    suite_pass(world, world->backend->reconnect_grace_ms - 1);
    assert_int_equal(suite_reap(world, CALL_REAP_MAX), 0);
    assert_int_equal(suite_attach(world, suite_device("bob", 1, 1)), CALL_ELSEWHERE);
    assert_int_equal(suite_attach(world, back), CALL_DONE);
    assert_memory_equal(&world->call.callee.conn_id, &back.conn_id, sizeof(back.conn_id));
    suite_pass(world, world->backend->reconnect_grace_ms);
    assert_int_equal(suite_reap(world, CALL_REAP_MAX), 0);
    assert_int_equal(suite_detach(world, bob()), CALL_NOT_FOUND); /* the old one, seen late */
    assert_int_equal(suite_detach(world, back), CALL_DONE);
    suite_pass(world, world->backend->reconnect_grace_ms);
    expect_reaped(world, CALL_REASON_DISCONNECTED);
}

static void a_ring_ends_with_its_caller(void **state)
{
    struct suite_world *world = *state;
    ring(world);
    assert_int_equal(suite_detach(world, bob()), CALL_NOT_FOUND); /* rings on, for other devices */
    assert_int_equal(suite_detach(world, alice()), CALL_DONE);
    suite_pass(world, world->backend->reconnect_grace_ms);
    expect_reaped(world, CALL_REASON_DISCONNECTED);
}

static void a_second_connection_of_the_device_takes_over(void **state)
{
    struct suite_world *world = *state;
    struct call_device other = suite_device("alice", 0, 2);
    talk(world);
    assert_true(suite_renew(world, other));
    assert_int_equal(suite_detach(world, other), CALL_NOT_FOUND); /* it held nothing */
    assert_int_equal(suite_detach(world, alice()), CALL_DONE);
    assert_true(suite_renew(world, other));
    suite_pass(world, world->backend->reconnect_grace_ms);
    assert_int_equal(suite_reap(world, CALL_REAP_MAX), 0);
    assert_int_equal(suite_detach(world, other), CALL_DONE);
}

static void a_gateway_that_dies_ends_its_calls(void **state)
{
    struct suite_world *world = *state;
    talk(world);
    suite_pass(world, world->backend->lease_window_ms - 1);
    assert_true(suite_renew(world, alice()));
    assert_int_equal(suite_reap(world, CALL_REAP_MAX), 0);
    suite_pass(world, 1); /* nobody spoke for bob */
    expect_reaped(world, CALL_REASON_DISCONNECTED);
    assert_false(suite_renew(world, suite_device("alice", 1, 1)));
}

static void a_device_that_comes_rings_too(void **state)
{
    struct suite_world *world = *state;
    ring(world);
    assert_int_equal(suite_attach(world, suite_device("bob", 1, 1)), CALL_RINGS);
    assert_true(slice_is(world->call.id, "c"));
    assert_int_equal(suite_attach(world, suite_device("alice", 1, 1)), CALL_ELSEWHERE);
    assert_int_equal(suite_attach(world, suite_device("alice", 0, 2)), CALL_DONE);
    assert_int_equal(world->call.state, CALL_RINGING);
}

static void a_user_may_be_in_a_call_we_know_nothing_of(void **state)
{
    struct suite_world *world = *state;
    assert_int_equal(suite_declare(world, "c", alice()), CALL_DONE);
    assert_int_equal(world->call.state, CALL_ACCEPTED);
    assert_null(world->call.callee.user_id.data);
    assert_int_equal(suite_request(world, "d", bob(), "alice"), CALL_CALLEE_BUSY);
    assert_int_equal(suite_end(world, NULL, "alice"), CALL_DONE);
    assert_true(slice_is(world->call.id, "c"));
    expect_over(world, CALL_REASON_HANGUP);
}

static void a_declared_call_ends_with_its_device(void **state)
{
    struct suite_world *world = *state;
    assert_int_equal(suite_declare(world, "c", alice()), CALL_DONE);
    assert_int_equal(suite_detach(world, alice()), CALL_DONE);
    suite_pass(world, world->backend->reconnect_grace_ms);
    expect_reaped(world, CALL_REASON_DISCONNECTED);
}

static void no_id_means_the_own_call(void **state)
{
    struct suite_world *world = *state;
    assert_int_equal(suite_answer(world, NULL, bob()), CALL_NOT_FOUND);
    ring(world);
    assert_int_equal(suite_answer(world, NULL, alice()), CALL_WRONG_PARTY);
    assert_int_equal(suite_answer(world, NULL, bob()), CALL_DONE);
    assert_int_equal(suite_reject(world, NULL, "bob"), CALL_WRONG_STATE);
    assert_int_equal(suite_end(world, NULL, "bob"), CALL_DONE);
    assert_int_equal(suite_end(world, NULL, "bob"), CALL_NOT_FOUND);
}

static void reaping_is_bounded(void **state)
{
    struct suite_world *world = *state;
    char names[30][8];
    for (unsigned i = 0; i < 30; i += 2) {
        snprintf(names[i], sizeof(names[i]), "u%u", i);
        snprintf(names[i + 1], sizeof(names[i + 1]), "u%u", i + 1);
        assert_int_equal(suite_request(world, names[i], suite_device(names[i], 0, i), names[i + 1]),
                         CALL_DONE);
    }
    suite_pass(world, world->backend->ring_timeout_ms);
    assert_int_equal(suite_reap(world, 10), 10);
    assert_int_equal(suite_reap(world, CALL_REAP_MAX * 2), 5);
    assert_int_equal(suite_reap(world, 10), 0);
}

static void ids_are_bytes(void **state)
{
    struct suite_world *world = *state;
    char user[USER_ID_BYTES_MAX + 1], id[CALL_ID_BYTES_MAX + 1];
    memset(user, 'u', sizeof(user) - 1);
    memset(id, '{', sizeof(id) - 1);
    user[USER_ID_BYTES_MAX] = id[CALL_ID_BYTES_MAX] = '\0';
    assert_int_equal(suite_request(world, id, alice(), user), CALL_DONE);
    assert_true(slice_is(world->call.id, id));
    assert_true(slice_is(world->call.callee.user_id, user));
    assert_int_equal(suite_answer(world, id, suite_device(user, 1, 1)), CALL_DONE);
}

/* ---- running ---- */

static int set_up(void **state)
{
    const struct call_store_suite_backend *backend = *state;
    struct suite_world *world = calloc(1, sizeof(*world));
    assert_non_null(world);
    world->backend = backend;
    backend->start(backend->context);
    for (size_t i = 0; i < SUITE_PORTS; i++)
        world->ports[i] = backend->port(backend->context);
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct suite_world *world = *state;
    for (size_t i = 0; i < SUITE_PORTS; i++)
        call_store_free(&world->ports[i]);
    world->backend->stop(world->backend->context);
    free(world);
    return 0;
}

int call_store_suite_run(const struct call_store_suite_backend *backend)
{
    void *initial = (void *)(uintptr_t)backend;
#define TEST(name)                                                                                 \
    {                                                                                              \
#name, name, set_up, tear_down, initial                                                    \
    }
    const struct CMUnitTest tests[] = {
        TEST(a_call_rings_is_answered_and_ends),
        TEST(state_and_side_make_the_reason),
        TEST(the_first_answer_wins),
        TEST(only_the_callee_answers_and_rejects),
        TEST(others_find_nothing),
        TEST(one_call_per_user),
        TEST(ids_are_not_shared),
        TEST(crossing_requests_become_one_call),
        TEST(who_is_late_hears_that_it_ended),
        TEST(rings_end),
        TEST(answered_calls_do_not_time_out),
        TEST(a_device_may_come_back_within_the_grace),
        TEST(a_ring_ends_with_its_caller),
        TEST(a_second_connection_of_the_device_takes_over),
        TEST(a_gateway_that_dies_ends_its_calls),
        TEST(a_device_that_comes_rings_too),
        TEST(a_user_may_be_in_a_call_we_know_nothing_of),
        TEST(a_declared_call_ends_with_its_device),
        TEST(no_id_means_the_own_call),
        TEST(reaping_is_bounded),
        TEST(ids_are_bytes),
        {"follows_a_model", call_store_suite_follows_a_model, set_up, tear_down, initial},
    };
#undef TEST
    print_message("call store suite on %s\n", backend->name);
    return cmocka_run_group_tests_name("call_store_suite", tests, NULL, NULL);
}
