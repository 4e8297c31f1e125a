/* The state store when Redis or a gateway is in trouble, on a single server and on a cluster. */
#include "store/redis_keys.h"
#include "store/redis_state.h"
#include "support/redis_fleet.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { WINDOW_MS = 1500, PATIENCE_MS = 8000 };

static struct redis_fleet fleet;
static struct state_store *first, *second;
static unsigned fenced_count, forgotten_count;

/* ---- one call, one answer ---- */

static unsigned waiting;
static enum state_status last_status;
static struct state_transition last;
static bool last_lost;
static size_t last_count;
static enum redis_claim last_claim;

static bool answered(void *arg)
{
    (void)arg;
    return waiting == 0;
}

static void await(void)
{
    assert_true(worker_loop_until(&fleet.worker, answered, NULL, PATIENCE_MS));
}

static void take(void *arg, enum state_status status, const struct state_transition *transition)
{
    (void)arg;
    waiting--;
    last_status = status;
    last = *transition;
}

static struct ulid connection(unsigned number)
{
    struct ulid id = {{0x01, 0x8b, 0xcf, 0xe5, 0x68, 0x00}};
    memcpy(id.bytes + 8, &number, sizeof(number));
    return id;
}

/* Whether it changed what is shown; -1 when the store was out of reach. */
static int open_lease_at(struct state_store *store, struct slice gateway, struct slice user,
                         unsigned number, bool again)
{
    struct lease lease = {.conn_id = connection(number),
                          .user_id = user,
                          .device_id = SLICE("line\r\nbreak"),
                          .gateway_id = gateway,
                          .connected_at_ms = fleet.worker.loop.clock.wall_ms,
                          .known_since_ms = again ? fleet.worker.loop.clock.wall_ms : 0};
    waiting = 1;
    state_open(store, &lease, take, NULL);
    await();
    return last_status == STATE_OK ? last.changed : -1;
}

static int open_lease(struct state_store *store, struct slice user, unsigned number, bool again)
{
    struct slice gateway = store == first ? SLICE("gw-1") : SLICE("gw-2");
    return open_lease_at(store, gateway, user, number, again);
}

static int close_lease(struct state_store *store, struct slice user, unsigned number)
{
    struct ulid id = connection(number);
    waiting = 1;
    state_close(store, user, &id, take, NULL);
    await();
    return last_status == STATE_OK ? last.changed : -1;
}

static void take_renewals(void *arg, enum state_status status, const struct lease_renewal *renewals,
                          size_t count)
{
    (void)arg;
    assert_int_equal(count, 1);
    waiting--;
    last_status = status;
    last_lost = renewals[0].lost;
    assert_int_equal(renewals[0].failed, status != STATE_OK);
}

static bool renew_is_lost(struct state_store *store, struct slice user, unsigned number)
{
    struct lease_renewal renewal = {.conn_id = connection(number), .user_id = user};
    waiting = 1;
    state_renew(store, &renewal, 1, take_renewals, NULL);
    await();
    return last_lost;
}

static void take_presence(void *arg, enum state_status status, const struct presence *presences,
                          size_t count)
{
    waiting--;
    last_status = status;
    if (count)
        *(struct presence *)arg = presences[0];
}

static enum presence_status status_of(struct slice user)
{
    struct presence presence = {0};
    waiting = 1;
    state_read(second, &user, 1, take_presence, &presence);
    await();
    return presence.status;
}

static void take_reaped(void *arg, enum state_status status,
                        const struct state_transition *transitions, size_t count)
{
    unsigned *offline = arg;
    (void)status;
    waiting--;
    last_count = count;
    for (size_t i = 0; i < count; i++)
        if (transitions[i].changed && offline) {
            char text[16] = {0};
            memcpy(text, transitions[i].presence.user_id.data, transitions[i].presence.user_id.len);
            offline[strtoul(text + 5, NULL, 10)]++;
        }
}

static size_t reap(struct state_store *store)
{
    waiting = 1;
    state_reap(store, 100, take_reaped, NULL);
    await();
    return last_count;
}

static void take_claim(void *arg, enum redis_claim claim, struct slice since)
{
    (void)arg;
    waiting--;
    last_claim = claim;
    assert_int_equal(since.len > 0, claim == REDIS_CLAIM_TAKEN);
}

static const struct gateway_info INFO = {.gateway_id = {"gw-1", 4}, .started_at_ms = 1700000000000};

static enum redis_claim claim(struct state_store *store)
{
    waiting = 1;
    redis_state_claim(store, &INFO, take_claim, NULL);
    await();
    return last_claim;
}

static void pass(int64_t ms)
{
    worker_loop_run(&fleet.worker, ms);
}

/* ---- two gateways ---- */

static void count_fenced(void *arg)
{
    (void)arg;
    fenced_count++;
}

static void count_forgotten(void *arg)
{
    (void)arg;
    forgotten_count++;
}

static struct state_store *make(size_t client, const char *gateway)
{
    return redis_state_make(&(struct redis_state_options){
        .client = fleet.clients[client],
        .loop = &fleet.worker.loop,
        .random = &fleet.worker.random,
        .metrics = &fleet.worker.metrics,
        .gateway_id = slice_of(gateway),
        .lease_window_ms = WINDOW_MS,
        .fenced = count_fenced,
        .forgotten = count_forgotten,
    });
}

static int set_up(void **state)
{
    (void)state;
    redis_fleet_empty(&fleet);
    fenced_count = forgotten_count = 0;
    first = make(0, "gw-1");
    second = make(1, "gw-2");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    state_store_free(&first);
    state_store_free(&second);
    redis_fleet_settle(&fleet, 3);
    return 0;
}

/* ---- tests ---- */

static void two_reapers_at_once_tell_each_end_once(void **state)
{
    enum { USERS = 150, TURNS = 12 };
    (void)state;
    unsigned offline[USERS] = {0};
    for (unsigned i = 0; i < USERS; i++) {
        char text[16];
        struct slice user = {text, (size_t)snprintf(text, sizeof(text), "user-%u", i)};
        assert_int_equal(open_lease(first, user, i, false), 1);
    }
    pass(WINDOW_MS + 100);
    for (int i = 0; i < TURNS; i++) {
        waiting = 2;
        state_reap(first, 20, take_reaped, offline);
        state_reap(second, 20, take_reaped, offline);
        await();
    }
    for (unsigned i = 0; i < USERS; i++)
        assert_int_equal(offline[i], 1);
}

static void an_emptied_store_is_noticed_and_filled_without_news(void **state)
{
    (void)state;
    assert_int_equal(claim(first), REDIS_CLAIM_GRANTED);
    assert_int_equal(open_lease(first, SLICE("alice"), 1, false), 1);
    assert_false(renew_is_lost(first, SLICE("alice"), 1));
    redis_fleet_empty(&fleet);
    pass(150);
    state_put_gateway(first, &INFO);
    pass(150);
    assert_int_equal(forgotten_count, 1);
    assert_true(renew_is_lost(first, SLICE("alice"), 1));
    assert_int_equal(open_lease(first, SLICE("alice"), 1, true), 0);
    assert_int_equal(status_of(SLICE("alice")), PRESENCE_ONLINE);
    assert_int_equal(open_lease(second, SLICE("bob"), 2, false), 1); /* who is new is news */
}

static void who_was_told_offline_is_told_online_again(void **state)
{
    (void)state;
    assert_int_equal(open_lease(first, SLICE("alice"), 1, false), 1);
    pass(WINDOW_MS + 200);
    assert_int_equal(reap(second), 1);
    assert_true(renew_is_lost(first, SLICE("alice"), 1));
    assert_int_equal(open_lease(first, SLICE("alice"), 1, true), 1);
}

static void take_nothing(void *arg)
{
    (void)arg;
    waiting--;
}

/* Leaving, it takes nothing away that is another's now. */
static void expect_harmless_leave(struct state_store *store)
{
    struct slice held = SLICE("server_connections:gw-1"), record = SLICE("gateway:gw-1");
    waiting = 1;
    redis_state_release(store, take_nothing, NULL);
    await();
    redis_fleet_settle(&fleet, 2);
    assert_string_equal(redis_fleet_ask(&fleet, held, REDIS_WORDS(SLICE("SCARD"), held)), "1");
    assert_string_equal(redis_fleet_ask(&fleet, record, REDIS_WORDS(SLICE("EXISTS"), record)), "1");
}

/* It lost its id for good: not even when nobody has it does it take it up again. */
static void expect_fenced(struct state_store *store)
{
    struct slice key = SLICE("gateway:gw-1");
    unsigned before = fenced_count;
    state_put_gateway(store, &INFO);
    pass(150);
    redis_fleet_ask(&fleet, key, REDIS_WORDS(SLICE("DEL"), key));
    state_put_gateway(store, &INFO);
    pass(150);
    assert_string_equal(redis_fleet_ask(&fleet, key, REDIS_WORDS(SLICE("EXISTS"), key)), "0");
    assert_false(state_available(store));
    assert_int_equal(open_lease(store, SLICE("alice"), 9, true), -1);
    assert_int_equal(fenced_count, before);
}

static void one_id_is_one_process(void **state)
{
    (void)state;
    struct state_store *twin = make(1, "gw-1");
    assert_int_equal(claim(first), REDIS_CLAIM_GRANTED);
    waiting = 1;
    redis_state_claim(twin, &INFO, take_claim, NULL);
    for (int i = 0; i < 20 && waiting; i++) {
        state_put_gateway(first, &INFO);
        pass(150);
    }
    assert_int_equal(waiting, 0);
    assert_int_equal(last_claim, REDIS_CLAIM_TAKEN);
    assert_false(state_available(twin));
    assert_true(state_available(first));
    expect_fenced(twin);
    state_store_free(&twin);
}

static void a_dead_process_s_id_is_free_after_a_window(void **state)
{
    (void)state;
    assert_int_equal(claim(first), REDIS_CLAIM_GRANTED);
    struct state_store *heir = make(1, "gw-1");
    assert_int_equal(claim(heir), REDIS_CLAIM_GRANTED); /* nobody puts the first one's record */
    assert_true(state_available(heir));

    /* the first was only stopped: it must not write, and learns why */
    assert_false(state_available(first));
    assert_int_equal(open_lease(first, SLICE("alice"), 1, true), -1);
    state_put_gateway(first, &INFO);
    pass(150);
    assert_int_equal(fenced_count, 1);
    assert_int_equal(open_lease(first, SLICE("alice"), 1, true), -1);
    assert_int_equal(open_lease_at(heir, SLICE("gw-1"), SLICE("alice"), 2, false), 1);
    expect_harmless_leave(first);
    expect_fenced(first);
    state_store_free(&heir);
}

/* A process that is slow to hear what a dead one's record has left does not take it for alive. */
static void a_late_answer_is_no_sign_of_life(void **state)
{
    enum { LATE_MS = 400, TURNS_MAX = 30 };
    (void)state;
    assert_int_equal(claim(first), REDIS_CLAIM_GRANTED);
    struct state_store *heir = make(1, "gw-1");
    waiting = 1;
    redis_state_claim(heir, &INFO, take_claim, NULL);
    pass(100); /* the first look is answered at once */
    for (int i = 0; i < TURNS_MAX && waiting; i++) {
        loop_turn(&fleet.worker.loop, 0);
        poll(NULL, 0, LATE_MS);
    }
    assert_int_equal(waiting, 0);
    assert_int_equal(last_claim, REDIS_CLAIM_GRANTED);
    state_store_free(&heir);
}

static void leaving_in_order_leaves_nothing_of_the_gateway(void **state)
{
    (void)state;
    assert_int_equal(claim(first), REDIS_CLAIM_GRANTED);
    state_put_gateway(first, &INFO);
    assert_int_equal(open_lease(first, SLICE("alice"), 1, false), 1);
    assert_int_equal(close_lease(first, SLICE("alice"), 1), 1);
    waiting = 1;
    redis_state_release(first, take_nothing, NULL);
    await();
    redis_fleet_settle(&fleet, 2);
    assert_int_equal(redis_state_under_way(first), 0);
    size_t masters = fleet.cluster ? REDIS_CLUSTER_MASTERS : 1;
    for (size_t i = 0; i < masters; i++) {
        char reply[REDIS_SERVER_REPLY_MAX];
        redis_server_ask(&fleet.servers[i], reply, "KEYS", "*", NULL);
        assert_null(strstr(reply, "gw-1"));
        assert_null(strstr(reply, "connection"));
        assert_null(strstr(reply, "v_heartbeat"));
        assert_null(strstr(reply, "presence:online"));
    }
}

static void foreign_values_are_mended(void **state)
{
    (void)state;
    static const char *const names[] = {
        "user_connections:", "user_servers:", "user_presence:", "last_seen:", "presence_history:"};
    int64_t before = fleet.worker.metrics.values[METRIC_ROUTING_VALUES_MENDED];
    assert_int_equal(open_lease(first, SLICE("alice"), 1, false), 1);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char text[REDIS_KEY_BYTES_MAX];
        struct slice key =
            redis_key_user(&(struct redis_keys){fleet.cluster}, text, names[i], SLICE("alice"), "");
        redis_fleet_ask(&fleet, key, REDIS_WORDS(SLICE("DEL"), key));
        redis_fleet_ask(&fleet, key, REDIS_WORDS(SLICE("PFADD"), key, SLICE("x")));
        if (i == 3) /* a HyperLogLog is a string: where one belongs it is garbage, not foreign */
            assert_int_equal(status_of(SLICE("alice")), PRESENCE_ONLINE);
        open_lease(first, SLICE("alice"), 1, true);
        assert_int_equal(last_status, STATE_OK);
        assert_int_equal(last.presence.status, PRESENCE_ONLINE);
        assert_false(renew_is_lost(first, SLICE("alice"), 1));
    }
    assert_int_equal(fleet.worker.metrics.values[METRIC_ROUTING_VALUES_MENDED] - before, 4);
    assert_int_equal(close_lease(first, SLICE("alice"), 1), 1);
}

static bool is_unavailable(void *arg)
{
    (void)arg;
    return !state_available(first) && !state_available(second);
}

static bool is_available(void *arg)
{
    (void)arg;
    return state_available(first) && state_available(second);
}

/* Stopped for longer than a lease: everything has run out by then, and nobody hears of it. */
static void a_pause_of_redis_makes_nobody_offline(void **state)
{
    (void)state;
    pass(WINDOW_MS + 50); /* no longer held off for the start */
    assert_int_equal(open_lease(first, SLICE("alice"), 1, false), 1);
    redis_server_pause(&fleet.servers[0]);
    assert_true(worker_loop_until(&fleet.worker, is_unavailable, NULL, PATIENCE_MS));
    renew_is_lost(first, SLICE("alice"), 1);
    assert_int_equal(last_status, STATE_UNAVAILABLE);
    redis_server_resume(&fleet.servers[0]);
    assert_true(worker_loop_until(&fleet.worker, is_available, NULL, PATIENCE_MS));
    assert_int_equal(reap(second), 0);
    pass(WINDOW_MS / 2);
    assert_int_equal(reap(second), 0);
    assert_true(renew_is_lost(first, SLICE("alice"), 1));
    assert_int_equal(open_lease(first, SLICE("alice"), 1, true), 0);
    pass(WINDOW_MS * 3 / 4);
    reap(second);
    assert_int_equal(status_of(SLICE("alice")), PRESENCE_ONLINE);
}

static void count_renewal(void *arg, enum state_status status, const struct lease_renewal *renewals,
                          size_t count)
{
    (void)arg, (void)status, (void)renewals, (void)count;
    waiting--;
}

/* Renews the leases of many users in one call and closes them before a paused server has answered its part. */
static void renew_and_close(struct redis_server *paused)
{
    enum { USERS = 12 };
    char texts[USERS][16];
    struct lease_renewal renewals[USERS];
    for (unsigned i = 0; i < USERS; i++) {
        struct slice user = {texts[i], (size_t)snprintf(texts[i], sizeof(texts[i]), "user-%u", i)};
        assert_true(open_lease(first, user, i, false) >= 0);
        renewals[i] = (struct lease_renewal){.conn_id = connection(i), .user_id = user};
    }
    redis_server_pause(paused);
    waiting = 1 + USERS;
    state_renew(first, renewals, USERS, count_renewal, NULL);
    for (unsigned i = 0; i < USERS; i++)
        state_close(first, renewals[i].user_id, &renewals[i].conn_id, take, NULL);
    pass(100);
    redis_server_resume(paused);
    await();
}

static size_t holders_of_nothing(void)
{
    pass(100); /* what follows the answers */
    return redis_fleet_count(&fleet, "0", "SCARD", "server_connections:gw-1", NULL, NULL);
}

static void a_lease_closed_while_it_is_renewed_is_held_no_more(void **state)
{
    (void)state;
    for (size_t i = 0; i < REDIS_CLUSTER_MASTERS; i++) {
        renew_and_close(&fleet.servers[i]);
        assert_int_equal(holders_of_nothing(), 1);
    }
}

static void a_lease_closed_before_it_is_renewed_is_held_no_more(void **state)
{
    (void)state;
    assert_int_equal(open_lease(first, SLICE("alice"), 1, false), 1);
    assert_int_equal(close_lease(first, SLICE("alice"), 1), 1);
    assert_true(renew_is_lost(first, SLICE("alice"), 1));
    assert_int_equal(holders_of_nothing(), 1);
}

/* The id's record as another process has it, alive for a window. */
static void put_record_of_another(void)
{
    static const char key[] = "gateway:gw-1", since[] = "2026-01-31T10:00:00.000Z";
    char reply[REDIS_SERVER_REPLY_MAX], window[24];
    snprintf(window, sizeof(window), "%d", WINDOW_MS);
    redis_server_ask(&fleet.servers[0], reply, "HSET", key, "instance", "other", "started_at",
                     since, NULL);
    redis_server_expect(&fleet.servers[0], "1", "PEXPIRE", key, window, NULL);
}

static bool is_reached(void *arg)
{
    (void)arg;
    return redis_available(fleet.clients[0]);
}

/* A claim while Redis is out of reach; when it is back another has the id. */
static void claim_without_redis(void)
{
    redis_server_pause(&fleet.servers[0]);
    assert_int_equal(claim(first), REDIS_CLAIM_OPEN);
    redis_server_resume(&fleet.servers[0]);
    assert_true(worker_loop_until(&fleet.worker, is_reached, NULL, PATIENCE_MS));
    put_record_of_another(); /* over what Redis still found of the claim when it woke */
    state_put_gateway(first, &INFO);
}

/* Answered once, and not as if the id were there to be used. */
static void a_claim_under_way_is_given_up_with_its_store(void **state)
{
    (void)state;
    redis_server_pause(&fleet.servers[0]);
    waiting = 1;
    redis_state_claim(first, &INFO, take_claim, NULL);
    pass(100);
    assert_int_equal(waiting, 1);
    state_store_free(&first);
    redis_server_resume(&fleet.servers[0]);
    await();
    assert_int_equal(last_claim, REDIS_CLAIM_GIVEN_UP);
}

static bool first_is_available(void *arg)
{
    (void)arg;
    return state_available(first);
}

static bool is_fenced(void *arg)
{
    (void)arg;
    return fenced_count > 0;
}

static void a_claim_left_open_waits_for_a_dead_process_s_record(void **state)
{
    (void)state;
    claim_without_redis();
    assert_false(state_available(first));
    assert_true(worker_loop_until(&fleet.worker, first_is_available, NULL, PATIENCE_MS));
    assert_int_equal(fenced_count, 0);
    assert_int_equal(open_lease(first, SLICE("alice"), 1, false), 1);
}

static void a_claim_left_open_yields_to_a_living_process(void **state)
{
    (void)state;
    claim_without_redis();
    for (int i = 0; i < PATIENCE_MS / 200 && !is_fenced(NULL); i++) {
        put_record_of_another();
        worker_loop_until(&fleet.worker, is_fenced, NULL, 200);
    }
    assert_int_equal(fenced_count, 1);
    assert_false(state_available(first));
}

static void what_redis_refuses_is_unavailable(void **state)
{
    (void)state;
    assert_int_equal(open_lease(first, SLICE("alice"), 1, false), 1);
    redis_server_expect(&fleet.servers[0], "OK", "CONFIG", "SET", "maxmemory", "1", NULL);
    assert_int_equal(open_lease(first, SLICE("bob"), 2, false), -1);
    redis_server_expect(&fleet.servers[0], "OK", "CONFIG", "SET", "maxmemory", "0", NULL);
    assert_true(worker_loop_until(&fleet.worker, is_available, NULL, PATIENCE_MS));
    assert_int_equal(open_lease(first, SLICE("bob"), 2, false), 1);
    redis_server_expect(&fleet.servers[0], "OK", "REPLICAOF", "127.0.0.1", "1", NULL);
    assert_int_equal(open_lease(first, SLICE("carol"), 3, false), -1);
    redis_server_expect(&fleet.servers[0], "OK", "REPLICAOF", "NO", "ONE", NULL);
    assert_true(worker_loop_until(&fleet.worker, is_available, NULL, PATIENCE_MS));
    redis_server_expect(&fleet.servers[0], "OK", "SCRIPT", "FLUSH", NULL);
    assert_int_equal(open_lease(first, SLICE("carol"), 3, false), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static int run(bool cluster)
{
    const struct CMUnitTest tests[] = {
        TEST(two_reapers_at_once_tell_each_end_once),
        TEST(an_emptied_store_is_noticed_and_filled_without_news),
        TEST(who_was_told_offline_is_told_online_again),
        TEST(one_id_is_one_process),
        TEST(a_dead_process_s_id_is_free_after_a_window),
        TEST(a_late_answer_is_no_sign_of_life),
        TEST(leaving_in_order_leaves_nothing_of_the_gateway),
        TEST(foreign_values_are_mended),
    };
    const struct CMUnitTest of_a_cluster[] = {
        TEST(a_lease_closed_while_it_is_renewed_is_held_no_more),
        TEST(a_lease_closed_before_it_is_renewed_is_held_no_more),
    };
    const struct CMUnitTest of_one_server[] = {
        TEST(a_pause_of_redis_makes_nobody_offline),
        TEST(a_claim_under_way_is_given_up_with_its_store),
        TEST(a_claim_left_open_waits_for_a_dead_process_s_record),
        TEST(a_claim_left_open_yields_to_a_living_process),
        TEST(what_redis_refuses_is_unavailable),
    };
    redis_fleet_open(&fleet, cluster);
    int failed =
        cmocka_run_group_tests_name(cluster ? "on a cluster" : "on a server", tests, NULL, NULL);
    failed += cluster ? cmocka_run_group_tests(of_a_cluster, NULL, NULL)
                      : cmocka_run_group_tests(of_one_server, NULL, NULL);
    redis_fleet_close(&fleet);
    return failed;
}

int main(void)
{
    return run(false) + run(true);
}
