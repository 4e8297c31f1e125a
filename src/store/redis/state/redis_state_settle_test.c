/* Claims after Redis has lost data, on a single server and on a cluster. */
#include "store/redis/redis_keys.h"
#include "support/state_pair.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { NUMBER = 1, OTHER_NUMBER = 2, AGO_MS = 700, AHEAD = 3600 * 1000 };

static struct state_pair the_pair;

static void on_settled(void *arg, enum state_status status,
                       const struct state_transition *transition)
{
    struct state_pair *pair = arg;
    pair->waiting--;
    pair->status = status;
    pair->transition = *transition;
}

static const struct state_transition *settle(struct state_pair *pair, struct state_claim claim)
{
    claim.user_id = SLICE("alice");
    if (claim.left_at_ms)
        claim.conn_id = state_pair_connection(NUMBER);
    pair->waiting = 1;
    state_settle(pair->first, &claim, on_settled, pair);
    state_pair_await(pair);
    assert_int_equal(pair->status, STATE_OK);
    return &pair->transition;
}

static int64_t wall_ms(const struct state_pair *pair)
{
    return pair->fleet.worker.loop.clock.wall_ms;
}

static int64_t open_alice(struct state_pair *pair)
{
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("alice"), NUMBER), 1);
    return pair->transition.presence.version;
}

static void departure_is_decided_at_last_when_redis_lost_the_user(void **state)
{
    struct state_pair *pair = *state;
    int64_t version = open_alice(pair) + AHEAD, left_at_ms = wall_ms(pair) - AGO_MS;
    struct state_claim claim = {
        .left_at_ms = left_at_ms, .version_min = version, .was_connected = true};
    redis_fleet_empty(&pair->fleet);
    assert_true(settle(pair, claim)->undecided);
    claim.is_final = true;
    const struct state_transition *made = settle(pair, claim);
    assert_true(made->changed);
    assert_int_equal(made->presence.status, PRESENCE_OFFLINE);
    assert_true(made->presence.version > version);
    assert_in_range(made->presence.last_seen_ms, left_at_ms - 100, left_at_ms + 100);
    version = made->presence.version;
    assert_false(settle(pair, claim)->changed);
    assert_int_equal(pair->transition.presence.version, version);
}

static void departure_ends_a_lease_that_redis_still_has(void **state)
{
    struct state_pair *pair = *state;
    open_alice(pair);
    int64_t left_at_ms = wall_ms(pair) - AGO_MS;
    const struct state_transition *made =
        settle(pair, (struct state_claim){.left_at_ms = left_at_ms, .was_connected = true});
    assert_true(made->changed);
    assert_int_equal(made->presence.status, PRESENCE_OFFLINE);
    assert_in_range(made->presence.last_seen_ms, left_at_ms - 100, left_at_ms + 100);
}

static void departed_user_stays_online_on_another_gateway(void **state)
{
    struct state_pair *pair = *state;
    struct state_claim claim = {
        .left_at_ms = wall_ms(pair), .was_connected = true, .is_final = true};
    open_alice(pair);
    assert_int_equal(state_pair_open(pair, pair->second, SLICE("alice"), OTHER_NUMBER), 0);
    assert_false(settle(pair, claim)->changed);
    assert_int_equal(pair->transition.presence.status, PRESENCE_ONLINE);
    redis_fleet_empty(&pair->fleet);
    assert_int_equal(state_pair_open_again(pair, pair->second, SLICE("alice"), OTHER_NUMBER), 0);
    assert_false(settle(pair, claim)->changed);
    assert_int_equal(pair->transition.presence.status, PRESENCE_ONLINE);
}

/* The other lease has expired, but its gateway may be about to register it again. */
static void nothing_is_decided_while_other_leases_may_return(void **state)
{
    struct state_pair *pair = *state;
    open_alice(pair);
    assert_int_equal(state_pair_open(pair, pair->second, SLICE("alice"), OTHER_NUMBER), 0);
    state_pair_pass(pair, STATE_PAIR_WINDOW_MS + 100);
    struct state_claim claim = {.left_at_ms = wall_ms(pair), .was_connected = true};
    assert_true(settle(pair, claim)->undecided);
    assert_int_equal(state_pair_open_again(pair, pair->second, SLICE("alice"), OTHER_NUMBER), 0);
    claim.is_final = true;
    assert_false(settle(pair, claim)->changed);
    assert_int_equal(pair->transition.presence.status, PRESENCE_ONLINE);
}

static void version_that_went_back_is_raised(void **state)
{
    struct state_pair *pair = *state;
    int64_t told = open_alice(pair) + AHEAD;
    const struct state_transition *made =
        settle(pair, (struct state_claim){.version_min = told, .was_connected = true});
    assert_true(made->changed);
    assert_int_equal(made->presence.status, PRESENCE_ONLINE);
    assert_true(made->presence.version > told);
    told = made->presence.version;
    assert_false(settle(pair, (struct state_claim){.version_min = told})->changed);
}

static void lost_user_whom_viewers_believe_online_goes_offline(void **state)
{
    struct state_pair *pair = *state;
    struct state_claim claim = {.version_min = open_alice(pair), .was_connected = true};
    redis_fleet_empty(&pair->fleet);
    assert_true(settle(pair, claim)->undecided);
    claim.is_final = true;
    const struct state_transition *made = settle(pair, claim);
    assert_true(made->changed);
    assert_int_equal(made->presence.status, PRESENCE_OFFLINE);
    assert_int_equal(made->presence.last_seen_ms, TIME_NONE);
}

#define TEST(name) STATE_PAIR_TEST(name, &the_pair)

static int run(bool cluster)
{
    const struct CMUnitTest tests[] = {
        TEST(departure_is_decided_at_last_when_redis_lost_the_user),
        TEST(departure_ends_a_lease_that_redis_still_has),
        TEST(departed_user_stays_online_on_another_gateway),
        TEST(nothing_is_decided_while_other_leases_may_return),
        TEST(version_that_went_back_is_raised),
        TEST(lost_user_whom_viewers_believe_online_goes_offline),
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
