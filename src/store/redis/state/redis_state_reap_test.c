/* Reaping when a gateway or a part of Redis fails, on a single server and on a cluster. */
#include "support/state_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum {
    USERS = 24,
    UNTOLD_MS = 3000, /* reap.lua: after this another reaper tells */
    TURN_MS = 100,
    TURNS_MAX = 300,
    GRACE_MS = 700,
};

static struct state_pair the_pair;

/* ---- what reapers got ---- */

struct reaped {
    struct state_pair *pair;
    unsigned offline[USERS]; /* for each number how often "user-<number>" went offline */
    int64_t versions[USERS];
};

static struct slice user_name(char text[16], unsigned number)
{
    return (struct slice){text, (size_t)snprintf(text, 16, "user-%u", number)};
}

static void on_reaped(void *arg, enum state_status status,
                      const struct state_transition *transitions, size_t count)
{
    struct reaped *reaped = arg;
    (void)status;
    reaped->pair->waiting--;
    for (size_t i = 0; i < count; i++) {
        char text[16] = {0};
        const struct presence *presence = &transitions[i].presence;
        if (!transitions[i].changed)
            continue;
        memcpy(text, presence->user_id.data, presence->user_id.len);
        unsigned number = (unsigned)strtoul(text + sizeof("user-") - 1, NULL, 10);
        assert_int_equal(presence->status, PRESENCE_OFFLINE);
        reaped->offline[number]++;
        reaped->versions[number] = presence->version;
    }
}

static void reap_into(struct reaped *reaped, struct state_store *store)
{
    reaped->pair->waiting = 1;
    state_reap(store, 100, on_reaped, reaped);
    state_pair_await(reaped->pair);
}

static unsigned count_offline(const struct reaped *reaped)
{
    unsigned count = 0;
    for (unsigned i = 0; i < USERS; i++)
        count += reaped->offline[i] > 0;
    return count;
}

static void open_users(struct state_pair *pair, struct state_store *store)
{
    char text[16];
    for (unsigned i = 0; i < USERS; i++)
        assert_int_equal(state_pair_open(pair, store, user_name(text, i), i), 1);
}

/* ---- nobody was told ---- */

static void transitions_of_a_reaper_that_dies_are_told_by_another(void **state)
{
    struct state_pair *pair = *state;
    struct reaped by_second = {.pair = pair}, by_first = {.pair = pair};
    open_users(pair, pair->first);
    state_pair_pass(pair, STATE_PAIR_WINDOW_MS + 200);
    while (count_offline(&by_second) < USERS)
        reap_into(&by_second, pair->second);
    /* The second gateway dies now: it says of its last pass no more that it was told. */
    struct state_store *third = state_pair_make(pair, 0, "gw-3");
    state_pair_pass(pair, UNTOLD_MS);
    for (int turn = 0; turn < TURNS_MAX && count_offline(&by_first) == 0; turn++) {
        state_pair_pass(pair, TURN_MS);
        reap_into(&by_first, third);
    }
    assert_true(count_offline(&by_first) > 0);
    for (unsigned i = 0; i < USERS; i++)
        if (by_first.offline[i])
            assert_int_equal(by_first.versions[i], by_second.versions[i]);
    state_store_free(&third);
}

static void told_transitions_are_not_told_again(void **state)
{
    struct state_pair *pair = *state;
    struct reaped reaped = {.pair = pair};
    open_users(pair, pair->first);
    state_pair_pass(pair, STATE_PAIR_WINDOW_MS + 200);
    while (count_offline(&reaped) < USERS)
        reap_into(&reaped, pair->second);
    reap_into(&reaped, pair->second); /* says that the last ones were told */
    state_pair_pass(pair, UNTOLD_MS + 500);
    reap_into(&reaped, pair->first);
    reap_into(&reaped, pair->second);
    for (unsigned i = 0; i < USERS; i++)
        assert_int_equal(reaped.offline[i], 1);
}

/* ---- one master of a cluster ---- */

/* Users of the bad master may be reaped too, after a failover. */
static void one_bad_master_does_not_stop_reaping_elsewhere(void **state)
{
    struct state_pair *pair = *state;
    struct reaped reaped = {.pair = pair};
    bool is_elsewhere[USERS];
    unsigned elsewhere = 0, ended = 0;
    open_users(pair, pair->first);
    for (unsigned i = 0; i < USERS; i++) {
        char key[64], reply[REDIS_SERVER_REPLY_MAX];
        snprintf(key, sizeof(key), "user_presence:{user-%u}", i);
        redis_server_ask(&pair->fleet.servers[0], reply, "EXISTS", key, NULL);
        is_elsewhere[i] = strcmp(reply, "1") != 0;
        elsewhere += is_elsewhere[i];
    }
    assert_true(elsewhere > 0 && elsewhere < USERS);
    redis_server_pause(&pair->fleet.servers[0]);
    for (int turn = 0; turn < TURNS_MAX && ended < elsewhere; turn++) {
        state_pair_pass(pair, TURN_MS);
        reap_into(&reaped, pair->second);
        ended = 0;
        for (unsigned i = 0; i < USERS; i++)
            ended += is_elsewhere[i] && reaped.offline[i] > 0;
    }
    assert_int_equal(ended, elsewhere);
    redis_server_resume(&pair->fleet.servers[0]);
    state_pair_await_that(pair, state_pair_is_available);
}

static void on_renewals(void *arg, enum state_status status, const struct lease_renewal *renewals,
                        size_t count)
{
    struct state_pair *pair = arg;
    assert_int_equal(status, STATE_OK);
    pair->waiting--;
    pair->forgotten = 0;
    for (size_t i = 0; i < count; i++)
        pair->forgotten += renewals[i].lost ? 1U << i : 0;
}

static void on_online_counted(void *arg, enum state_status status, size_t count)
{
    struct state_pair *pair = arg;
    assert_int_equal(status, STATE_OK);
    pair->waiting--;
    pair->fenced = (unsigned)count;
}

static unsigned count_online(struct state_pair *pair)
{
    pair->waiting = 1;
    state_count_online(pair->second, on_online_counted, pair);
    state_pair_await(pair);
    return pair->fenced;
}

static void online_sets_of_an_emptied_master_are_restored_by_renewals(void **state)
{
    struct state_pair *pair = *state;
    struct lease_renewal renewals[USERS];
    char texts[USERS][16];
    for (size_t master = 0; master < REDIS_CLUSTER_MASTERS; master++) {
        for (unsigned i = 0; i < USERS; i++) {
            assert_true(state_pair_open(pair, pair->first, user_name(texts[i], i), i) >= 0);
            renewals[i] = (struct lease_renewal){.conn_id = state_pair_connection(i),
                                                 .user_id = user_name(texts[i], i)};
        }
        assert_int_equal(count_online(pair), USERS);
        redis_server_expect(&pair->fleet.servers[master], "OK", "FLUSHALL", NULL);
        assert_true(count_online(pair) < USERS);
        pair->waiting = 1;
        state_renew(pair->first, renewals, USERS, on_renewals, pair);
        state_pair_await(pair);
        unsigned lost = pair->forgotten;
        for (unsigned i = 0; i < USERS; i++)
            if (lost & 1U << i)
                assert_int_equal(state_pair_open_again(pair, pair->first, renewals[i].user_id, i),
                                 0);
        assert_int_equal(count_online(pair), USERS);
    }
}

static struct state_store *make_store_with_grace(struct state_pair *pair, size_t client)
{
    struct worker_loop *worker = &pair->fleet.worker;
    return redis_state_make(&(struct redis_state_options){
        .client = pair->fleet.clients[client],
        .loop = &worker->loop,
        .random = &worker->random,
        .metrics = &worker->metrics,
        .gateway_id = client ? SLICE("gw-8") : SLICE("gw-9"),
        .lease_window_ms = STATE_PAIR_WINDOW_MS,
        .offline_grace_ms = GRACE_MS,
    });
}

/* A user whose record is still there must not stay online because the end of the grace was elsewhere. */
static void graces_end_on_the_masters_that_keep_their_data(void **state)
{
    struct state_pair *pair = *state;
    char text[16];
    for (size_t master = 0; master < REDIS_CLUSTER_MASTERS; master++) {
        struct reaped reaped = {.pair = pair};
        struct state_store *leaving = make_store_with_grace(pair, 0);
        struct state_store *reaping = make_store_with_grace(pair, 1);
        redis_fleet_empty(&pair->fleet);
        for (unsigned i = 0; i < USERS; i++) {
            assert_int_equal(state_pair_open(pair, leaving, user_name(text, i), i), 1);
            assert_int_equal(state_pair_close(pair, leaving, user_name(text, i), i), 0);
        }
        redis_server_expect(&pair->fleet.servers[master], "OK", "FLUSHALL", NULL);
        unsigned kept = 0;
        for (unsigned i = 0; i < USERS; i++) {
            char key[64];
            int len = snprintf(key, sizeof(key), "user_presence:{user-%u}", i);
            struct slice record = {key, (size_t)len};
            kept +=
                strcmp(redis_fleet_ask(&pair->fleet, record, REDIS_ARGS(SLICE("EXISTS"), record)),
                       "1") == 0;
        }
        assert_true(kept > 0 && kept < USERS);
        for (int turn = 0; turn < TURNS_MAX && count_offline(&reaped) < kept; turn++) {
            state_pair_pass(pair, TURN_MS);
            reap_into(&reaped, reaping);
        }
        assert_int_equal(count_offline(&reaped), kept);
        state_store_free(&leaving);
        state_store_free(&reaping);
        redis_fleet_settle(&pair->fleet, 3);
    }
}

#define TEST(name) STATE_PAIR_TEST(name, &the_pair)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(transitions_of_a_reaper_that_dies_are_told_by_another),
        TEST(told_transitions_are_not_told_again),
    };
    const struct CMUnitTest cluster_tests[] = {
        TEST(transitions_of_a_reaper_that_dies_are_told_by_another),
        TEST(told_transitions_are_not_told_again),
        TEST(online_sets_of_an_emptied_master_are_restored_by_renewals),
        TEST(graces_end_on_the_masters_that_keep_their_data),
        TEST(one_bad_master_does_not_stop_reaping_elsewhere),
    };
    redis_fleet_open(&the_pair.fleet, false);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    redis_fleet_close(&the_pair.fleet);
    redis_fleet_open(&the_pair.fleet, true);
    failed += cmocka_run_group_tests(cluster_tests, NULL, NULL);
    redis_fleet_close(&the_pair.fleet);
    return failed;
}
