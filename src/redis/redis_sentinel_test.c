/* Clients that find their server through real sentinels. */
#include "redis/redis_sentinel.h"

#include "redis/redis_client.h"
#include "redis/redis_pubsub.h"
#include "support/redis_client_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SENTINELS = 3, QUORUM = 2, SOON_MS = 60000, URL_MAX = 256 };

/* A master with a replica, watched by sentinels as "main". */
struct watched {
    struct redis_client_fixture *fixture;
    struct redis_server servers[2];
    struct redis_server sentinels[SENTINELS];
    struct redis_pubsub *pubsub;
    unsigned messages;
    unsigned subscribed;
};

static void start_watched_servers(struct watched *watched)
{
    char port[8];
    redis_server_start(&watched->servers[0], REDIS_OPTIONS("--repl-diskless-sync-delay", "0"));
    redis_server_start(&watched->servers[1], REDIS_OPTIONS("--repl-diskless-sync-delay", "0"));
    snprintf(port, sizeof(port), "%u", watched->servers[0].port);
    redis_server_expect(&watched->servers[1], "OK", "REPLICAOF", "127.0.0.1", port, NULL);
}

static int set_up(void **state)
{
    struct watched *watched = calloc(1, sizeof(*watched));
    void *fixture = NULL;
    assert_non_null(watched);
    redis_client_fixture_set_up(&fixture);
    watched->fixture = fixture;
    *state = watched;
    return 0;
}

static int tear_down(void **state)
{
    struct watched *watched = *state;
    void *fixture = watched->fixture;
    redis_pubsub_free(&watched->pubsub);
    redis_client_fixture_tear_down(&fixture);
    for (size_t i = 0; i < SENTINELS; i++)
        redis_server_stop(&watched->sentinels[i]);
    redis_server_stop(&watched->servers[0]);
    redis_server_stop(&watched->servers[1]);
    free(watched);
    return 0;
}

static void start_sentinels(struct watched *watched)
{
    for (size_t i = 0; i < SENTINELS; i++)
        redis_server_start_sentinel(&watched->sentinels[i], "main", watched->servers[0].port,
                                    QUORUM);
}

/* Until a sentinel knows the replica and the other sentinels, it cannot do a failover. */
static void await_sentinels(struct watched *watched)
{
    for (size_t i = 0; i < SENTINELS; i++) {
        char reply[REDIS_SERVER_REPLY_MAX];
        do {
            worker_loop_run(&watched->fixture->worker, 50);
            redis_server_ask(&watched->sentinels[i], reply, "SENTINEL", "MASTER", "main", NULL);
        } while (!strstr(reply, "num-slaves 1 ") || !strstr(reply, "num-other-sentinels 2 "));
    }
}

/* The path follows the last port, so the fixture's way to add a port cannot be used. */
static void open_client(struct watched *watched, const char *path)
{
    char start[URL_MAX];
    size_t length = (size_t)snprintf(start, sizeof(start), "redis-sentinel://127.0.0.1:1");
    for (size_t i = 0; i < SENTINELS; i++)
        length += (size_t)snprintf(start + length, sizeof(start) - length, ",127.0.0.1:%u",
                                   watched->sentinels[i].port);
    snprintf(start + length, sizeof(start) - length, "/%s", path);
    redis_client_fixture_open_url(watched->fixture, start);
}

static bool is_subscribed(void *arg)
{
    return ((struct watched *)arg)->subscribed > 0;
}

static bool has_message(void *arg)
{
    return ((struct watched *)arg)->messages > 0;
}

static void on_watched_message(void *arg, struct slice channel, struct slice message)
{
    struct watched *watched = arg;
    (void)channel;
    (void)message;
    watched->messages++;
}

static void on_watched_subscribed(void *arg, struct slice channel)
{
    struct watched *watched = arg;
    (void)channel;
    watched->subscribed++;
}

static const struct redis_pubsub_owner WATCHED_PUBSUB_OWNER = {
    .on_message = on_watched_message, .on_subscribed = on_watched_subscribed};

/* ---- tests ---- */

static void master_is_found_and_verified(void **state)
{
    struct watched *watched = *state;
    start_watched_servers(watched);
    start_sentinels(watched);
    open_client(watched, "main/2"); /* the first address answers nothing */
    redis_client_fixture_await_available(watched->fixture, true, SOON_MS);
    assert_string_equal(redis_client_fixture_run(watched->fixture, "SET a 1"), "OK");
    assert_false(redis_is_cluster(watched->fixture->client));
    assert_int_equal(redis_master_count(watched->fixture->client), 1);
    redis_server_expect(&watched->servers[0], "OK", "SELECT", "2", NULL);
    char keyspace[REDIS_SERVER_REPLY_MAX];
    redis_server_ask(&watched->servers[0], keyspace, "INFO", "keyspace", NULL);
    assert_non_null(strstr(keyspace, "db2:keys=1"));
}

/* The channel follows too: a message that is published at the new master arrives. */
static void another_master_is_followed_when_the_first_is_killed(void **state)
{
    struct watched *watched = *state;
    start_watched_servers(watched);
    start_sentinels(watched);
    open_client(watched, "main");
    redis_client_fixture_await_available(watched->fixture, true, SOON_MS);
    await_sentinels(watched);
    watched->pubsub = redis_pubsub_make(watched->fixture->client, &WATCHED_PUBSUB_OWNER, watched);
    assert_non_null(watched->pubsub);
    assert_true(redis_pubsub_subscribe(watched->pubsub, SLICE("news")));
    assert_true(worker_loop_until(&watched->fixture->worker, is_subscribed, watched, SOON_MS));
    watched->subscribed = 0;
    redis_server_kill(&watched->servers[0]);
    redis_client_fixture_await_available(watched->fixture, false, SOON_MS);
    redis_client_fixture_await_available(watched->fixture, true, SOON_MS);
    assert_string_equal(redis_client_fixture_run(watched->fixture, "SET a 1"), "OK");
    redis_server_expect(&watched->servers[1], "1", "GET", "a", NULL);
    assert_true(worker_loop_until(&watched->fixture->worker, is_subscribed, watched, SOON_MS));
    redis_server_expect(&watched->servers[1], "1", "PUBLISH", "news", "hello", NULL);
    assert_true(worker_loop_until(&watched->fixture->worker, has_message, watched, SOON_MS));
}

/* Nothing is killed: the old master goes on as a replica, and would answer reads. */
static void demoted_master_is_left(void **state)
{
    struct watched *watched = *state;
    char reply[REDIS_SERVER_REPLY_MAX];
    start_watched_servers(watched);
    start_sentinels(watched);
    open_client(watched, "main");
    redis_client_fixture_await_available(watched->fixture, true, SOON_MS);
    await_sentinels(watched);
    do {
        worker_loop_run(&watched->fixture->worker, 50);
        redis_server_ask(&watched->sentinels[0], reply, "SENTINEL", "FAILOVER", "main", NULL);
    } while (strcmp(reply, "OK") != 0); /* NOGOODSLAVE until the replica is in sync */
    redis_client_fixture_await_available(watched->fixture, false, SOON_MS);
    redis_client_fixture_await_available(watched->fixture, true, SOON_MS);
    assert_string_equal(redis_client_fixture_run(watched->fixture, "SET a 1"), "OK");
    redis_server_expect(&watched->servers[1], "1", "GET", "a", NULL);
}

static bool has_problem(void *arg)
{
    struct watched *watched = arg;
    enum redis_problem problem = redis_client_problem(watched->fixture->client);
    return problem != REDIS_NOT_TRIED && problem != REDIS_FINE;
}

static void expect_problem(struct watched *watched, enum redis_problem problem)
{
    assert_true(worker_loop_until(&watched->fixture->worker, has_problem, watched, SOON_MS));
    assert_int_equal(redis_client_problem(watched->fixture->client), problem);
    assert_false(redis_available(watched->fixture->client));
    assert_string_equal(redis_client_fixture_run(watched->fixture, "SET a 1"), "nothing");
}

static void unknown_name_is_reported(void **state)
{
    struct watched *watched = *state;
    start_watched_servers(watched);
    start_sentinels(watched);
    open_client(watched, "other");
    expect_problem(watched, REDIS_MASTER_UNKNOWN);
}

static void plain_server_is_no_sentinel(void **state)
{
    struct watched *watched = *state;
    char url[URL_MAX];
    start_watched_servers(watched);
    snprintf(url, sizeof(url), "redis-sentinel://127.0.0.1:%u/main", watched->servers[0].port);
    redis_client_fixture_open_url(watched->fixture, url);
    expect_problem(watched, REDIS_SENTINEL_OFF);
}

/* It waits, and finds the master once a sentinel is up. */
static void silent_sentinels_are_waited_for(void **state)
{
    struct watched *watched = *state;
    start_watched_servers(watched);
    start_sentinels(watched);
    for (size_t i = 0; i < SENTINELS; i++)
        redis_server_kill(&watched->sentinels[i]);
    open_client(watched, "main");
    expect_problem(watched, REDIS_SENTINELS_SILENT);
    redis_server_restart(&watched->sentinels[1]);
    redis_client_fixture_await_available(watched->fixture, true, SOON_MS);
    assert_string_equal(redis_client_fixture_run(watched->fixture, "SET a 1"), "OK");
}

/* The master goes on serving while no sentinel is left. */
static void master_is_kept_when_the_sentinels_are_gone(void **state)
{
    struct watched *watched = *state;
    start_watched_servers(watched);
    start_sentinels(watched);
    open_client(watched, "main");
    redis_client_fixture_await_available(watched->fixture, true, SOON_MS);
    for (size_t i = 0; i < SENTINELS; i++)
        redis_server_kill(&watched->sentinels[i]);
    for (int i = 0; i < 50; i++)
        assert_string_equal(redis_client_fixture_run(watched->fixture, "SET a 1"), "OK");
    assert_int_equal(watched->fixture->unavailable_reports, 0);
}

/* The sentinel wants the password of the master, and so does the master. */
static void login_is_sent_to_sentinels_that_want_one(void **state)
{
    struct watched *watched = *state;
    char url[URL_MAX];
    start_watched_servers(watched);
    redis_server_start_sentinel(&watched->sentinels[0], "main", watched->servers[0].port, 1);
    redis_server_expect(&watched->sentinels[0], "OK", "ACL", "SETUSER", "default", "resetpass",
                        ">pw", NULL);
    redis_server_expect(&watched->servers[0], "OK", "CONFIG", "SET", "requirepass", "pw", NULL);
    snprintf(url, sizeof(url), "redis-sentinel://:pw@127.0.0.1:%u/main",
             watched->sentinels[0].port);
    redis_client_fixture_open_url(watched->fixture, url);
    redis_client_fixture_await_available(watched->fixture, true, SOON_MS);
    assert_string_equal(redis_client_fixture_run(watched->fixture, "SET a 1"), "OK");
}

static void wrong_login_is_reported(void **state)
{
    struct watched *watched = *state;
    char url[URL_MAX];
    start_watched_servers(watched);
    redis_server_start_sentinel(&watched->sentinels[0], "main", watched->servers[0].port, 1);
    redis_server_expect(&watched->sentinels[0], "OK", "ACL", "SETUSER", "default", "resetpass",
                        ">pw", NULL);
    snprintf(url, sizeof(url), "redis-sentinel://:other@127.0.0.1:%u/main",
             watched->sentinels[0].port);
    redis_client_fixture_open_url(watched->fixture, url);
    expect_problem(watched, REDIS_LOGIN_REFUSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(master_is_found_and_verified, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_master_is_followed_when_the_first_is_killed, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(demoted_master_is_left, set_up, tear_down),
        cmocka_unit_test_setup_teardown(unknown_name_is_reported, set_up, tear_down),
        cmocka_unit_test_setup_teardown(plain_server_is_no_sentinel, set_up, tear_down),
        cmocka_unit_test_setup_teardown(silent_sentinels_are_waited_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(login_is_sent_to_sentinels_that_want_one, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(wrong_login_is_reported, set_up, tear_down),
        cmocka_unit_test_setup_teardown(master_is_kept_when_the_sentinels_are_gone, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
