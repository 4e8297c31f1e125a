/* Leases when Redis or a gateway is in trouble, on a single server and on a cluster. */
#include "store/redis/redis_keys.h"
#include "support/state_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct state_pair the_pair;

/* ---- one call, one answer ---- */

struct renewing {
    struct state_pair *pair;
    bool lost;
};

static void take_renewal(void *arg, enum state_status status, const struct lease_renewal *renewals,
                         size_t count)
{
    struct renewing *renewing = arg;
    assert_int_equal(count, 1);
    renewing->pair->waiting--;
    renewing->pair->status = status;
    renewing->lost = renewals[0].lost;
    assert_int_equal(renewals[0].failed, status != STATE_OK);
}

static bool renew_is_lost(struct state_pair *pair, struct state_store *store, struct slice user,
                          unsigned number)
{
    struct lease_renewal renewal = {.conn_id = state_pair_connection(number), .user_id = user};
    struct renewing renewing = {.pair = pair};
    pair->waiting = 1;
    state_renew(store, &renewal, 1, take_renewal, &renewing);
    state_pair_await(pair);
    return renewing.lost;
}

struct reading {
    struct state_pair *pair;
    enum presence_status status;
};

static void take_presence(void *arg, enum state_status status, const struct presence *presences,
                          size_t count)
{
    struct reading *reading = arg;
    reading->pair->waiting--;
    assert_int_equal(status, STATE_OK);
    assert_int_equal(count, 1);
    reading->status = presences[0].status;
}

static enum presence_status status_of(struct state_pair *pair, struct slice user)
{
    struct reading reading = {.pair = pair};
    pair->waiting = 1;
    state_read(pair->second, &user, 1, take_presence, &reading);
    state_pair_await(pair);
    return reading.status;
}

struct reaping {
    struct state_pair *pair;
    size_t count;
    unsigned *offline; /* NULL, or how often "user-<number>" went */
};

static void take_reaped(void *arg, enum state_status status,
                        const struct state_transition *transitions, size_t count)
{
    struct reaping *reaping = arg;
    (void)status;
    reaping->pair->waiting--;
    reaping->count = count;
    for (size_t i = 0; i < count; i++)
        if (transitions[i].changed && reaping->offline) {
            char text[16] = {0};
            memcpy(text, transitions[i].presence.user_id.data, transitions[i].presence.user_id.len);
            reaping->offline[strtoul(text + 5, NULL, 10)]++;
        }
}

static size_t reap(struct state_pair *pair, struct state_store *store)
{
    struct reaping reaping = {.pair = pair};
    pair->waiting = 1;
    state_reap(store, 100, take_reaped, &reaping);
    state_pair_await(pair);
    return reaping.count;
}

/* ---- tests ---- */

static void two_reapers_at_once_tell_each_end_once(void **state)
{
    enum { USERS = 150, TURNS = 12 };
    struct state_pair *pair = *state;
    unsigned offline[USERS] = {0};
    struct reaping reaping = {.pair = pair, .offline = offline};
    for (unsigned i = 0; i < USERS; i++) {
        char text[16];
        struct slice user = {text, (size_t)snprintf(text, sizeof(text), "user-%u", i)};
        assert_int_equal(state_pair_open(pair, pair->first, user, i), 1);
    }
    state_pair_pass(pair, STATE_PAIR_WINDOW_MS + 100);
    for (int i = 0; i < TURNS; i++) {
        pair->waiting = 2;
        state_reap(pair->first, 20, take_reaped, &reaping);
        state_reap(pair->second, 20, take_reaped, &reaping);
        state_pair_await(pair);
    }
    for (unsigned i = 0; i < USERS; i++)
        assert_int_equal(offline[i], 1);
}

static void an_emptied_store_is_noticed_and_filled_without_news(void **state)
{
    struct state_pair *pair = *state;
    assert_int_equal(state_pair_claim(pair, pair->first), REDIS_CLAIM_GRANTED);
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("alice"), 1), 1);
    assert_false(renew_is_lost(pair, pair->first, SLICE("alice"), 1));
    redis_fleet_empty(&pair->fleet);
    state_pair_pass(pair, 150);
    state_put_gateway(pair->first, &STATE_PAIR_INFO);
    state_pair_pass(pair, 150);
    assert_int_equal(pair->forgotten, 1);
    assert_true(renew_is_lost(pair, pair->first, SLICE("alice"), 1));
    assert_int_equal(state_pair_open_again(pair, pair->first, SLICE("alice"), 1), 0);
    assert_int_equal(status_of(pair, SLICE("alice")), PRESENCE_ONLINE);
    assert_int_equal(state_pair_open(pair, pair->second, SLICE("bob"), 2),
                     1); /* who is new is news */
}

static void who_was_told_offline_is_told_online_again(void **state)
{
    struct state_pair *pair = *state;
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("alice"), 1), 1);
    state_pair_pass(pair, STATE_PAIR_WINDOW_MS + 200);
    assert_int_equal(reap(pair, pair->second), 1);
    assert_true(renew_is_lost(pair, pair->first, SLICE("alice"), 1));
    assert_int_equal(state_pair_open_again(pair, pair->first, SLICE("alice"), 1), 1);
}

static void foreign_values_are_mended(void **state)
{
    struct state_pair *pair = *state;
    static const char *const names[] = {
        "user_connections:", "user_servers:", "user_presence:", "last_seen:", "presence_history:"};
    int64_t before = pair->fleet.worker.metrics.values[METRIC_ROUTING_VALUES_MENDED];
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("alice"), 1), 1);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char text[REDIS_KEY_BYTES_MAX];
        struct slice key = redis_key_user(&(struct redis_keys){pair->fleet.cluster}, text, names[i],
                                          SLICE("alice"), "");
        redis_fleet_ask(&pair->fleet, key, REDIS_ARGS(SLICE("DEL"), key));
        redis_fleet_ask(&pair->fleet, key, REDIS_ARGS(SLICE("PFADD"), key, SLICE("x")));
        if (i == 3) /* a HyperLogLog is a string: where one belongs it is garbage, not foreign */
            assert_int_equal(status_of(pair, SLICE("alice")), PRESENCE_ONLINE);
        state_pair_open_again(pair, pair->first, SLICE("alice"), 1);
        assert_int_equal(pair->status, STATE_OK);
        assert_int_equal(pair->transition.presence.status, PRESENCE_ONLINE);
        assert_false(renew_is_lost(pair, pair->first, SLICE("alice"), 1));
    }
    assert_int_equal(pair->fleet.worker.metrics.values[METRIC_ROUTING_VALUES_MENDED] - before, 4);
    assert_int_equal(state_pair_close(pair, pair->first, SLICE("alice"), 1), 1);
}

/* Stopped for longer than a lease: everything has run out by then, and nobody hears of it. */
static void a_pause_of_redis_makes_nobody_offline(void **state)
{
    struct state_pair *pair = *state;
    state_pair_pass(pair, STATE_PAIR_WINDOW_MS + 50); /* no longer held off for the start */
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("alice"), 1), 1);
    redis_server_pause(&pair->fleet.servers[0]);
    state_pair_await_that(pair, state_pair_is_unavailable);
    renew_is_lost(pair, pair->first, SLICE("alice"), 1);
    assert_int_equal(pair->status, STATE_UNKNOWN);
    redis_server_resume(&pair->fleet.servers[0]);
    state_pair_await_that(pair, state_pair_is_available);
    assert_int_equal(reap(pair, pair->second), 0);
    state_pair_pass(pair, STATE_PAIR_WINDOW_MS / 2);
    assert_int_equal(reap(pair, pair->second), 0);
    assert_true(renew_is_lost(pair, pair->first, SLICE("alice"), 1));
    assert_int_equal(state_pair_open_again(pair, pair->first, SLICE("alice"), 1), 0);
    state_pair_pass(pair, STATE_PAIR_WINDOW_MS * 3 / 4);
    reap(pair, pair->second);
    assert_int_equal(status_of(pair, SLICE("alice")), PRESENCE_ONLINE);
}

struct closing {
    struct state_pair *pair;
    bool names_alice;
};

static void take_closing(void *arg, enum state_status status,
                         const struct state_transition *transition)
{
    struct closing *closing = arg;
    assert_int_equal(status, STATE_UNKNOWN);
    closing->names_alice = slice_is(transition->presence.user_id, "alice");
    closing->pair->waiting--;
}

static bool close_is_unknown(struct state_pair *pair)
{
    struct closing closing = {.pair = pair};
    const struct ulid conn_id = state_pair_connection(1);
    pair->waiting = 1;
    state_close(pair->first, SLICE("alice"), &conn_id, take_closing, &closing);
    state_pair_await(pair);
    return closing.names_alice;
}

static void a_close_without_an_answer_is_unknown_and_names_its_user(void **state)
{
    struct state_pair *pair = *state;
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("alice"), 1), 1);
    redis_server_pause(&pair->fleet.servers[0]);
    assert_true(close_is_unknown(pair));
    redis_server_resume(&pair->fleet.servers[0]);
    state_pair_await_that(pair, state_pair_is_available);
}

static void count_renewal(void *arg, enum state_status status, const struct lease_renewal *renewals,
                          size_t count)
{
    (void)status, (void)renewals, (void)count;
    ((struct state_pair *)arg)->waiting--;
}

static void count_transition(void *arg, enum state_status status,
                             const struct state_transition *transition)
{
    (void)status, (void)transition;
    ((struct state_pair *)arg)->waiting--;
}

/* Renews the leases of many users in one call and closes them before a paused server has answered its part. */
static void renew_and_close(struct state_pair *pair, struct redis_server *paused)
{
    enum { USERS = 12 };
    char texts[USERS][16];
    struct lease_renewal renewals[USERS];
    for (unsigned i = 0; i < USERS; i++) {
        struct slice user = {texts[i], (size_t)snprintf(texts[i], sizeof(texts[i]), "user-%u", i)};
        assert_true(state_pair_open(pair, pair->first, user, i) >= 0);
        renewals[i] = (struct lease_renewal){.conn_id = state_pair_connection(i), .user_id = user};
    }
    redis_server_pause(paused);
    pair->waiting = 1 + USERS;
    state_renew(pair->first, renewals, USERS, count_renewal, pair);
    for (unsigned i = 0; i < USERS; i++)
        state_close(pair->first, renewals[i].user_id, &renewals[i].conn_id, count_transition, pair);
    state_pair_pass(pair, 100);
    redis_server_resume(paused);
    state_pair_await(pair);
}

static size_t holders_of_nothing(struct state_pair *pair)
{
    state_pair_pass(pair, 100); /* what follows the answers */
    return redis_fleet_count(&pair->fleet, "0", "SCARD", "server_connections:gw-1", NULL, NULL);
}

static void a_lease_closed_while_it_is_renewed_is_held_no_more(void **state)
{
    struct state_pair *pair = *state;
    for (size_t i = 0; i < REDIS_CLUSTER_MASTERS; i++) {
        renew_and_close(pair, &pair->fleet.servers[i]);
        assert_int_equal(holders_of_nothing(pair), 1);
    }
}

static void a_lease_closed_before_it_is_renewed_is_held_no_more(void **state)
{
    struct state_pair *pair = *state;
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("alice"), 1), 1);
    assert_int_equal(state_pair_close(pair, pair->first, SLICE("alice"), 1), 1);
    assert_true(renew_is_lost(pair, pair->first, SLICE("alice"), 1));
    assert_int_equal(holders_of_nothing(pair), 1);
}

/* What an open has done when it reached the index and not yet the user, whom a lost connection may still bring it
 * to. */
static struct slice enter_only(struct state_pair *pair, char index[REDIS_SERVER_REPLY_MAX])
{
    static const struct slice keys = {"user_connections:{alice}", 24};
    char record[REDIS_SERVER_REPLY_MAX];
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("alice"), 1), 1);
    struct slice lease = redis_fleet_find(&pair->fleet, "connection:{alice}:*", record);
    redis_fleet_ask(&pair->fleet, lease, REDIS_ARGS(SLICE("DEL"), lease));
    redis_fleet_ask(&pair->fleet, keys, REDIS_ARGS(SLICE("DEL"), keys));
    return redis_fleet_find(&pair->fleet, "presence:v_heartbeat*", index);
}

static void a_lease_that_was_closed_before_it_opened_is_reaped(void **state)
{
    struct state_pair *pair = *state;
    char text[REDIS_SERVER_REPLY_MAX];
    struct slice index = enter_only(pair, text);
    assert_int_equal(state_pair_close(pair, pair->first, SLICE("alice"), 1), 0);
    state_pair_pass(pair, 100); /* what follows the answer */
    assert_string_equal(redis_fleet_ask(&pair->fleet, index, REDIS_ARGS(SLICE("ZCARD"), index)),
                        "1");
    state_pair_pass(pair, STATE_PAIR_WINDOW_MS);
    assert_int_equal(reap(pair, pair->second), 1);
    assert_string_equal(redis_fleet_ask(&pair->fleet, index, REDIS_ARGS(SLICE("ZCARD"), index)),
                        "0");
}

static void flush_scripts(struct state_pair *pair)
{
    for (size_t i = 0; i < (pair->fleet.cluster ? REDIS_CLUSTER_MASTERS : 1); i++)
        redis_server_expect(&pair->fleet.servers[i], "OK", "SCRIPT", "FLUSH", NULL);
}

/* As after a failover: of the scripts the server knows those alone that somebody has run since, and asks for the
 * source of an open when that of the close behind it is there. */
static void a_close_does_not_overtake_an_open_whose_script_is_asked_for(void **state)
{
    struct state_pair *pair = *state;
    const struct lease lease = {.conn_id = state_pair_connection(1),
                                .user_id = SLICE("alice"),
                                .device_id = SLICE("phone"),
                                .gateway_id = SLICE("gw-1")};
    flush_scripts(pair);
    assert_int_equal(state_pair_close(pair, pair->first, SLICE("alice"), 2), 0);
    pair->waiting = 2;
    state_open(pair->first, &lease, count_transition, pair);
    state_close(pair->first, lease.user_id, &lease.conn_id, count_transition, pair);
    state_pair_await(pair);
    assert_int_equal(status_of(pair, SLICE("alice")), PRESENCE_OFFLINE);
    assert_true(renew_is_lost(pair, pair->first, SLICE("alice"), 1));
}

static void what_redis_refuses_is_unavailable(void **state)
{
    struct state_pair *pair = *state;
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("alice"), 1), 1);
    redis_server_expect(&pair->fleet.servers[0], "OK", "CONFIG", "SET", "maxmemory", "1", NULL);
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("bob"), 2), -1);
    assert_int_equal(pair->status, STATE_UNAVAILABLE);
    redis_server_expect(&pair->fleet.servers[0], "OK", "CONFIG", "SET", "maxmemory", "0", NULL);
    state_pair_await_that(pair, state_pair_is_available);
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("bob"), 2), 1);
    redis_server_expect(&pair->fleet.servers[0], "OK", "REPLICAOF", "127.0.0.1", "1", NULL);
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("carol"), 3), -1);
    assert_int_equal(pair->status, STATE_UNAVAILABLE);
    redis_server_expect(&pair->fleet.servers[0], "OK", "REPLICAOF", "NO", "ONE", NULL);
    state_pair_await_that(pair, state_pair_is_available);
    redis_server_expect(&pair->fleet.servers[0], "OK", "SCRIPT", "FLUSH", NULL);
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("carol"), 3), 1);
}

#define TEST(name) STATE_PAIR_TEST(name, &the_pair)

static int run(bool cluster)
{
    const struct CMUnitTest tests[] = {
        TEST(two_reapers_at_once_tell_each_end_once),
        TEST(an_emptied_store_is_noticed_and_filled_without_news),
        TEST(who_was_told_offline_is_told_online_again),
        TEST(foreign_values_are_mended),
        TEST(a_close_does_not_overtake_an_open_whose_script_is_asked_for),
    };
    const struct CMUnitTest of_a_cluster[] = {
        TEST(a_lease_closed_while_it_is_renewed_is_held_no_more),
        TEST(a_lease_closed_before_it_is_renewed_is_held_no_more),
        TEST(a_lease_that_was_closed_before_it_opened_is_reaped),
    };
    const struct CMUnitTest of_one_server[] = {
        TEST(a_pause_of_redis_makes_nobody_offline),
        TEST(what_redis_refuses_is_unavailable),
        TEST(a_close_without_an_answer_is_unknown_and_names_its_user),
    };
    redis_fleet_open(&the_pair.fleet, cluster);
    int failed =
        cmocka_run_group_tests_name(cluster ? "on a cluster" : "on a server", tests, NULL, NULL);
    failed += cluster ? cmocka_run_group_tests(of_a_cluster, NULL, NULL)
                      : cmocka_run_group_tests(of_one_server, NULL, NULL);
    redis_fleet_close(&the_pair.fleet);
    return failed;
}

int main(void)
{
    return run(false) + run(true);
}
