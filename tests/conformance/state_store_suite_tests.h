/* The tests of the suite, by subject. Their cmocka state is a `struct harness`. */
#ifndef ROLLCALL_TESTS_STATE_STORE_SUITE_TESTS_H
#define ROLLCALL_TESTS_STATE_STORE_SUITE_TESTS_H

#include "conformance/state_store_harness.h"

/* Tests without a grace: the end of the last lease makes its user offline. */
#define STATE_STORE_SUITE_TESTS(X)                                                                 \
    X(first_lease_makes_the_user_online)                                                           \
    X(last_close_makes_the_user_offline)                                                           \
    X(user_is_away_while_all_leases_are_idle)                                                      \
    X(end_of_a_lease_updates_the_status)                                                           \
    X(lease_may_start_idle)                                                                        \
    X(operations_on_a_lease_take_effect_in_order)                                                  \
    X(unknown_lease_changes_nothing)                                                               \
    X(claim_of_a_departure_ends_its_lease)                                                         \
    X(lease_of_another_user_is_unknown)                                                            \
    X(repeated_open_refreshes_the_lease)                                                           \
    X(read_keeps_the_order_of_users)                                                               \
    X(leases_of_a_user_are_listed)                                                                 \
    X(many_leases_are_listed_up_to_the_bound)                                                      \
    X(lease_is_found_by_its_connection)                                                            \
    X(lease_refreshed_longest_ago_gives_way)                                                       \
    X(own_silent_connection_gives_way_instead_of_an_own_lease)                                     \
    X(own_silent_connection_gives_way_only_if_it_was_heard_first)                                  \
    X(many_leases_of_a_user_are_counted)                                                           \
    X(routes_are_grouped_by_gateway)                                                               \
    X(call_flag_lasts_until_it_is_cleared_or_the_user_is_offline)                                  \
    X(user_without_a_lease_is_forgotten)                                                           \
    X(history_lists_transitions_and_their_causes)                                                  \
    X(history_keeps_the_newest_transitions)                                                        \
    X(ids_may_have_any_bytes_and_full_length)                                                      \
    X(versions_never_repeat)                                                                       \
    X(lease_expires_without_renewal)                                                               \
    X(renewal_keeps_a_lease_alive)                                                                 \
    X(batch_of_renewals_reports_lost_leases)                                                       \
    X(each_expired_lease_is_reaped_once)                                                           \
    X(reap_ends_at_most_max_leases)                                                                \
    X(reap_keeps_live_leases)                                                                      \
    X(last_seen_is_the_latest_sign_of_life)                                                        \
    X(gateways_are_listed_for_a_window)                                                            \
    X(many_users_who_are_online_are_listed_in_pages)                                                    \
    X(many_users_are_opened_read_and_reaped)                                                       \
    X(operations_match_a_model)

#define STATE_STORE_SUITE_GRACE_TESTS(X)                                                           \
    X(return_within_the_grace_is_no_transition)                                                    \
    X(return_with_another_idle_flag_is_a_transition)                                               \
    X(end_of_the_grace_makes_the_user_offline)                                                     \
    X(expired_lease_starts_the_grace)                                                              \
    X(operations_match_a_model_with_grace)

#define STATE_STORE_SUITE_DECLARE(name) void state_store_suite_##name(void **state);
STATE_STORE_SUITE_TESTS(STATE_STORE_SUITE_DECLARE)
STATE_STORE_SUITE_GRACE_TESTS(STATE_STORE_SUITE_DECLARE)
#undef STATE_STORE_SUITE_DECLARE

static const struct slice ALICE = {"alice", 5};
static const struct slice BOB = {"bob", 3};

/* Asserts whether the operation changed the user's presence, and the status after it. */
#define expect_changed(transition, wanted) expect_transition(transition, true, wanted)
#define expect_same(transition, wanted) expect_transition(transition, false, wanted)
#define expect_transition(transition, change, wanted)                                              \
    do {                                                                                           \
        struct state_transition made = (transition);                                               \
        assert_int_equal(made.changed, change);                                                    \
        assert_int_equal(made.presence.status, wanted);                                            \
        if (made.presence.status != PRESENCE_OFFLINE)                                              \
            assert_int_equal(made.presence.last_seen_ms, TIME_NONE);                               \
    } while (0)

#endif
