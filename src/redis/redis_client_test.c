/* A client against one real server. */
#include "redis/redis_client.h"

#include "redis/redis_connection.h"
#include "redis/redis_info.h"
#include "redis/redis_request.h"
#include "support/redis_asker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void commands_and_scripts(void **state)
{
    struct redis_asker *asker = *state;
    struct redis_script script;
    assert_true(redis_script_init(&script, SLICE("return redis.call('INCRBY', KEYS[1], ARGV[1])")));
    redis_asker_open_single(asker);
    assert_int_equal(asker->told_available, 1);
    assert_int_equal(redis_client_problem(asker->client), REDIS_FINE);
    assert_false(redis_is_cluster(asker->client));
    assert_string_equal(redis_asker_ask(asker, "SET a 1"), "OK");
    assert_string_equal(redis_asker_eval(asker, &script, "a", "41"),
                        "42"); /* the server meets it here */
    assert_string_equal(redis_asker_eval(asker, &script, "a", "1"), "43");
    redis_server_expect(&asker->server, "OK", "SCRIPT", "FLUSH", NULL);
    assert_string_equal(redis_asker_eval(asker, &script, "a", "1"), "44");
    assert_non_null(strstr(redis_asker_eval(asker, &script, "a", "x"), "not an integer"));
    assert_int_equal(asker->errors, 1);
    assert_int_equal(asker->without_reply, 0);
}

/* As a proxy in front of a cluster may say it. */
static void a_single_server_does_not_stay_down(void **state)
{
    struct redis_asker *asker = *state;
    struct redis_script down;
    assert_true(redis_script_init(&down, SLICE("return redis.error_reply('CLUSTERDOWN for now')")));
    redis_asker_open_single(asker);
    assert_string_equal(redis_asker_eval(asker, &down, "k", "x"), "nothing");
    assert_true(redis_available(asker->client));
    assert_int_equal(asker->told_unavailable, 0);
    assert_string_equal(redis_asker_ask(asker, "SET a 1"), "OK");
}

static void a_script_is_named_by_its_sha(void **state)
{
    struct redis_asker *asker = *state;
    struct redis_script script;
    char sha[REDIS_SERVER_REPLY_MAX];
    assert_true(redis_script_init(&script, SLICE("return 1")));
    redis_server_start(&asker->server, REDIS_DEFAULTS);
    redis_server_ask(&asker->server, sha, "SCRIPT", "LOAD", "return 1", NULL);
    assert_string_equal(script.sha, sha);
}

static void the_source_is_sent_once(void **state)
{
    struct redis_asker *asker = *state;
    struct redis_script script;
    char stats[REDIS_SERVER_REPLY_MAX];
    assert_true(redis_script_init(&script, SLICE("return ARGV[1]")));
    redis_asker_open_single(asker);
    for (int i = 0; i < 10; i++)
        assert_string_equal(redis_asker_eval(asker, &script, "k", "x"), "x");
    redis_server_ask(&asker->server, stats, "INFO", "commandstats", NULL);
    assert_int_equal(redis_server_number(stats, "cmdstat_eval:calls"), 1);
    assert_int_equal(redis_server_number(stats, "cmdstat_evalsha:calls"), 9);
}

/* One that the server knows must not be carried out before another that it has never seen. */
static void scripts_take_effect_in_the_order_they_are_sent(void **state)
{
    struct redis_asker *asker = *state;
    const char *known = "return redis.call('APPEND', KEYS[1], 'b')";
    struct redis_script first, second;
    char sha[REDIS_SERVER_REPLY_MAX];
    assert_true(redis_script_init(&first, SLICE("return redis.call('APPEND', KEYS[1], 'a')")));
    assert_true(redis_script_init(&second, slice_of(known)));
    redis_asker_open_single(asker);
    redis_server_ask(&asker->server, sha, "SCRIPT", "LOAD", known, NULL);
    redis_eval(asker->client, &first, REDIS_ARGS(SLICE("k")), REDIS_NO_ARGS, NULL, NULL);
    redis_eval(asker->client, &second, REDIS_ARGS(SLICE("k")), REDIS_NO_ARGS, NULL, NULL);
    redis_asker_ask(asker, "PING");
    assert_string_equal(redis_asker_ask(asker, "GET k"), "ab");
}

static void a_lost_server_is_told_and_so_is_its_return(void **state)
{
    struct redis_asker *asker = *state;
    redis_asker_open_single(asker);
    redis_server_kill(&asker->server);
    redis_asker_await_available(asker, false, REDIS_ASKER_SOON_MS);
    assert_int_equal(asker->told_unavailable, 1);
    assert_int_equal(asker->worker.metrics.values[METRIC_REDIS_AVAILABLE], 0);
    assert_false(redis_reaches(asker->client, SLICE("a")));
    redis_asker_start(asker, "GET a");
    assert_int_equal(asker->without_reply, 1); /* at once */
    redis_server_restart(&asker->server);
    redis_asker_await_available(asker, true, REDIS_ASKER_SOON_MS);
    assert_int_equal(asker->worker.metrics.values[METRIC_REDIS_AVAILABLE], 1);
    assert_true(redis_reaches(asker->client, SLICE("a")));
    assert_string_equal(redis_asker_ask(asker, "PING"), "PONG");
}

static void a_start_without_server_waits_for_it(void **state)
{
    struct redis_asker *asker = *state;
    redis_server_start(&asker->server, REDIS_DEFAULTS);
    redis_server_kill(&asker->server);
    redis_asker_open(asker, "redis://127.0.0.1", asker->server.port);
    worker_loop_run(&asker->worker, 300);
    assert_false(redis_available(asker->client));
    assert_int_equal(redis_client_problem(asker->client), REDIS_UNREACHABLE);
    redis_server_restart(&asker->server);
    redis_asker_await_available(asker, true, REDIS_ASKER_SOON_MS);
}

static void figures_become_metrics(void **state)
{
    struct redis_asker *asker = *state;
    struct redis_figures figures = {0};
    redis_figures_add(&figures, SLICE("# Memory\r\nused_memory:500\r\nmaxmemory:1000\r\n"
                                      "total_system_memory:9\r\nkeyspace_hits:3\r\n"));
    redis_figures_add(&figures, SLICE("used_memory:50\nmaxmemory:0\ntotal_system_memory:1000\n"
                                      "keyspace_hits:4\nxkeyspace_hits:9"));
    assert_int_equal(figures.used_memory_pct, 50);
    assert_int_equal(figures.keyspace_hits, 7);
    redis_asker_open_single(asker);
    struct redis_info *info =
        redis_info_make(asker->client, &asker->worker.loop, &asker->worker.metrics);
    redis_asker_ask(asker, "SET a b");
    redis_asker_ask(asker, "GET a");
    worker_loop_run(&asker->worker, 800);
    assert_int_equal(asker->worker.metrics.values[METRIC_REDIS_KEYSPACE_HITS], 1);
    assert_true(asker->worker.metrics.values[METRIC_REDIS_CONNECTED_CLIENTS] >= 1);
    redis_info_free(&info);
}

static void what_is_no_cluster_is_told_apart(void **state)
{
    struct redis_asker *asker = *state;
    redis_server_start(&asker->server, REDIS_DEFAULTS);
    redis_asker_open(asker, "redis-cluster://127.0.0.1", asker->server.port);
    worker_loop_run(&asker->worker, 800);
    assert_false(redis_available(asker->client));
    assert_int_equal(redis_client_problem(asker->client), REDIS_CLUSTER_OFF);
}

static void a_freed_client_answers_what_waits(void **state)
{
    struct redis_asker *asker = *state;
    redis_asker_open_single(asker);
    for (int i = 0; i < 10; i++)
        redis_asker_start(asker, "PING");
    redis_client_free(&asker->client);
    assert_int_equal(asker->answered, 10);
    assert_int_equal(asker->without_reply, 10);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, redis_asker_set_up, redis_asker_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(commands_and_scripts),
        TEST(a_single_server_does_not_stay_down),
        TEST(a_script_is_named_by_its_sha),
        TEST(the_source_is_sent_once),
        TEST(scripts_take_effect_in_the_order_they_are_sent),
        TEST(a_lost_server_is_told_and_so_is_its_return),
        TEST(a_start_without_server_waits_for_it),
        TEST(figures_become_metrics),
        TEST(what_is_no_cluster_is_told_apart),
        TEST(a_freed_client_answers_what_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
