#include "conformance/call_store_harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct call_device alice(void)
{
    return harness_device("alice", 0, 1);
}

static struct call_device bob(void)
{
    return harness_device("bob", 0, 1);
}

static void make_ringing_call(struct harness *harness)
{
    assert_int_equal(harness_request(harness, "c", alice(), "bob"), CALL_DONE);
    assert_int_equal(harness->call.state, CALL_RINGING);
}

static void make_accepted_call(struct harness *harness)
{
    make_ringing_call(harness);
    assert_int_equal(harness_answer(harness, "c", bob()), CALL_DONE);
    assert_int_equal(harness->call.state, CALL_ACCEPTED);
}

/* The call of the last answer has ended for this reason, and both users are free again. */
static void expect_ended_and_free(struct harness *harness, enum call_reason reason)
{
    assert_int_equal(harness->call.state, CALL_ENDED);
    assert_int_equal(harness->call.reason, reason);
    assert_int_equal(harness->call.ended_at_ms,
                     harness->backend->wall_ms(harness->backend->context));
    assert_int_equal(harness_get(harness, NULL, "alice"), CALL_NOT_FOUND);
    assert_int_equal(harness_get(harness, NULL, "bob"), CALL_NOT_FOUND);
    assert_int_equal(harness_request(harness, "next", bob(), "alice"), CALL_DONE);
}

static void expect_reaped(struct harness *harness, enum call_reason reason)
{
    assert_int_equal(harness_reap(harness, CALL_REAP_MAX), 1);
    assert_true(slice_is(harness->ended[0].id, "c"));
    harness->call = harness->ended[0];
    assert_int_equal(harness_reap(harness, CALL_REAP_MAX), 0);
    expect_ended_and_free(harness, reason);
}

static void call_rings_is_answered_and_ends(void **state)
{
    struct harness *harness = *state;
    int64_t start_ms = harness->backend->wall_ms(harness->backend->context);
    make_ringing_call(harness);
    assert_true(slice_is(harness->call.id, "c"));
    assert_true(slice_is(harness->call.caller.user_id, "alice"));
    assert_true(slice_is(harness->call.caller.device_id, "device-0"));
    assert_true(slice_is(harness->call.callee.user_id, "bob"));
    assert_null(harness->call.callee.device_id.data);
    assert_int_equal(harness->call.started_at_ms, start_ms);
    assert_int_equal(harness->call.answered_at_ms, 0);
    harness_pass(harness, 1000);
    assert_int_equal(harness_answer(harness, "c", harness_device("bob", 2, 7)), CALL_DONE);
    assert_true(slice_is(harness->call.callee.device_id, "device-2"));
    assert_int_equal(harness->call.answered_at_ms, start_ms + 1000);
    harness_pass(harness, 1000);
    assert_int_equal(harness_end(harness, "c", "bob"), CALL_DONE);
    assert_int_equal(harness->call.started_at_ms, start_ms);
    assert_int_equal(harness->call.answered_at_ms, start_ms + 1000);
    expect_ended_and_free(harness, CALL_REASON_HANGUP);
}

static void reason_of_an_end_follows_from_state_and_party(void **state)
{
    struct harness *harness = *state;
    make_ringing_call(harness);
    assert_int_equal(harness_end(harness, "c", "alice"), CALL_DONE);
    assert_int_equal(harness->call.reason, CALL_REASON_CANCELLED);
    assert_int_equal(harness_request(harness, "d", alice(), "bob"), CALL_DONE);
    assert_int_equal(harness_end(harness, "d", "bob"), CALL_DONE);
    assert_int_equal(harness->call.reason, CALL_REASON_REJECTED);
    assert_int_equal(harness_request(harness, "e", alice(), "bob"), CALL_DONE);
    assert_int_equal(harness_reject(harness, "e", "bob"), CALL_DONE);
    expect_ended_and_free(harness, CALL_REASON_REJECTED);
}

static void first_device_to_answer_takes_the_call(void **state)
{
    struct harness *harness = *state;
    make_accepted_call(harness);
    assert_int_equal(harness_answer(harness, "c", harness_device("bob", 1, 1)), CALL_WRONG_STATE);
    assert_int_equal(harness->call.state, CALL_ACCEPTED);
    assert_true(slice_is(harness->call.callee.device_id, "device-0"));
    assert_int_equal(harness_answer(harness, "c", bob()), CALL_REPEATED);
}

static void only_the_callee_may_answer_or_reject(void **state)
{
    struct harness *harness = *state;
    make_ringing_call(harness);
    assert_int_equal(harness_answer(harness, "c", alice()), CALL_WRONG_PARTY);
    assert_int_equal(harness_reject(harness, "c", "alice"), CALL_WRONG_PARTY);
    assert_int_equal(harness_get(harness, "c", "bob"), CALL_DONE);
    assert_int_equal(harness->call.state, CALL_RINGING);
}

static void user_who_is_no_party_gets_not_found(void **state)
{
    struct harness *harness = *state;
    struct call_device eve = harness_device("eve", 0, 1);
    make_accepted_call(harness);
    assert_int_equal(harness_answer(harness, "c", eve), CALL_NOT_FOUND);
    assert_int_equal(harness_reject(harness, "c", "eve"), CALL_NOT_FOUND);
    assert_int_equal(harness_end(harness, "c", "eve"), CALL_NOT_FOUND);
    assert_int_equal(harness_get(harness, "c", "eve"), CALL_NOT_FOUND);
    assert_int_equal(harness_get(harness, NULL, "eve"), CALL_NOT_FOUND);
    assert_int_equal(harness_get(harness, "no such call", "alice"), CALL_NOT_FOUND);
    assert_int_equal(harness_attach(harness, eve), CALL_NOT_FOUND);
    assert_int_equal(harness_detach(harness, eve), CALL_NOT_FOUND);
    assert_false(harness_renew(harness, eve));
    assert_int_equal(harness_get(harness, "c", "alice"), CALL_DONE);
    assert_int_equal(harness->call.state, CALL_ACCEPTED);
}

static void user_is_in_at_most_one_call(void **state)
{
    struct harness *harness = *state;
    make_ringing_call(harness);
    for (int accepted = 0; accepted < 2; accepted++) {
        assert_int_equal(harness_request(harness, "d", alice(), "carol"), CALL_CALLER_BUSY);
        assert_true(slice_is(harness->call.id, "c"));
        assert_int_equal(harness_request(harness, "d", bob(), "carol"), CALL_CALLER_BUSY);
        assert_int_equal(harness_request(harness, "d", harness_device("carol", 0, 1), "alice"),
                         CALL_CALLEE_BUSY);
        assert_int_equal(harness_request(harness, "d", harness_device("carol", 0, 1), "bob"),
                         CALL_CALLEE_BUSY);
        assert_int_equal(harness_declare(harness, "d", alice()), CALL_CALLER_BUSY);
        harness_answer(harness, "c", bob());
    }
    assert_int_equal(harness_get(harness, NULL, "carol"), CALL_NOT_FOUND);
}

static void unheard_call_rings_until_its_timeout_without_its_callee(void **state)
{
    struct harness *harness = *state;
    struct call_device carol = harness_device("carol", 0, 1), dave = harness_device("dave", 0, 1);
    make_accepted_call(harness);
    assert_int_equal(harness_request(harness, "d", carol, "bob"), CALL_CALLEE_BUSY);
    assert_int_equal(harness_ring_unheard(harness, "d", carol, "bob"), CALL_DONE);
    assert_int_equal(harness->call.state, CALL_RINGING);
    assert_true(harness->call.unheard);
    assert_int_equal(harness_request(harness, "d", carol, "bob"), CALL_REPEATED);
    assert_true(harness->call.unheard);
    assert_int_equal(harness_request(harness, "e", carol, "dave"), CALL_CALLER_BUSY);
    assert_int_equal(harness_request(harness, "e", dave, "carol"), CALL_CALLEE_BUSY);
    assert_int_equal(harness_answer(harness, "d", bob()), CALL_NOT_FOUND);
    assert_int_equal(harness_reject(harness, "d", "bob"), CALL_NOT_FOUND);
    assert_int_equal(harness_end(harness, "d", "bob"), CALL_NOT_FOUND);
    assert_int_equal(harness_get(harness, "d", "bob"), CALL_NOT_FOUND);
    assert_int_equal(harness_get(harness, NULL, "bob"), CALL_DONE);
    assert_true(slice_is(harness->call.id, "c"));
    assert_int_equal(harness_end(harness, "c", "bob"), CALL_DONE);
    assert_int_equal(harness_attach(harness, bob()), CALL_NOT_FOUND);
    harness_pass(harness, harness->backend->ring_timeout_ms - 1);
    assert_true(harness_renew(harness, carol));
    assert_int_equal(harness_reap(harness, CALL_REAP_MAX), 0);
    harness_pass(harness, 1);
    assert_int_equal(harness_reap(harness, CALL_REAP_MAX), 1);
    assert_true(slice_is(harness->ended[0].id, "d"));
    assert_true(harness->ended[0].unheard);
    assert_int_equal(harness->ended[0].reason, CALL_REASON_TIMEOUT);
    assert_true(slice_is(harness->ended[0].callee.user_id, "bob"));
    assert_int_equal(harness_request(harness, "e", dave, "carol"), CALL_DONE);
}

static void id_of_a_kept_call_is_taken(void **state)
{
    struct harness *harness = *state;
    struct call_device carol = harness_device("carol", 0, 1);
    make_ringing_call(harness);
    assert_int_equal(harness_request(harness, "c", alice(), "bob"), CALL_REPEATED);
    assert_int_equal(harness_request(harness, "c", carol, "dave"), CALL_ID_TAKEN);
    assert_int_equal(harness_declare(harness, "c", carol), CALL_ID_TAKEN);
    assert_int_equal(harness_request(harness, "c", harness_device("alice", 1, 1), "bob"),
                     CALL_CALLER_BUSY);
    assert_int_equal(harness_end(harness, "c", "alice"), CALL_DONE);
    assert_int_equal(harness_request(harness, "c", alice(), "bob"), CALL_ID_TAKEN);
    harness_pass(harness, CALL_ENDED_KEPT_MS);
    harness_reap(harness, CALL_REAP_MAX);
    assert_int_equal(harness_request(harness, "c", alice(), "bob"), CALL_DONE);
}

static void crossing_requests_become_one_call(void **state)
{
    struct harness *harness = *state;
    make_ringing_call(harness);
    assert_int_equal(harness_request(harness, "d", bob(), "alice"), CALL_GLARE);
    assert_true(slice_is(harness->call.id, "c"));
    assert_int_equal(harness->call.state, CALL_ACCEPTED);
    assert_true(slice_is(harness->call.caller.user_id, "alice"));
    assert_true(slice_is(harness->call.callee.device_id, "device-0"));
    assert_int_equal(harness_get(harness, "d", "bob"), CALL_NOT_FOUND);
    assert_int_equal(harness_end(harness, "c", "alice"), CALL_DONE);
    expect_ended_and_free(harness, CALL_REASON_HANGUP);
}

static void late_operation_finds_the_ended_call(void **state)
{
    struct harness *harness = *state;
    make_ringing_call(harness);
    harness_end(harness, "c", "alice");
    assert_int_equal(harness_answer(harness, "c", bob()), CALL_WRONG_STATE);
    assert_int_equal(harness->call.state, CALL_ENDED);
    assert_int_equal(harness_reject(harness, "c", "bob"), CALL_WRONG_STATE);
    assert_int_equal(harness_end(harness, "c", "bob"), CALL_WRONG_STATE);
    assert_int_equal(harness->call.reason, CALL_REASON_CANCELLED);
    assert_int_equal(harness_end(harness, "c", "eve"), CALL_NOT_FOUND);
    harness_pass(harness, CALL_ENDED_KEPT_MS);
    assert_int_equal(harness_reap(harness, CALL_REAP_MAX), 0);
    assert_int_equal(harness_end(harness, "c", "bob"), CALL_NOT_FOUND);
}

static void unanswered_call_times_out(void **state)
{
    struct harness *harness = *state;
    make_ringing_call(harness);
    harness_pass(harness, harness->backend->ring_timeout_ms - 1);
    harness_renew(harness, alice());
    assert_int_equal(harness_reap(harness, CALL_REAP_MAX), 0);
    harness_pass(harness, 1);
    expect_reaped(harness, CALL_REASON_TIMEOUT);
}

static void answered_call_does_not_time_out(void **state)
{
    struct harness *harness = *state;
    make_accepted_call(harness);
    for (int i = 0; i < 10; i++) {
        harness_pass(harness, harness->backend->ring_timeout_ms / 2);
        assert_true(harness_renew(harness, alice()));
        assert_true(harness_renew(harness, bob()));
        assert_int_equal(harness_reap(harness, CALL_REAP_MAX), 0);
    }
}

static void device_may_reattach_within_the_grace(void **state)
{
    struct harness *harness = *state;
    struct call_device back = harness_device("bob", 0, 2);
    make_accepted_call(harness);
    assert_int_equal(harness_detach(harness, bob()), CALL_DONE);
    assert_int_equal(harness_detach(harness, bob()), CALL_NOT_FOUND);
    harness_pass(harness, harness->backend->reconnect_grace_ms - 1);
    assert_int_equal(harness_reap(harness, CALL_REAP_MAX), 0);
    assert_int_equal(harness_attach(harness, harness_device("bob", 1, 1)), CALL_ELSEWHERE);
    assert_int_equal(harness_attach(harness, back), CALL_DONE);
    assert_memory_equal(&harness->call.callee.conn_id, &back.conn_id, sizeof(back.conn_id));
    harness_pass(harness, harness->backend->reconnect_grace_ms);
    assert_int_equal(harness_reap(harness, CALL_REAP_MAX), 0);
    assert_int_equal(harness_detach(harness, bob()),
                     CALL_NOT_FOUND); /* the old connection closes late */
    assert_int_equal(harness_detach(harness, back), CALL_DONE);
    harness_pass(harness, harness->backend->reconnect_grace_ms);
    expect_reaped(harness, CALL_REASON_DISCONNECTED);
}

static void ringing_call_ends_when_its_caller_is_lost(void **state)
{
    struct harness *harness = *state;
    make_ringing_call(harness);
    assert_int_equal(harness_detach(harness, bob()),
                     CALL_NOT_FOUND); /* the call rings on for other devices */
    assert_int_equal(harness_detach(harness, alice()), CALL_DONE);
    harness_pass(harness, harness->backend->reconnect_grace_ms);
    expect_reaped(harness, CALL_REASON_DISCONNECTED);
}

static void second_connection_of_a_device_takes_over(void **state)
{
    struct harness *harness = *state;
    struct call_device other = harness_device("alice", 0, 2);
    make_accepted_call(harness);
    assert_true(harness_renew(harness, other));
    assert_int_equal(harness_detach(harness, other), CALL_NOT_FOUND); /* it held no party */
    assert_int_equal(harness_detach(harness, alice()), CALL_DONE);
    assert_true(harness_renew(harness, other));
    harness_pass(harness, harness->backend->reconnect_grace_ms);
    assert_int_equal(harness_reap(harness, CALL_REAP_MAX), 0);
    assert_int_equal(harness_detach(harness, other), CALL_DONE);
}

static void call_ends_when_a_party_is_not_renewed(void **state)
{
    struct harness *harness = *state;
    make_accepted_call(harness);
    harness_pass(harness, harness->backend->lease_window_ms - 1);
    assert_true(harness_renew(harness, alice()));
    assert_int_equal(harness_reap(harness, CALL_REAP_MAX), 0);
    harness_pass(harness, 1); /* nobody renewed bob's device */
    expect_reaped(harness, CALL_REASON_DISCONNECTED);
    assert_false(harness_renew(harness, harness_device("alice", 1, 1)));
}

static void call_rings_for_a_device_that_attaches(void **state)
{
    struct harness *harness = *state;
    make_ringing_call(harness);
    assert_int_equal(harness_attach(harness, harness_device("bob", 1, 1)), CALL_RINGS);
    assert_true(slice_is(harness->call.id, "c"));
    assert_int_equal(harness_attach(harness, harness_device("alice", 1, 1)), CALL_ELSEWHERE);
    assert_int_equal(harness_attach(harness, harness_device("alice", 0, 2)), CALL_DONE);
    assert_int_equal(harness->call.state, CALL_RINGING);
}

static void declared_call_has_no_callee(void **state)
{
    struct harness *harness = *state;
    assert_int_equal(harness_declare(harness, "c", alice()), CALL_DONE);
    assert_int_equal(harness->call.state, CALL_ACCEPTED);
    assert_null(harness->call.callee.user_id.data);
    assert_int_equal(harness_request(harness, "d", bob(), "alice"), CALL_CALLEE_BUSY);
    assert_int_equal(harness_end(harness, NULL, "alice"), CALL_DONE);
    assert_true(slice_is(harness->call.id, "c"));
    expect_ended_and_free(harness, CALL_REASON_HANGUP);
}

static void declared_call_ends_when_its_device_is_lost(void **state)
{
    struct harness *harness = *state;
    assert_int_equal(harness_declare(harness, "c", alice()), CALL_DONE);
    assert_int_equal(harness_detach(harness, alice()), CALL_DONE);
    harness_pass(harness, harness->backend->reconnect_grace_ms);
    expect_reaped(harness, CALL_REASON_DISCONNECTED);
}

static void operation_without_an_id_uses_the_users_call(void **state)
{
    struct harness *harness = *state;
    assert_int_equal(harness_answer(harness, NULL, bob()), CALL_NOT_FOUND);
    make_ringing_call(harness);
    assert_int_equal(harness_answer(harness, NULL, alice()), CALL_WRONG_PARTY);
    assert_int_equal(harness_answer(harness, NULL, bob()), CALL_DONE);
    assert_int_equal(harness_reject(harness, NULL, "bob"), CALL_WRONG_STATE);
    assert_int_equal(harness_end(harness, NULL, "bob"), CALL_DONE);
    assert_int_equal(harness_end(harness, NULL, "bob"), CALL_NOT_FOUND);
}

static void reap_ends_at_most_max_calls(void **state)
{
    struct harness *harness = *state;
    char names[30][8];
    for (unsigned i = 0; i < 30; i += 2) {
        snprintf(names[i], sizeof(names[i]), "u%u", i);
        snprintf(names[i + 1], sizeof(names[i + 1]), "u%u", i + 1);
        assert_int_equal(
            harness_request(harness, names[i], harness_device(names[i], 0, i), names[i + 1]),
            CALL_DONE);
    }
    harness_pass(harness, harness->backend->ring_timeout_ms);
    assert_int_equal(harness_reap(harness, 10), 10);
    assert_int_equal(harness_reap(harness, CALL_REAP_MAX * 2), 5);
    assert_int_equal(harness_reap(harness, 10), 0);
}

static void ids_may_have_any_bytes_and_full_length(void **state)
{
    struct harness *harness = *state;
    char user[USER_ID_BYTES_MAX + 1], id[CALL_ID_BYTES_MAX + 1];
    memset(user, 'u', sizeof(user) - 1);
    memset(id, '{', sizeof(id) - 1);
    user[USER_ID_BYTES_MAX] = id[CALL_ID_BYTES_MAX] = '\0';
    assert_int_equal(harness_request(harness, id, alice(), user), CALL_DONE);
    assert_true(slice_is(harness->call.id, id));
    assert_true(slice_is(harness->call.callee.user_id, user));
    assert_int_equal(harness_answer(harness, id, harness_device(user, 1, 1)), CALL_DONE);
}

/* ---- running ---- */

static int set_up(void **state)
{
    const struct call_store_suite_backend *backend = *state;
    struct harness *harness = calloc(1, sizeof(*harness));
    assert_non_null(harness);
    harness->backend = backend;
    backend->start(backend->context);
    for (size_t i = 0; i < HARNESS_PORTS; i++)
        harness->ports[i] = backend->port(backend->context);
    *state = harness;
    return 0;
}

static int tear_down(void **state)
{
    struct harness *harness = *state;
    for (size_t i = 0; i < HARNESS_PORTS; i++)
        call_store_free(&harness->ports[i]);
    harness->backend->stop(harness->backend->context);
    free(harness);
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
        TEST(call_rings_is_answered_and_ends),
        TEST(reason_of_an_end_follows_from_state_and_party),
        TEST(first_device_to_answer_takes_the_call),
        TEST(only_the_callee_may_answer_or_reject),
        TEST(user_who_is_no_party_gets_not_found),
        TEST(user_is_in_at_most_one_call),
        TEST(unheard_call_rings_until_its_timeout_without_its_callee),
        TEST(id_of_a_kept_call_is_taken),
        TEST(crossing_requests_become_one_call),
        TEST(late_operation_finds_the_ended_call),
        TEST(unanswered_call_times_out),
        TEST(answered_call_does_not_time_out),
        TEST(device_may_reattach_within_the_grace),
        TEST(ringing_call_ends_when_its_caller_is_lost),
        TEST(second_connection_of_a_device_takes_over),
        TEST(call_ends_when_a_party_is_not_renewed),
        TEST(call_rings_for_a_device_that_attaches),
        TEST(declared_call_has_no_callee),
        TEST(declared_call_ends_when_its_device_is_lost),
        TEST(operation_without_an_id_uses_the_users_call),
        TEST(reap_ends_at_most_max_calls),
        TEST(ids_may_have_any_bytes_and_full_length),
        {"operations_match_a_model", call_store_suite_operations_match_a_model, set_up, tear_down,
         initial},
    };
#undef TEST
    print_message("call store suite on %s\n", backend->name);
    return cmocka_run_group_tests_name("call_store_suite", tests, NULL, NULL);
}
