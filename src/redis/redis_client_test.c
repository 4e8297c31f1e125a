/* A client against one real server. */
#include "redis/redis_client.h"

#include "redis/redis_connection.h"
#include "redis/redis_info.h"
#include "redis/redis_request.h"
#include "support/redis_client_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void commands_and_scripts_are_answered(void **state)
{
    struct redis_client_fixture *fixture = *state;
    struct redis_script script;
    assert_true(redis_script_init(&script, SLICE("return redis.call('INCRBY', KEYS[1], ARGV[1])")));
    redis_client_fixture_open_single(fixture);
    assert_int_equal(fixture->available_reports, 1);
    assert_int_equal(redis_client_problem(fixture->client), REDIS_FINE);
    assert_false(redis_is_cluster(fixture->client));
    assert_string_equal(redis_client_fixture_run(fixture, "SET a 1"), "OK");
    assert_string_equal(redis_client_fixture_eval(fixture, &script, "a", "41"),
                        "42"); /* sends the source */
    assert_string_equal(redis_client_fixture_eval(fixture, &script, "a", "1"), "43");
    redis_server_expect(&fixture->server, "OK", "SCRIPT", "FLUSH", NULL);
    assert_string_equal(redis_client_fixture_eval(fixture, &script, "a", "1"), "44");
    assert_non_null(
        strstr(redis_client_fixture_eval(fixture, &script, "a", "x"), "not an integer"));
    assert_int_equal(fixture->errors, 1);
    assert_int_equal(fixture->without_reply, 0);
}

/* A proxy in front of a cluster may answer CLUSTERDOWN. */
static void single_server_stays_available_after_clusterdown(void **state)
{
    struct redis_client_fixture *fixture = *state;
    struct redis_script down;
    assert_true(redis_script_init(&down, SLICE("return redis.error_reply('CLUSTERDOWN for now')")));
    redis_client_fixture_open_single(fixture);
    assert_string_equal(redis_client_fixture_eval(fixture, &down, "k", "x"), "nothing");
    assert_true(redis_available(fixture->client));
    assert_int_equal(fixture->unavailable_reports, 0);
    assert_string_equal(redis_client_fixture_run(fixture, "SET a 1"), "OK");
}

static void script_sha_equals_the_one_of_redis(void **state)
{
    struct redis_client_fixture *fixture = *state;
    struct redis_script script;
    char sha[REDIS_SERVER_REPLY_MAX];
    assert_true(redis_script_init(&script, SLICE("return 1")));
    redis_server_start(&fixture->server, REDIS_DEFAULTS);
    redis_server_ask(&fixture->server, sha, "SCRIPT", "LOAD", "return 1", NULL);
    assert_string_equal(script.sha, sha);
}

static void script_source_is_sent_once(void **state)
{
    struct redis_client_fixture *fixture = *state;
    struct redis_script script;
    char stats[REDIS_SERVER_REPLY_MAX];
    assert_true(redis_script_init(&script, SLICE("return ARGV[1]")));
    redis_client_fixture_open_single(fixture);
    for (int i = 0; i < 10; i++)
        assert_string_equal(redis_client_fixture_eval(fixture, &script, "k", "x"), "x");
    redis_server_ask(&fixture->server, stats, "INFO", "commandstats", NULL);
    assert_int_equal(redis_server_number(stats, "cmdstat_eval:calls"), 1);
    assert_int_equal(redis_server_number(stats, "cmdstat_evalsha:calls"), 9);
}

/* A script that the server has must not overtake one whose source it still needs. */
static void scripts_run_in_the_order_of_sending(void **state)
{
    struct redis_client_fixture *fixture = *state;
    const char *known = "return redis.call('APPEND', KEYS[1], 'b')";
    struct redis_script first, second;
    char sha[REDIS_SERVER_REPLY_MAX];
    assert_true(redis_script_init(&first, SLICE("return redis.call('APPEND', KEYS[1], 'a')")));
    assert_true(redis_script_init(&second, slice_of(known)));
    redis_client_fixture_open_single(fixture);
    redis_server_ask(&fixture->server, sha, "SCRIPT", "LOAD", known, NULL);
    redis_eval(fixture->client, &first, REDIS_ARGS(SLICE("k")), REDIS_NO_ARGS, NULL, NULL);
    redis_eval(fixture->client, &second, REDIS_ARGS(SLICE("k")), REDIS_NO_ARGS, NULL, NULL);
    redis_client_fixture_run(fixture, "PING");
    assert_string_equal(redis_client_fixture_run(fixture, "GET k"), "ab");
}

static void lost_server_and_its_return_are_reported(void **state)
{
    struct redis_client_fixture *fixture = *state;
    redis_client_fixture_open_single(fixture);
    redis_server_kill(&fixture->server);
    redis_client_fixture_await_available(fixture, false, REDIS_CLIENT_FIXTURE_SOON_MS);
    assert_int_equal(fixture->unavailable_reports, 1);
    assert_int_equal(fixture->worker.metrics.values[METRIC_REDIS_AVAILABLE], 0);
    assert_false(redis_reaches(fixture->client, SLICE("a")));
    redis_client_fixture_start(fixture, "GET a");
    assert_int_equal(fixture->without_reply, 1); /* at once */
    redis_server_restart(&fixture->server);
    redis_client_fixture_await_available(fixture, true, REDIS_CLIENT_FIXTURE_SOON_MS);
    assert_int_equal(fixture->worker.metrics.values[METRIC_REDIS_AVAILABLE], 1);
    assert_true(redis_reaches(fixture->client, SLICE("a")));
    assert_string_equal(redis_client_fixture_run(fixture, "PING"), "PONG");
}

static void client_connects_once_the_server_starts(void **state)
{
    struct redis_client_fixture *fixture = *state;
    redis_server_start(&fixture->server, REDIS_DEFAULTS);
    redis_server_kill(&fixture->server);
    redis_client_fixture_open(fixture, "redis://127.0.0.1", fixture->server.port);
    worker_loop_run(&fixture->worker, 300);
    assert_false(redis_available(fixture->client));
    assert_int_equal(redis_client_problem(fixture->client), REDIS_UNREACHABLE);
    redis_server_restart(&fixture->server);
    redis_client_fixture_await_available(fixture, true, REDIS_CLIENT_FIXTURE_SOON_MS);
}

static void info_figures_become_metrics(void **state)
{
    struct redis_client_fixture *fixture = *state;
    struct redis_figures figures = {0};
    redis_figures_add(&figures, SLICE("# Memory\r\nused_memory:805\r\nmaxmemory:1000\r\n"
                                      "total_system_memory:9\r\nkeyspace_hits:3\r\n"));
    redis_figures_add(&figures, SLICE("used_memory:50\nmaxmemory:0\ntotal_system_memory:1000\n"
                                      "keyspace_hits:4\nxkeyspace_hits:9"));
    assert_int_equal(figures.used_memory_pct_mille, 80500);
    assert_int_equal(figures.keyspace_hits, 7);
    redis_client_fixture_open_single(fixture);
    struct redis_info *info =
        redis_info_make(fixture->client, &fixture->worker.loop, &fixture->worker.metrics);
    redis_client_fixture_run(fixture, "SET a b");
    redis_client_fixture_run(fixture, "GET a");
    worker_loop_run(&fixture->worker, 800);
    assert_int_equal(fixture->worker.metrics.values[METRIC_REDIS_KEYSPACE_HITS], 1);
    assert_true(fixture->worker.metrics.values[METRIC_REDIS_CONNECTED_CLIENTS] >= 1);
    redis_info_free(&info);
}

static void single_server_is_refused_as_cluster(void **state)
{
    struct redis_client_fixture *fixture = *state;
    redis_server_start(&fixture->server, REDIS_DEFAULTS);
    redis_client_fixture_open(fixture, "redis-cluster://127.0.0.1", fixture->server.port);
    worker_loop_run(&fixture->worker, 800);
    assert_false(redis_available(fixture->client));
    assert_int_equal(redis_client_problem(fixture->client), REDIS_CLUSTER_OFF);
}

static void freed_client_answers_pending_commands_with_null(void **state)
{
    struct redis_client_fixture *fixture = *state;
    redis_client_fixture_open_single(fixture);
    for (int i = 0; i < 10; i++)
        redis_client_fixture_start(fixture, "PING");
    redis_client_free(&fixture->client);
    assert_int_equal(fixture->answered, 10);
    assert_int_equal(fixture->without_reply, 10);
}

#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, redis_client_fixture_set_up,                             \
                                    redis_client_fixture_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(commands_and_scripts_are_answered),
        TEST(single_server_stays_available_after_clusterdown),
        TEST(script_sha_equals_the_one_of_redis),
        TEST(script_source_is_sent_once),
        TEST(scripts_run_in_the_order_of_sending),
        TEST(lost_server_and_its_return_are_reported),
        TEST(client_connects_once_the_server_starts),
        TEST(info_figures_become_metrics),
        TEST(single_server_is_refused_as_cluster),
        TEST(freed_client_answers_pending_commands_with_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
