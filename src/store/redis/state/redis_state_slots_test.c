/* Scripts that serve many slots of one server of a cluster: how few there are, and what happens when a slot moves. */
#include "support/state_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SLOTS_TEST_USERS = 48 };

static struct state_pair the_pair;

struct many_renewed {
    struct state_pair *pair;
    unsigned lost, failed;
};

static struct slice user_name(char text[16], unsigned number)
{
    int len = snprintf(text, 16, "user-%u", number);
    return (struct slice){text, (size_t)len};
}

static void on_many_renewed(void *arg, enum state_status status,
                            const struct lease_renewal *renewals, size_t count)
{
    struct many_renewed *renewed = arg;
    renewed->pair->waiting--;
    assert_int_equal(status, STATE_OK);
    for (size_t i = 0; i < count; i++) {
        renewed->lost += renewals[i].lost;
        renewed->failed += renewals[i].failed;
    }
}

static void open_many(struct state_pair *pair)
{
    char name[16];
    for (unsigned i = 0; i < SLOTS_TEST_USERS; i++)
        assert_int_equal(state_pair_open(pair, pair->first, user_name(name, i), i), 1);
}

/* `renewed` is complete when the pair waits no more. */
static void begin_renew_many(struct state_pair *pair, struct many_renewed *renewed)
{
    char names[SLOTS_TEST_USERS][16];
    struct lease_renewal renewals[SLOTS_TEST_USERS];
    *renewed = (struct many_renewed){.pair = pair};
    for (unsigned i = 0; i < SLOTS_TEST_USERS; i++)
        renewals[i] = (struct lease_renewal){.conn_id = state_pair_connection(i),
                                             .user_id = user_name(names[i], i)};
    pair->waiting = 1;
    state_renew(pair->first, renewals, SLOTS_TEST_USERS, on_many_renewed, renewed);
}

static struct many_renewed renew_many(struct state_pair *pair)
{
    struct many_renewed renewed;
    begin_renew_many(pair, &renewed);
    state_pair_await(pair);
    return renewed;
}

/* Returns how many scripts all masters have run. */
static long count_scripts(struct state_pair *pair)
{
    static const char name[] = "cmdstat_evalsha:calls=";
    char reply[REDIS_SERVER_REPLY_MAX];
    long calls = 0;
    for (size_t i = 0; i < REDIS_CLUSTER_MASTERS; i++) {
        redis_server_ask(&pair->fleet.servers[i], reply, "INFO", "commandstats", NULL);
        const char *found = strstr(reply, name);
        calls += found ? strtol(found + strlen(name), NULL, 10) : 0;
    }
    return calls;
}

/* Returns the time to live of a user's key on this server, in ms. */
static long ttl_on(const struct redis_server *server, const char *prefix, unsigned user)
{
    char key[64], reply[REDIS_SERVER_REPLY_MAX];
    snprintf(key, sizeof(key), "%s:{user-%u}", prefix, user);
    redis_server_ask(server, reply, "PTTL", key, NULL);
    return strstr(reply, "MOVED") || strstr(reply, "ASK") ? -3 : strtol(reply, NULL, 10);
}

static void users_of_many_slots_are_renewed_by_a_script_for_each_master(void **state)
{
    struct state_pair *pair = *state;
    open_many(pair);
    renew_many(pair); /* the first time sends the scripts' sources */
    state_pair_pass(pair, STATE_PAIR_WINDOW_MS / 2);
    long before = count_scripts(pair);
    struct many_renewed renewed = renew_many(pair);
    assert_int_equal(renewed.lost + renewed.failed, 0);
    /* and one for the set of the gateway's connections */
    assert_in_range(count_scripts(pair) - before, 1, REDIS_CLUSTER_MASTERS + 1);
    for (unsigned i = 0; i < SLOTS_TEST_USERS; i++) {
        long left_ms = -3;
        for (size_t n = 0; n < REDIS_CLUSTER_MASTERS && left_ms == -3; n++)
            left_ms = ttl_on(&pair->fleet.servers[n], "user_servers", i);
        assert_in_range(left_ms, STATE_PAIR_WINDOW_MS / 2 + 1, STATE_PAIR_WINDOW_MS);
    }
}

static void lease_that_is_gone_is_lost_and_the_others_are_not(void **state)
{
    struct state_pair *pair = *state;
    char reply[REDIS_SERVER_REPLY_MAX];
    open_many(pair);
    for (size_t i = 0; i < REDIS_CLUSTER_MASTERS; i++) {
        redis_server_ask(&pair->fleet.servers[i], reply, "DEL", "user_presence:{user-1}", NULL);
        redis_server_ask(&pair->fleet.servers[i], reply, "DEL", "user_connections:{user-2}", NULL);
    }
    struct many_renewed renewed = renew_many(pair);
    assert_int_equal(renewed.lost, 2);
    assert_int_equal(renewed.failed, 0);
}

/* Returns a master that serves the user's slot, and one that does not. */
static void find_masters_of(struct state_pair *pair, unsigned user, const struct redis_server **has,
                            const struct redis_server **lacks)
{
    for (size_t i = 0; i < REDIS_CLUSTER_MASTERS; i++)
        *(ttl_on(&pair->fleet.servers[i], "user_servers", user) == -3 ? lacks : has) =
            &pair->fleet.servers[i];
}

/* The user is left out by the script of many slots; the script of this slot waits until the slot is at rest again. */
static void user_whose_slot_is_moving_is_renewed_when_it_has_stopped(void **state)
{
    struct state_pair *pair = *state;
    char slot[REDIS_SERVER_REPLY_MAX], from_id[REDIS_SERVER_REPLY_MAX];
    char to_id[REDIS_SERVER_REPLY_MAX];
    const struct redis_server *from = NULL, *to = NULL;
    struct many_renewed renewed;
    open_many(pair);
    renew_many(pair);
    find_masters_of(pair, 7, &from, &to);
    redis_server_ask(from, slot, "CLUSTER", "KEYSLOT", "{user-7}", NULL);
    redis_cluster_id(from, from_id);
    redis_cluster_id(to, to_id);
    redis_server_expect(to, "OK", "CLUSTER", "SETSLOT", slot, "IMPORTING", from_id, NULL);
    redis_server_expect(from, "OK", "CLUSTER", "SETSLOT", slot, "MIGRATING", to_id, NULL);
    begin_renew_many(pair, &renewed);
    state_pair_pass(pair, STATE_PAIR_WINDOW_MS / 3);
    assert_int_equal(pair->waiting, 1);
    redis_server_expect(from, "OK", "CLUSTER", "SETSLOT", slot, "STABLE", NULL);
    redis_server_expect(to, "OK", "CLUSTER", "SETSLOT", slot, "STABLE", NULL);
    state_pair_await(pair);
    assert_int_equal(renewed.lost + renewed.failed, 0);
}

/* The whole slot, without a key in it, has moved: its lease is lost, and those of its old master are renewed. */
static void users_of_the_old_master_are_renewed_when_a_slot_has_moved(void **state)
{
    struct state_pair *pair = *state;
    char slot[REDIS_SERVER_REPLY_MAX], id[REDIS_SERVER_REPLY_MAX];
    const struct redis_server *from = NULL, *to = NULL;
    open_many(pair);
    renew_many(pair);
    find_masters_of(pair, 7, &from, &to);
    redis_server_ask(from, slot, "CLUSTER", "KEYSLOT", "{user-7}", NULL);
    redis_cluster_id(to, id);
    redis_server_expect(to, "OK", "CLUSTER", "SETSLOT", slot, "NODE", id, NULL);
    redis_server_ask(from, slot, "FLUSHALL", NULL); /* a slot with keys is not given away */
    redis_server_ask(from, slot, "CLUSTER", "KEYSLOT", "{user-7}", NULL);
    redis_server_expect(from, "OK", "CLUSTER", "SETSLOT", slot, "NODE", id, NULL);
    unsigned on_from = 0;
    for (unsigned i = 0; i < SLOTS_TEST_USERS; i++)
        on_from += ttl_on(from, "user_servers", i) != -3;
    struct many_renewed renewed = renew_many(pair);
    assert_int_equal(renewed.failed, 0);
    assert_int_equal(renewed.lost, on_from + 1);
}

struct reaped_count {
    struct state_pair *pair;
    size_t count;
};

static void on_reaped(void *arg, enum state_status status,
                      const struct state_transition *transitions, size_t count)
{
    struct reaped_count *reaped = arg;
    (void)transitions;
    assert_int_equal(status, STATE_OK);
    reaped->pair->waiting--;
    reaped->count += count;
}

/* No store has claimed an id, so each pass looks at all 16,384 shards, whose bits were lost with the data. */
static void pass_over_all_shards_is_few_scripts_and_finds_what_is_due(void **state)
{
    struct state_pair *pair = *state;
    struct reaped_count reaped = {.pair = pair};
    char reply[REDIS_SERVER_REPLY_MAX];
    open_many(pair);
    for (size_t i = 0; i < REDIS_CLUSTER_MASTERS; i++)
        redis_server_ask(&pair->fleet.servers[i], reply, "DEL", "presence:shards", NULL);
    long before = count_scripts(pair);
    for (int64_t waited_ms = 0; reaped.count < SLOTS_TEST_USERS; waited_ms += 500) {
        assert_true(waited_ms < STATE_PAIR_PATIENCE_MS);
        state_pair_pass(pair, 500);
        pair->waiting = 1;
        state_reap(pair->second, SLOTS_TEST_USERS, on_reaped, &reaped);
        state_pair_await(pair);
    }
    assert_int_equal(reaped.count, SLOTS_TEST_USERS);
    assert_in_range(count_scripts(pair) - before, SLOTS_TEST_USERS / 2, 16384 / 2);
}

#define TEST(name) STATE_PAIR_TEST(name, &the_pair)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(users_of_many_slots_are_renewed_by_a_script_for_each_master),
        TEST(lease_that_is_gone_is_lost_and_the_others_are_not),
        TEST(user_whose_slot_is_moving_is_renewed_when_it_has_stopped),
        TEST(pass_over_all_shards_is_few_scripts_and_finds_what_is_due),
        TEST(users_of_the_old_master_are_renewed_when_a_slot_has_moved),
    };
    redis_fleet_open(&the_pair.fleet, true);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    redis_fleet_close(&the_pair.fleet);
    return failed;
}
