/* A client against a real cluster: every key where it is, while slots move and masters fail. */
#include "redis/redis_client.h"

#include "redis/redis_request.h"
#include "support/redis_asker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { FAILOVER_MS = 15000 };

static void fill(struct redis_asker *asker, unsigned keys)
{
    char line[64];
    for (unsigned i = 0; i < keys; i++) {
        snprintf(line, sizeof(line), "SET key-%u %u", i, i);
        redis_asker_start(asker, line);
    }
    redis_asker_await_answers(asker);
}

static void every_key_finds_its_server(void **state)
{
    struct redis_asker *asker = *state;
    char reply[REDIS_SERVER_REPLY_MAX];
    long keys = 0;
    redis_asker_open_cluster(asker);
    worker_loop_run(&asker->worker, 500);
    assert_true(redis_is_cluster(asker->client));
    assert_int_equal(redis_master_count(asker->client), REDIS_CLUSTER_MASTERS);
    assert_int_equal(redis_client_problem(asker->client), REDIS_FINE);
    fill(asker, 3000);
    assert_int_equal(asker->errors + asker->without_reply, 0);
    assert_string_equal(redis_asker_ask(asker, "GET key-2999"), "2999");
    for (int i = 0; i < REDIS_CLUSTER_MASTERS; i++) {
        redis_server_ask(&asker->cluster[i], reply, "DBSIZE", NULL);
        assert_true(strtol(reply, NULL, 10) > 700);
        keys += strtol(reply, NULL, 10);
    }
    assert_int_equal(keys, 3000);
}

static void scripts_run_where_their_keys_are(void **state)
{
    struct redis_asker *asker = *state;
    struct redis_script script;
    char key[32];
    assert_true(redis_script_init(&script, SLICE("redis.call('SET', KEYS[1], ARGV[1]) return "
                                                 "redis.call('GET', KEYS[1])")));
    redis_asker_open_cluster(asker);
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof(key), "{script-%d}", i);
        assert_string_equal(redis_asker_eval(asker, &script, key, key), key);
    }
}

/* ---- the table is fetched again and again ---- */

static unsigned told_moved;

static void count_moved(struct redis_observer *listener)
{
    (void)listener;
    told_moved++;
}

static bool is_fetching(void *arg)
{
    return redis_client_cluster(((struct redis_asker *)arg)->client)->refreshing;
}

static bool is_not_fetching(void *arg)
{
    return !is_fetching(arg);
}

static void a_table_that_is_as_it_was_is_no_news(void **state)
{
    struct redis_asker *asker = *state;
    struct redis_observer listener = {.on_slots_moved = count_moved};
    redis_asker_open_cluster(asker);
    redis_observe(asker->client, &listener);
    for (int fetched = 0; fetched < 3; fetched++) {
        told_moved = 0; /* the first may still find servers that were not known */
        redis_cluster_refresh_soon(redis_client_cluster(asker->client));
        assert_true(worker_loop_until(&asker->worker, is_fetching, asker, REDIS_ASKER_SOON_MS));
        assert_true(worker_loop_until(&asker->worker, is_not_fetching, asker, REDIS_ASKER_SOON_MS));
    }
    assert_int_equal(told_moved, 0);
    redis_unobserve(&listener);
}

/* A slot is given away only when nothing is left in it. */
static void empty_cluster(const struct redis_server *servers)
{
    for (int i = 0; i < REDIS_CLUSTER_MASTERS; i++)
        redis_server_expect(&servers[i], "OK", "FLUSHALL", NULL);
}

/* Moves a slot, in three steps: the two servers agree, the keys go, everybody hears of it. */
struct migration {
    struct redis_server *from;
    struct redis_server *to;
    char from_id[REDIS_SERVER_REPLY_MAX];
    char to_id[REDIS_SERVER_REPLY_MAX];
    char slot[8];
};

static void begin_migration(struct migration *migration, struct redis_server *servers,
                            const char *key)
{
    unsigned slot = redis_slot(slice_of(key));
    unsigned owner = slot * REDIS_CLUSTER_MASTERS / REDIS_SLOTS;
    migration->from = &servers[owner];
    migration->to = &servers[(owner + 1) % REDIS_CLUSTER_MASTERS];
    snprintf(migration->slot, sizeof(migration->slot), "%u", slot % REDIS_SLOTS);
    redis_cluster_id(migration->from, migration->from_id);
    redis_cluster_id(migration->to, migration->to_id);
    redis_server_expect(migration->to, "OK", "CLUSTER", "SETSLOT", migration->slot, "IMPORTING",
                        migration->from_id, NULL);
    redis_server_expect(migration->from, "OK", "CLUSTER", "SETSLOT", migration->slot, "MIGRATING",
                        migration->to_id, NULL);
}

static void move_key(const struct migration *migration, const char *key)
{
    char port[8];
    snprintf(port, sizeof(port), "%u", migration->to->port);
    redis_server_expect(migration->from, "OK", "MIGRATE", "127.0.0.1", port, key, "0", "1000",
                        NULL);
}

/* What an earlier test left in the slot would hold the migration up. */
static void end_migration(const struct migration *migration)
{
    redis_server_expect(migration->from, "OK", "FLUSHALL", NULL);
    redis_server_expect(migration->to, "OK", "CLUSTER", "SETSLOT", migration->slot, "NODE",
                        migration->to_id, NULL);
    redis_server_expect(migration->from, "OK", "CLUSTER", "SETSLOT", migration->slot, "NODE",
                        migration->to_id, NULL);
}

static void a_moved_slot_is_followed(void **state)
{
    struct redis_asker *asker = *state;
    struct migration migration;
    empty_cluster(asker->cluster);
    redis_asker_open_cluster(asker);
    assert_string_equal(redis_asker_ask(asker, "SET {moving}a 1"), "OK");
    assert_string_equal(redis_asker_ask(asker, "SET {moving}b 2"), "OK");
    begin_migration(&migration, asker->cluster, "{moving}");
    move_key(&migration, "{moving}a");
    assert_string_equal(redis_asker_ask(asker, "GET {moving}a"), "1"); /* ASK */
    assert_string_equal(redis_asker_ask(asker, "GET {moving}b"), "2"); /* still there */
    redis_asker_start(asker, "MGET {moving}a {moving}b"); /* TRYAGAIN until both are there */
    worker_loop_run(&asker->worker, 250);
    assert_false(redis_asker_is_done(asker));
    move_key(&migration, "{moving}b");
    redis_asker_await_answers(asker);
    assert_int_equal(asker->errors + asker->without_reply, 0);
    end_migration(&migration);
    assert_string_equal(redis_asker_ask(asker, "GET {moving}a"), "1"); /* MOVED */
    char before[REDIS_SERVER_REPLY_MAX];
    char after[REDIS_SERVER_REPLY_MAX];
    redis_server_ask(migration.from, before, "INFO", "errorstats", NULL);
    for (int i = 0; i < 10; i++)
        assert_string_equal(redis_asker_ask(asker, "GET {moving}b"), "2");
    redis_server_ask(migration.from, after, "INFO", "errorstats", NULL);
    assert_int_equal(redis_server_number(before, "errorstat_MOVED:count"),
                     redis_server_number(after, "errorstat_MOVED:count")); /* it was learned */
}

static void patience_ends(void **state)
{
    struct redis_asker *asker = *state;
    struct migration migration;
    empty_cluster(asker->cluster);
    redis_asker_open_cluster(asker);
    redis_asker_ask(asker, "SET {stuck}a 1");
    redis_asker_ask(asker, "SET {stuck}b 1");
    begin_migration(&migration, asker->cluster, "{stuck}");
    move_key(&migration, "{stuck}a");
    int64_t start_us = clock_microseconds();
    assert_string_equal(redis_asker_ask(asker, "MGET {stuck}a {stuck}b"), "nothing");
    assert_in_range((clock_microseconds() - start_us) / 1000, REDIS_REQUEST_LIMIT_MS - 500,
                    REDIS_REQUEST_LIMIT_MS + 500);
    move_key(&migration, "{stuck}b");
    end_migration(&migration);
}

/* Last, since it leaves the cluster with other masters: how many slots of the killed one answer again. */
static void a_failed_master_is_replaced(void **state)
{
    struct redis_asker *asker = *state;
    redis_asker_open_cluster(asker);
    worker_loop_run(&asker->worker, 500);
    fill(asker, 300);
    assert_int_equal(asker->errors + asker->without_reply, 0);
    redis_server_kill(&asker->cluster[0]);
    int64_t start_us = clock_microseconds();
    unsigned lost = 1;
    for (unsigned rounds = 0; lost > 0 && rounds < 200; rounds++) {
        unsigned before = asker->without_reply;
        fill(asker, 300);
        lost = asker->without_reply - before;
        worker_loop_run(&asker->worker, 100);
    }
    int64_t took_ms = (clock_microseconds() - start_us) / 1000;
    print_message("all slots answer after %lld ms\n", (long long)took_ms);
    assert_int_equal(lost, 0);
    assert_in_range(took_ms, 0, FAILOVER_MS);
    assert_int_equal(asker->errors, 0);
    redis_asker_await_available(asker, true, REDIS_ASKER_SOON_MS);
    worker_loop_run(&asker->worker, 700);
    assert_int_equal(redis_master_count(asker->client), REDIS_CLUSTER_MASTERS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, redis_asker_set_up, redis_asker_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_key_finds_its_server),
        TEST(scripts_run_where_their_keys_are),
        TEST(a_table_that_is_as_it_was_is_no_news),
        TEST(a_moved_slot_is_followed),
        TEST(patience_ends),
        TEST(a_failed_master_is_replaced),
    };
    return cmocka_run_group_tests(tests, redis_cluster_set_up, redis_cluster_tear_down);
}
