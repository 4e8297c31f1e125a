/* A client of a real cluster: commands reach the server of their key, also while slots move and masters fail. */
#include "redis/redis_client.h"

#include "redis/redis_request.h"
#include "support/redis_client_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What a busy machine may add to a time limit. */
enum { FAILOVER_MS = 60000, BUSY_MACHINE_MS = 5000 };

static void set_keys(struct redis_client_fixture *fixture, unsigned keys)
{
    char line[64];
    for (unsigned i = 0; i < keys; i++) {
        snprintf(line, sizeof(line), "SET key-%u %u", i, i);
        redis_client_fixture_start(fixture, line);
    }
    redis_client_fixture_await_answers(fixture);
}

static void commands_reach_the_server_of_their_key(void **state)
{
    struct redis_client_fixture *fixture = *state;
    char reply[REDIS_SERVER_REPLY_MAX];
    long keys = 0;
    redis_client_fixture_open_cluster(fixture);
    worker_loop_run(&fixture->worker, 500);
    assert_true(redis_is_cluster(fixture->client));
    assert_int_equal(redis_master_count(fixture->client), REDIS_CLUSTER_MASTERS);
    assert_int_equal(redis_client_problem(fixture->client), REDIS_FINE);
    set_keys(fixture, 3000);
    assert_int_equal(fixture->errors + fixture->without_reply, 0);
    assert_string_equal(redis_client_fixture_run(fixture, "GET key-2999"), "2999");
    for (int i = 0; i < REDIS_CLUSTER_MASTERS; i++) {
        redis_server_ask(&fixture->cluster[i], reply, "DBSIZE", NULL);
        assert_true(strtol(reply, NULL, 10) > 700);
        keys += strtol(reply, NULL, 10);
    }
    assert_int_equal(keys, 3000);
}

static void scripts_reach_the_server_of_their_key(void **state)
{
    struct redis_client_fixture *fixture = *state;
    struct redis_script script;
    char key[32];
    assert_true(redis_script_init(&script, SLICE("redis.call('SET', KEYS[1], ARGV[1]) return "
                                                 "redis.call('GET', KEYS[1])")));
    redis_client_fixture_open_cluster(fixture);
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof(key), "{script-%d}", i);
        assert_string_equal(redis_client_fixture_eval(fixture, &script, key, key), key);
    }
}

/* ---- the table ---- */

static unsigned moved_reports;

static void on_slots_moved(struct redis_observer *observer)
{
    (void)observer;
    moved_reports++;
}

static bool is_fetching(void *arg)
{
    return redis_client_cluster(((struct redis_client_fixture *)arg)->client)->refreshing;
}

static bool is_not_fetching(void *arg)
{
    return !is_fetching(arg);
}

static void unchanged_table_is_not_reported(void **state)
{
    struct redis_client_fixture *fixture = *state;
    struct redis_observer observer = {.on_slots_moved = on_slots_moved};
    redis_client_fixture_open_cluster(fixture);
    redis_observe(fixture->client, &observer);
    for (int fetched = 0; fetched < 3; fetched++) {
        moved_reports = 0; /* the first fetch may still find new servers */
        redis_cluster_refresh_soon(redis_client_cluster(fixture->client));
        assert_true(worker_loop_until(&fixture->worker, is_fetching, fixture,
                                      REDIS_CLIENT_FIXTURE_SOON_MS));
        assert_true(worker_loop_until(&fixture->worker, is_not_fetching, fixture,
                                      REDIS_CLIENT_FIXTURE_SOON_MS));
    }
    assert_int_equal(moved_reports, 0);
    redis_unobserve(&observer);
}

/* A slot can only be moved when it is empty. */
static void empty_cluster(const struct redis_server *servers)
{
    for (int i = 0; i < REDIS_CLUSTER_MASTERS; i++)
        redis_server_expect(&servers[i], "OK", "FLUSHALL", NULL);
}

/* Moves a slot in three steps: prepare both servers, move the keys, assign the slot. */
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

/* Keys that an earlier test left in the slot would block the migration. */
static void end_migration(const struct migration *migration)
{
    redis_server_expect(migration->from, "OK", "FLUSHALL", NULL);
    redis_server_expect(migration->to, "OK", "CLUSTER", "SETSLOT", migration->slot, "NODE",
                        migration->to_id, NULL);
    redis_server_expect(migration->from, "OK", "CLUSTER", "SETSLOT", migration->slot, "NODE",
                        migration->to_id, NULL);
}

static void moved_slot_is_followed(void **state)
{
    struct redis_client_fixture *fixture = *state;
    struct migration migration;
    empty_cluster(fixture->cluster);
    redis_client_fixture_open_cluster(fixture);
    assert_string_equal(redis_client_fixture_run(fixture, "SET {moving}a 1"), "OK");
    assert_string_equal(redis_client_fixture_run(fixture, "SET {moving}b 2"), "OK");
    begin_migration(&migration, fixture->cluster, "{moving}");
    move_key(&migration, "{moving}a");
    assert_string_equal(redis_client_fixture_run(fixture, "GET {moving}a"), "1"); /* ASK */
    assert_string_equal(redis_client_fixture_run(fixture, "GET {moving}b"), "2"); /* still there */
    redis_client_fixture_start(fixture,
                               "MGET {moving}a {moving}b"); /* TRYAGAIN until both are there */
    worker_loop_run(&fixture->worker, 250);
    assert_false(redis_client_fixture_is_done(fixture));
    move_key(&migration, "{moving}b");
    redis_client_fixture_await_answers(fixture);
    assert_int_equal(fixture->errors + fixture->without_reply, 0);
    end_migration(&migration);
    assert_string_equal(redis_client_fixture_run(fixture, "GET {moving}a"), "1"); /* MOVED */
    char before[REDIS_SERVER_REPLY_MAX];
    char after[REDIS_SERVER_REPLY_MAX];
    redis_server_ask(migration.from, before, "INFO", "errorstats", NULL);
    for (int i = 0; i < 10; i++)
        assert_string_equal(redis_client_fixture_run(fixture, "GET {moving}b"), "2");
    redis_server_ask(migration.from, after, "INFO", "errorstats", NULL);
    assert_int_equal(
        redis_server_number(before, "errorstat_MOVED:count"),
        redis_server_number(after, "errorstat_MOVED:count")); /* the client updated its table */
}

static void retries_end_at_the_request_limit(void **state)
{
    struct redis_client_fixture *fixture = *state;
    struct migration migration;
    empty_cluster(fixture->cluster);
    redis_client_fixture_open_cluster(fixture);
    redis_client_fixture_run(fixture, "SET {stuck}a 1");
    redis_client_fixture_run(fixture, "SET {stuck}b 1");
    begin_migration(&migration, fixture->cluster, "{stuck}");
    move_key(&migration, "{stuck}a");
    int64_t start_us = clock_microseconds();
    assert_string_equal(redis_client_fixture_run(fixture, "MGET {stuck}a {stuck}b"), "nothing");
    assert_in_range((clock_microseconds() - start_us) / 1000, REDIS_REQUEST_LIMIT_MS - 500,
                    REDIS_REQUEST_LIMIT_MS + BUSY_MACHINE_MS);
    move_key(&migration, "{stuck}b");
    end_migration(&migration);
}

/* Runs last, since it leaves the cluster with other masters. */
static void failed_master_is_replaced(void **state)
{
    struct redis_client_fixture *fixture = *state;
    redis_client_fixture_open_cluster(fixture);
    worker_loop_run(&fixture->worker, 500);
    set_keys(fixture, 300);
    assert_int_equal(fixture->errors + fixture->without_reply, 0);
    redis_server_kill(&fixture->cluster[0]);
    int64_t start_us = clock_microseconds();
    unsigned lost = 1;
    while (lost > 0 && clock_microseconds() < start_us + FAILOVER_MS * 1000LL) {
        unsigned before = fixture->without_reply;
        set_keys(fixture, 300);
        lost = fixture->without_reply - before;
        worker_loop_run(&fixture->worker, 100);
    }
    print_message("all slots answer after %lld ms\n",
                  (long long)(clock_microseconds() - start_us) / 1000);
    assert_int_equal(lost, 0);
    assert_int_equal(fixture->errors, 0);
    redis_client_fixture_await_available(fixture, true, REDIS_CLIENT_FIXTURE_SOON_MS);
    worker_loop_run(&fixture->worker, 700);
    assert_int_equal(redis_master_count(fixture->client), REDIS_CLUSTER_MASTERS);
}

#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, redis_client_fixture_set_up,                             \
                                    redis_client_fixture_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(commands_reach_the_server_of_their_key), TEST(scripts_reach_the_server_of_their_key),
        TEST(unchanged_table_is_not_reported),        TEST(moved_slot_is_followed),
        TEST(retries_end_at_the_request_limit),       TEST(failed_master_is_replaced),
    };
    return cmocka_run_group_tests(tests, redis_cluster_set_up, redis_cluster_tear_down);
}
