/* Cached routes and what makes them old, on a single server and on a cluster. Changes are made over connections of the
 * tests' own that do not turn the loop: so the store's operation always begins before the report of the change is read. */
#include "store/redis/redis_keys.h"
#include "support/state_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct state_pair the_pair;

/* ---- operations ---- */

enum { ROUTES_TEXT_MAX = 256 };

struct routes_answer {
    struct state_pair *pair;
    char text[ROUTES_TEXT_MAX]; /* "gw-1:alice,bob gw-2:bob parked:alice " */
    size_t devices;
};

static void append_users(char text[ROUTES_TEXT_MAX], struct slice name, const struct slice *users,
                         size_t count)
{
    size_t len = strlen(text);
    len += (size_t)snprintf(text + len, ROUTES_TEXT_MAX - len, "%.*s:", SLICE_FORMAT(name));
    for (size_t i = 0; i < count; i++)
        len += (size_t)snprintf(text + len, ROUTES_TEXT_MAX - len, i ? ",%.*s" : "%.*s",
                                SLICE_FORMAT(users[i]));
    snprintf(text + len, ROUTES_TEXT_MAX - len, " ");
}

static void on_routes(void *arg, enum state_status status, const struct state_routes *routes)
{
    struct routes_answer *answer = arg;
    answer->pair->waiting--;
    answer->pair->status = status;
    for (size_t i = 0; status == STATE_OK && i < routes->count; i++)
        append_users(answer->text, routes->items[i].gateway_id, routes->items[i].users,
                     routes->items[i].count);
    if (status == STATE_OK && routes->parked_count)
        append_users(answer->text, SLICE("parked"), routes->parked, routes->parked_count);
    answer->devices = status == STATE_OK ? routes->devices : 0;
}

static const char *routes_of_users(struct state_pair *pair, const struct slice *users, size_t count)
{
    static struct routes_answer answer;
    answer = (struct routes_answer){.pair = pair};
    pair->waiting = 1;
    state_routes(pair->first, users, count, on_routes, &answer);
    state_pair_await(pair);
    return pair->status == STATE_OK ? answer.text : "unavailable";
}

static const char *routes_of(struct state_pair *pair, struct slice user)
{
    return routes_of_users(pair, &user, 1);
}

static size_t master_count(const struct state_pair *pair)
{
    return pair->fleet.cluster ? REDIS_CLUSTER_MASTERS : 1;
}

/* Returns the server that has the user's keys. */
static const struct redis_server *server_of(struct state_pair *pair, const char *user)
{
    char key[64], reply[REDIS_SERVER_REPLY_MAX];
    snprintf(key, sizeof(key), pair->fleet.cluster ? "last_seen:{%s}" : "last_seen:%s", user);
    for (size_t i = 0; i < master_count(pair); i++) {
        redis_server_ask(&pair->fleet.servers[i], reply, "EXISTS", key, NULL);
        if (!strstr(reply, "MOVED"))
            return &pair->fleet.servers[i];
    }
    fail_msg("no server has the user");
    return NULL;
}

/* Changes a user's key directly, without a turn of the loop. */
static void change(struct state_pair *pair, const char *command, const char *prefix,
                   const char *user, const char *value)
{
    char key[64], reply[REDIS_SERVER_REPLY_MAX];
    snprintf(key, sizeof(key), pair->fleet.cluster ? "%s:{%s}" : "%s:%s", prefix, user);
    redis_server_ask(server_of(pair, user), reply, command, key, value, NULL);
}

/* Returns how often all masters have executed a command. */
static long calls_of(struct state_pair *pair, const char *command)
{
    char reply[REDIS_SERVER_REPLY_MAX], name[64];
    long calls = 0;
    snprintf(name, sizeof(name), "cmdstat_%s:calls=", command);
    for (size_t i = 0; i < master_count(pair); i++) {
        redis_server_ask(&pair->fleet.servers[i], reply, "INFO", "commandstats", NULL);
        const char *found = strstr(reply, name);
        calls += found ? strtol(found + strlen(name), NULL, 10) : 0;
    }
    return calls;
}

/* ---- tests ---- */

static void users_are_read_once_however_often_they_are_asked_for(void **state)
{
    struct state_pair *pair = *state;
    const struct slice users[] = {SLICE("alice"), SLICE("bob"), SLICE("carol")};
    state_pair_open(pair, pair->second, SLICE("alice"), 1);
    assert_string_equal(routes_of_users(pair, users, 3), "gw-2:alice ");
    long before = calls_of(pair, "smembers"), exists = calls_of(pair, "exists");
    for (int i = 0; i < 5; i++)
        assert_string_equal(routes_of_users(pair, users, 3), "gw-2:alice ");
    assert_int_equal(calls_of(pair, "smembers"), before);
    if (!pair->fleet.cluster) /* where it is also what confirms */
        assert_int_equal(calls_of(pair, "exists"), exists);
}

static void user_who_came_online_is_found_though_the_report_is_late(void **state)
{
    struct state_pair *pair = *state;
    assert_string_equal(routes_of(pair, SLICE("alice")), "");
    change(pair, "SADD", "user_servers", "alice", "gw-9");
    assert_string_equal(routes_of(pair, SLICE("alice")), "gw-9:alice ");
}

static void second_gateway_of_a_user_is_found_though_the_report_is_late(void **state)
{
    struct state_pair *pair = *state;
    const struct slice users[] = {SLICE("bob"), SLICE("alice"), SLICE("carol")};
    state_pair_open(pair, pair->first, SLICE("alice"), 1);
    assert_string_equal(routes_of_users(pair, users, 3), "gw-1:alice ");
    change(pair, "SREM", "user_servers", "alice", "gw-1");
    change(pair, "SADD", "user_servers", "alice", "gw-7");
    assert_string_equal(routes_of_users(pair, users, 3), "gw-7:alice ");
    assert_string_equal(routes_of_users(pair, users, 3), "gw-7:alice ");
    change(pair, "SADD", "user_servers", "bob", "gw-8");
    change(pair, "DEL", "user_servers", "alice", NULL);
    assert_string_equal(routes_of_users(pair, users, 3), "gw-8:bob ");
}

static void lease_that_opens_or_closes_is_followed(void **state)
{
    struct state_pair *pair = *state;
    assert_string_equal(routes_of(pair, SLICE("alice")), "");
    state_pair_open(pair, pair->second, SLICE("alice"), 1);
    assert_string_equal(routes_of(pair, SLICE("alice")), "gw-2:alice ");
    state_pair_close(pair, pair->second, SLICE("alice"), 1);
    assert_string_equal(routes_of(pair, SLICE("alice")), "");
}

static void parked_session_is_followed(void **state)
{
    struct state_pair *pair = *state;
    assert_string_equal(routes_of(pair, SLICE("alice")), "");
    change(pair, "SET", "recoveries", "alice", "any value");
    assert_string_equal(routes_of(pair, SLICE("alice")), "parked:alice ");
    change(pair, "DEL", "recoveries", "alice", NULL);
    assert_string_equal(routes_of(pair, SLICE("alice")), "");
}

static void devices_of_a_single_user_are_counted(void **state)
{
    struct state_pair *pair = *state;
    struct slice alice = SLICE("alice");
    struct routes_answer answer = {.pair = pair};
    const struct slice users[] = {SLICE("alice"), SLICE("bob")};
    state_pair_open(pair, pair->first, alice, 1);
    assert_string_equal(routes_of_users(pair, users, 2), "gw-1:alice ");
    state_pair_open(pair, pair->second, alice, 2);
    for (int i = 0; i < 2; i++) {
        pair->waiting = 1;
        state_routes(pair->first, &alice, 1, on_routes, &answer);
        state_pair_await(pair);
        assert_int_equal(answer.devices, 2);
    }
    change(pair, "SREM", "user_connections", "alice", "none such");
    change(pair, "SADD", "user_connections", "alice", "one more");
    pair->waiting = 1;
    state_routes(pair->first, &alice, 1, on_routes, &answer);
    state_pair_await(pair);
    assert_int_equal(answer.devices, 3);
}

/* ---- routes that are told early ---- */

struct early_answer {
    struct routes_answer final;
    char early[ROUTES_TEXT_MAX]; /* as in struct routes_answer; "-": nothing was told early */
    char added[ROUTES_TEXT_MAX];
    bool publishes; /* sends a command that can confirm them */
};

static void write_routes(char text[ROUTES_TEXT_MAX], const struct state_routes *routes)
{
    text[0] = '\0';
    for (size_t i = 0; i < routes->count; i++)
        append_users(text, routes->items[i].gateway_id, routes->items[i].users,
                     routes->items[i].count);
    if (routes->parked_count)
        append_users(text, SLICE("parked"), routes->parked, routes->parked_count);
}

static void on_early_routes(void *arg, const struct state_routes *routes)
{
    struct early_answer *answer = arg;
    struct redis_fleet *fleet = &answer->final.pair->fleet;
    write_routes(answer->early, routes);
    if (answer->publishes)
        redis_publish(fleet->clients[0], SLICE("server:gw-9:deliver"), SLICE("x"), NULL, NULL);
}

static void on_routes_after_early(void *arg, enum state_status status,
                                  const struct state_routes *routes)
{
    struct early_answer *answer = arg;
    on_routes(&answer->final, status, routes);
    if (status == STATE_OK && routes->added)
        write_routes(answer->added, routes->added);
}

static struct early_answer *start_early(struct state_pair *pair, const struct slice *users,
                                        size_t count)
{
    static struct early_answer answer;
    answer =
        (struct early_answer){.final.pair = pair, .early = "-", .added = "-", .publishes = true};
    pair->waiting++;
    state_routes_early(pair->first, users, count, on_early_routes, on_routes_after_early, &answer);
    return &answer;
}

/* In either order: on a cluster the users take turns. */
static void expect_both_routes(const char *text, const char *one, const char *other)
{
    assert_non_null(strstr(text, one));
    assert_non_null(strstr(text, other));
    assert_int_equal(strlen(text), strlen(one) + strlen(other));
}

static void publication_to_remembered_routes_confirms_them(void **state)
{
    struct state_pair *pair = *state;
    const struct slice users[] = {SLICE("alice"), SLICE("bob")};
    state_pair_open(pair, pair->second, users[0], 1);
    state_pair_open(pair, pair->first, users[1], 2);
    const struct early_answer *answer = start_early(pair, users, 2);
    state_pair_await(pair);
    assert_string_equal(answer->early, "-");
    assert_string_equal(answer->added, "-");
    long pings = calls_of(pair, "ping"), reads = calls_of(pair, "smembers");
    for (int i = 0; i < 5; i++) {
        answer = start_early(pair, users, 2);
        expect_both_routes(answer->early, "gw-2:alice ", "gw-1:bob ");
        state_pair_await(pair);
        expect_both_routes(answer->final.text, "gw-2:alice ", "gw-1:bob ");
        assert_string_equal(answer->added, "");
    }
    assert_int_equal(calls_of(pair, "smembers"), reads);
    if (!pair->fleet.cluster) /* where the publication may go to another server */
        assert_int_equal(calls_of(pair, "ping"), pings);
}

static void route_that_is_reported_late_is_added_to_the_remembered_ones(void **state)
{
    struct state_pair *pair = *state;
    const struct slice users[] = {SLICE("alice"), SLICE("bob")};
    state_pair_open(pair, pair->second, users[0], 1);
    state_pair_open(pair, pair->first, users[1], 2);
    routes_of_users(pair, users, 2);
    change(pair, "SADD", "user_servers", "alice", "gw-7");
    change(pair, "SET", "recoveries", "bob", "any value");
    const struct early_answer *answer = start_early(pair, users, 2);
    expect_both_routes(answer->early, "gw-2:alice ", "gw-1:bob ");
    state_pair_await(pair);
    assert_string_equal(answer->added, "gw-7:alice parked:bob ");
    assert_non_null(strstr(answer->final.text, "gw-2:alice"));
    assert_non_null(strstr(answer->final.text, "gw-7:alice"));
    change(pair, "SREM", "user_servers", "alice", "gw-2");
    answer = start_early(pair, users, 2);
    state_pair_await(pair);
    assert_string_equal(answer->added, "");
    assert_null(strstr(answer->final.text, "gw-2:alice"));
}

/* Else what is sent to remembered routes would overtake what waits for others. */
static void nothing_is_told_early_behind_an_operation_without_routes(void **state)
{
    struct state_pair *pair = *state;
    const struct slice alice = SLICE("alice"), bob = SLICE("bob");
    struct routes_answer unknown = {.pair = pair};
    state_pair_open(pair, pair->second, alice, 1);
    struct early_answer *answer = start_early(pair, &alice, 1);
    state_pair_await(pair);
    pair->waiting = 1;
    state_routes(pair->first, &bob, 1, on_routes, &unknown);
    answer = start_early(pair, &alice, 1);
    assert_string_equal(answer->early, "-");
    state_pair_await(pair);
    assert_string_equal(answer->final.text, "gw-2:alice ");
    answer = start_early(pair, &alice, 1);
    assert_string_equal(answer->early, "gw-2:alice ");
    state_pair_await(pair);
}

static void connection_that_is_lost_confirms_nothing(void **state)
{
    struct state_pair *pair = *state;
    const struct slice alice = SLICE("alice");
    char reply[REDIS_SERVER_REPLY_MAX];
    state_pair_open(pair, pair->second, alice, 1);
    start_early(pair, &alice, 1);
    state_pair_await(pair);
    const struct redis_server *server = server_of(pair, "alice");
    redis_server_ask(server, reply, "CLIENT", "KILL", "TYPE", "normal", NULL);
    change(pair, "SADD", "user_servers", "alice", "gw-7");
    struct early_answer *answer = start_early(pair, &alice, 1);
    assert_string_equal(answer->early, "gw-2:alice ");
    state_pair_await(pair);
    if (pair->status == STATE_OK)
        assert_string_equal(answer->added, "gw-7:alice ");
    while (strcmp(routes_of(pair, alice), "unavailable") == 0)
        state_pair_pass(pair, 5);
    state_pair_await_that(pair, state_pair_is_available);
}

static void expired_route_is_forgotten(void **state)
{
    struct state_pair *pair = *state;
    state_pair_open(pair, pair->second, SLICE("alice"), 1);
    assert_string_equal(routes_of(pair, SLICE("alice")), "gw-2:alice ");
    change(pair, "PEXPIRE", "user_servers", "alice", "1");
    state_pair_pass(pair, 20);
    assert_string_equal(routes_of(pair, SLICE("alice")), "");
}

static void emptied_redis_is_followed(void **state)
{
    struct state_pair *pair = *state;
    state_pair_open(pair, pair->second, SLICE("alice"), 1);
    assert_string_equal(routes_of(pair, SLICE("alice")), "gw-2:alice ");
    redis_fleet_empty(&pair->fleet);
    assert_string_equal(routes_of(pair, SLICE("alice")), "");
}

/* Nobody reports what changes while the connection is lost. */
static void change_during_a_lost_connection_is_found(void **state)
{
    struct state_pair *pair = *state;
    char reply[REDIS_SERVER_REPLY_MAX];
    assert_string_equal(routes_of(pair, SLICE("alice")), "");
    redis_server_ask(server_of(pair, "alice"), reply, "CLIENT", "KILL", "TYPE", "normal", NULL);
    change(pair, "SADD", "user_servers", "alice", "gw-9");
    assert_string_not_equal(routes_of(pair, SLICE("alice")), "");
    for (const char *text = ""; strcmp(text, "gw-9:alice ") != 0;) {
        state_pair_pass(pair, 5);
        text = routes_of(pair, SLICE("alice"));
        assert_string_not_equal(text, "");
    }
}

static void foreign_value_counts_as_no_route(void **state)
{
    struct state_pair *pair = *state;
    change(pair, "SET", "user_servers", "alice", "no set");
    assert_string_equal(routes_of(pair, SLICE("alice")), "");
    change(pair, "DEL", "user_servers", "alice", NULL);
    change(pair, "SADD", "user_servers", "alice", "gw-9");
    assert_string_equal(routes_of(pair, SLICE("alice")), "gw-9:alice ");
}

/* Nothing reports that an empty slot has moved. */
/* Moves the user's slot to another master, with its keys if it has any. */
static void move_slot_of(struct state_pair *pair, const char *user)
{
    char slot[REDIS_SERVER_REPLY_MAX], from_id[REDIS_SERVER_REPLY_MAX];
    char to_id[REDIS_SERVER_REPLY_MAX], reply[REDIS_SERVER_REPLY_MAX], port[16], key[64];
    const struct redis_server *from = server_of(pair, user), *to = &pair->fleet.servers[0];
    if (from == to)
        to = &pair->fleet.servers[1];
    snprintf(port, sizeof(port), "%u", (unsigned)to->port);
    snprintf(key, sizeof(key), "{%s}", user);
    redis_server_ask(from, slot, "CLUSTER", "KEYSLOT", key, NULL);
    redis_cluster_id(from, from_id);
    redis_cluster_id(to, to_id);
    redis_server_expect(to, "OK", "CLUSTER", "SETSLOT", slot, "IMPORTING", from_id, NULL);
    redis_server_expect(from, "OK", "CLUSTER", "SETSLOT", slot, "MIGRATING", to_id, NULL);
    snprintf(key, sizeof(key), "user_servers:{%s}", user);
    redis_server_ask(from, reply, "MIGRATE", "127.0.0.1", port, key, "0", "1000", NULL);
    redis_server_expect(to, "OK", "CLUSTER", "SETSLOT", slot, "NODE", to_id, NULL);
    redis_server_expect(from, "OK", "CLUSTER", "SETSLOT", slot, "NODE", to_id, NULL);
}

static void user_whose_slot_has_moved_is_found(void **state)
{
    struct state_pair *pair = *state;
    assert_string_equal(routes_of(pair, SLICE("alice")), "");
    move_slot_of(pair, "alice");
    change(pair, "SADD", "user_servers", "alice", "gw-9");
    assert_string_equal(routes_of(pair, SLICE("alice")), "gw-9:alice ");
}

/* Nobody asks for its key: that the keys have gone is reported. */
static void route_whose_slot_has_moved_is_found(void **state)
{
    struct state_pair *pair = *state;
    change(pair, "SADD", "user_servers", "erin", "gw-8");
    assert_string_equal(routes_of(pair, SLICE("erin")), "gw-8:erin ");
    move_slot_of(pair, "erin");
    change(pair, "SADD", "user_servers", "erin", "gw-9");
    const char *found = routes_of(pair, SLICE("erin"));
    assert_non_null(strstr(found, "gw-9:erin "));
    assert_non_null(strstr(found, "gw-8:erin "));
}

/* Makes every connection of the clients a new one. The users are on all masters. */
static void reconnect(struct state_pair *pair)
{
    const struct slice users[] = {SLICE("dave"),  SLICE("erin"), SLICE("frank"), SLICE("grace"),
                                  SLICE("heidi"), SLICE("ivan"), SLICE("judy"),  SLICE("mallory")};
    char reply[REDIS_SERVER_REPLY_MAX];
    for (size_t i = 0; i < master_count(pair); i++)
        redis_server_ask(&pair->fleet.servers[i], reply, "CLIENT", "KILL", "TYPE", "normal", NULL);
    do
        state_pair_pass(pair, 5);
    while (strcmp(routes_of_users(pair, users, sizeof(users) / sizeof(users[0])), "") != 0);
}

static void server_without_tracking_is_read_each_time(void **state)
{
    struct state_pair *pair = *state;
    char reply[REDIS_SERVER_REPLY_MAX];
    for (size_t i = 0; i < master_count(pair); i++)
        redis_server_ask(&pair->fleet.servers[i], reply, "ACL", "SETUSER", "default",
                         "-client|tracking", NULL);
    reconnect(pair);
    assert_string_equal(routes_of(pair, SLICE("alice")), "");
    long before = calls_of(pair, "smembers");
    change(pair, "SADD", "user_servers", "alice", "gw-9");
    assert_string_equal(routes_of(pair, SLICE("alice")), "gw-9:alice ");
    assert_string_equal(routes_of(pair, SLICE("alice")), "gw-9:alice ");
    assert_int_equal(calls_of(pair, "smembers"), before + 2);
    for (size_t i = 0; i < master_count(pair); i++)
        redis_server_ask(&pair->fleet.servers[i], reply, "ACL", "SETUSER", "default",
                         "+client|tracking", NULL);
    reconnect(pair);
}

#define TEST(name) STATE_PAIR_TEST(name, &the_pair)

static int run(bool cluster)
{
    const struct CMUnitTest tests[] = {
        TEST(users_are_read_once_however_often_they_are_asked_for),
        TEST(user_who_came_online_is_found_though_the_report_is_late),
        TEST(second_gateway_of_a_user_is_found_though_the_report_is_late),
        TEST(lease_that_opens_or_closes_is_followed),
        TEST(parked_session_is_followed),
        TEST(devices_of_a_single_user_are_counted),
        TEST(publication_to_remembered_routes_confirms_them),
        TEST(route_that_is_reported_late_is_added_to_the_remembered_ones),
        TEST(nothing_is_told_early_behind_an_operation_without_routes),
        TEST(expired_route_is_forgotten),
        TEST(emptied_redis_is_followed),
        TEST(connection_that_is_lost_confirms_nothing),
        TEST(change_during_a_lost_connection_is_found),
        TEST(foreign_value_counts_as_no_route),
        TEST(server_without_tracking_is_read_each_time),
    };
    const struct CMUnitTest cluster_tests[] = {TEST(user_whose_slot_has_moved_is_found),
                                               TEST(route_whose_slot_has_moved_is_found)};
    redis_fleet_open(&the_pair.fleet, cluster);
    int failed =
        cmocka_run_group_tests_name(cluster ? "on a cluster" : "on a server", tests, NULL, NULL);
    if (cluster)
        failed += cmocka_run_group_tests(cluster_tests, NULL, NULL);
    redis_fleet_close(&the_pair.fleet);
    return failed;
}

int main(void)
{
    return run(false) + run(true);
}
