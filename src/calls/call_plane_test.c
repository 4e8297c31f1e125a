/* Calls between devices on two gateways, in virtual time: each sequence once, then at random. */
#include "support/call_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* Alice and bob have two devices each, on different gateways; carol is a contact of both, eve of nobody. */
struct cast {
    struct call_world world;
    struct device *alice, *alice_other, *bob, *bob_other, *carol, *eve;
};

static int set_up(void **state)
{
    struct cast *cast = malloc(sizeof(*cast));
    assert_non_null(cast);
    struct call_world *world = &cast->world;
    call_world_open(world);
    fake_ledger_befriend(&world->ledger, "alice", "bob");
    fake_ledger_befriend(&world->ledger, "alice", "carol");
    fake_ledger_befriend(&world->ledger, "bob", "carol");
    cast->alice = call_world_device(world, "alice", "phone", 0);
    cast->alice_other = call_world_device(world, "alice", "desk", 1);
    cast->bob = call_world_device(world, "bob", "phone", 1);
    cast->bob_other = call_world_device(world, "bob", "desk", 0);
    cast->carol = call_world_device(world, "carol", "phone", 1);
    cast->eve = call_world_device(world, "eve", "phone", 0);
    *state = cast;
    return 0;
}

static int tear_down(void **state)
{
    struct cast *cast = *state;
    call_world_close(&cast->world);
    free(cast);
    return 0;
}

#define expect_last_event(device, event) assert_string_equal((device)->last_event, event)
#define expect_refused(done, expected)                                                             \
    do {                                                                                           \
        assert_false(done);                                                                        \
        assert_string_equal(error_code_name(cast->world.code), error_code_name(expected));         \
    } while (0)

static void ring(struct cast *cast)
{
    assert_true(call_world_request(cast->alice, "bob", "c"));
    expect_last_event(cast->bob, "call_incoming");
    expect_last_event(cast->bob_other, "call_incoming");
    call_world_check(&cast->world);
}

static void start_call(struct cast *cast)
{
    ring(cast);
    assert_true(call_world_accept(cast->bob, "c"));
    expect_last_event(cast->alice, "call_accepted");
    expect_last_event(cast->bob_other, "call_ended answered_elsewhere");
    call_world_check(&cast->world);
    assert_true(call_world_in_call(&cast->world, "alice"));
    assert_true(call_world_in_call(&cast->world, "bob"));
}

static void expect_no_call(struct cast *cast)
{
    call_world_check(&cast->world);
    assert_false(call_world_in_call(&cast->world, "alice"));
    assert_false(call_world_in_call(&cast->world, "bob"));
    assert_int_equal(call_world_metric(&cast->world, METRIC_CALLS_ACTIVE), 0);
}

static void a_call_is_made_and_ended(void **state)
{
    struct cast *cast = *state;
    start_call(cast);
    assert_int_equal(call_world_metric(&cast->world, METRIC_CALLS_ACTIVE), 1);
    assert_true(call_world_end(cast->alice, "c"));
    expect_last_event(cast->bob, "call_ended hangup");
    expect_last_event(cast->alice_other, "call_ended hangup");
    expect_no_call(cast);
    assert_int_equal(call_world_metric(&cast->world, METRIC_CALLS_ANSWERED), 1);
    assert_int_equal(call_world_metric(&cast->world, METRIC_CALLS_ENDED_HANGUP), 1);
    assert_int_equal(cast->world.ledger.submitted[LEDGER_CALL_APPEND], 1);
}

static void a_call_is_rejected(void **state)
{
    struct cast *cast = *state;
    ring(cast);
    assert_true(call_world_reject(cast->bob_other, "c"));
    expect_last_event(cast->alice, "call_rejected rejected");
    expect_last_event(cast->bob, "call_ended rejected");
    expect_no_call(cast);
}

static void a_call_is_cancelled(void **state)
{
    struct cast *cast = *state;
    ring(cast);
    assert_true(call_world_end(cast->alice_other, "c"));
    expect_last_event(cast->alice, "call_ended cancelled");
    expect_last_event(cast->bob, "call_ended cancelled");
    expect_last_event(cast->bob_other, "call_ended cancelled");
    expect_no_call(cast);
}

static void an_unanswered_call_times_out(void **state)
{
    struct cast *cast = *state;
    ring(cast);
    call_world_pass(&cast->world, CALL_WORLD_RING_MS - 1);
    call_world_check(&cast->world);
    expect_last_event(cast->bob, "call_incoming");
    call_world_pass(&cast->world, CALL_WORLD_TICK_MS);
    expect_last_event(cast->alice, "call_ended timeout");
    expect_last_event(cast->bob, "call_ended timeout");
    expect_last_event(cast->bob_other, "call_ended timeout");
    expect_no_call(cast);
    assert_int_equal(call_world_metric(&cast->world, METRIC_CALLS_ENDED_TIMEOUT), 1);
}

static void exactly_one_device_accepts(void **state)
{
    struct cast *cast = *state;
    start_call(cast);
    expect_refused(call_world_accept(cast->bob_other, "c"), ERROR_CALL_UNAVAILABLE);
    assert_non_null(strstr(cast->world.problem, "accepted"));
    expect_refused(call_world_reject(cast->bob_other, "c"), ERROR_CALL_UNAVAILABLE);
    call_world_check(&cast->world);
}

/* ---- commands whose answer was lost ---- */

static void lose_answer(void *arg, const struct call_answer *answer)
{
    (void)arg;
    assert_int_equal(answer->result, CALL_DONE);
}

static struct call_device party(const struct device *device)
{
    return (struct call_device){slice_of(device->user), slice_of(device->name), device->conn_id};
}

static void a_repeated_call_request_rings_if_its_answer_was_lost(void **state)
{
    struct cast *cast = *state;
    struct call_device alice = party(cast->alice);
    call_store_request(cast->alice->gateway->calls.store, SLICE("c"), &alice, SLICE("bob"),
                       lose_answer, NULL);
    ring(cast);
    call_world_pass(&cast->world, CALL_WORLD_RING_MS - CALL_WORLD_TICK_MS);
    expect_last_event(cast->bob, "call_incoming"); /* the caller is renewed */
    call_world_pass(&cast->world, 2 * CALL_WORLD_TICK_MS);
    expect_last_event(cast->bob, "call_ended timeout");
    expect_no_call(cast);
}

static void a_repeated_command_sends_no_second_event(void **state)
{
    struct cast *cast = *state;
    ring(cast);
    unsigned received = cast->bob->event_count;
    assert_true(call_world_request(cast->alice, "bob", "c"));
    assert_int_equal(cast->bob->event_count, received);
    assert_true(call_world_accept(cast->bob, "c"));
    received = cast->alice->event_count;
    assert_true(call_world_accept(cast->bob, "c"));
    assert_int_equal(cast->alice->event_count, received);
}

static void a_repeated_accept_sends_events_if_its_answer_was_lost(void **state)
{
    struct cast *cast = *state;
    struct call_device bob = party(cast->bob);
    ring(cast);
    call_store_answer(cast->bob->gateway->calls.store, SLICE("c"), &bob, lose_answer, NULL);
    assert_true(call_world_accept(cast->bob, "c"));
    expect_last_event(cast->alice, "call_accepted");
    expect_last_event(cast->bob_other, "call_ended answered_elsewhere");
    assert_true(call_world_in_call(&cast->world, "alice"));
    assert_true(call_world_in_call(&cast->world, "bob"));
    call_world_pass(&cast->world, 2 * CALL_WORLD_WINDOW_MS);
    call_world_check(&cast->world); /* the call continues: both are renewed */
    assert_true(call_world_in_call(&cast->world, "bob"));
}

/* ---- calls that the store has lost ---- */

/* Long enough for the parties' gateways to find it and for the caller's to give way to the callee's. */
static void lose_calls(struct cast *cast)
{
    call_world_empty_calls(&cast->world);
    call_world_pass(&cast->world, CALL_WORLD_GRACE_MS);
}

static void a_lost_call_ends_for_both_sides_once(void **state)
{
    struct cast *cast = *state;
    start_call(cast);
    unsigned alice_heard = cast->alice->event_count, bob_heard = cast->bob->event_count;
    lose_calls(cast);
    expect_last_event(cast->alice, "call_ended disconnected");
    expect_last_event(cast->bob, "call_ended disconnected");
    expect_no_call(cast);
    call_world_pass(&cast->world, CALL_WORLD_WINDOW_MS);
    assert_int_equal(cast->alice->event_count, alice_heard + 1);
    assert_int_equal(cast->bob->event_count, bob_heard + 1);
    assert_int_equal(call_world_metric(&cast->world, METRIC_CALLS_ENDED_DISCONNECTED), 1);
    assert_int_equal(cast->world.ledger.submitted[LEDGER_CALL_APPEND], 1);
    assert_true(call_world_request(cast->bob, "alice", "d"));
}

static void a_lost_call_stops_ringing(void **state)
{
    struct cast *cast = *state;
    ring(cast);
    lose_calls(cast);
    expect_last_event(cast->alice, "call_ended disconnected");
    expect_last_event(cast->bob, "call_ended disconnected");
    expect_last_event(cast->bob_other, "call_ended disconnected");
    expect_no_call(cast);
}

static void a_lost_call_stops_ringing_though_its_caller_left(void **state)
{
    struct cast *cast = *state;
    ring(cast);
    call_world_empty_calls(&cast->world);
    call_world_disconnect(cast->alice);
    call_world_pass(&cast->world, CALL_WORLD_GRACE_MS);
    expect_last_event(cast->bob, "call_ended disconnected");
    expect_no_call(cast);
}

static void a_lost_call_stops_ringing_though_its_caller_calls_again(void **state)
{
    struct cast *cast = *state;
    ring(cast);
    call_world_empty_calls(&cast->world);
    assert_true(call_world_request(cast->alice, "carol", "d"));
    call_world_pass(&cast->world, CALL_WORLD_GRACE_MS);
    expect_last_event(cast->bob, "call_ended disconnected");
    assert_int_equal(cast->carol->picture, PICTURE_RINGING);
    assert_int_equal(cast->alice->picture, PICTURE_CALLING);
    call_world_check(&cast->world);
}

static void a_lost_call_ends_though_the_other_gateway_is_lost_too(void **state)
{
    struct cast *cast = *state;
    start_call(cast);
    call_world_lose(cast->bob);
    lose_calls(cast);
    expect_last_event(cast->alice, "call_ended disconnected");
    expect_no_call(cast);
}

static void a_lost_declared_call_is_declared_again(void **state)
{
    struct cast *cast = *state;
    assert_true(call_world_declare_start(cast->alice));
    lose_calls(cast);
    assert_true(call_world_in_call(&cast->world, "alice"));
    expect_refused(call_world_request(cast->alice, "bob", "c"), ERROR_CALL_BUSY);
    call_world_pass(&cast->world, 2 * CALL_WORLD_WINDOW_MS);
    assert_true(call_world_in_call(&cast->world, "alice"));
    assert_true(call_world_declare_end(cast->alice));
    expect_no_call(cast);
}

static void disturb_store(struct cast *cast)
{
    for (size_t i = 0; i < CALL_WORLD_GATEWAYS; i++) {
        struct presence_plane *presence = &cast->world.gateways[i].presence;
        presence->resync.was_available = true;
        resync_disturb(presence);
    }
}

static void on_revived(void *arg, const struct call_answer *answer)
{
    (void)arg;
    assert_int_equal(answer->result, CALL_DONE);
}

/* The store loses the end of the call: it has the accepted call once more, and `in_call`. */
static void revive_call(struct cast *cast)
{
    struct call_plane *plane = &cast->world.gateways[0].calls;
    struct call_device alice = {SLICE("alice"), SLICE("phone"), cast->alice->conn_id};
    struct call_device bob = {SLICE("bob"), SLICE("phone"), cast->bob->conn_id};
    call_world_empty_calls(&cast->world);
    call_store_request(plane->store, SLICE("c"), &alice, SLICE("bob"), on_revived, NULL);
    call_store_answer(plane->store, SLICE("c"), &bob, on_revived, NULL);
    call_sync_user(&plane->sync, SLICE("alice"));
    call_sync_user(&plane->sync, SLICE("bob"));
}

/* Found by the simulator: redis_failover, seed 5. */
static void a_call_whose_end_was_lost_ends_again(void **state)
{
    struct cast *cast = *state;
    start_call(cast);
    assert_true(call_world_end(cast->alice_other, "c"));
    revive_call(cast);
    assert_true(call_world_in_call(&cast->world, "alice"));
    disturb_store(cast);
    call_world_pass(&cast->world, 2 * CALL_WORLD_TICK_MS);
    expect_no_call(cast);
}

/* The devices had no route when the call ended: nobody told them. */
static void end_unheard(struct cast *cast)
{
    struct call_plane *plane = &cast->world.gateways[1].calls;
    call_store_end(plane->store, SLICE("c"), SLICE("alice"), on_revived, NULL);
}

/* Found by the simulator: clock_step, seed 11. */
static void a_call_that_ended_unheard_is_told_by_the_gateways_of_its_sides(void **state)
{
    struct cast *cast = *state;
    start_call(cast);
    end_unheard(cast);
    call_world_pass(&cast->world, 2 * CALL_WORLD_GRACE_MS);
    expect_last_event(cast->bob, "call_ended hangup");
    expect_last_event(cast->alice, "call_ended hangup");
}

/* Found by the simulator: clock_step, seeds 4 and 13; links_cut, seed 1. */
static void a_call_that_stopped_ringing_unheard_is_told_after_the_timeout(void **state)
{
    struct cast *cast = *state;
    ring(cast);
    end_unheard(cast);
    call_world_pass(&cast->world, CALL_WORLD_RING_MS + 2 * CALL_WORLD_GRACE_MS);
    expect_last_event(cast->alice, "call_ended cancelled");
    expect_last_event(cast->bob, "call_ended cancelled");
    expect_last_event(cast->bob_other, "call_ended cancelled");
    unsigned heard = cast->bob->event_count;
    call_world_pass(&cast->world, 2 * CALL_WORLD_RING_MS);
    assert_int_equal(cast->bob->event_count, heard);
}

static void a_call_whose_end_was_heard_is_not_told_again(void **state)
{
    struct cast *cast = *state;
    start_call(cast);
    assert_true(call_world_end(cast->alice, "c"));
    unsigned alice_heard = cast->alice->event_count, bob_heard = cast->bob->event_count;
    call_world_pass(&cast->world, CALL_WORLD_RING_MS + 2 * CALL_WORLD_GRACE_MS);
    assert_int_equal(cast->alice->event_count, alice_heard);
    assert_int_equal(cast->bob->event_count, bob_heard);
}

/* Until all gateways have registered their leases again, the parties may have no routes. */
static void a_lost_call_is_told_when_the_store_is_settled(void **state)
{
    struct cast *cast = *state;
    ring(cast);
    disturb_store(cast);
    call_world_empty_calls(&cast->world);
    call_world_pass(&cast->world, RESYNC_REGISTERED_MS - CALL_WORLD_TICK_MS);
    expect_last_event(cast->bob, "call_incoming");
    call_world_pass(&cast->world, CALL_WORLD_GRACE_MS);
    expect_last_event(cast->bob, "call_ended disconnected");
    expect_no_call(cast);
}

static void an_overdue_call_is_told_when_the_store_is_settled(void **state)
{
    struct cast *cast = *state;
    ring(cast);
    call_world_pass(&cast->world, CALL_WORLD_RING_MS - 2 * CALL_WORLD_TICK_MS);
    disturb_store(cast);
    call_world_pass(&cast->world, 4 * CALL_WORLD_TICK_MS);
    expect_last_event(cast->bob, "call_incoming");
    call_world_pass(&cast->world, RESYNC_REGISTERED_MS);
    expect_last_event(cast->bob, "call_ended timeout");
    expect_no_call(cast);
}

static void every_callee_who_cannot_be_called_looks_unavailable(void **state)
{
    struct cast *cast = *state;
    call_world_disconnect(cast->carol);
    const char *problems[4];
    expect_refused(call_world_request(cast->alice, "carol", NULL), ERROR_CALL_UNAVAILABLE);
    problems[0] = cast->world.problem;
    expect_refused(call_world_request(cast->alice, "eve", NULL), ERROR_CALL_UNAVAILABLE);
    problems[1] = cast->world.problem;
    expect_refused(call_world_request(cast->alice, "no such user", NULL), ERROR_CALL_UNAVAILABLE);
    problems[2] = cast->world.problem;
    expect_refused(call_world_request(cast->alice, "alice", NULL), ERROR_CALL_UNAVAILABLE);
    problems[3] = cast->world.problem;
    for (int i = 1; i < 4; i++)
        assert_string_equal(problems[i], problems[0]);
    assert_int_equal(cast->eve->event_count, 0);
    expect_no_call(cast);
}

static void a_failing_ledger_refuses_a_call_request(void **state)
{
    struct cast *cast = *state;
    cast->world.ledger.failing = LEDGER_UNAVAILABLE;
    expect_refused(call_world_request(cast->alice, "bob", NULL), ERROR_SERVICE_UNAVAILABLE);
    cast->world.ledger.failing = LEDGER_OK;
    assert_true(call_world_request(cast->alice, "bob", NULL));
}

static void a_user_in_a_call_is_busy(void **state)
{
    struct cast *cast = *state;
    start_call(cast);
    size_t recorded = cast->world.ledger.submitted[LEDGER_CALL_APPEND];
    expect_refused(call_world_request(cast->carol, "bob", "d"), ERROR_CALL_BUSY);
    assert_int_equal(cast->world.ledger.submitted[LEDGER_CALL_APPEND], recorded + 1);
    expect_refused(call_world_request(cast->alice_other, "carol", "d"), ERROR_CALL_BUSY);
    expect_refused(call_world_request(cast->bob, "alice", "d"), ERROR_CALL_BUSY);
    call_world_check(&cast->world);
}

static void disconnect_bob(struct cast *cast)
{
    call_world_disconnect(cast->bob);
    call_world_disconnect(cast->bob_other);
}

/* A callee who hides presence rings until the timeout, in whatever state: a call is no presence query. */
static void a_hidden_callee_rings_until_the_timeout(void **state)
{
    enum { FREE, BUSY, OFFLINE, LEAVES, STATES };
    for (int callee = FREE; callee < STATES; callee++) {
        struct cast *cast = *state;
        fake_ledger_show(&cast->world.ledger, "bob", LEDGER_VISIBLE_NOBODY, LEDGER_VISIBLE_NOBODY);
        if (callee == BUSY)
            start_call(cast);
        if (callee == OFFLINE)
            disconnect_bob(cast);
        unsigned heard = cast->bob->event_count;
        assert_true(call_world_request(cast->carol, "bob", "d"));
        assert_int_equal(cast->bob->event_count,
                         callee == BUSY || callee == OFFLINE ? heard : heard + 1);
        if (callee == LEAVES)
            disconnect_bob(cast);
        call_world_pass(&cast->world, CALL_WORLD_RING_MS - CALL_WORLD_TICK_MS);
        assert_int_equal(cast->carol->picture, PICTURE_CALLING);
        call_world_pass(&cast->world, 2 * CALL_WORLD_TICK_MS);
        expect_last_event(cast->carol, "call_ended timeout");
        tear_down(state);
        set_up(state);
    }
}

static void simultaneous_call_requests_become_one_call(void **state)
{
    struct cast *cast = *state;
    ring(cast);
    assert_true(call_world_request(cast->bob_other, "alice", "d"));
    expect_last_event(cast->alice, "call_accepted");
    expect_last_event(cast->bob_other, "call_accepted");
    expect_last_event(cast->bob, "call_ended answered_elsewhere");
    assert_string_equal(cast->bob_other->call_id, "c");
    call_world_check(&cast->world);
    assert_true(call_world_in_call(&cast->world, "alice"));
    assert_true(call_world_end(cast->bob_other, "c"));
    expect_no_call(cast);
}

static void calls_of_other_users_are_not_found(void **state)
{
    struct cast *cast = *state;
    start_call(cast);
    struct device *others[] = {cast->carol, cast->eve};
    for (int i = 0; i < 2; i++) {
        expect_refused(call_world_accept(others[i], "c"), ERROR_NOT_FOUND);
        const char *problem = cast->world.problem;
        expect_refused(call_world_accept(others[i], "nothing"), ERROR_NOT_FOUND);
        assert_string_equal(cast->world.problem, problem);
        expect_refused(call_world_reject(others[i], "c"), ERROR_NOT_FOUND);
        expect_refused(call_world_end(others[i], "c"), ERROR_NOT_FOUND);
        expect_refused(call_world_signal(others[i], "c", "1"), ERROR_NOT_FOUND);
    }
    expect_refused(call_world_request(cast->carol, "alice", "c"), ERROR_INVALID_MESSAGE);
    call_world_check(&cast->world);
}

static void signals_reach_only_the_other_side(void **state)
{
    struct cast *cast = *state;
    ring(cast);
    assert_true(call_world_signal(cast->alice, "c", "{\"sdp\":1}"));
    assert_string_equal(cast->bob->signal, "{\"sdp\":1}");
    assert_string_equal(cast->bob_other->signal, "{\"sdp\":1}");
    assert_true(call_world_signal(cast->bob_other, "c", "[2]"));
    assert_string_equal(cast->alice->signal, "[2]");
    assert_string_equal(cast->alice_other->signal, "");
    expect_refused(call_world_signal(cast->alice_other, "c", "3"), ERROR_CALL_UNAVAILABLE);
    assert_true(call_world_accept(cast->bob, "c"));
    assert_true(call_world_signal(cast->alice, "c", "4"));
    assert_string_equal(cast->bob->signal, "4");
    assert_string_equal(cast->bob_other->signal, "{\"sdp\":1}");
    expect_refused(call_world_signal(cast->bob_other, "c", "5"), ERROR_CALL_UNAVAILABLE);
    assert_true(call_world_end(cast->bob, "c"));
    expect_refused(call_world_signal(cast->alice, "c", "6"), ERROR_CALL_UNAVAILABLE);
    assert_non_null(strstr(cast->world.problem, "ended"));
}

static void signals_are_bounded(void **state)
{
    struct cast *cast = *state;
    static char data[CALL_SIGNAL_BYTES_MAX + 4];
    ring(cast);
    memset(data, '1', CALL_SIGNAL_BYTES_MAX);
    assert_true(call_world_signal(cast->alice, "c", data));
    data[CALL_SIGNAL_BYTES_MAX] = '1';
    expect_refused(call_world_signal(cast->alice, "c", data), ERROR_MESSAGE_TOO_LARGE);
    memset(data, 'x', CALL_SIGNAL_BYTES_MAX + 2);
    data[0] = data[CALL_SIGNAL_BYTES_MAX + 1] = '"';
    assert_true(call_world_signal(cast->alice, "c", data));
    expect_refused(call_world_signal(cast->eve, "c", "1"), ERROR_NOT_FOUND);
}

static void a_device_may_reconnect_during_a_call(void **state)
{
    struct cast *cast = *state;
    start_call(cast);
    call_world_disconnect(cast->bob_other);
    call_world_disconnect(cast->bob); /* in_call ends with the last lease */
    call_world_pass(&cast->world, CALL_WORLD_GRACE_MS - CALL_WORLD_TICK_MS);
    assert_string_equal(cast->alice->last_event, "call_accepted");
    cast->bob->gateway = &cast->world.gateways[0]; /* through another gateway */
    call_world_connect(cast->bob);
    expect_last_event(cast->bob, "call_accepted");
    call_world_check(&cast->world);
    call_world_pass(&cast->world, 10 * CALL_WORLD_GRACE_MS);
    assert_true(call_world_in_call(&cast->world, "bob"));
    assert_true(call_world_signal(cast->alice, "c", "7"));
    assert_string_equal(cast->bob->signal, "7");
    assert_true(call_world_end(cast->bob, "c"));
    expect_last_event(cast->alice, "call_ended hangup");
    expect_no_call(cast);
}

static void a_device_that_stays_away_ends_the_call(void **state)
{
    struct cast *cast = *state;
    start_call(cast);
    call_world_disconnect(cast->bob);
    call_world_pass(&cast->world, CALL_WORLD_GRACE_MS);
    expect_last_event(cast->alice, "call_ended disconnected");
    expect_no_call(cast);
    call_world_connect(cast->bob);
    assert_int_equal(cast->bob->picture, PICTURE_IDLE);
    expect_no_call(cast);
}

static void a_caller_that_stays_away_stops_the_ringing(void **state)
{
    struct cast *cast = *state;
    ring(cast);
    call_world_disconnect(cast->alice);
    call_world_pass(&cast->world, CALL_WORLD_GRACE_MS);
    expect_last_event(cast->bob, "call_ended disconnected");
    expect_no_call(cast);
}

static void a_caller_that_reconnects_is_told_the_state(void **state)
{
    struct cast *cast = *state;
    ring(cast);
    call_world_disconnect(cast->alice);
    call_world_connect(cast->alice);
    expect_last_event(cast->alice, "call_ringing");
    call_world_disconnect(cast->alice);
    assert_true(call_world_accept(cast->bob, "c"));
    call_world_connect(cast->alice);
    expect_last_event(cast->alice, "call_accepted");
    call_world_check(&cast->world);
}

static void a_device_that_connects_while_ringing_rings(void **state)
{
    struct cast *cast = *state;
    call_world_disconnect(cast->bob_other);
    assert_true(call_world_request(cast->alice, "bob", "c"));
    call_world_connect(cast->bob_other);
    expect_last_event(cast->bob_other, "call_incoming");
    call_world_check(&cast->world);
    assert_true(call_world_accept(cast->bob_other, "c"));
    expect_last_event(cast->bob, "call_ended answered_elsewhere");
}

static void calls_of_a_crashed_gateway_end(void **state)
{
    struct cast *cast = *state;
    start_call(cast);
    call_world_lose(cast->bob); /* his other device keeps bob online */
    call_world_pass(&cast->world, CALL_WORLD_WINDOW_MS + CALL_WORLD_TICK_MS);
    expect_last_event(cast->alice, "call_ended disconnected");
    expect_no_call(cast);
}

static void count_reply(void *arg, const struct call_reply *reply)
{
    assert_null(reply->problem);
    ++*(int *)arg;
}

/* The ledger answers after the caller has left: nobody else would end the ringing. */
static void a_call_request_completes_after_its_connection_ended(void **state)
{
    struct cast *cast = *state;
    struct call_world *world = &cast->world;
    struct call_device self = {SLICE("alice"), SLICE("phone"), cast->alice->conn_id};
    int replies = 0;
    world->ledger.holding = true;
    call_plane_request(&cast->alice->gateway->calls, &self, SLICE("bob"), SLICE("c"), count_reply,
                       &replies);
    call_world_disconnect(cast->alice);
    world->ledger.holding = false;
    fake_ledger_release_all(&world->ledger);
    call_world_pass(world, CALL_WORLD_TICK_MS);
    assert_int_equal(replies, 1);
    expect_last_event(cast->bob, "call_incoming");
    call_world_pass(world, CALL_WORLD_GRACE_MS);
    expect_last_event(cast->bob, "call_ended disconnected");
    expect_no_call(cast);
}

static void a_user_may_declare_a_call(void **state)
{
    struct cast *cast = *state;
    assert_true(call_world_declare_start(cast->alice));
    assert_true(call_world_in_call(&cast->world, "alice"));
    assert_true(call_world_declare_start(cast->alice_other)); /* already so */
    expect_refused(call_world_request(cast->bob, "alice", NULL), ERROR_CALL_BUSY);
    assert_true(call_world_declare_end(cast->alice));
    assert_true(call_world_declare_end(cast->alice)); /* already so */
    expect_no_call(cast);
    assert_true(call_world_declare_start(cast->alice));
    call_world_disconnect(cast->alice);
    call_world_pass(&cast->world, CALL_WORLD_GRACE_MS);
    expect_no_call(cast);
    assert_int_equal(cast->alice_other->event_count, 0);
    assert_int_equal(cast->world.ledger.submitted[LEDGER_CALL_APPEND],
                     1); /* bob's attempt that was busy */
}

static void a_declared_call_may_follow_an_accepted_one(void **state)
{
    struct cast *cast = *state;
    ring(cast);
    expect_refused(call_world_declare_start(cast->bob), ERROR_CALL_BUSY);
    assert_true(call_world_accept(cast->bob, "c"));
    assert_true(call_world_declare_start(cast->bob)); /* as Socket.IO clients do after accepting */
    assert_true(call_world_declare_end(cast->bob));
    expect_last_event(cast->alice, "call_ended hangup");
    expect_no_call(cast);
}

static void a_call_ends_when_its_users_may_no_longer_call(void **state)
{
    struct cast *cast = *state;
    struct call_plane *plane = &cast->world.gateways[0].calls;
    start_call(cast);
    call_plane_end_between(plane, SLICE("bob"), SLICE("carol"));
    call_plane_end_between(plane, SLICE("carol"), SLICE("alice"));
    call_world_check(&cast->world);
    assert_true(call_world_in_call(&cast->world, "alice"));
    call_plane_end_between(plane, SLICE("bob"), SLICE("alice"));
    expect_last_event(cast->alice, "call_ended hangup");
    expect_last_event(cast->bob, "call_ended hangup");
    expect_no_call(cast);
    assert_true(call_world_request(cast->alice, "bob", "d"));
    call_plane_end_between(plane, SLICE("alice"), SLICE("bob"));
    expect_last_event(cast->bob, "call_ended cancelled");
    expect_no_call(cast);
}

/* ---- at random ---- */

enum { STEPS = 20000 };

static const char *const USERS[] = {"alice", "bob", "carol"};

static void random_step(struct cast *cast, struct random *random, unsigned step)
{
    struct call_world *world = &cast->world;
    struct device *device = &world->devices[random_below(random, 5)];
    const char *callee = USERS[random_below(random, 3)];
    const char *id = device->call_id[0] ? device->call_id : NULL;
    char made[32];
    snprintf(made, sizeof(made), "call-%u", step);
    if (!device->connected) {
        if (random_below(random, 3) == 0)
            device->gateway = &world->gateways[random_below(random, CALL_WORLD_GATEWAYS)];
        call_world_connect(device);
        return;
    }
    switch (random_below(random, 12)) {
    case 0:
    case 1:
        call_world_request(device, callee, random_below(random, 2) ? made : NULL);
        break;
    case 2:
    case 3:
    case 4:
        call_world_accept(device, id);
        break;
    case 5:
        call_world_reject(device, id);
        break;
    case 6:
        call_world_end(device, id);
        break;
    case 7:
        call_world_disconnect(device);
        break;
    case 8:
        call_world_signal(device, id, "1");
        break;
    case 9:
        if (random_below(random, 4) == 0)
            call_world_declare_start(device);
        break;
    default: {
        bool is_long = random_below(random, 10) == 0;
        call_world_pass(world, (int64_t)random_below(random, is_long ? 40000 : 6000));
    }
    }
}

static void devices_show_the_true_state_after_random_commands(void **state)
{
    struct cast *cast = *state;
    struct random random;
    random_init_seeded(&random, 4711);
    for (unsigned step = 0; step < STEPS; step++) {
        random_step(cast, &random, step);
        call_world_check(&cast->world);
    }
    for (int i = 0; i < 5; i++)
        if (cast->world.devices[i].connected)
            call_world_disconnect(&cast->world.devices[i]);
    call_world_pass(&cast->world, CALL_WORLD_RING_MS);
    expect_no_call(cast);
    const enum metric seen[] = {METRIC_CALLS_ANSWERED,          METRIC_CALLS_BUSY,
                                METRIC_CALLS_ENDED_HANGUP,      METRIC_CALLS_ENDED_REJECTED,
                                METRIC_CALLS_ENDED_CANCELLED,   METRIC_CALLS_ENDED_TIMEOUT,
                                METRIC_CALLS_ENDED_DISCONNECTED};
    for (size_t i = 0; i < sizeof(seen) / sizeof(seen[0]); i++)
        assert_true(call_world_metric(&cast->world, seen[i]) > 10);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_call_is_made_and_ended),
        TEST(a_call_is_rejected),
        TEST(a_call_is_cancelled),
        TEST(an_unanswered_call_times_out),
        TEST(exactly_one_device_accepts),
        TEST(a_repeated_command_sends_no_second_event),
        TEST(a_repeated_call_request_rings_if_its_answer_was_lost),
        TEST(a_repeated_accept_sends_events_if_its_answer_was_lost),
        TEST(a_lost_call_ends_for_both_sides_once),
        TEST(a_lost_call_stops_ringing),
        TEST(a_lost_call_stops_ringing_though_its_caller_left),
        TEST(a_lost_call_stops_ringing_though_its_caller_calls_again),
        TEST(a_lost_call_ends_though_the_other_gateway_is_lost_too),
        TEST(a_lost_declared_call_is_declared_again),
        TEST(a_lost_call_is_told_when_the_store_is_settled),
        TEST(a_call_whose_end_was_lost_ends_again),
        TEST(a_call_that_ended_unheard_is_told_by_the_gateways_of_its_sides),
        TEST(a_call_that_stopped_ringing_unheard_is_told_after_the_timeout),
        TEST(a_call_whose_end_was_heard_is_not_told_again),
        TEST(an_overdue_call_is_told_when_the_store_is_settled),
        TEST(every_callee_who_cannot_be_called_looks_unavailable),
        TEST(a_failing_ledger_refuses_a_call_request),
        TEST(a_user_in_a_call_is_busy),
        TEST(a_hidden_callee_rings_until_the_timeout),
        TEST(simultaneous_call_requests_become_one_call),
        TEST(calls_of_other_users_are_not_found),
        TEST(signals_reach_only_the_other_side),
        TEST(signals_are_bounded),
        TEST(a_device_may_reconnect_during_a_call),
        TEST(a_device_that_stays_away_ends_the_call),
        TEST(a_caller_that_stays_away_stops_the_ringing),
        TEST(a_caller_that_reconnects_is_told_the_state),
        TEST(a_device_that_connects_while_ringing_rings),
        TEST(calls_of_a_crashed_gateway_end),
        TEST(a_call_request_completes_after_its_connection_ended),
        TEST(a_user_may_declare_a_call),
        TEST(a_declared_call_may_follow_an_accepted_one),
        TEST(a_call_ends_when_its_users_may_no_longer_call),
        TEST(devices_show_the_true_state_after_random_commands),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
