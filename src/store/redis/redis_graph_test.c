/* The Redis backend, on one server and on a cluster, against the suite that every backend must pass; and what
 * is its own. */
#include "conformance/graph_store_suite.h"
#include "store/redis/redis_graph.h"
#include "store/redis/state/redis_state.h"
#include "support/redis_fleet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { JOURNEYS_MAX = 2, WINDOW_MS = 60000, DAY_MS = 24 * 60 * 60 * 1000 };

struct redis_backend {
    struct redis_fleet fleet;
    struct state_store *state;
    struct graph_store *ports[GRAPH_STORE_SUITE_PORTS];
};

static struct redis_backend the_backend;

static void start(void *context)
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

static struct graph_store *port(void *context, size_t index)
{
    redis_fleet_settle(&((struct redis_backend *)context)->fleet, 1);
    return ((struct redis_backend *)context)->ports[index];
}

static struct state_store *state_port(void *context)
{
    return ((struct redis_backend *)context)->state;
}

static void stop(void *context)
{
    struct redis_backend *backend = context;
    for (size_t i = 0; i < GRAPH_STORE_SUITE_PORTS; i++)
        graph_store_free(&backend->ports[i]);
    redis_fleet_settle(&backend->fleet, JOURNEYS_MAX);
    state_store_free(&backend->state);
}

static void poll(void *context)
{
    redis_fleet_poll(&((struct redis_backend *)context)->fleet);
}

/* ---- what is its own ---- */

struct answer {
    size_t count;
    enum state_status status;
    bool known;
    bool aged;
    uint64_t ticket;
    uint8_t presence_visibility;
    size_t contacts;
};

static void keep(void *arg, enum state_status status, const struct graph_lookup *audience)
{
    struct answer *answer = arg;
    answer->count++;
    answer->status = status;
    if (status != STATE_OK)
        return;
    answer->known = audience->known;
    answer->aged = audience->aged;
    answer->ticket = audience->ticket;
    answer->presence_visibility = audience->graph.presence_visibility;
    answer->contacts = audience->graph.contacts.count;
}

static struct answer ask(struct redis_backend *backend, struct slice user)
{
    struct answer answer = {0};
    graph_lookup(backend->ports[0], user, keep, &answer);
    redis_fleet_settle(&backend->fleet, JOURNEYS_MAX);
    assert_int_equal(answer.count, 1);
    return answer;
}

static void put_unseen(struct redis_backend *backend, struct slice user, uint8_t visibility)
{
    static const struct slice CONTACTS[] = {{"bob", 3}, {"carol", 5}};
    static const struct slice BLOCKED[] = {{"mallory", 7}};
    static const struct slice CHATS[] = {{"c1", 2}};
    graph_put(backend->ports[0], user, ask(backend, user).ticket,
              &(struct social_graph){.presence_visibility = visibility,
                                     .contacts = {CONTACTS, 2},
                                     .blocked = {BLOCKED, 1},
                                     .chats = {CHATS, 1}});
    redis_fleet_settle(&backend->fleet, JOURNEYS_MAX);
}

static void put(struct redis_backend *backend, struct slice user, uint8_t visibility)
{
    put_unseen(backend, user, visibility);
    assert_true(ask(backend, user).known);
}

static int set_up(void **state)
{
    start(&the_backend);
    *state = &the_backend;
    return 0;
}

static int tear_down(void **state)
{
    stop(*state);
    return 0;
}

/* A command on one of alice's keys. */
static const char *inside(struct redis_backend *backend, const char *command, const char *single,
                          const char *clustered)
{
    struct slice key = slice_of(backend->fleet.cluster ? clustered : single);
    return redis_fleet_ask(&backend->fleet, key, REDIS_ARGS(slice_of(command), key));
}

static void keys_are_as_the_design_has_them(void **state)
{
    struct redis_backend *backend = *state;
    put(backend, SLICE("alice"), 0);
    assert_string_equal(inside(backend, "TYPE", "user:alice:friends", "user:{alice}:friends"),
                        "set");
    assert_string_equal(inside(backend, "SCARD", "user:alice:friends", "user:{alice}:friends"),
                        "2");
    assert_string_equal(
        inside(backend, "GET", "presence_visibility:alice", "presence_visibility:{alice}"),
        "contacts_only");
    long left =
        strtol(inside(backend, "PTTL", "presence_visibility:alice", "presence_visibility:{alice}"),
               NULL, 10);
    assert_in_range(left, 290000, 300000);
    left = strtol(inside(backend, "PTTL", "user:alice:friends", "user:{alice}:friends"), NULL, 10);
    assert_in_range(left, DAY_MS - 10000, DAY_MS);
}

/* Without its visibility a graph is still known, and is to be read anew. */
static void a_graph_ages_with_its_visibility(void **state)
{
    struct redis_backend *backend = *state;
    put(backend, SLICE("alice"), 2);
    assert_false(ask(backend, SLICE("alice")).aged);
    inside(backend, "DEL", "presence_visibility:alice", "presence_visibility:{alice}");
    struct answer answer = ask(backend, SLICE("alice"));
    assert_true(answer.known && answer.aged);
    assert_int_equal(answer.presence_visibility, 2);
    graph_put(backend->ports[1], SLICE("alice"), answer.ticket,
              &(struct social_graph){.presence_visibility = 1});
    redis_fleet_settle(&backend->fleet, JOURNEYS_MAX);
    answer = ask(backend, SLICE("alice"));
    assert_true(answer.known && !answer.aged);
    assert_int_equal(answer.presence_visibility, 1);
}

/* One of alice's keys by the end of its name. */
static struct slice key_of(const struct redis_backend *backend, const char *end, char out[64])
{
    int len = snprintf(out, 64, backend->fleet.cluster ? "user:{alice}%s" : "user:alice%s", end);
    return (struct slice){out, (size_t)len};
}

static void a_part_that_is_gone_makes_a_miss(void **state)
{
    static const char *const PARTS[] = {":circle", ":friends", ":blocked", ":chats"};
    struct redis_backend *backend = *state;
    for (size_t i = 0; i < sizeof(PARTS) / sizeof(PARTS[0]); i++) {
        char text[64];
        struct slice key = key_of(backend, PARTS[i], text);
        put(backend, SLICE("alice"), 0);
        redis_fleet_ask(&backend->fleet, key, REDIS_ARGS(SLICE("DEL"), key));
        assert_false(ask(backend, SLICE("alice")).known);
    }
}

static void a_setting_that_is_none_makes_a_miss(void **state)
{
    static const char *const FIELDS[] = {"presence_visibility", "last_seen_visibility"};
    struct redis_backend *backend = *state;
    char text[64];
    struct slice key = key_of(backend, ":circle", text);
    for (size_t i = 0; i < sizeof(FIELDS) / sizeof(FIELDS[0]); i++) {
        put(backend, SLICE("alice"), 0);
        redis_fleet_ask(&backend->fleet, key,
                        REDIS_ARGS(SLICE("HSET"), key, slice_of(FIELDS[i]), SLICE("friends")));
        struct answer answer = ask(backend, SLICE("alice"));
        assert_int_equal(answer.status, STATE_OK);
        assert_false(answer.known);
    }
}

static long left_ms(struct redis_backend *backend, const char *end)
{
    char text[64];
    struct slice key = key_of(backend, end, text);
    return strtol(redis_fleet_ask(&backend->fleet, key, REDIS_ARGS(SLICE("PTTL"), key)), NULL, 10);
}

/* Nobody need ask for a graph to be gone after a day, and one that is asked for stays. */
static void every_part_has_its_time(void **state)
{
    static const char *const PARTS[] = {":circle", ":friends", ":blocked", ":chats"};
    enum { COUNT = sizeof(PARTS) / sizeof(PARTS[0]) };
    struct redis_backend *backend = *state;
    put_unseen(backend, SLICE("alice"), 0);
    for (size_t i = 0; i < COUNT; i++) {
        char text[64];
        struct slice key = key_of(backend, PARTS[i], text);
        assert_in_range(left_ms(backend, PARTS[i]), DAY_MS - 60000, DAY_MS);
        redis_fleet_ask(&backend->fleet, key, REDIS_ARGS(SLICE("PEXPIRE"), key, SLICE("1000000")));
    }
    assert_true(ask(backend, SLICE("alice")).known);
    for (size_t i = 0; i < COUNT; i++)
        assert_in_range(left_ms(backend, PARTS[i]), DAY_MS - 60000, DAY_MS);
}

static void foreign_values_are_a_miss(void **state)
{
    static const char *const NAMES[] = {":circle", ":friends", ":blocked", ":chats",
                                        ":circle:ticket"};
    struct redis_backend *backend = *state;
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++) {
        char text[64];
        struct slice key = key_of(backend, NAMES[i], text);
        put(backend, SLICE("alice"), 0);
        redis_fleet_ask(&backend->fleet, key, REDIS_ARGS(SLICE("DEL"), key));
        redis_fleet_ask(&backend->fleet, key,
                        REDIS_ARGS(SLICE("ZADD"), key, SLICE("1"), SLICE("foreign")));
        struct answer answer = ask(backend, SLICE("alice"));
        assert_int_equal(answer.status, STATE_OK);
        assert_true(!answer.known || i == 4); /* a hit needs no ticket */
        graph_drop(backend->ports[0], SLICE("alice"));
        redis_fleet_settle(&backend->fleet, JOURNEYS_MAX);
    }
}

/* Nobody has such an id, so a graph that names one is not ours. */
static void an_id_that_is_too_long_makes_no_graph(void **state)
{
    struct redis_backend *backend = *state;
    struct slice key = slice_of(backend->fleet.cluster ? "user:{alice}:chats" : "user:alice:chats");
    char long_id[CHAT_ID_BYTES_MAX + 1];
    memset(long_id, 'c', sizeof(long_id));
    put(backend, SLICE("alice"), 0);
    redis_fleet_ask(&backend->fleet, key,
                    REDIS_ARGS(SLICE("LSET"), key, SLICE("0"), {long_id, sizeof(long_id)}));
    assert_int_equal(ask(backend, SLICE("alice")).status, STATE_UNAVAILABLE);
    redis_fleet_ask(&backend->fleet, key,
                    REDIS_ARGS(SLICE("LSET"), key, SLICE("0"), {long_id, CHAT_ID_BYTES_MAX}));
    assert_true(ask(backend, SLICE("alice")).known);
}

/* An id is as long as it may be and full of what means something to Redis: it touches nothing else. */
static void odd_ids_touch_nothing_else(void **state)
{
    static const char *const IDS[] = {
        "{alice}", "alice}:friends",       "a:b:{c}", "%7Dalice", "🦊 fox",
        "*",       "alice\r\nFLUSHALL\r\n"};
    struct redis_backend *backend = *state;
    put(backend, SLICE("alice"), 0);
    for (size_t i = 0; i < sizeof(IDS) / sizeof(IDS[0]); i++) {
        assert_false(ask(backend, slice_of(IDS[i])).known);
        put(backend, slice_of(IDS[i]), 1);
    }
    for (size_t i = 0; i < sizeof(IDS) / sizeof(IDS[0]); i++) {
        graph_drop(backend->ports[1], slice_of(IDS[i]));
        redis_fleet_settle(&backend->fleet, JOURNEYS_MAX);
        assert_false(ask(backend, slice_of(IDS[i])).known);
        for (size_t j = i + 1; j < sizeof(IDS) / sizeof(IDS[0]); j++)
            assert_true(ask(backend, slice_of(IDS[j])).known);
    }
    assert_true(ask(backend, SLICE("alice")).known);
}

/* From now on every master wants so many replicas before it takes a write. */
static void want_replicas(struct redis_fleet *fleet, const char *count)
{
    assert_int_equal(
        redis_fleet_count(fleet, "OK", "CONFIG", "SET", "min-replicas-to-write", count),
        fleet->cluster ? REDIS_CLUSTER_MASTERS : 1);
}

static bool is_kept(const struct redis_fleet *fleet)
{
    const char *key = fleet->cluster ? "user:{alice}:friends" : "user:alice:friends";
    return redis_fleet_count(fleet, "1", "EXISTS", key, NULL, NULL) == 1;
}

static bool is_gone(void *arg)
{
    return !is_kept(arg);
}

/* What was dropped while Redis took no writes is not there when it does, though nobody asks for anything. */
static void a_drop_is_not_lost_with_redis(void **state)
{
    struct redis_backend *backend = *state;
    struct redis_fleet *fleet = &backend->fleet;
    struct answer answer = {0};
    put(backend, SLICE("alice"), 0);
    want_replicas(fleet, "9");
    graph_drop(backend->ports[0], SLICE("alice"));
    graph_lookup(backend->ports[1], SLICE("bob"), keep, &answer);
    worker_loop_run(&fleet->worker, 500);
    assert_int_equal(answer.count, 1);
    assert_int_equal(answer.status, STATE_UNAVAILABLE);
    assert_true(is_kept(fleet));
    want_replicas(fleet, "0");
    assert_true(worker_loop_until(&fleet->worker, is_gone, fleet, 10000));
}

static void answers_outlive_the_store(void **state)
{
    struct redis_backend *backend = *state;
    struct answer answer = {0};
    put(backend, SLICE("alice"), 0);
    graph_lookup(backend->ports[0], SLICE("alice"), keep, &answer);
    graph_drop(backend->ports[0], SLICE("alice"));
    graph_store_free(&backend->ports[0]);
    redis_fleet_settle(&backend->fleet, JOURNEYS_MAX);
    assert_int_equal(answer.count, 1);
    assert_int_equal(answer.status, STATE_UNAVAILABLE);
}

static int run(bool cluster)
{
    const struct graph_store_suite_backend backend = {
        .name = cluster ? "redis_graph on a cluster" : "redis_graph",
        .context = &the_backend,
        .start = start,
        .port = port,
        .state = state_port,
        .stop = stop,
        .poll = poll,
    };
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(keys_are_as_the_design_has_them),     TEST(a_graph_ages_with_its_visibility),
        TEST(a_setting_that_is_none_makes_a_miss), TEST(every_part_has_its_time),
        TEST(a_part_that_is_gone_makes_a_miss),    TEST(foreign_values_are_a_miss),
        TEST(odd_ids_touch_nothing_else),          TEST(answers_outlive_the_store),
        TEST(a_drop_is_not_lost_with_redis),       TEST(an_id_that_is_too_long_makes_no_graph),
    };
#undef TEST
    redis_fleet_open(&the_backend.fleet, cluster);
    int failed = graph_store_suite_run(&backend) +
                 cmocka_run_group_tests_name("redis_graph_own", tests, NULL, NULL);
    redis_fleet_close(&the_backend.fleet);
    return failed;
}

int main(void)
{
    return run(false) + run(true);
}
