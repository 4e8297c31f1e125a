/* The conformance of leases, reading, routes, the call flag and history. */
#include "conformance/state_store_suite_tests.h"

#include "base/buffer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

void state_store_suite_first_lease_makes_the_user_online(void **state)
{
    struct harness *harness = *state;
    struct presence before = harness_read(harness, 0, ALICE);
    assert_int_equal(before.status, PRESENCE_OFFLINE);
    assert_int_equal(before.last_seen_ms, TIME_NONE);
    assert_int_equal(before.reason, PRESENCE_REASON_NONE);
    expect_changed(harness_open(harness, 0, ALICE, 1, false), PRESENCE_ONLINE);
    expect_same(harness_open(harness, 0, ALICE, 2, false), PRESENCE_ONLINE);
    expect_same(harness_open(harness, 1, ALICE, 3, false), PRESENCE_ONLINE);
    assert_int_equal(harness_read(harness, 2, ALICE).status, PRESENCE_ONLINE);
    assert_int_equal(harness_read(harness, 2, BOB).status, PRESENCE_OFFLINE);
}

void state_store_suite_last_close_makes_the_user_offline(void **state)
{
    struct harness *harness = *state;
    harness_open(harness, 0, ALICE, 1, false);
    harness_open(harness, 1, ALICE, 2, false);
    expect_same(harness_close(harness, 0, ALICE, 1), PRESENCE_ONLINE);
    harness_pass(harness, harness->backend->lease_window_ms / 4);
    struct state_transition last = harness_close(harness, 1, ALICE, 2);
    expect_changed(last, PRESENCE_OFFLINE);
    harness_assert_time(harness, last.presence.last_seen_ms, harness_wall_ms(harness));
    struct presence after = harness_read(harness, 0, ALICE);
    assert_int_equal(after.status, PRESENCE_OFFLINE);
    assert_int_equal(after.last_seen_ms, last.presence.last_seen_ms);
    expect_changed(harness_open(harness, 0, ALICE, 3, false), PRESENCE_ONLINE);
}

void state_store_suite_user_is_away_while_all_leases_are_idle(void **state)
{
    struct harness *harness = *state;
    harness_open(harness, 0, ALICE, 1, false);
    harness_open(harness, 1, ALICE, 2, false);
    expect_same(harness_set_idle(harness, 0, ALICE, 1, true), PRESENCE_ONLINE);
    expect_same(harness_set_idle(harness, 0, ALICE, 1, true), PRESENCE_ONLINE);
    expect_changed(harness_set_idle(harness, 1, ALICE, 2, true), PRESENCE_AWAY);
    expect_same(harness_set_idle(harness, 1, ALICE, 2, true), PRESENCE_AWAY);
    assert_int_equal(harness_read(harness, 2, ALICE).status, PRESENCE_AWAY);
    expect_changed(harness_set_idle(harness, 0, ALICE, 1, false), PRESENCE_ONLINE);
    expect_same(harness_set_idle(harness, 1, ALICE, 2, false), PRESENCE_ONLINE);
}

void state_store_suite_end_of_a_lease_updates_the_status(void **state)
{
    struct harness *harness = *state;
    harness_open(harness, 0, ALICE, 1, false);
    harness_open(harness, 1, ALICE, 2, true);
    expect_changed(harness_close(harness, 0, ALICE, 1), PRESENCE_AWAY);
    expect_changed(harness_open(harness, 0, ALICE, 3, false), PRESENCE_ONLINE);
    expect_same(harness_close(harness, 1, ALICE, 2), PRESENCE_ONLINE);
    expect_changed(harness_set_idle(harness, 0, ALICE, 3, true), PRESENCE_AWAY);
    expect_changed(harness_close(harness, 0, ALICE, 3), PRESENCE_OFFLINE);
}

void state_store_suite_lease_may_start_idle(void **state)
{
    struct harness *harness = *state;
    struct state_transition came = harness_open(harness, 0, ALICE, 1, true);
    struct state_transition woke = harness_open(harness, 1, ALICE, 2, false);
    expect_changed(came, PRESENCE_AWAY);
    assert_false(came.was_here);
    expect_changed(woke, PRESENCE_ONLINE);
    assert_true(woke.was_here);
    expect_same(harness_open(harness, 2, ALICE, 3, true), PRESENCE_ONLINE);
}

void state_store_suite_operations_on_a_lease_take_effect_in_order(void **state)
{
    enum { VISITS = 50 };
    struct harness *harness = *state;
    for (unsigned i = 0; i < VISITS; i++) {
        harness_open_idle_close(harness, 0, ALICE, i);
        expect_changed(harness->transitions[0], PRESENCE_ONLINE);
        expect_changed(harness->transitions[1], PRESENCE_AWAY);
        expect_changed(harness->transitions[2], PRESENCE_OFFLINE);
        assert_int_equal(harness_leases(harness, 0, ALICE), 0);
        assert_int_equal(harness_read(harness, 0, ALICE).status, PRESENCE_OFFLINE);
        harness->user_count = 0; /* the harness has not seen these versions */
    }
}

void state_store_suite_unknown_lease_changes_nothing(void **state)
{
    struct harness *harness = *state;
    expect_same(harness_close(harness, 0, ALICE, 1), PRESENCE_OFFLINE);
    expect_same(harness_set_idle(harness, 0, ALICE, 1, true), PRESENCE_OFFLINE);
    assert_false(harness_renew(harness, 0, ALICE, 1));
    assert_int_equal(harness_leases(harness, 0, ALICE), 0);

    harness_open(harness, 0, ALICE, 1, false);
    expect_same(harness_close(harness, 0, ALICE, 2), PRESENCE_ONLINE);
    expect_same(harness_set_idle(harness, 0, ALICE, 2, true), PRESENCE_ONLINE);
    assert_false(harness_renew(harness, 0, ALICE, 2));

    expect_changed(harness_close(harness, 0, ALICE, 1), PRESENCE_OFFLINE);
    struct state_transition again = harness_close(harness, 0, ALICE, 1);
    expect_same(again, PRESENCE_OFFLINE);
    harness_assert_time(harness, again.presence.last_seen_ms, harness_wall_ms(harness));
    assert_false(harness_renew(harness, 0, ALICE, 1));
}

void state_store_suite_claim_of_a_departure_ends_its_lease(void **state)
{
    struct harness *harness = *state;
    harness_open(harness, 0, ALICE, 1, false);
    harness_open(harness, 1, ALICE, 2, false);
    int64_t left_at_ms = harness_wall_ms(harness) - 10;
    expect_same(harness_settle(harness, 0, ALICE, 1, left_at_ms), PRESENCE_ONLINE);
    expect_same(harness_settle(harness, 0, ALICE, 1, left_at_ms), PRESENCE_ONLINE);
    left_at_ms = harness_wall_ms(harness) - 10;
    struct state_transition last = harness_settle(harness, 1, ALICE, 2, left_at_ms);
    expect_changed(last, PRESENCE_OFFLINE);
    harness_assert_time(harness, last.presence.last_seen_ms, left_at_ms);
    expect_same(harness_settle(harness, 1, ALICE, 2, left_at_ms), PRESENCE_OFFLINE);
}

void state_store_suite_lease_of_another_user_is_unknown(void **state)
{
    enum { OTHERS = 200 }; /* enough that some share a shard with alice */
    struct harness *harness = *state;
    harness_open(harness, 0, ALICE, 1, false);
    for (int i = 0; i < OTHERS; i++) {
        char text[16];
        struct slice other = {text, (size_t)snprintf(text, sizeof(text), "other-%d", i)};
        expect_same(harness_close(harness, 0, other, 1), PRESENCE_OFFLINE);
        expect_same(harness_set_idle(harness, 0, other, 1, true), PRESENCE_OFFLINE);
        assert_false(harness_renew(harness, 0, other, 1));
    }
    assert_int_equal(harness_read(harness, 0, ALICE).status, PRESENCE_ONLINE);
    expect_changed(harness_close(harness, 0, ALICE, 1), PRESENCE_OFFLINE);
}

void state_store_suite_repeated_open_refreshes_the_lease(void **state)
{
    struct harness *harness = *state;
    int64_t window_ms = harness->backend->lease_window_ms;
    harness_open(harness, 0, ALICE, 1, false);
    harness_pass(harness, window_ms / 2);
    expect_same(harness_open(harness, 0, ALICE, 1, false), PRESENCE_ONLINE);
    harness_pass(harness, window_ms * 3 / 4);
    assert_int_equal(harness_reap(harness, 0, 10), 0);
    assert_int_equal(harness_leases(harness, 0, ALICE), 1);
    expect_changed(harness_open(harness, 0, ALICE, 1, true), PRESENCE_AWAY);
    expect_changed(harness_open(harness, 0, ALICE, 1, false), PRESENCE_ONLINE);
    expect_changed(harness_close(harness, 0, ALICE, 1), PRESENCE_OFFLINE);
    assert_int_equal(harness_leases(harness, 0, ALICE), 0);
    expect_changed(harness_open(harness, 0, ALICE, 1, false), PRESENCE_ONLINE);
}

void state_store_suite_read_keeps_the_order_of_users(void **state)
{
    struct harness *harness = *state;
    harness_open(harness, 0, ALICE, 1, false);
    harness_open(harness, 0, BOB, 2, true);
    struct slice users[] = {BOB, SLICE("carol"), ALICE, BOB, SLICE("dave"), ALICE};
    harness_read_many(harness, 1, users, 6);
    const enum presence_status expected[] = {PRESENCE_AWAY, PRESENCE_OFFLINE, PRESENCE_ONLINE,
                                             PRESENCE_AWAY, PRESENCE_OFFLINE, PRESENCE_ONLINE};
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(harness->presences[i].status, expected[i]);
    harness_read_many(harness, 1, NULL, 0);
}

static const struct lease *find_listed_lease(const struct harness *harness, unsigned connection)
{
    struct ulid id = harness_connection(connection);
    for (size_t i = 0; i < harness->count; i++)
        if (ulid_equal(&harness->leases[i].conn_id, &id))
            return &harness->leases[i];
    fail_msg("connection %u is not listed", connection);
    return NULL;
}

void state_store_suite_leases_of_a_user_are_listed(void **state)
{
    struct harness *harness = *state;
    int64_t start_ms = harness_wall_ms(harness);
    harness_open(harness, 0, ALICE, 1, false);
    harness_open(harness, 1, ALICE, 2, true);
    harness_open(harness, 2, BOB, 3, false);
    harness_pass(harness, harness->backend->lease_window_ms / 4);
    assert_true(harness_renew(harness, 1, ALICE, 2));
    int64_t renewed_ms = harness_wall_ms(harness);

    assert_int_equal(harness_leases(harness, 2, ALICE), 2);
    const struct lease *first = find_listed_lease(harness, 1);
    assert_true(slice_equal(first->user_id, ALICE));
    assert_true(slice_is(first->device_id, "device"));
    assert_true(slice_equal(first->gateway_id, harness_gateway(0)));
    assert_int_equal(first->connected_at_ms, ulid_time_ms(&first->conn_id));
    harness_assert_time(harness, first->last_heartbeat_ms, start_ms);
    assert_false(first->idle);
    const struct lease *second = find_listed_lease(harness, 2);
    assert_true(slice_equal(second->gateway_id, harness_gateway(1)));
    harness_assert_time(harness, second->last_heartbeat_ms, renewed_ms);
    assert_true(second->idle);

    harness_close(harness, 0, ALICE, 1);
    assert_int_equal(harness_leases(harness, 0, ALICE), 1);
    find_listed_lease(harness, 2);
}

void state_store_suite_many_leases_are_listed_up_to_the_bound(void **state)
{
    struct harness *harness = *state;
    for (unsigned i = 0; i < STATE_LEASES_MAX + 10; i++)
        harness_open(harness, i % HARNESS_PORTS, ALICE, i, false);
    assert_int_equal(harness_leases(harness, 0, ALICE), STATE_LEASES_MAX);
    for (unsigned i = 0; i < STATE_LEASES_MAX + 9; i++)
        expect_same(harness_close(harness, 0, ALICE, i), PRESENCE_ONLINE);
    expect_changed(harness_close(harness, 0, ALICE, STATE_LEASES_MAX + 9), PRESENCE_OFFLINE);
}

void state_store_suite_lease_is_found_by_its_connection(void **state)
{
    struct harness *harness = *state;
    assert_null(harness_find(harness, 0, 1));
    harness_open(harness, 1, ALICE, 1, true);
    const struct lease *found = harness_find(harness, 0, 1);
    assert_non_null(found);
    assert_true(slice_equal(found->user_id, ALICE));
    assert_true(slice_equal(found->gateway_id, harness_gateway(1)));
    assert_true(slice_is(found->device_id, "device"));
    assert_true(found->idle);
    assert_null(harness_find(harness, 0, 2));
    harness_close(harness, 1, ALICE, 1);
    assert_null(harness_find(harness, 0, 1));
}

static void expect_displaced(struct state_transition made, unsigned connection, size_t port)
{
    struct ulid id = harness_connection(connection);
    assert_true(slice_equal(made.displaced_gateway, harness_gateway(port)));
    assert_true(ulid_equal(&made.displaced, &id));
}

void state_store_suite_lease_refreshed_longest_ago_gives_way(void **state)
{
    struct harness *harness = *state;
    int64_t step_ms = harness->backend->lease_window_ms / 8;
    harness_open_limited(harness, 0, ALICE, 1, 3, 0, 0);
    harness_pass(harness, step_ms);
    harness_open_limited(harness, 1, ALICE, 2, 3, 0, 0);
    harness_pass(harness, step_ms);
    assert_int_equal(harness_open_limited(harness, 2, ALICE, 3, 3, 0, 0).displaced_gateway.len, 0);
    assert_true(harness_renew(harness, 0, ALICE, 1));
    harness_pass(harness, step_ms);
    struct state_transition opened = harness_open_limited(harness, 0, ALICE, 4, 3, 0, 0);
    expect_displaced(opened, 2, 1);
    expect_same(opened, PRESENCE_ONLINE);
    assert_int_equal(harness_leases(harness, 0, ALICE), 3);
    assert_null(harness_find(harness, 0, 2));
    assert_false(harness_renew(harness, 1, ALICE, 2));
    assert_int_equal(harness_routes(harness, 0, &ALICE, 1), 2);
    assert_false(harness_routed(harness, 1, ALICE));
    expect_same(harness_close(harness, 1, ALICE, 2), PRESENCE_ONLINE);
    assert_int_equal(harness_open_limited(harness, 0, ALICE, 4, 3, 0, 0).displaced_gateway.len, 0);
}

void state_store_suite_own_silent_connection_gives_way_instead_of_an_own_lease(void **state)
{
    struct harness *harness = *state;
    harness_open_limited(harness, 0, ALICE, 1, 2, 0, 0);
    harness_pass(harness, harness->backend->lease_window_ms / 8);
    harness_open_limited(harness, 0, ALICE, 2, 2, 0, 0);
    expect_displaced(harness_open_limited(harness, 0, ALICE, 3, 2, 2, 1), 2, 0);
    assert_non_null(harness_find(harness, 0, 1));
    assert_null(harness_find(harness, 0, 2));
}

void state_store_suite_own_silent_connection_gives_way_only_if_it_was_heard_first(void **state)
{
    struct harness *harness = *state;
    int64_t window_ms = harness->backend->lease_window_ms;
    harness_open_limited(harness, 0, ALICE, 1, 2, 0, 0);
    harness_pass(harness, window_ms / 8);
    harness_open_limited(harness, 1, ALICE, 2, 2, 0, 0);
    struct state_transition made = harness_open_limited(harness, 1, ALICE, 3, 2, 2, 0);
    expect_displaced(made, 1, 0);
    made = harness_open_limited(harness, 0, ALICE, 4, 2, 0, 0);
    expect_displaced(made, 2, 1);
    made = harness_open_limited(harness, 1, ALICE, 5, 2, 0, 0);
    expect_displaced(made, 3, 1);
    made = harness_open_limited(harness, 1, ALICE, 6, 2, 5, window_ms / 2);
    expect_displaced(made, 5, 1);
}

void state_store_suite_many_leases_of_a_user_are_counted(void **state)
{
    enum { LEASES = 60 };
    struct harness *harness = *state;
    for (unsigned i = 1; i <= LEASES; i++)
        expect_transition(harness_open(harness, i % 3, ALICE, i, i % 2 == 0), i == 1,
                          PRESENCE_ONLINE);
    for (unsigned i = 1; i <= LEASES; i += 2)
        expect_transition(harness_set_idle(harness, i % 3, ALICE, i, true), i == LEASES - 1,
                          i == LEASES - 1 ? PRESENCE_AWAY : PRESENCE_ONLINE);
    for (unsigned i = 3; i <= LEASES; i += 3)
        expect_same(harness_close(harness, 0, ALICE, i), PRESENCE_AWAY);
    assert_int_equal(harness_routes(harness, 0, &ALICE, 1), 2);
    assert_int_equal(harness_leases(harness, 0, ALICE), LEASES - LEASES / 3);
    harness_pass(harness, harness->backend->lease_window_ms + 1);
    unsigned changes = 0;
    while (harness_reap(harness, 1, 100) > 0)
        for (size_t i = 0; i < harness->count; i++)
            changes += harness->transitions[i].changed;
    assert_int_equal(changes, 1);
    assert_int_equal(harness_read(harness, 0, ALICE).status, PRESENCE_OFFLINE);
    assert_int_equal(harness_routes(harness, 0, &ALICE, 1), 0);
    expect_changed(harness_open(harness, 0, ALICE, 99, false), PRESENCE_ONLINE);
}

void state_store_suite_routes_are_grouped_by_gateway(void **state)
{
    struct harness *harness = *state;
    const struct slice users[] = {SLICE("carol"), ALICE, BOB};
    assert_int_equal(harness_routes(harness, 0, users, 3), 0);
    assert_int_equal(harness_routes(harness, 0, users, 0), 0);
    harness_open(harness, 0, ALICE, 1, false);
    harness_open(harness, 0, ALICE, 2, true); /* listed once for both connections */
    harness_open(harness, 1, ALICE, 3, false);
    harness_open(harness, 1, BOB, 4, true);
    assert_int_equal(harness_routes(harness, 2, users, 3), 3);
    assert_true(harness_routed(harness, 0, ALICE));
    assert_true(harness_routed(harness, 1, ALICE));
    assert_true(harness_routed(harness, 1, BOB));
    harness_close(harness, 0, ALICE, 1);
    assert_int_equal(harness_routes(harness, 2, users, 3), 3);
    harness_close(harness, 0, ALICE, 2);
    assert_int_equal(harness_routes(harness, 2, users, 3), 2);
    assert_false(harness_routed(harness, 0, ALICE));
    assert_int_equal(harness_routes(harness, 2, &users[2], 1), 1);
    assert_true(harness_routed(harness, 1, BOB));
}

void state_store_suite_call_flag_lasts_until_it_is_cleared_or_the_user_is_offline(void **state)
{
    struct harness *harness = *state;
    expect_same(harness_set_call(harness, 0, ALICE, true), PRESENCE_OFFLINE);
    assert_false(harness_read(harness, 0, ALICE).in_call);
    assert_false(harness_open(harness, 0, ALICE, 1, false).presence.in_call);
    expect_changed(harness_set_call(harness, 1, ALICE, true), PRESENCE_ONLINE);
    expect_same(harness_set_call(harness, 0, ALICE, true), PRESENCE_ONLINE);
    assert_true(harness_read(harness, 2, ALICE).in_call);
    assert_true(harness_set_idle(harness, 0, ALICE, 1, true).presence.in_call);
    expect_changed(harness_set_call(harness, 1, ALICE, false), PRESENCE_AWAY);
    expect_same(harness_set_call(harness, 1, ALICE, false), PRESENCE_AWAY);
    expect_changed(harness_set_call(harness, 1, ALICE, true), PRESENCE_AWAY);

    struct state_transition gone = harness_close(harness, 0, ALICE, 1);
    expect_changed(gone, PRESENCE_OFFLINE);
    assert_false(gone.presence.in_call);
    expect_same(harness_set_call(harness, 1, ALICE, false), PRESENCE_OFFLINE);
    assert_false(harness_open(harness, 0, ALICE, 2, false).presence.in_call);
}

static void expect_history(const struct harness *harness, size_t index, const char *cause,
                           enum presence_status status)
{
    assert_true(index < harness->count);
    assert_string_equal(harness->history[index].cause, cause);
    assert_int_equal(harness->history[index].status, status);
    if (index > 0) {
        assert_true(harness->history[index].version > harness->history[index - 1].version);
        assert_true(harness->history[index].at_ms >= harness->history[index - 1].at_ms);
    }
}

void state_store_suite_user_without_a_lease_is_forgotten(void **state)
{
    struct harness *harness = *state;
    harness_open(harness, 0, ALICE, 1, false);
    harness_forget(harness, 1, ALICE);
    assert_int_equal(harness_read(harness, 0, ALICE).status, PRESENCE_ONLINE);
    int64_t version = harness_close(harness, 0, ALICE, 1).presence.version;
    assert_true(harness_read(harness, 1, ALICE).last_seen_ms != TIME_NONE);
    harness_forget(harness, 1, ALICE);
    assert_int_equal(harness_read(harness, 0, ALICE).last_seen_ms, TIME_NONE);
    assert_int_equal(harness_history(harness, 0, ALICE), 0);
    harness_forget(harness, 1, BOB);
    harness_pass(harness,
                 10); /* versions are times: two transitions of one millisecond are one ahead */
    struct state_transition again = harness_open(harness, 0, ALICE, 2, false);
    expect_changed(again, PRESENCE_ONLINE);
    assert_true(again.presence.version > version);
}

void state_store_suite_history_lists_transitions_and_their_causes(void **state)
{
    struct harness *harness = *state;
    assert_int_equal(harness_history(harness, 0, ALICE), 0);
    harness_open(harness, 0, ALICE, 1, false);
    harness_set_idle(harness, 0, ALICE, 1, true);
    harness_set_idle(harness, 0, ALICE, 1, false);
    harness_close(harness, 0, ALICE, 1);
    harness_open(harness, 1, ALICE, 2, false);
    harness_open(harness, 1, BOB, 3, false);
    harness_pass(harness, harness->backend->lease_window_ms + 1);
    assert_int_equal(harness_reap(harness, 0, 10), 2);
    int64_t version = harness_read(harness, 0, ALICE).version;

    assert_int_equal(harness_history(harness, 2, ALICE), 6);
    expect_history(harness, 0, "connected", PRESENCE_ONLINE);
    expect_history(harness, 1, "idle", PRESENCE_AWAY);
    expect_history(harness, 2, "active", PRESENCE_ONLINE);
    expect_history(harness, 3, "disconnected", PRESENCE_OFFLINE);
    expect_history(harness, 4, "connected", PRESENCE_ONLINE);
    expect_history(harness, 5, "expired", PRESENCE_OFFLINE);
    assert_int_equal(harness->history[5].version, version);
    harness_assert_time(harness, harness->history[5].at_ms, harness_wall_ms(harness));
}

void state_store_suite_history_keeps_the_newest_transitions(void **state)
{
    struct harness *harness = *state;
    harness_open(harness, 0, ALICE, 1, false);
    for (int i = 0; i < STATE_HISTORY_MAX * 2; i++)
        harness_set_idle(harness, 0, ALICE, 1, i % 2 == 0);
    int64_t version = harness_read(harness, 0, ALICE).version;
    size_t count = harness_history(harness, 0, ALICE);
    assert_true(count > 0 && count <= STATE_HISTORY_MAX);
    assert_int_equal(harness->history[count - 1].version, version);
    for (size_t i = 1; i < count; i++)
        assert_true(harness->history[i].version > harness->history[i - 1].version);
}

/* These characters separate fields or keys in some backends. */
void state_store_suite_ids_may_have_any_bytes_and_full_length(void **state)
{
    struct harness *harness = *state;
    char longest[USER_ID_BYTES_MAX], almost[USER_ID_BYTES_MAX];
    memset(longest, 'x', sizeof(longest));
    memset(almost, 'x', sizeof(almost));
    almost[USER_ID_BYTES_MAX - 1] = 'y';
    const struct slice ids[] = {
        {longest, sizeof(longest)},
        {almost, sizeof(almost)},
        {longest, sizeof(longest) - 1},
        SLICE("a:b"),
        SLICE("a"),
        SLICE("{a}"),
        SLICE("{a"),
        SLICE("a b"),
        SLICE("a\"b\\"),
        SLICE("*"),
        SLICE("a,b"),
        SLICE("ünïcödé 🙂"),
        SLICE("%s%n"),
        SLICE("0"),
        SLICE("nul\0inside"),
        SLICE("line\r\nbreak"),
    };
    enum { IDS = sizeof(ids) / sizeof(ids[0]) };
    for (unsigned i = 0; i < IDS; i++)
        expect_changed(harness_open(harness, 0, ids[i], i, i % 2),
                       i % 2 ? PRESENCE_AWAY : PRESENCE_ONLINE);
    harness_read_many(harness, 1, ids, IDS);
    for (unsigned i = 0; i < IDS; i++)
        assert_int_equal(harness->presences[i].status, i % 2 ? PRESENCE_AWAY : PRESENCE_ONLINE);
    for (unsigned i = 0; i < IDS; i++) {
        assert_int_equal(harness_leases(harness, 1, ids[i]), 1);
        assert_true(slice_equal(harness->leases[0].user_id, ids[i]));
        assert_true(harness_renew(harness, 0, ids[i], i));
        expect_changed(harness_close(harness, 2, ids[i], i), PRESENCE_OFFLINE);
    }
}

/* The harness checks the versions; here many changes fall into one millisecond. */
void state_store_suite_versions_never_repeat(void **state)
{
    struct harness *harness = *state;
    for (unsigned i = 0; i < 300; i++) {
        size_t port = i % HARNESS_PORTS;
        expect_changed(harness_open(harness, port, ALICE, i, false), PRESENCE_ONLINE);
        expect_changed(harness_set_idle(harness, port, ALICE, i, true), PRESENCE_AWAY);
        expect_changed(harness_close(harness, port, ALICE, i), PRESENCE_OFFLINE);
    }
}
