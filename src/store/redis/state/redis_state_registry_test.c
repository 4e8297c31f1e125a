/* The registry of gateways, on a single server and on a cluster. */
#include "support/state_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct state_pair the_pair;

static const struct slice INFOS = {"presence:gateway_infos:{presence:gateways}", 42};

enum { LIST_TEXT_MAX = 512, PUT_MS = 150 };

struct list_answer {
    struct state_pair *pair;
    size_t count;
    char text[LIST_TEXT_MAX]; /* "gw-1@host:1 gw-2@ draining " in any order */
};

static void on_listed(void *arg, enum state_status status, const struct gateway_info *gateways,
                      size_t count)
{
    struct list_answer *answer = arg;
    answer->pair->waiting--;
    answer->pair->status = status;
    answer->count = count;
    for (size_t i = 0, len = 0; i < count && len < LIST_TEXT_MAX - 64; i++)
        len += (size_t)snprintf(answer->text + len, LIST_TEXT_MAX - len, "%.*s@%.*s %s",
                                SLICE_FORMAT(gateways[i].gateway_id),
                                SLICE_FORMAT(gateways[i].peer_address),
                                gateways[i].draining ? "draining " : "");
}

static struct list_answer list(struct state_pair *pair)
{
    struct list_answer answer = {.pair = pair};
    pair->waiting = 1;
    state_list_gateways(pair->second, on_listed, &answer);
    state_pair_await(pair);
    return answer;
}

/* Puts a gateway, and waits until Redis has it and has reported it. */
static void put(struct state_pair *pair, struct state_store *store, const struct gateway_info *info)
{
    state_put_gateway(store, info);
    state_pair_pass(pair, PUT_MS);
}

/* Returns how often all masters have executed a command. */
static long calls_of(struct state_pair *pair, const char *command)
{
    char reply[REDIS_SERVER_REPLY_MAX], name[64];
    long calls = 0;
    snprintf(name, sizeof(name), "cmdstat_%s:calls=", command);
    for (size_t i = 0; i < (pair->fleet.cluster ? REDIS_CLUSTER_MASTERS : 1); i++) {
        redis_server_ask(&pair->fleet.servers[i], reply, "INFO", "commandstats", NULL);
        const char *found = strstr(reply, name);
        calls += found ? strtol(found + strlen(name), NULL, 10) : 0;
    }
    return calls;
}

/* ---- tests ---- */

static void gateways_are_listed_with_their_addresses(void **state)
{
    struct state_pair *pair = *state;
    assert_int_equal(list(pair).count, 0);
    put(pair, pair->first,
        &(struct gateway_info){.gateway_id = SLICE("gw-1"), .peer_address = SLICE("host:1")});
    put(pair, pair->second, &(struct gateway_info){.gateway_id = SLICE("gw-2"), .draining = true});
    struct list_answer answer = list(pair);
    assert_int_equal(answer.count, 2);
    assert_non_null(strstr(answer.text, "gw-1@host:1 "));
    assert_non_null(strstr(answer.text, "gw-2@ draining "));
}

static void unchanged_registry_is_not_read_again(void **state)
{
    struct state_pair *pair = *state;
    struct gateway_info info = {.gateway_id = SLICE("gw-1"), .peer_address = SLICE("host:1")};
    put(pair, pair->first, &info);
    list(pair);
    long before = calls_of(pair, "hgetall");
    for (int i = 0; i < 5; i++) {
        info.connections++;
        put(pair, pair->first, &info);
        assert_string_equal(list(pair).text, "gw-1@host:1 ");
    }
    assert_int_equal(calls_of(pair, "hgetall"), before);
    info.draining = true;
    put(pair, pair->first, &info);
    assert_string_equal(list(pair).text, "gw-1@host:1 draining ");
    assert_int_equal(calls_of(pair, "hgetall"), before + 1);
}

static void gateway_that_is_put_no_more_disappears(void **state)
{
    struct state_pair *pair = *state;
    struct gateway_info info = {.gateway_id = SLICE("gw-2")};
    put(pair, pair->first, &(struct gateway_info){.gateway_id = SLICE("gw-1")});
    put(pair, pair->second, &info);
    assert_int_equal(list(pair).count, 2);
    for (int64_t passed = 0; passed <= 2 * STATE_PAIR_WINDOW_MS; passed += PUT_MS)
        put(pair, pair->second, &info);
    assert_string_equal(list(pair).text, "gw-2@ ");
}

static void on_released(void *arg)
{
    ((struct state_pair *)arg)->waiting--;
}

static void released_gateway_disappears_at_once(void **state)
{
    struct state_pair *pair = *state;
    assert_int_equal(state_pair_claim(pair, pair->first), REDIS_CLAIM_GRANTED);
    put(pair, pair->first, &STATE_PAIR_INFO);
    assert_int_equal(list(pair).count, 1);
    pair->waiting = 1;
    redis_state_release(pair->first, on_released, pair);
    state_pair_await(pair);
    state_pair_pass(pair, PUT_MS);
    assert_int_equal(list(pair).count, 0);
}

static void lost_registry_is_written_again(void **state)
{
    struct state_pair *pair = *state;
    put(pair, pair->first, &(struct gateway_info){.gateway_id = SLICE("gw-1")});
    assert_int_equal(list(pair).count, 1);
    redis_fleet_empty(&pair->fleet);
    for (int64_t passed = 0; passed <= STATE_PAIR_WINDOW_MS / 2; passed += PUT_MS)
        put(pair, pair->first, &(struct gateway_info){.gateway_id = SLICE("gw-1")});
    assert_int_equal(list(pair).count, 1);
}

static void foreign_registry_is_replaced(void **state)
{
    struct state_pair *pair = *state;
    redis_fleet_ask(&pair->fleet, INFOS, REDIS_ARGS(SLICE("SET"), INFOS, SLICE("foreign")));
    assert_int_equal(list(pair).count, 0);
    put(pair, pair->first, &(struct gateway_info){.gateway_id = SLICE("gw-1")});
    redis_fleet_ask(&pair->fleet, INFOS,
                    REDIS_ARGS(SLICE("HSET"), INFOS, SLICE("gw-2"), SLICE("garbage")));
    assert_string_equal(list(pair).text, "gw-1@ ");
}

static void thousands_of_gateways_are_listed_up_to_the_bound(void **state)
{
    struct state_pair *pair = *state;
    redis_fleet_ask(&pair->fleet, INFOS,
                    REDIS_ARGS(SLICE("EVAL"),
                               SLICE("for i = 1, 20000 do "
                                     "redis.call('HSET', KEYS[1], 'gw-' .. i, '1 0 h:1') end"),
                               SLICE("1"), INFOS));
    assert_int_equal(list(pair).count, REDIS_STATE_GATEWAYS_MAX);
}

#define TEST(name) STATE_PAIR_TEST(name, &the_pair)

static int run(bool cluster)
{
    const struct CMUnitTest tests[] = {
        TEST(gateways_are_listed_with_their_addresses),
        TEST(unchanged_registry_is_not_read_again),
        TEST(gateway_that_is_put_no_more_disappears),
        TEST(released_gateway_disappears_at_once),
        TEST(lost_registry_is_written_again),
        TEST(foreign_registry_is_replaced),
        TEST(thousands_of_gateways_are_listed_up_to_the_bound),
    };
    redis_fleet_open(&the_pair.fleet, cluster);
    int failed =
        cmocka_run_group_tests_name(cluster ? "on a cluster" : "on a server", tests, NULL, NULL);
    redis_fleet_close(&the_pair.fleet);
    return failed;
}

int main(void)
{
    return run(false) + run(true);
}
