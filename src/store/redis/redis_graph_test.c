/* The graph store on Redis, on a single server and on a cluster: the suite of all backends, and tests of its own. */
#include "conformance/graph_store_suite.h"
#include "store/redis/redis_graph.h"
#include "store/redis/state/redis_state.h"
#include "support/redis_fleet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { ROUND_TRIPS_MAX = 2, WINDOW_MS = 60000, DAY_MS = 24 * 60 * 60 * 1000 };

struct redis_backend {
    struct redis_fleet fleet;
    struct state_store *state;
    struct graph_store *ports[GRAPH_STORE_SUITE_PORTS];
};

static struct redis_backend the_backend;

static void start_redis_graphs(void *context)
{
    struct redis_backend *backend = context;
    redis_fleet_empty(&backend->fleet);
    backend->state =
        redis_state_make(&(struct redis_state_options){.client = backend->fleet.clients[0],
                                                       .loop = &backend->fleet.worker.loop,
                                                       .random = &backend->fleet.worker.random,
                                                       .metrics = &backend->fleet.worker.metrics,
                                                       .gateway_id = SLICE("g"),
                                                       .lease_window_ms = WINDOW_MS});
    assert_non_null(backend->state);
    for (size_t i = 0; i < GRAPH_STORE_SUITE_PORTS; i++) {
        backend->ports[i] =
            redis_graph_make(&(struct redis_graph_options){.client = backend->fleet.clients[i],
                                                           .random = &backend->fleet.worker.random,
                                                           .loop = &backend->fleet.worker.loop});
        assert_non_null(backend->ports[i]);
    }
}

static struct graph_store *get_port(void *context, size_t index)
{
    redis_fleet_settle(&((struct redis_backend *)context)->fleet, 1);
    return ((struct redis_backend *)context)->ports[index];
}

static struct state_store *get_state_port(void *context)
{
    return ((struct redis_backend *)context)->state;
}

static void stop_redis_graphs(void *context)
{
    struct redis_backend *backend = context;
    for (size_t i = 0; i < GRAPH_STORE_SUITE_PORTS; i++)
        graph_store_free(&backend->ports[i]);
    redis_fleet_settle(&backend->fleet, ROUND_TRIPS_MAX);
    state_store_free(&backend->state);
}

static void poll_fleet(void *context)
{
    redis_fleet_poll(&((struct redis_backend *)context)->fleet);
}

/* ---- tests of its own ---- */

struct answer {
    size_t count;
    enum state_status status;
    bool known;
    bool aged;
    uint64_t ticket;
    uint8_t presence_visibility;
    size_t contacts;
};

static void on_lookup(void *arg, enum state_status status, const struct graph_lookup *lookup)
{
    struct answer *answer = arg;
    answer->count++;
    answer->status = status;
    if (status != STATE_OK)
        return;
    answer->known = lookup->known;
    answer->aged = lookup->aged;
    answer->ticket = lookup->ticket;
    answer->presence_visibility = lookup->graph.presence_visibility;
    answer->contacts = lookup->graph.contacts.count;
}

static struct answer look_up(struct redis_backend *backend, struct slice user)
{
    struct answer answer = {0};
    graph_lookup(backend->ports[0], user, on_lookup, &answer);
    redis_fleet_settle(&backend->fleet, ROUND_TRIPS_MAX);
    assert_int_equal(answer.count, 1);
    return answer;
}

static void put_graph(struct redis_backend *backend, struct slice user, uint8_t visibility)
{
    static const struct slice CONTACTS[] = {{"bob", 3}, {"carol", 5}};
    static const struct slice BLOCKED[] = {{"mallory", 7}};
    static const struct slice CHATS[] = {{"c1", 2}};
    graph_put(backend->ports[0], user, look_up(backend, user).ticket,
              &(struct social_graph){.presence_visibility = visibility,
                                     .contacts = {CONTACTS, 2},
                                     .blocked = {BLOCKED, 1},
                                     .blocked_by = {BLOCKED, 1},
                                     .chats = {CHATS, 1}});
    redis_fleet_settle(&backend->fleet, ROUND_TRIPS_MAX);
}

static void put_and_check(struct redis_backend *backend, struct slice user, uint8_t visibility)
{
    put_graph(backend, user, visibility);
    assert_true(look_up(backend, user).known);
}

static int set_up(void **state)
{
    start_redis_graphs(&the_backend);
    *state = &the_backend;
    return 0;
}

static int tear_down(void **state)
{
    stop_redis_graphs(*state);
    return 0;
}

/* Runs a command on one of alice's keys. */
static const char *run_on_key(struct redis_backend *backend, const char *command,
                              const char *single, const char *clustered)
{
    struct slice key = slice_of(backend->fleet.cluster ? clustered : single);
    return redis_fleet_ask(&backend->fleet, key, REDIS_ARGS(slice_of(command), key));
}

static void keys_have_the_types_and_lifetimes_of_the_design(void **state)
{
    struct redis_backend *backend = *state;
    put_and_check(backend, SLICE("alice"), 0);
    assert_string_equal(run_on_key(backend, "TYPE", "user:alice:friends", "user:{alice}:friends"),
                        "set");
    assert_string_equal(run_on_key(backend, "SCARD", "user:alice:friends", "user:{alice}:friends"),
                        "2");
    assert_string_equal(
        run_on_key(backend, "GET", "presence_visibility:alice", "presence_visibility:{alice}"),
        "contacts_only");
    long left = strtol(
        run_on_key(backend, "PTTL", "presence_visibility:alice", "presence_visibility:{alice}"),
        NULL, 10);
    assert_in_range(left, 290000, 300000);
    left =
        strtol(run_on_key(backend, "PTTL", "user:alice:friends", "user:{alice}:friends"), NULL, 10);
    assert_in_range(left, DAY_MS - 10000, DAY_MS);
}

/* An aged graph is still returned, and the caller must read it from the ledger again. */
static void graph_is_aged_without_its_visibility_key(void **state)
{
    struct redis_backend *backend = *state;
    put_and_check(backend, SLICE("alice"), 2);
    assert_false(look_up(backend, SLICE("alice")).aged);
    run_on_key(backend, "DEL", "presence_visibility:alice", "presence_visibility:{alice}");
    struct answer answer = look_up(backend, SLICE("alice"));
    assert_true(answer.known && answer.aged);
    assert_int_equal(answer.presence_visibility, 2);
    graph_put(backend->ports[1], SLICE("alice"), answer.ticket,
              &(struct social_graph){.presence_visibility = 1});
    redis_fleet_settle(&backend->fleet, ROUND_TRIPS_MAX);
    answer = look_up(backend, SLICE("alice"));
    assert_true(answer.known && !answer.aged);
    assert_int_equal(answer.presence_visibility, 1);
}

/* Writes one of alice's keys with this suffix. */
static struct slice alice_key(const struct redis_backend *backend, const char *suffix, char out[64])
{
    int len = snprintf(out, 64, backend->fleet.cluster ? "user:{alice}%s" : "user:alice%s", suffix);
    return (struct slice){out, (size_t)len};
}

static void missing_key_is_a_miss(void **state)
{
    static const char *const PARTS[] = {":circle", ":friends", ":blocked", ":blocked_by", ":chats"};
    struct redis_backend *backend = *state;
    for (size_t i = 0; i < sizeof(PARTS) / sizeof(PARTS[0]); i++) {
        char text[64];
        struct slice key = alice_key(backend, PARTS[i], text);
        put_and_check(backend, SLICE("alice"), 0);
        redis_fleet_ask(&backend->fleet, key, REDIS_ARGS(SLICE("DEL"), key));
        assert_false(look_up(backend, SLICE("alice")).known);
    }
}

static void unknown_setting_is_a_miss(void **state)
{
    static const char *const FIELDS[] = {"presence_visibility", "last_seen_visibility"};
    struct redis_backend *backend = *state;
    char text[64];
    struct slice key = alice_key(backend, ":circle", text);
    for (size_t i = 0; i < sizeof(FIELDS) / sizeof(FIELDS[0]); i++) {
        put_and_check(backend, SLICE("alice"), 0);
        redis_fleet_ask(&backend->fleet, key,
                        REDIS_ARGS(SLICE("HSET"), key, slice_of(FIELDS[i]), SLICE("friends")));
        struct answer answer = look_up(backend, SLICE("alice"));
        assert_int_equal(answer.status, STATE_OK);
        assert_false(answer.known);
    }
}

/* As if a replica had taken over that lacks a drop: its graphs and tickets were stored on another server. */
static void data_of_another_server_is_a_miss(void **state)
{
    struct redis_backend *backend = *state;
    char circle_text[64], ticket_text[64];
    struct slice circle = alice_key(backend, ":circle", circle_text);
    struct slice ticket = alice_key(backend, ":circle:ticket", ticket_text);
    put_and_check(backend, SLICE("alice"), 0);
    redis_fleet_ask(&backend->fleet, circle,
                    REDIS_ARGS(SLICE("HSET"), circle, SLICE("server"), SLICE("0123")));
    assert_false(look_up(backend, SLICE("alice")).known);
    redis_fleet_ask(&backend->fleet, ticket, REDIS_ARGS(SLICE("SET"), ticket, SLICE("77 0123")));
    graph_put(backend->ports[0], SLICE("alice"), 77, &(struct social_graph){0});
    redis_fleet_settle(&backend->fleet, ROUND_TRIPS_MAX);
    struct answer answer = look_up(backend, SLICE("alice"));
    assert_true(!answer.known && answer.ticket != 77);
    put_and_check(backend, SLICE("alice"), 0);
}

/* A server that becomes a replica and a master again goes by another replication id from then on. */
static void graph_is_a_miss_after_a_takeover(void **state)
{
    struct redis_backend *backend = *state;
    const struct redis_server *server = &backend->fleet.servers[0];
    put_and_check(backend, SLICE("alice"), 0);
    uint64_t ticket = look_up(backend, SLICE("bob")).ticket;
    redis_server_expect(server, "OK", "REPLICAOF", "127.0.0.1", "1", NULL);
    redis_server_expect(server, "OK", "REPLICAOF", "NO", "ONE", NULL);
    assert_false(look_up(backend, SLICE("alice")).known);
    assert_true(look_up(backend, SLICE("bob")).ticket != ticket);
    put_and_check(backend, SLICE("alice"), 0);
}

static long ttl_of(struct redis_backend *backend, const char *suffix)
{
    char text[64];
    struct slice key = alice_key(backend, suffix, text);
    return strtol(redis_fleet_ask(&backend->fleet, key, REDIS_ARGS(SLICE("PTTL"), key)), NULL, 10);
}

static void all_keys_live_a_day_from_the_last_use(void **state)
{
    static const char *const PARTS[] = {":circle", ":friends", ":blocked", ":blocked_by", ":chats"};
    enum { COUNT = sizeof(PARTS) / sizeof(PARTS[0]) };
    struct redis_backend *backend = *state;
    put_graph(backend, SLICE("alice"), 0);
    for (size_t i = 0; i < COUNT; i++) {
        char text[64];
        struct slice key = alice_key(backend, PARTS[i], text);
        assert_in_range(ttl_of(backend, PARTS[i]), DAY_MS - 60000, DAY_MS);
        redis_fleet_ask(&backend->fleet, key, REDIS_ARGS(SLICE("PEXPIRE"), key, SLICE("1000000")));
    }
    assert_true(look_up(backend, SLICE("alice")).known);
    for (size_t i = 0; i < COUNT; i++)
        assert_in_range(ttl_of(backend, PARTS[i]), DAY_MS - 60000, DAY_MS);
}

static void foreign_value_is_a_miss(void **state)
{
    static const char *const NAMES[] = {":circle",     ":friends", ":blocked",
                                        ":blocked_by", ":chats",   ":circle:ticket"};
    enum { TICKET = sizeof(NAMES) / sizeof(NAMES[0]) - 1 };
    struct redis_backend *backend = *state;
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++) {
        char text[64];
        struct slice key = alice_key(backend, NAMES[i], text);
        put_and_check(backend, SLICE("alice"), 0);
        redis_fleet_ask(&backend->fleet, key, REDIS_ARGS(SLICE("DEL"), key));
        redis_fleet_ask(&backend->fleet, key,
                        REDIS_ARGS(SLICE("ZADD"), key, SLICE("1"), SLICE("foreign")));
        struct answer answer = look_up(backend, SLICE("alice"));
        assert_int_equal(answer.status, STATE_OK);
        assert_true(!answer.known || i == TICKET); /* a hit needs no ticket */
        graph_drop(backend->ports[0], SLICE("alice"));
        redis_fleet_settle(&backend->fleet, ROUND_TRIPS_MAX);
    }
}

/* No such id exists, so the graph is not ours. */
static void too_long_id_is_unavailable(void **state)
{
    struct redis_backend *backend = *state;
    struct slice key = slice_of(backend->fleet.cluster ? "user:{alice}:chats" : "user:alice:chats");
    char long_id[CHAT_ID_BYTES_MAX + 1];
    memset(long_id, 'c', sizeof(long_id));
    put_and_check(backend, SLICE("alice"), 0);
    redis_fleet_ask(&backend->fleet, key,
                    REDIS_ARGS(SLICE("LSET"), key, SLICE("0"), {long_id, sizeof(long_id)}));
    assert_int_equal(look_up(backend, SLICE("alice")).status, STATE_UNAVAILABLE);
    redis_fleet_ask(&backend->fleet, key,
                    REDIS_ARGS(SLICE("LSET"), key, SLICE("0"), {long_id, CHAT_ID_BYTES_MAX}));
    assert_true(look_up(backend, SLICE("alice")).known);
}

/* These ids are full of characters that mean something to Redis. */
static void odd_ids_do_not_touch_other_keys(void **state)
{
    static const char *const IDS[] = {
        "{alice}", "alice}:friends",       "a:b:{c}", "%7Dalice", "🦊 fox",
        "*",       "alice\r\nFLUSHALL\r\n"};
    struct redis_backend *backend = *state;
    put_and_check(backend, SLICE("alice"), 0);
    for (size_t i = 0; i < sizeof(IDS) / sizeof(IDS[0]); i++) {
        assert_false(look_up(backend, slice_of(IDS[i])).known);
        put_and_check(backend, slice_of(IDS[i]), 1);
    }
    for (size_t i = 0; i < sizeof(IDS) / sizeof(IDS[0]); i++) {
        graph_drop(backend->ports[1], slice_of(IDS[i]));
        redis_fleet_settle(&backend->fleet, ROUND_TRIPS_MAX);
        assert_false(look_up(backend, slice_of(IDS[i])).known);
        for (size_t j = i + 1; j < sizeof(IDS) / sizeof(IDS[0]); j++)
            assert_true(look_up(backend, slice_of(IDS[j])).known);
    }
    assert_true(look_up(backend, SLICE("alice")).known);
}

/* From now on every master accepts writes only with this many replicas. */
static void require_replicas(struct redis_fleet *fleet, const char *count)
{
    assert_int_equal(
        redis_fleet_count(fleet, "OK", "CONFIG", "SET", "min-replicas-to-write", count),
        fleet->cluster ? REDIS_CLUSTER_MASTERS : 1);
}

static bool has_friends_key(const struct redis_fleet *fleet)
{
    const char *key = fleet->cluster ? "user:{alice}:friends" : "user:alice:friends";
    return redis_fleet_count(fleet, "1", "EXISTS", key, NULL, NULL) == 1;
}

static bool has_no_friends_key(void *arg)
{
    return !has_friends_key(arg);
}

/* A drop that was refused takes effect when Redis accepts writes again, without any other operation. */
static void failed_drop_is_sent_again_until_redis_accepts_it(void **state)
{
    struct redis_backend *backend = *state;
    struct redis_fleet *fleet = &backend->fleet;
    struct answer answer = {0};
    put_and_check(backend, SLICE("alice"), 0);
    require_replicas(fleet, "9");
    graph_drop(backend->ports[0], SLICE("alice"));
    graph_lookup(backend->ports[1], SLICE("bob"), on_lookup, &answer);
    worker_loop_run(&fleet->worker, 500);
    assert_int_equal(answer.count, 1);
    assert_int_equal(answer.status, STATE_UNAVAILABLE);
    assert_true(has_friends_key(fleet));
    require_replicas(fleet, "0");
    assert_true(worker_loop_until(&fleet->worker, has_no_friends_key, fleet, 10000));
}

static void lookup_completes_after_the_store_is_freed(void **state)
{
    struct redis_backend *backend = *state;
    struct answer answer = {0};
    put_and_check(backend, SLICE("alice"), 0);
    graph_lookup(backend->ports[0], SLICE("alice"), on_lookup, &answer);
    graph_drop(backend->ports[0], SLICE("alice"));
    graph_store_free(&backend->ports[0]);
    redis_fleet_settle(&backend->fleet, ROUND_TRIPS_MAX);
    assert_int_equal(answer.count, 1);
    assert_int_equal(answer.status, STATE_UNAVAILABLE);
}

static int run(bool cluster)
{
    const struct graph_store_suite_backend backend = {
        .name = cluster ? "redis_graph on a cluster" : "redis_graph",
        .context = &the_backend,
        .start = start_redis_graphs,
        .port = get_port,
        .state = get_state_port,
        .stop = stop_redis_graphs,
        .poll = poll_fleet,
    };
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(keys_have_the_types_and_lifetimes_of_the_design),
        TEST(graph_is_aged_without_its_visibility_key),
        TEST(unknown_setting_is_a_miss),
        TEST(all_keys_live_a_day_from_the_last_use),
        TEST(missing_key_is_a_miss),
        TEST(data_of_another_server_is_a_miss),
        TEST(foreign_value_is_a_miss),
        TEST(odd_ids_do_not_touch_other_keys),
        TEST(lookup_completes_after_the_store_is_freed),
        TEST(failed_drop_is_sent_again_until_redis_accepts_it),
        TEST(too_long_id_is_unavailable),
    };
    const struct CMUnitTest single_server_tests[] = {TEST(graph_is_a_miss_after_a_takeover)};
#undef TEST
    redis_fleet_open(&the_backend.fleet, cluster);
    int failed = graph_store_suite_run(&backend) +
                 cmocka_run_group_tests_name("redis_graph_own", tests, NULL, NULL);
    if (!cluster)
        failed += cmocka_run_group_tests(single_server_tests, NULL, NULL);
    redis_fleet_close(&the_backend.fleet);
    return failed;
}

int main(void)
{
    return run(false) + run(true);
}
