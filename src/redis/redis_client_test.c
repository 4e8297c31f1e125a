/* A client against real servers, one and a cluster. */
#include "redis/redis_client.h"

#include "redis/redis_info.h"
#include "redis/redis_link.h"
#include "redis/redis_request.h"
#include "support/redis_server.h"
#include "support/worker_loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SOON_MS = 5000, FAILOVER_MS = 15000 };

struct fixture {
    struct worker_loop worker;
    struct redis_client *client;
    struct redis_listener listener;
    struct redis_server server;   /* of tests with one */
    struct redis_server *cluster; /* of tests with many; started once */
    bool wanted;
    unsigned told_available;
    unsigned told_unavailable;
    unsigned told_moved;
    unsigned asked;
    unsigned answered;
    unsigned without_reply;
    unsigned errors;
    char last[256];
};

static struct redis_server cluster_servers[REDIS_CLUSTER_SERVERS];

static void changed(struct redis_listener *listener, bool available)
{
    struct fixture *fixture =
        (struct fixture *)((char *)listener - offsetof(struct fixture, listener));
    fixture->told_available += available;
    fixture->told_unavailable += !available;
}

static void moved(struct redis_listener *listener)
{
    struct fixture *fixture =
        (struct fixture *)((char *)listener - offsetof(struct fixture, listener));
    fixture->told_moved++;
}

static void take(void *arg, const struct resp_value *reply)
{
    struct fixture *fixture = arg;
    struct slice text = reply ? reply->text : SLICE("nothing");
    fixture->answered++;
    fixture->without_reply += reply == NULL;
    fixture->errors += reply && reply->type == RESP_ERROR;
    if (reply && reply->type == RESP_INTEGER)
        snprintf(fixture->last, sizeof(fixture->last), "%lld", (long long)reply->integer);
    else
        snprintf(fixture->last, sizeof(fixture->last), "%.*s",
                 SLICE_FORMAT(slice_first(text, sizeof(fixture->last) - 1)));
}

static bool all_answered(void *arg)
{
    struct fixture *fixture = arg;
    return fixture->answered == fixture->asked;
}

static bool is_as_wanted(void *arg)
{
    struct fixture *fixture = arg;
    return redis_available(fixture->client) == fixture->wanted;
}

static void await_available(struct fixture *fixture, bool available, int64_t limit_ms)
{
    fixture->wanted = available;
    assert_true(worker_loop_until(&fixture->worker, is_as_wanted, fixture, limit_ms));
}

static void start_command(struct fixture *fixture, const char *line)
{
    struct slice words[8];
    size_t count = 0;
    for (struct slice rest = slice_of(line); rest.data; count++)
        rest = slice_split(rest, ' ', &words[count]);
    fixture->asked++;
    redis_command(fixture->client, count > 1 ? words[1] : SLICE_NONE,
                  (struct redis_words){words, count}, take, fixture);
}

static const char *ask(struct fixture *fixture, const char *line)
{
    start_command(fixture, line);
    assert_true(worker_loop_until(&fixture->worker, all_answered, fixture, SOON_MS));
    return fixture->last;
}

static const char *eval(struct fixture *fixture, const struct redis_script *script, const char *key,
                        const char *argument)
{
    fixture->asked++;
    redis_eval(fixture->client, script, REDIS_WORDS(slice_of(key)), REDIS_WORDS(slice_of(argument)),
               take, fixture);
    assert_true(worker_loop_until(&fixture->worker, all_answered, fixture, SOON_MS));
    return fixture->last;
}

static void open_client(struct fixture *fixture, const char *place, uint16_t port)
{
    fixture->client = worker_loop_redis(&fixture->worker, place, port);
    fixture->listener = (struct redis_listener){.changed = changed, .moved = moved};
    redis_listen(fixture->client, &fixture->listener);
}

static void open_single(struct fixture *fixture)
{
    redis_server_start(&fixture->server, REDIS_DEFAULTS);
    open_client(fixture, "redis://127.0.0.1", fixture->server.port);
    await_available(fixture, true, SOON_MS);
}

static void open_cluster(struct fixture *fixture)
{
    fixture->cluster = cluster_servers;
    open_client(fixture, "redis-cluster://127.0.0.1:1,localhost", cluster_servers[0].port);
    await_available(fixture, true, SOON_MS);
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    *state = fixture;
    worker_loop_open(&fixture->worker);
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    redis_client_free(&fixture->client);
    redis_server_stop(&fixture->server);
    worker_loop_close(&fixture->worker);
    free(fixture);
    return 0;
}

/* ---- one server ---- */

static void commands_and_scripts(void **state)
{
    struct fixture *fixture = *state;
    struct redis_script script;
    assert_true(redis_script_init(&script, SLICE("return redis.call('INCRBY', KEYS[1], ARGV[1])")));
    open_single(fixture);
    assert_int_equal(fixture->told_available, 1);
    assert_int_equal(redis_client_problem(fixture->client), REDIS_FINE);
    assert_false(redis_is_cluster(fixture->client));
    assert_string_equal(ask(fixture, "SET a 1"), "OK");
    assert_string_equal(eval(fixture, &script, "a", "41"), "42"); /* the server meets it here */
    assert_string_equal(eval(fixture, &script, "a", "1"), "43");
    redis_server_expect(&fixture->server, "OK", "SCRIPT", "FLUSH", NULL);
    assert_string_equal(eval(fixture, &script, "a", "1"), "44");
    assert_non_null(strstr(eval(fixture, &script, "a", "x"), "not an integer"));
    assert_int_equal(fixture->errors, 1);
    assert_int_equal(fixture->without_reply, 0);
}

static void a_script_is_named_by_its_sha(void **state)
{
    struct fixture *fixture = *state;
    struct redis_script script;
    char sha[REDIS_SERVER_REPLY_MAX];
    assert_true(redis_script_init(&script, SLICE("return 1")));
    redis_server_start(&fixture->server, REDIS_DEFAULTS);
    redis_server_ask(&fixture->server, sha, "SCRIPT", "LOAD", "return 1", NULL);
    assert_string_equal(script.sha, sha);
}

static void the_source_is_sent_once(void **state)
{
    struct fixture *fixture = *state;
    struct redis_script script;
    char stats[REDIS_SERVER_REPLY_MAX];
    assert_true(redis_script_init(&script, SLICE("return ARGV[1]")));
    open_single(fixture);
    for (int i = 0; i < 10; i++)
        assert_string_equal(eval(fixture, &script, "k", "x"), "x");
    redis_server_ask(&fixture->server, stats, "INFO", "commandstats", NULL);
    assert_int_equal(redis_server_number(stats, "cmdstat_eval:calls"), 1);
    assert_int_equal(redis_server_number(stats, "cmdstat_evalsha:calls"), 10);
}

static void a_lost_server_is_told_and_so_is_its_return(void **state)
{
    struct fixture *fixture = *state;
    open_single(fixture);
    redis_server_kill(&fixture->server);
    await_available(fixture, false, SOON_MS);
    assert_int_equal(fixture->told_unavailable, 1);
    assert_int_equal(fixture->worker.metrics.values[METRIC_REDIS_AVAILABLE], 0);
    assert_false(redis_reaches(fixture->client, SLICE("a")));
    start_command(fixture, "GET a");
    assert_int_equal(fixture->without_reply, 1); /* at once */
    redis_server_restart(&fixture->server);
    await_available(fixture, true, SOON_MS);
    assert_int_equal(fixture->worker.metrics.values[METRIC_REDIS_AVAILABLE], 1);
    assert_true(redis_reaches(fixture->client, SLICE("a")));
    assert_string_equal(ask(fixture, "PING"), "PONG");
}

static void a_start_without_server_waits_for_it(void **state)
{
    struct fixture *fixture = *state;
    redis_server_start(&fixture->server, REDIS_DEFAULTS);
    redis_server_kill(&fixture->server);
    open_client(fixture, "redis://127.0.0.1", fixture->server.port);
    worker_loop_run(&fixture->worker, 300);
    assert_false(redis_available(fixture->client));
    assert_int_equal(redis_client_problem(fixture->client), REDIS_UNREACHABLE);
    redis_server_restart(&fixture->server);
    await_available(fixture, true, SOON_MS);
}

static void figures_become_metrics(void **state)
{
    struct fixture *fixture = *state;
    struct redis_figures figures = {0};
    redis_figures_add(&figures, SLICE("# Memory\r\nused_memory:500\r\nmaxmemory:1000\r\n"
                                      "total_system_memory:9\r\nkeyspace_hits:3\r\n"));
    redis_figures_add(&figures, SLICE("used_memory:50\nmaxmemory:0\ntotal_system_memory:1000\n"
                                      "keyspace_hits:4\nxkeyspace_hits:9"));
    assert_int_equal(figures.used_memory_pct, 50);
    assert_int_equal(figures.keyspace_hits, 7);
    open_single(fixture);
    struct redis_info *info =
        redis_info_make(fixture->client, &fixture->worker.loop, &fixture->worker.metrics);
    ask(fixture, "SET a b");
    ask(fixture, "GET a");
    worker_loop_run(&fixture->worker, 800);
    assert_int_equal(fixture->worker.metrics.values[METRIC_REDIS_KEYSPACE_HITS], 1);
    assert_true(fixture->worker.metrics.values[METRIC_REDIS_CONNECTED_CLIENTS] >= 1);
    redis_info_free(&info);
}

static void what_is_no_cluster_is_told_apart(void **state)
{
    struct fixture *fixture = *state;
    redis_server_start(&fixture->server, REDIS_DEFAULTS);
    open_client(fixture, "redis-cluster://127.0.0.1", fixture->server.port);
    worker_loop_run(&fixture->worker, 800);
    assert_false(redis_available(fixture->client));
    assert_int_equal(redis_client_problem(fixture->client), REDIS_CLUSTER_OFF);
}

static void a_freed_client_answers_what_waits(void **state)
{
    struct fixture *fixture = *state;
    open_single(fixture);
    for (int i = 0; i < 10; i++)
        start_command(fixture, "PING");
    redis_client_free(&fixture->client);
    assert_int_equal(fixture->answered, 10);
    assert_int_equal(fixture->without_reply, 10);
}

/* ---- a cluster ---- */

static void fill(struct fixture *fixture, unsigned keys)
{
    char line[64];
    for (unsigned i = 0; i < keys; i++) {
        snprintf(line, sizeof(line), "SET key-%u %u", i, i);
        start_command(fixture, line);
    }
    assert_true(worker_loop_until(&fixture->worker, all_answered, fixture, SOON_MS));
}

static void every_key_finds_its_server(void **state)
{
    struct fixture *fixture = *state;
    char reply[REDIS_SERVER_REPLY_MAX];
    long keys = 0;
    open_cluster(fixture);
    worker_loop_run(&fixture->worker, 500);
    assert_true(redis_is_cluster(fixture->client));
    assert_int_equal(redis_master_count(fixture->client), REDIS_CLUSTER_MASTERS);
    assert_int_equal(redis_client_problem(fixture->client), REDIS_FINE);
    fill(fixture, 3000);
    assert_int_equal(fixture->errors + fixture->without_reply, 0);
    assert_string_equal(ask(fixture, "GET key-2999"), "2999");
    for (int i = 0; i < REDIS_CLUSTER_MASTERS; i++) {
        redis_server_ask(&fixture->cluster[i], reply, "DBSIZE", NULL);
        assert_true(strtol(reply, NULL, 10) > 700);
        keys += strtol(reply, NULL, 10);
    }
    assert_int_equal(keys, 3000);
}

static void scripts_run_where_their_keys_are(void **state)
{
    struct fixture *fixture = *state;
    struct redis_script script;
    char key[32];
    assert_true(redis_script_init(&script, SLICE("redis.call('SET', KEYS[1], ARGV[1]) return "
                                                 "redis.call('GET', KEYS[1])")));
    open_cluster(fixture);
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof(key), "{script-%d}", i);
        assert_string_equal(eval(fixture, &script, key, key), key);
    }
}

/* A slot is given away only when nothing is left in it. */
static void empty_cluster(void)
{
    for (int i = 0; i < REDIS_CLUSTER_MASTERS; i++)
        redis_server_expect(&cluster_servers[i], "OK", "FLUSHALL", NULL);
}

/* Moves a slot, in three steps: the two servers agree, the keys go, everybody hears of it. */
struct migration {
    struct redis_server *from;
    struct redis_server *to;
    char from_id[REDIS_SERVER_REPLY_MAX];
    char to_id[REDIS_SERVER_REPLY_MAX];
    char slot[8];
};

static void begin_migration(struct migration *migration, const char *key)
{
    unsigned slot = redis_slot(slice_of(key));
    unsigned owner = slot * REDIS_CLUSTER_MASTERS / REDIS_SLOTS;
    migration->from = &cluster_servers[owner];
    migration->to = &cluster_servers[(owner + 1) % REDIS_CLUSTER_MASTERS];
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
    struct fixture *fixture = *state;
    struct migration migration;
    empty_cluster();
    open_cluster(fixture);
    assert_string_equal(ask(fixture, "SET {moving}a 1"), "OK");
    assert_string_equal(ask(fixture, "SET {moving}b 2"), "OK");
    begin_migration(&migration, "{moving}");
    move_key(&migration, "{moving}a");
    assert_string_equal(ask(fixture, "GET {moving}a"), "1"); /* ASK */
    assert_string_equal(ask(fixture, "GET {moving}b"), "2"); /* still there */
    start_command(fixture, "MGET {moving}a {moving}b");      /* TRYAGAIN until both are there */
    worker_loop_run(&fixture->worker, 250);
    assert_false(all_answered(fixture));
    move_key(&migration, "{moving}b");
    assert_true(worker_loop_until(&fixture->worker, all_answered, fixture, SOON_MS));
    assert_int_equal(fixture->errors + fixture->without_reply, 0);
    end_migration(&migration);
    assert_string_equal(ask(fixture, "GET {moving}a"), "1"); /* MOVED */
    char before[REDIS_SERVER_REPLY_MAX];
    char after[REDIS_SERVER_REPLY_MAX];
    redis_server_ask(migration.from, before, "INFO", "errorstats", NULL);
    for (int i = 0; i < 10; i++)
        assert_string_equal(ask(fixture, "GET {moving}b"), "2");
    redis_server_ask(migration.from, after, "INFO", "errorstats", NULL);
    assert_int_equal(redis_server_number(before, "errorstat_MOVED:count"),
                     redis_server_number(after, "errorstat_MOVED:count")); /* it was learned */
}

static void patience_ends(void **state)
{
    struct fixture *fixture = *state;
    struct migration migration;
    empty_cluster();
    open_cluster(fixture);
    ask(fixture, "SET {stuck}a 1");
    ask(fixture, "SET {stuck}b 1");
    begin_migration(&migration, "{stuck}");
    move_key(&migration, "{stuck}a");
    int64_t start_us = clock_microseconds();
    assert_string_equal(ask(fixture, "MGET {stuck}a {stuck}b"), "nothing");
    assert_in_range((clock_microseconds() - start_us) / 1000, REDIS_REQUEST_LIMIT_MS - 500,
                    REDIS_REQUEST_LIMIT_MS + 500);
    move_key(&migration, "{stuck}b");
    end_migration(&migration);
}

/* Last, since it leaves the cluster with other masters: how many slots of the killed one answer again. */
static void a_failed_master_is_replaced(void **state)
{
    struct fixture *fixture = *state;
    open_cluster(fixture);
    worker_loop_run(&fixture->worker, 500);
    fill(fixture, 300);
    assert_int_equal(fixture->errors + fixture->without_reply, 0);
    redis_server_kill(&fixture->cluster[0]);
    int64_t start_us = clock_microseconds();
    unsigned lost = 1;
    for (unsigned rounds = 0; lost > 0 && rounds < 200; rounds++) {
        unsigned before = fixture->without_reply;
        fill(fixture, 300);
        lost = fixture->without_reply - before;
        worker_loop_run(&fixture->worker, 100);
    }
    int64_t took_ms = (clock_microseconds() - start_us) / 1000;
    print_message("all slots answer after %lld ms\n", (long long)took_ms);
    assert_int_equal(lost, 0);
    assert_in_range(took_ms, 0, FAILOVER_MS);
    assert_int_equal(fixture->errors, 0);
    await_available(fixture, true, SOON_MS);
    worker_loop_run(&fixture->worker, 700);
    assert_int_equal(redis_master_count(fixture->client), REDIS_CLUSTER_MASTERS);
}

static int start_cluster(void **state)
{
    (void)state;
    redis_cluster_start(cluster_servers);
    return 0;
}

static int stop_cluster(void **state)
{
    (void)state;
    redis_cluster_stop(cluster_servers);
    return 0;
}

#define with_fixture(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest with_one[] = {
        with_fixture(commands_and_scripts),
        with_fixture(a_script_is_named_by_its_sha),
        with_fixture(the_source_is_sent_once),
        with_fixture(a_lost_server_is_told_and_so_is_its_return),
        with_fixture(a_start_without_server_waits_for_it),
        with_fixture(figures_become_metrics),
        with_fixture(what_is_no_cluster_is_told_apart),
        with_fixture(a_freed_client_answers_what_waits),
    };
    const struct CMUnitTest with_many[] = {
        with_fixture(every_key_finds_its_server),  with_fixture(scripts_run_where_their_keys_are),
        with_fixture(a_moved_slot_is_followed),    with_fixture(patience_ends),
        with_fixture(a_failed_master_is_replaced),
    };
    return cmocka_run_group_tests(with_one, NULL, NULL) +
           cmocka_run_group_tests(with_many, start_cluster, stop_cluster);
}
