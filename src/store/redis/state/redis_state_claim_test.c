/* Claims of a gateway id, on a single server and on a cluster: only one process has the id, even when a process is slow
 * or dead, or starts while Redis is out of reach. */
#include "support/state_pair.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static struct state_pair the_pair;

static void on_released(void *arg)
{
    ((struct state_pair *)arg)->waiting--;
}

static void release_gateway(struct state_pair *pair, struct state_store *store)
{
    pair->waiting = 1;
    redis_state_release(store, on_released, pair);
    state_pair_await(pair);
    redis_fleet_settle(&pair->fleet, 2);
}

/* Releasing removes no key that another process has by now. */
static void expect_release_keeps_keys_of_new_owner(struct state_pair *pair,
                                                   struct state_store *store)
{
    struct slice connections = SLICE("server_connections:gw-1"), record = SLICE("gateway:gw-1");
    release_gateway(pair, store);
    assert_string_equal(
        redis_fleet_ask(&pair->fleet, connections, REDIS_ARGS(SLICE("SCARD"), connections)), "1");
    assert_string_equal(redis_fleet_ask(&pair->fleet, record, REDIS_ARGS(SLICE("EXISTS"), record)),
                        "1");
}

/* The store has lost its id for good: it does not take the id again, even when nobody has it. */
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

static void second_process_with_a_claimed_id_is_refused(void **state)
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

static void id_of_a_dead_process_is_granted_after_a_window(void **state)
{
    struct state_pair *pair = *state;
    assert_int_equal(state_pair_claim(pair, pair->first), REDIS_CLAIM_GRANTED);
    struct state_store *successor = state_pair_make(pair, 1, "gw-1");
    assert_int_equal(state_pair_claim(pair, successor),
                     REDIS_CLAIM_GRANTED); /* nobody renews the first record */
    assert_true(state_available(successor));

    /* The first process was only stopped: it must not write, and its next put fences it. */
    assert_false(state_available(pair->first));
    assert_int_equal(state_pair_open_again(pair, pair->first, SLICE("alice"), 1), -1);
    state_put_gateway(pair->first, &STATE_PAIR_INFO);
    state_pair_pass(pair, 150);
    assert_int_equal(pair->fenced, 1);
    assert_int_equal(state_pair_open_again(pair, pair->first, SLICE("alice"), 1), -1);
    assert_int_equal(state_pair_open(pair, successor, SLICE("alice"), 2), 1);
    expect_release_keeps_keys_of_new_owner(pair, pair->first);
    expect_fenced(pair, pair->first);
    state_store_free(&successor);
}

/* The process is slow to receive the time that a dead process's record has left. */
static void late_answer_is_not_taken_for_a_renewed_record(void **state)
{
    enum { LATE_MS = 400, TURNS_MAX = 30 };
    struct state_pair *pair = *state;
    assert_int_equal(state_pair_claim(pair, pair->first), REDIS_CLAIM_GRANTED);
    struct state_store *successor = state_pair_make(pair, 1, "gw-1");
    state_pair_start_claim(pair, successor);
    state_pair_pass(pair, 100); /* the first check is answered at once */
    for (int i = 0; i < TURNS_MAX && pair->waiting; i++) {
        loop_turn(&pair->fleet.worker.loop, 0);
        poll(NULL, 0, LATE_MS);
    }
    assert_int_equal(pair->waiting, 0);
    assert_int_equal(pair->claim, REDIS_CLAIM_GRANTED);
    state_store_free(&successor);
}

static void release_removes_all_keys_of_the_gateway(void **state)
{
    struct state_pair *pair = *state;
    assert_int_equal(state_pair_claim(pair, pair->first), REDIS_CLAIM_GRANTED);
    state_put_gateway(pair->first, &STATE_PAIR_INFO);
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("alice"), 1), 1);
    assert_int_equal(state_pair_close(pair, pair->first, SLICE("alice"), 1), 1);
    release_gateway(pair, pair->first);
    assert_int_equal(redis_state_pending(pair->first), 0);
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

/* Writes the record of another process, which expires after a window. */
static void put_record_of_another(struct state_pair *pair)
{
    static const char key[] = "gateway:gw-1", since[] = "2026-01-31T10:00:00.000Z";
    char reply[REDIS_SERVER_REPLY_MAX], window[24];
    snprintf(window, sizeof(window), "%d", STATE_PAIR_WINDOW_MS);
    redis_server_ask(&pair->fleet.servers[0], reply, "HSET", key, "instance", "other", "started_at",
                     since, NULL);
    redis_server_expect(&pair->fleet.servers[0], "1", "PEXPIRE", key, window, NULL);
}

static bool first_client_is_available(void *arg)
{
    return redis_available(((struct state_pair *)arg)->fleet.clients[0]);
}

/* Claims while Redis is out of reach; when Redis is back, another process has the id. */
static void claim_without_redis(struct state_pair *pair)
{
    redis_server_pause(&pair->fleet.servers[0]);
    assert_int_equal(state_pair_claim(pair, pair->first), REDIS_CLAIM_UNDECIDED);
    redis_server_resume(&pair->fleet.servers[0]);
    state_pair_await_that(pair, first_client_is_available);
    put_record_of_another(pair); /* overwrites what Redis still received of the claim */
    state_put_gateway(pair->first, &STATE_PAIR_INFO);
}

static void pending_claim_is_cancelled_when_the_store_is_freed(void **state)
{
    struct state_pair *pair = *state;
    redis_server_pause(&pair->fleet.servers[0]);
    state_pair_start_claim(pair, pair->first);
    state_pair_pass(pair, 100);
    assert_int_equal(pair->waiting, 1);
    state_store_free(&pair->first);
    redis_server_resume(&pair->fleet.servers[0]);
    state_pair_await(pair);
    assert_int_equal(pair->claim, REDIS_CLAIM_CANCELLED);
}

static bool first_is_available(void *arg)
{
    return state_available(((struct state_pair *)arg)->first);
}

static bool is_fenced(void *arg)
{
    return ((struct state_pair *)arg)->fenced > 0;
}

static void undecided_claim_waits_for_the_record_of_a_dead_process(void **state)
{
    struct state_pair *pair = *state;
    claim_without_redis(pair);
    assert_false(state_available(pair->first));
    state_pair_await_that(pair, first_is_available);
    assert_int_equal(pair->fenced, 0);
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("alice"), 1), 1);
}

static void undecided_claim_is_fenced_by_a_living_process(void **state)
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
        TEST(second_process_with_a_claimed_id_is_refused),
        TEST(id_of_a_dead_process_is_granted_after_a_window),
        TEST(late_answer_is_not_taken_for_a_renewed_record),
        TEST(release_removes_all_keys_of_the_gateway),
    };
    const struct CMUnitTest single_server_tests[] = {
        TEST(pending_claim_is_cancelled_when_the_store_is_freed),
        TEST(undecided_claim_waits_for_the_record_of_a_dead_process),
        TEST(undecided_claim_is_fenced_by_a_living_process),
    };
    redis_fleet_open(&the_pair.fleet, cluster);
    int failed =
        cmocka_run_group_tests_name(cluster ? "on a cluster" : "on a server", tests, NULL, NULL);
    if (!cluster)
        failed += cmocka_run_group_tests(single_server_tests, NULL, NULL);
    redis_fleet_close(&the_pair.fleet);
    return failed;
}

int main(void)
{
    return run(false) + run(true);
}
