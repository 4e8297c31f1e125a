/* Subscriptions on a real server and a real cluster: messages arrive, and resubscriptions are reported. */
#include "redis/redis_pubsub.h"

#include "support/redis_server.h"
#include "support/worker_loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SOON_MS = 30000, FAILOVER_MS = 60000, QUIET_MS = 300 };

struct fixture {
    struct worker_loop worker;
    struct redis_client *client;
    struct redis_pubsub *pubsub;
    struct redis_server server;   /* in tests with one server */
    struct redis_server *cluster; /* in tests with a cluster */
    unsigned messages;
    unsigned awaited;
    unsigned subscribed;
    unsigned in_disorder;
    bool unsubscribe_on_message;
    char channel[64];
    char last[64];
};

static void on_message(void *arg, struct slice channel, struct slice message)
{
    struct fixture *fixture = arg;
    snprintf(fixture->channel, sizeof(fixture->channel), "%.*s", SLICE_FORMAT(channel));
    snprintf(fixture->last, sizeof(fixture->last), "%.*s", SLICE_FORMAT(message));
    fixture->in_disorder += strtoul(fixture->last, NULL, 10) != fixture->messages;
    fixture->messages++;
    if (fixture->unsubscribe_on_message)
        redis_pubsub_unsubscribe(fixture->pubsub, channel);
}

static void on_subscribed(void *arg, struct slice channel)
{
    (void)channel;
    ((struct fixture *)arg)->subscribed++;
}

static const struct redis_pubsub_owner owner = {on_message, on_subscribed};

static bool is_settled(void *arg)
{
    struct fixture *fixture = arg;
    return redis_available(fixture->client) && redis_pubsub_settled(fixture->pubsub);
}

static bool has_messages(void *arg)
{
    struct fixture *fixture = arg;
    return fixture->messages >= fixture->awaited;
}

static bool has_subscribed(void *arg)
{
    struct fixture *fixture = arg;
    return fixture->subscribed >= fixture->awaited;
}

static void settle(struct fixture *fixture, int64_t limit_ms)
{
    assert_true(worker_loop_until(&fixture->worker, is_settled, fixture, limit_ms));
}

static void await_messages(struct fixture *fixture, unsigned count)
{
    fixture->awaited = count;
    worker_loop_until(&fixture->worker, has_messages, fixture, SOON_MS);
    assert_int_equal(fixture->messages, count);
}

/* Waits for so many subscriptions; one that was lost and made again counts twice. */
static void await_subscribed(struct fixture *fixture, unsigned count, int64_t limit_ms)
{
    fixture->awaited = count;
    assert_true(worker_loop_until(&fixture->worker, has_subscribed, fixture, limit_ms));
}

static void publish(struct fixture *fixture, const char *channel, const char *message)
{
    redis_publish(fixture->client, slice_of(channel), slice_of(message), NULL, NULL);
}

static void subscribe(struct fixture *fixture, const char *channel)
{
    assert_true(redis_pubsub_subscribe(fixture->pubsub, slice_of(channel)));
}

static void open_pubsub(struct fixture *fixture, const char *place, uint16_t port)
{
    fixture->client = worker_loop_redis(&fixture->worker, place, port);
    fixture->pubsub = redis_pubsub_make(fixture->client, &owner, fixture);
    assert_non_null(fixture->pubsub);
}

static void open_single(struct fixture *fixture, const char *const *options)
{
    redis_server_start(&fixture->server, options);
    open_pubsub(fixture, "redis://127.0.0.1", fixture->server.port);
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    fixture->cluster = *state;
    *state = fixture;
    worker_loop_open(&fixture->worker);
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    redis_pubsub_free(&fixture->pubsub);
    redis_client_free(&fixture->client);
    redis_server_stop(&fixture->server);
    worker_loop_close(&fixture->worker);
    free(fixture);
    return 0;
}

/* ---- one server ---- */

static void messages_arrive_in_order(void **state)
{
    enum { MESSAGES = 10000 };
    struct fixture *fixture = *state;
    char number[16];
    open_single(fixture, REDIS_DEFAULTS);
    subscribe(fixture, "a");
    subscribe(fixture, "a");
    settle(fixture, SOON_MS);
    assert_int_equal(fixture->subscribed, 1);
    for (int i = 0; i < MESSAGES; i++) {
        snprintf(number, sizeof(number), "%d", i);
        publish(fixture, "a", number);
    }
    await_messages(fixture, MESSAGES);
    assert_int_equal(fixture->in_disorder, 0);
    assert_string_equal(fixture->channel, "a");
}

static void unsubscribed_channel_gets_no_messages(void **state)
{
    struct fixture *fixture = *state;
    char reply[REDIS_SERVER_REPLY_MAX];
    open_single(fixture, REDIS_DEFAULTS);
    subscribe(fixture, "a");
    subscribe(fixture, "b");
    settle(fixture, SOON_MS);
    redis_pubsub_unsubscribe(fixture->pubsub, SLICE("a"));
    redis_pubsub_unsubscribe(fixture->pubsub, SLICE("never"));
    publish(fixture, "a", "x");
    publish(fixture, "b", "y");
    await_messages(fixture, 1);
    assert_string_equal(fixture->last, "y");
    redis_server_ask(&fixture->server, reply, "PUBSUB", "CHANNELS", NULL);
    assert_string_equal(reply, "b ");
    fixture->unsubscribe_on_message = true;
    publish(fixture, "b", "z");
    publish(fixture, "b", "unsubscribed");
    await_messages(fixture, 2);
    worker_loop_run(&fixture->worker, QUIET_MS);
    assert_int_equal(fixture->messages, 2);
}

static void repeated_subscribing_and_unsubscribing_settles(void **state)
{
    struct fixture *fixture = *state;
    open_single(fixture, REDIS_DEFAULTS);
    subscribe(fixture, "a");
    settle(fixture, SOON_MS);
    for (int i = 0; i < 5; i++) {
        redis_pubsub_unsubscribe(fixture->pubsub, SLICE("a"));
        subscribe(fixture, "a");
        if (i % 2)
            loop_turn(&fixture->worker.loop, 0);
    }
    settle(fixture, SOON_MS);
    publish(fixture, "a", "0");
    await_messages(fixture, 1);
    redis_pubsub_unsubscribe(fixture->pubsub, SLICE("a"));
    subscribe(fixture, "a");
    redis_pubsub_unsubscribe(fixture->pubsub, SLICE("a"));
    worker_loop_run(&fixture->worker, QUIET_MS);
    redis_server_expect(&fixture->server, "", "PUBSUB", "CHANNELS", NULL);
}

static void subscribe_many(struct fixture *fixture, unsigned count)
{
    char channel[32];
    for (unsigned i = 0; i < count; i++) {
        snprintf(channel, sizeof(channel), "channel-%u", i);
        subscribe(fixture, channel);
    }
}

static void channels_are_subscribed_again_after_a_lost_connection(void **state)
{
    enum { CHANNELS = 5000 };
    struct fixture *fixture = *state;
    char reply[REDIS_SERVER_REPLY_MAX];
    open_single(fixture, REDIS_DEFAULTS);
    subscribe_many(fixture, CHANNELS);
    settle(fixture, SOON_MS);
    assert_int_equal(fixture->subscribed, CHANNELS);
    redis_server_expect(&fixture->server, "1", "CLIENT", "KILL", "TYPE", "pubsub", NULL);
    await_subscribed(fixture, 2 * CHANNELS, SOON_MS);
    assert_true(redis_pubsub_settled(fixture->pubsub));
    redis_server_kill(&fixture->server);
    worker_loop_run(&fixture->worker, QUIET_MS);
    redis_server_restart(&fixture->server);
    await_subscribed(fixture, 3 * CHANNELS, SOON_MS);
    worker_loop_run(&fixture->worker, QUIET_MS);
    assert_int_equal(fixture->subscribed, 3 * CHANNELS);
    redis_server_ask(&fixture->server, reply, "PUBSUB", "NUMSUB", "channel-0", "channel-4999",
                     NULL);
    assert_string_equal(reply, "channel-0 1 channel-4999 1 ");
    publish(fixture, "channel-77", "0");
    await_messages(fixture, 1);
}

static void version_2_supports_subscriptions(void **state)
{
    struct fixture *fixture = *state;
    open_single(fixture, REDIS_OPTIONS("--rename-command", "HELLO", "GOODBYE"));
    subscribe(fixture, "a");
    subscribe(fixture, "b");
    settle(fixture, SOON_MS);
    publish(fixture, "a", "0");
    await_messages(fixture, 1);
    worker_loop_run(&fixture->worker,
                    1500); /* long enough for a PING, whose reply differs in version 2 */
    redis_pubsub_unsubscribe(fixture->pubsub, SLICE("a"));
    publish(fixture, "b", "1");
    await_messages(fixture, 2);
}

static void too_long_channel_name_is_refused(void **state)
{
    struct fixture *fixture = *state;
    char name[REDIS_CHANNEL_BYTES_MAX + 1] = {0};
    open_single(fixture, REDIS_DEFAULTS);
    assert_false(redis_pubsub_subscribe(fixture->pubsub, (struct slice){name, sizeof(name)}));
    assert_true(redis_pubsub_subscribe(fixture->pubsub, (struct slice){name, sizeof(name) - 1}));
    settle(fixture, SOON_MS);
}

/* ---- a cluster ---- */

static void channels_are_subscribed_at_the_server_of_their_slot(void **state)
{
    enum { CHANNELS = 600 };
    struct fixture *fixture = *state;
    char channel[32];
    char number[16];
    open_pubsub(fixture, "redis-cluster://127.0.0.1", fixture->cluster[1].port);
    subscribe_many(fixture, CHANNELS); /* before the table was fetched */
    settle(fixture, SOON_MS);
    assert_int_equal(fixture->subscribed, CHANNELS);
    for (unsigned i = 0; i < CHANNELS; i++) {
        snprintf(channel, sizeof(channel), "channel-%u", i);
        snprintf(number, sizeof(number), "%u", i);
        publish(fixture, channel, number);
    }
    await_messages(fixture, CHANNELS);
    for (int i = 0; i < REDIS_CLUSTER_MASTERS; i++) {
        char reply[REDIS_SERVER_REPLY_MAX];
        redis_server_ask(&fixture->cluster[i], reply, "PUBSUB", "SHARDCHANNELS", NULL);
        assert_non_null(strstr(reply, "channel-"));
    }
}

static void channels_follow_a_moved_slot(void **state)
{
    struct fixture *fixture = *state;
    char from[REDIS_SERVER_REPLY_MAX];
    char to[REDIS_SERVER_REPLY_MAX];
    char slot[8];
    unsigned number = redis_slot(SLICE("{moving}"));
    unsigned owner_index = number * REDIS_CLUSTER_MASTERS / REDIS_SLOTS;
    struct redis_server *old = &fixture->cluster[owner_index];
    struct redis_server *new = &fixture->cluster[(owner_index + 1) % REDIS_CLUSTER_MASTERS];
    open_pubsub(fixture, "redis-cluster://127.0.0.1", fixture->cluster[0].port);
    subscribe(fixture, "{moving}1");
    subscribe(fixture, "{moving}2");
    subscribe(fixture, "other");
    settle(fixture, SOON_MS);
    publish(fixture, "{moving}1", "0");
    await_messages(fixture, 1);
    snprintf(slot, sizeof(slot), "%u", number % REDIS_SLOTS);
    redis_cluster_id(old, from);
    redis_cluster_id(new, to);
    redis_server_expect(new, "OK", "CLUSTER", "SETSLOT", slot, "IMPORTING", from, NULL);
    redis_server_expect(old, "OK", "CLUSTER", "SETSLOT", slot, "MIGRATING", to, NULL);
    redis_server_expect(new, "OK", "CLUSTER", "SETSLOT", slot, "NODE", to, NULL);
    redis_server_expect(old, "OK", "CLUSTER", "SETSLOT", slot, "NODE", to, NULL);
    int64_t start_us = clock_microseconds();
    await_subscribed(fixture, 5, SOON_MS); /* three channels, and two of them again */
    print_message("resubscribed after %lld ms\n",
                  (long long)(clock_microseconds() - start_us) / 1000);
    settle(fixture, SOON_MS);
    publish(fixture, "{moving}1", "1");
    publish(fixture, "{moving}2", "2");
    publish(fixture, "other", "3");
    await_messages(fixture, 4);
    char reply[REDIS_SERVER_REPLY_MAX];
    redis_server_ask(new, reply, "PUBSUB", "SHARDNUMSUB", "{moving}1", NULL);
    assert_string_equal(reply, "{moving}1 1 ");
}

/* Runs last, since it leaves the cluster with another master. */
static void channels_follow_a_failover(void **state)
{
    struct fixture *fixture = *state;
    open_pubsub(fixture, "redis-cluster://127.0.0.1", fixture->cluster[1].port);
    subscribe_many(fixture, 100);
    settle(fixture, SOON_MS);
    redis_server_kill(&fixture->cluster[0]);
    int64_t start_us = clock_microseconds();
    await_subscribed(fixture, 101, FAILOVER_MS);
    settle(fixture, FAILOVER_MS);
    print_message("resubscribed after %lld ms\n",
                  (long long)(clock_microseconds() - start_us) / 1000);
    char channel[32];
    for (unsigned i = 0; i < 100; i++) {
        snprintf(channel, sizeof(channel), "channel-%u", i);
        publish(fixture, channel, "x");
    }
    await_messages(fixture, 100);
}

#define with_fixture(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest with_one[] = {
        with_fixture(messages_arrive_in_order),
        with_fixture(unsubscribed_channel_gets_no_messages),
        with_fixture(repeated_subscribing_and_unsubscribing_settles),
        with_fixture(channels_are_subscribed_again_after_a_lost_connection),
        with_fixture(version_2_supports_subscriptions),
        with_fixture(too_long_channel_name_is_refused),
    };
    const struct CMUnitTest with_many[] = {
        with_fixture(channels_are_subscribed_at_the_server_of_their_slot),
        with_fixture(channels_follow_a_moved_slot),
        with_fixture(channels_follow_a_failover),
    };
    return cmocka_run_group_tests(with_one, NULL, NULL) +
           cmocka_run_group_tests(with_many, redis_cluster_set_up, redis_cluster_tear_down);
}
