/* The suite's tests, by subject. Each gets a `struct harness` as its cmocka state. */
#ifndef ROLLCALL_TESTS_STATE_STORE_SUITE_TESTS_H
#define ROLLCALL_TESTS_STATE_STORE_SUITE_TESTS_H

#include "conformance/state_store_harness.h"

/* Without a grace: the last lease that ends makes its user offline. */
#define STATE_STORE_SUITE_TESTS(X)                                                                 \
    X(first_lease_makes_online)                                                                    \
    X(last_close_makes_offline)                                                                    \
    X(idle_leases_merge_to_away)                                                                   \
    X(ending_leases_merge_anew)                                                                    \
    X(a_lease_may_start_idle)                                                                      \
    X(calls_of_a_lease_keep_their_order)                                                           \
    X(unknown_leases_change_nothing)                                                               \
    X(leases_of_others_are_unknown)                                                                \
    X(opening_again_refreshes)                                                                     \
    X(reading_keeps_the_order)                                                                     \
    X(leases_are_listed)                                                                           \
    X(many_leases_are_listed_up_to_a_bound)                                                        \
    X(a_lease_is_found_by_its_connection)                                                          \
    X(routes_are_grouped_by_gateway)                                                               \
    X(a_call_lasts_until_its_end_or_offline)                                                       \
    X(history_tells_what_happened)                                                                 \
    X(history_keeps_the_newest)                                                                    \
    X(ids_are_bytes)                                                                               \
    X(versions_never_repeat)                                                                       \
    X(silence_expires)                                                                             \
    X(renewing_keeps_alive)                                                                        \
    X(renewals_come_in_batches)                                                                    \
    X(each_expiry_is_reaped_once)                                                                  \
    X(reaping_is_bounded)                                                                          \
    X(reaping_leaves_the_living)                                                                   \
    X(last_seen_is_the_latest_sign_of_life)                                                        \
    X(gateways_live_for_a_window)                                                                  \
    X(many_users)                                                                                  \
    X(operations_follow_a_model)

#define STATE_STORE_SUITE_GRACE_TESTS(X)                                                           \
    X(coming_back_within_the_grace_is_not_seen)                                                    \
    X(coming_back_idle_is_seen)                                                                    \
    X(grace_ends_offline)                                                                          \
    X(grace_follows_expiry)                                                                        \
    X(operations_follow_a_model_with_grace)

#define STATE_STORE_SUITE_DECLARE(name) void state_store_suite_##name(void **state);
STATE_STORE_SUITE_TESTS(STATE_STORE_SUITE_DECLARE)
STATE_STORE_SUITE_GRACE_TESTS(STATE_STORE_SUITE_DECLARE)
#undef STATE_STORE_SUITE_DECLARE

static const struct slice ALICE = {"alice", 5};
static const struct slice BOB = {"bob", 3};

/* Whether the operation changed the user's presence, and to what. */
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
