/* The conformance of expiry, reaping, the grace and gateways. */
#include "conformance/state_store_suite_tests.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static int64_t window_ms(const struct harness *harness)
{
    return harness->backend->lease_window_ms;
}

/* Reaps, and returns the only transition, which must be this user's. */
static struct state_transition reap_one(struct harness *harness, size_t port, struct slice user)
{
    assert_int_equal(harness_reap(harness, port, 100), 1);
    assert_true(slice_equal(harness->transitions[0].presence.user_id, user));
    return harness->transitions[0];
}

void state_store_suite_lease_expires_without_renewal(void **state)
{
    struct harness *harness = *state;
    int64_t opened_ms = harness_wall_ms(harness);
    harness_open(harness, 0, ALICE, 1, false);
    harness_pass(harness, window_ms(harness) / 2);
    assert_int_equal(harness_reap(harness, 1, 100), 0);
    harness_pass(harness, window_ms(harness));
    struct state_transition gone = reap_one(harness, 1, ALICE);
    expect_changed(gone, PRESENCE_OFFLINE);
    harness_assert_time(harness, gone.presence.last_seen_ms, opened_ms);
    assert_int_equal(harness_read(harness, 0, ALICE).last_seen_ms, gone.presence.last_seen_ms);
    assert_int_equal(harness_leases(harness, 0, ALICE), 0);
    assert_false(harness_renew(harness, 0, ALICE, 1));
    expect_changed(harness_open(harness, 0, ALICE, 1, false), PRESENCE_ONLINE);
}

void state_store_suite_renewal_keeps_a_lease_alive(void **state)
{
    struct harness *harness = *state;
    int64_t renewed_ms = 0;
    harness_open(harness, 0, ALICE, 1, false);
    for (int i = 0; i < 5; i++) {
        harness_pass(harness, window_ms(harness) * 3 / 5);
        assert_int_equal(harness_reap(harness, 1, 100), 0);
        renewed_ms = harness_wall_ms(harness);
        assert_true(harness_renew(harness, 0, ALICE, 1));
    }
    assert_int_equal(harness_read(harness, 1, ALICE).status, PRESENCE_ONLINE);
    harness_pass(harness, window_ms(harness) + 1);
    struct state_transition gone = reap_one(harness, 0, ALICE);
    expect_changed(gone, PRESENCE_OFFLINE);
    harness_assert_time(harness, gone.presence.last_seen_ms, renewed_ms);
}

void state_store_suite_batch_of_renewals_reports_lost_leases(void **state)
{
    enum { LEASES = 100 };
    struct harness *harness = *state;
    struct lease_renewal renewals[LEASES];
    for (unsigned i = 0; i < LEASES; i++) {
        struct slice user = i % 2 ? ALICE : BOB;
        if (i % 3)
            harness_open(harness, 0, user, i, false);
        renewals[i] = (struct lease_renewal){harness_connection(i), user, harness_wall_ms(harness),
                                             i % 5 == 0};
    }
    harness_renew_many(harness, 0, renewals, LEASES);
    for (unsigned i = 0; i < LEASES; i++)
        assert_int_equal(renewals[i].lost, i % 3 == 0);
    harness_renew_many(harness, 0, renewals, 0);
}

/* Two gateways reap alternately: together they get each expiry once. */
void state_store_suite_each_expired_lease_is_reaped_once(void **state)
{
    enum { USERS = 100 };
    struct harness *harness = *state;
    unsigned times[USERS] = {0};
    for (unsigned i = 0; i < USERS; i++) {
        char text[16];
        struct slice user = {text, (size_t)snprintf(text, sizeof(text), "user-%u", i)};
        harness_open(harness, i % HARNESS_PORTS, user, i, false);
    }
    harness_pass(harness, window_ms(harness) + 1);
    for (size_t round = 0, empty = 0; empty < 2; round++) {
        size_t count = harness_reap(harness, round % 2, 7);
        empty = count ? 0 : empty + 1;
        for (size_t i = 0; i < count; i++) {
            char text[16] = {0};
            struct slice user = harness->transitions[i].presence.user_id;
            expect_changed(harness->transitions[i], PRESENCE_OFFLINE);
            memcpy(text, user.data, user.len);
            times[strtoul(text + 5, NULL, 10)]++;
        }
    }
    for (unsigned i = 0; i < USERS; i++)
        assert_int_equal(times[i], 1);
}

void state_store_suite_reap_ends_at_most_max_leases(void **state)
{
    enum { LEASES = 30 };
    struct harness *harness = *state;
    for (unsigned i = 0; i < LEASES; i++)
        harness_open(harness, 0, i % 2 ? ALICE : BOB, i, false);
    harness_pass(harness, window_ms(harness) + 1);
    assert_int_equal(harness_reap(harness, 0, 0), 0);
    size_t reaped_in_all = 0, changes = 0;
    while (reaped_in_all < LEASES) {
        size_t count = harness_reap(harness, 0, 4); /* the harness checks the bound */
        assert_true(count > 0);
        reaped_in_all += count;
        for (size_t i = 0; i < count; i++)
            changes += harness->transitions[i].changed;
    }
    assert_int_equal(reaped_in_all, LEASES);
    assert_int_equal(changes, 2);
    assert_int_equal(harness_reap(harness, 0, 4), 0);
}

void state_store_suite_reap_keeps_live_leases(void **state)
{
    struct harness *harness = *state;
    harness_open(harness, 0, ALICE, 1, false);
    harness_open(harness, 0, ALICE, 2, true);
    harness_open(harness, 0, BOB, 3, false);
    harness_open(harness, 0, BOB, 4, false);
    harness_pass(harness, window_ms(harness) * 3 / 5);
    assert_true(harness_renew(harness, 0, ALICE, 2));
    assert_true(harness_renew(harness, 0, BOB, 4));
    harness_pass(harness, window_ms(harness) * 3 / 5);
    assert_int_equal(harness_reap(harness, 1, 100), 2);
    for (size_t i = 0; i < 2; i++) {
        bool is_alice = slice_equal(harness->transitions[i].presence.user_id, ALICE);
        expect_transition(harness->transitions[i], is_alice,
                          is_alice ? PRESENCE_AWAY : PRESENCE_ONLINE);
    }
    assert_int_equal(harness_leases(harness, 0, ALICE), 1);
    assert_int_equal(harness_leases(harness, 0, BOB), 1);
}

/* With several leases, the last refresh or close of any of them counts. */
void state_store_suite_last_seen_is_the_latest_sign_of_life(void **state)
{
    struct harness *harness = *state;
    harness_open(harness, 0, ALICE, 1, false);
    harness_pass(harness, window_ms(harness) / 4);
    harness_open(harness, 1, ALICE, 2, false);
    int64_t closed_ms = harness_wall_ms(harness);
    harness_close(harness, 1, ALICE, 2);
    harness_pass(harness, window_ms(harness));
    struct state_transition gone = reap_one(harness, 0, ALICE);
    expect_changed(gone, PRESENCE_OFFLINE);
    harness_assert_time(harness, gone.presence.last_seen_ms, closed_ms);
}

static const struct gateway_info *find_listed_gateway(const struct harness *harness,
                                                      struct slice id)
{
    for (size_t i = 0; i < harness->count; i++)
        if (slice_equal(harness->gateways[i].gateway_id, id))
            return &harness->gateways[i];
    return NULL;
}

void state_store_suite_gateways_are_listed_for_a_window(void **state)
{
    struct harness *harness = *state;
    char longest[GATEWAY_ID_BYTES_MAX];
    memset(longest, 'g', sizeof(longest));
    struct slice second = {longest, sizeof(longest)};
    assert_int_equal(harness_gateways(harness, 0), 0);
    harness_open(harness, 2, ALICE, 1, false); /* a lease alone does not list its gateway */
    assert_int_equal(harness_gateways(harness, 0), 0);

    harness_put_gateway(harness, 0, (struct gateway_info){harness_gateway(0), 12, 1700, false});
    harness_put_gateway(harness, 1, (struct gateway_info){second, 0, 1800, true});
    assert_int_equal(harness_gateways(harness, 2), 2);
    const struct gateway_info *info = find_listed_gateway(harness, harness_gateway(0));
    assert_non_null(info);
    assert_int_equal(info->connections, 12);
    assert_int_equal(info->started_at_ms, 1700);
    assert_false(info->draining);
    assert_true(find_listed_gateway(harness, second)->draining);

    harness_pass(harness, window_ms(harness) * 3 / 5);
    harness_put_gateway(harness, 0, (struct gateway_info){harness_gateway(0), 13, 1700, true});
    assert_int_equal(harness_gateways(harness, 1), 2);
    assert_int_equal(find_listed_gateway(harness, harness_gateway(0))->connections, 13);
    harness_pass(harness, window_ms(harness) * 3 / 5);
    assert_int_equal(harness_gateways(harness, 1), 1);
    assert_true(find_listed_gateway(harness, harness_gateway(0))->draining);
    harness_pass(harness, window_ms(harness));
    assert_int_equal(harness_gateways(harness, 1), 0);
    harness_put_gateway(harness, 1, (struct gateway_info){second, 5, 1900, false});
    assert_int_equal(harness_gateways(harness, 0), 1);
}

static struct slice write_user_id(char text[16], unsigned number)
{
    return (struct slice){text, (size_t)snprintf(text, 16, "user-%u", number)};
}

/* Lists all pages; counts each user by number. Returns how many pages there were. */
static unsigned list_online_pages(struct harness *harness, size_t limit, unsigned *seen)
{
    char place[STATE_ONLINE_NEXT_MAX];
    struct slice after = SLICE_NONE;
    unsigned pages = 0;
    do {
        size_t count = harness_online(harness, pages % HARNESS_PORTS, after, limit);
        for (size_t i = 0; i < count; i++) {
            unsigned number;
            char text[16] = {0};
            assert_true(harness->online[i].len < sizeof(text));
            memcpy(text, harness->online[i].data, harness->online[i].len);
            assert_int_equal(sscanf(text, "user-%u", &number), 1);
            seen[number]++;
        }
        after = harness->next;
        if (after.len)
            after.data = memcpy(place, after.data, after.len);
        assert_true(++pages < 1000);
    } while (after.len);
    return pages;
}

void state_store_suite_many_users_who_are_online_are_listed_in_pages(void **state)
{
    enum { USERS = 400 };
    struct harness *harness = *state;
    static const size_t limits[] = {1, 7, 100, HARNESS_ANSWERS_MAX};
    char text[16];
    assert_int_equal(harness_online(harness, 0, SLICE_NONE, 10), 0);
    assert_int_equal(harness->next.len, 0);
    assert_int_equal(harness_count_online(harness, 0), 0);
    for (unsigned few = 20, i = 0; few <= USERS; few = few == 20 ? USERS : USERS + 1) {
        for (; i < few; i++)
            harness_open(harness, i % HARNESS_PORTS, write_user_id(text, i), i, i % 3 == 0);
        for (size_t limit = few == 20 ? 0 : 1; limit < 4; limit++) {
            unsigned seen[USERS] = {0};
            list_online_pages(harness, limits[limit], seen);
            for (unsigned user = 0; user < few; user++)
                assert_int_equal(seen[user], 1);
        }
        assert_int_equal(harness_count_online(harness, 1), few);
    }
    unsigned seen[USERS] = {0};
    for (unsigned i = 0; i < USERS; i += 2)
        harness_close(harness, i % HARNESS_PORTS, write_user_id(text, i), i);
    list_online_pages(harness, 50, seen);
    for (unsigned user = 0; user < USERS; user++)
        assert_int_equal(seen[user], user % 2);
    assert_int_equal(harness_count_online(harness, 2), USERS / 2);
}

void state_store_suite_many_users_are_opened_read_and_reaped(void **state)
{
    enum { BATCH = 250 };
    struct harness *harness = *state;
    /* In real time no more users than can be opened and closed within a window. */
    const unsigned total = harness->backend->tolerance_ms ? 2000 : 10000;
    char text[BATCH][16];
    struct slice users[BATCH];
    for (unsigned i = 0; i < total; i++)
        expect_changed(
            harness_open(harness, i % HARNESS_PORTS, write_user_id(text[0], i), i, false),
            PRESENCE_ONLINE);
    for (unsigned i = 0; i < total; i += 2)
        expect_changed(harness_close(harness, i % HARNESS_PORTS, write_user_id(text[0], i), i),
                       PRESENCE_OFFLINE);
    for (unsigned from = 0; from < total; from += BATCH) {
        for (unsigned i = 0; i < BATCH; i++)
            users[i] = write_user_id(text[i], from + i);
        harness_read_many(harness, 0, users, BATCH);
        for (unsigned i = 0; i < BATCH; i++)
            assert_int_equal(harness->presences[i].status,
                             (from + i) % 2 ? PRESENCE_ONLINE : PRESENCE_OFFLINE);
    }
    harness_pass(harness, window_ms(harness) + 1);
    size_t gone = 0;
    for (size_t count = 1; count > 0; gone += count)
        count = harness_reap(harness, 1, BATCH);
    assert_int_equal(gone, total / 2);
}

/* ---- grace ---- */

void state_store_suite_return_within_the_grace_is_no_transition(void **state)
{
    struct harness *harness = *state;
    int64_t grace_ms = harness->backend->offline_grace_ms;
    harness_open(harness, 0, ALICE, 1, false);
    for (unsigned i = 1; i < 4; i++) {
        expect_same(harness_close(harness, 0, ALICE, i), PRESENCE_ONLINE);
        assert_int_equal(harness_read(harness, 1, ALICE).status, PRESENCE_ONLINE);
        assert_int_equal(harness_leases(harness, 1, ALICE), 0);
        harness_pass(harness, grace_ms * 3 / 5);
        assert_int_equal(harness_reap(harness, 1, 10), 0);
        expect_same(harness_open(harness, 1, ALICE, i + 1, false), PRESENCE_ONLINE);
        harness_pass(harness, grace_ms * 3 / 5);
        assert_int_equal(harness_reap(harness, 1, 10), 0);
    }
}

void state_store_suite_return_with_another_idle_flag_is_a_transition(void **state)
{
    struct harness *harness = *state;
    harness_open(harness, 0, ALICE, 1, true);
    expect_same(harness_close(harness, 0, ALICE, 1), PRESENCE_AWAY);
    expect_changed(harness_open(harness, 0, ALICE, 2, false), PRESENCE_ONLINE);
    expect_same(harness_close(harness, 0, ALICE, 2), PRESENCE_ONLINE);
    expect_changed(harness_open(harness, 0, ALICE, 3, true), PRESENCE_AWAY);
}

void state_store_suite_end_of_the_grace_makes_the_user_offline(void **state)
{
    struct harness *harness = *state;
    harness_open(harness, 0, ALICE, 1, false);
    harness_open(harness, 1, ALICE, 2, false);
    expect_same(harness_close(harness, 0, ALICE, 1), PRESENCE_ONLINE);
    harness_pass(harness, harness->backend->offline_grace_ms / 4);
    int64_t closed_ms = harness_wall_ms(harness);
    expect_same(harness_close(harness, 1, ALICE, 2), PRESENCE_ONLINE);
    harness_pass(harness, harness->backend->offline_grace_ms + 1);
    struct state_transition gone = reap_one(harness, 2, ALICE);
    expect_changed(gone, PRESENCE_OFFLINE);
    harness_assert_time(harness, gone.presence.last_seen_ms, closed_ms);
    assert_int_equal(harness_reap(harness, 1, 10), 0);
    size_t count = harness_history(harness, 0, ALICE);
    assert_int_equal(count, 2);
    assert_string_equal(harness->history[1].cause, "grace over");
    expect_changed(harness_open(harness, 0, ALICE, 3, false), PRESENCE_ONLINE);
}

void state_store_suite_expired_lease_starts_the_grace(void **state)
{
    struct harness *harness = *state;
    int64_t opened_ms = harness_wall_ms(harness);
    harness_open(harness, 0, ALICE, 1, false);
    harness_pass(harness, window_ms(harness) + 1);
    expect_same(reap_one(harness, 0, ALICE), PRESENCE_ONLINE);
    assert_int_equal(harness_reap(harness, 0, 10), 0);
    harness_pass(harness, harness->backend->offline_grace_ms + 1);
    struct state_transition gone = reap_one(harness, 1, ALICE);
    expect_changed(gone, PRESENCE_OFFLINE);
    harness_assert_time(harness, gone.presence.last_seen_ms, opened_ms);
}
