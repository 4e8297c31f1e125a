/* The claim of a gateway's id, on a single server and on a cluster: one id is one process, also when one of them
 * is slow, dead, or came while Redis was out of reach. */
#include "support/state_pair.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static struct state_pair the_pair;

static void left(void *arg)
{
    ((struct state_pair *)arg)->waiting--;
}

static void leave(struct state_pair *pair, struct state_store *store)
{
    pair->waiting = 1;
    redis_state_release(store, left, pair);
    state_pair_await(pair);
    redis_fleet_settle(&pair->fleet, 2);
}

/* Leaving, it takes nothing away that is another's now. */
static void expect_harmless_leave(struct state_pair *pair, struct state_store *store)
{
    struct slice held = SLICE("server_connections:gw-1"), record = SLICE("gateway:gw-1");
    leave(pair, store);
    assert_string_equal(redis_fleet_ask(&pair->fleet, held, REDIS_ARGS(SLICE("SCARD"), held)), "1");
    assert_string_equal(redis_fleet_ask(&pair->fleet, record, REDIS_ARGS(SLICE("EXISTS"), record)),
                        "1");
}

/* It lost its id for good: not even when nobody has it does it take it up again. */
static void expect_fenced(struct state_pair *pair, struct state_store *store)
{
    struct slice key = SLICE("gateway:gw-1");
    unsigned before = pair->fenced;
    state_put_gateway(store, &STATE_PAIR_INFO);
    state_pair_pass(pair, 150);
    redis_fleet_ask(&pair->fleet, key, REDIS_ARGS(SLICE("DEL"), key));
    state_put_gateway(store, &STATE_PAIR_INFO);
    state_pair_pass(pair, 150);
    assert_string_equal(redis_fleet_ask(&pair->fleet, key, REDIS_ARGS(SLICE("EXISTS"), key)), "0");
    assert_false(state_available(store));
    assert_int_equal(state_pair_open_again(pair, store, SLICE("alice"), 9), -1);
    assert_int_equal(pair->fenced, before);
}

static void one_id_is_one_process(void **state)
{
    struct state_pair *pair = *state;
    struct state_store *twin = state_pair_make(pair, 1, "gw-1");
    assert_int_equal(state_pair_claim(pair, pair->first), REDIS_CLAIM_GRANTED);
    state_pair_start_claim(pair, twin);
    for (int i = 0; i < 20 && pair->waiting; i++) {
        state_put_gateway(pair->first, &STATE_PAIR_INFO);
        state_pair_pass(pair, 150);
    }
    assert_int_equal(pair->waiting, 0);
    assert_int_equal(pair->claim, REDIS_CLAIM_TAKEN);
    assert_false(state_available(twin));
    assert_true(state_available(pair->first));
    expect_fenced(pair, twin);
    state_store_free(&twin);
}

static void a_dead_process_s_id_is_free_after_a_window(void **state)
{
    struct state_pair *pair = *state;
    assert_int_equal(state_pair_claim(pair, pair->first), REDIS_CLAIM_GRANTED);
    struct state_store *heir = state_pair_make(pair, 1, "gw-1");
    assert_int_equal(state_pair_claim(pair, heir),
                     REDIS_CLAIM_GRANTED); /* nobody puts the first one's record */
    assert_true(state_available(heir));

    /* the first was only stopped: it must not write, and learns why */
    assert_false(state_available(pair->first));
    assert_int_equal(state_pair_open_again(pair, pair->first, SLICE("alice"), 1), -1);
    state_put_gateway(pair->first, &STATE_PAIR_INFO);
    state_pair_pass(pair, 150);
    assert_int_equal(pair->fenced, 1);
    assert_int_equal(state_pair_open_again(pair, pair->first, SLICE("alice"), 1), -1);
    assert_int_equal(state_pair_open(pair, heir, SLICE("alice"), 2), 1);
    expect_harmless_leave(pair, pair->first);
    expect_fenced(pair, pair->first);
    state_store_free(&heir);
}

/* A process that is slow to hear what a dead one's record has left does not take it for alive. */
static void a_late_answer_is_no_sign_of_life(void **state)
{
    enum { LATE_MS = 400, TURNS_MAX = 30 };
    struct state_pair *pair = *state;
    assert_int_equal(state_pair_claim(pair, pair->first), REDIS_CLAIM_GRANTED);
    struct state_store *heir = state_pair_make(pair, 1, "gw-1");
    state_pair_start_claim(pair, heir);
    state_pair_pass(pair, 100); /* the first look is answered at once */
    for (int i = 0; i < TURNS_MAX && pair->waiting; i++) {
        loop_turn(&pair->fleet.worker.loop, 0);
        poll(NULL, 0, LATE_MS);
    }
    assert_int_equal(pair->waiting, 0);
    assert_int_equal(pair->claim, REDIS_CLAIM_GRANTED);
    state_store_free(&heir);
}

static void leaving_in_order_leaves_nothing_of_the_gateway(void **state)
{
    struct state_pair *pair = *state;
    assert_int_equal(state_pair_claim(pair, pair->first), REDIS_CLAIM_GRANTED);
    state_put_gateway(pair->first, &STATE_PAIR_INFO);
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("alice"), 1), 1);
    assert_int_equal(state_pair_close(pair, pair->first, SLICE("alice"), 1), 1);
    leave(pair, pair->first);
    assert_int_equal(redis_state_under_way(pair->first), 0);
    size_t masters = pair->fleet.cluster ? REDIS_CLUSTER_MASTERS : 1;
    for (size_t i = 0; i < masters; i++) {
        char reply[REDIS_SERVER_REPLY_MAX];
        redis_server_ask(&pair->fleet.servers[i], reply, "KEYS", "*", NULL);
        assert_null(strstr(reply, "gw-1"));
        assert_null(strstr(reply, "connection"));
        assert_null(strstr(reply, "v_heartbeat"));
        assert_null(strstr(reply, "presence:online"));
    }
}

/* The id's record as another process has it, alive for a window. */
static void put_record_of_another(struct state_pair *pair)
{
    static const char key[] = "gateway:gw-1", since[] = "2026-01-31T10:00:00.000Z";
    char reply[REDIS_SERVER_REPLY_MAX], window[24];
    snprintf(window, sizeof(window), "%d", STATE_PAIR_WINDOW_MS);
    redis_server_ask(&pair->fleet.servers[0], reply, "HSET", key, "instance", "other", "started_at",
                     since, NULL);
    redis_server_expect(&pair->fleet.servers[0], "1", "PEXPIRE", key, window, NULL);
}

static bool is_reached(void *arg)
{
    return redis_available(((struct state_pair *)arg)->fleet.clients[0]);
}

/* A claim while Redis is out of reach; when it is back another has the id. */
static void claim_without_redis(struct state_pair *pair)
{
    redis_server_pause(&pair->fleet.servers[0]);
    assert_int_equal(state_pair_claim(pair, pair->first), REDIS_CLAIM_OPEN);
    redis_server_resume(&pair->fleet.servers[0]);
    state_pair_await_that(pair, is_reached);
    put_record_of_another(pair); /* over what Redis still found of the claim when it woke */
    state_put_gateway(pair->first, &STATE_PAIR_INFO);
}

/* Answered once, and not as if the id were there to be used. */
static void a_claim_under_way_is_given_up_with_its_store(void **state)
{
    struct state_pair *pair = *state;
    redis_server_pause(&pair->fleet.servers[0]);
    state_pair_start_claim(pair, pair->first);
    state_pair_pass(pair, 100);
    assert_int_equal(pair->waiting, 1);
    state_store_free(&pair->first);
    redis_server_resume(&pair->fleet.servers[0]);
    state_pair_await(pair);
    assert_int_equal(pair->claim, REDIS_CLAIM_GIVEN_UP);
}

static bool first_is_available(void *arg)
{
    return state_available(((struct state_pair *)arg)->first);
}

static bool is_fenced(void *arg)
{
    return ((struct state_pair *)arg)->fenced > 0;
}

static void a_claim_left_open_waits_for_a_dead_process_s_record(void **state)
{
    struct state_pair *pair = *state;
    claim_without_redis(pair);
    assert_false(state_available(pair->first));
    state_pair_await_that(pair, first_is_available);
    assert_int_equal(pair->fenced, 0);
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("alice"), 1), 1);
}

static void a_claim_left_open_yields_to_a_living_process(void **state)
{
    struct state_pair *pair = *state;
    claim_without_redis(pair);
    for (int i = 0; i < STATE_PAIR_PATIENCE_MS / 200 && !is_fenced(pair); i++) {
        put_record_of_another(pair);
        worker_loop_until(&pair->fleet.worker, is_fenced, pair, 200);
    }
    assert_int_equal(pair->fenced, 1);
    assert_false(state_available(pair->first));
}

#define TEST(name) STATE_PAIR_TEST(name, &the_pair)

static int run(bool cluster)
{
    const struct CMUnitTest tests[] = {
        TEST(one_id_is_one_process),
        TEST(a_dead_process_s_id_is_free_after_a_window),
        TEST(a_late_answer_is_no_sign_of_life),
        TEST(leaving_in_order_leaves_nothing_of_the_gateway),
    };
    const struct CMUnitTest of_one_server[] = {
        TEST(a_claim_under_way_is_given_up_with_its_store),
        TEST(a_claim_left_open_waits_for_a_dead_process_s_record),
        TEST(a_claim_left_open_yields_to_a_living_process),
    };
    redis_fleet_open(&the_pair.fleet, cluster);
    int failed =
        cmocka_run_group_tests_name(cluster ? "on a cluster" : "on a server", tests, NULL, NULL);
    if (!cluster)
        failed += cmocka_run_group_tests(of_one_server, NULL, NULL);
    redis_fleet_close(&the_pair.fleet);
    return failed;
}

int main(void)
{
    return run(false) + run(true);
}
