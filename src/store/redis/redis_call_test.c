/* The Redis backend, on one server and on a cluster, against the suite that every backend must pass; and what
 * is its own. */
#include "conformance/call_store_suite.h"
#include "store/redis/redis_call.h"
#include "support/redis_fleet.h"
#include "text/time_text.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { RING_MS = 30000, GRACE_MS = 10000, WINDOW_MS = 45000, STEPS_OF_A_RENEWAL = 3 };

static struct redis_fleet the_fleet;

static struct call_store *make(struct redis_fleet *fleet, size_t client, const struct clock *clock)
{
    struct call_store *store =
        redis_call_make(&(struct redis_call_options){.client = fleet->clients[client],
                                                     .loop = &fleet->worker.loop,
                                                     .random = &fleet->worker.random,
                                                     .ring_timeout_ms = RING_MS,
                                                     .reconnect_grace_ms = GRACE_MS,
                                                     .lease_window_ms = WINDOW_MS,
                                                     .clock = clock});
    assert_non_null(store);
    return store;
}

static struct call_store *port(void *context)
{
    struct redis_fleet *fleet = context;
    return make(fleet, redis_fleet_next_client(fleet), &fleet->clock);
}

static void settle(void *context)
{
    redis_fleet_settle(context, STEPS_OF_A_RENEWAL);
}

static int64_t wall_ms(void *context)
{
    return ((struct redis_fleet *)context)->clock.wall_ms;
}

/* ---- what is its own ---- */

enum { USERS_MAX = 8 };

struct answers {
    size_t count;
    size_t results[CALL_UNKNOWN + 1];
    enum call_result last;
    char last_id[CALL_ID_BYTES_MAX + 1];
    size_t ended;
};

static void take(void *arg, const struct call_answer *answer)
{
    struct answers *answers = arg;
    answers->count++;
    answers->results[answer->result]++;
    answers->last = answer->result;
    if (answer->call)
        snprintf(answers->last_id, sizeof(answers->last_id), "%.*s",
                 SLICE_FORMAT(answer->call->id));
}

static void take_ended(void *arg, const struct call *ended, size_t count)
{
    struct answers *answers = arg;
    (void)ended;
    answers->count++;
    answers->ended += count;
}

static int set_up(void **state)
{
    redis_fleet_empty(&the_fleet);
    *state = &the_fleet;
    return 0;
}

static struct call_device device_of(const char *user)
{
    struct call_device device = {slice_of(user), SLICE("phone"), {{1}}};
    device.conn_id.bytes[1] = (uint8_t)user[0];
    return device;
}

static void request(struct call_store *store, const char *id, const char *caller,
                    const char *callee, struct answers *answers)
{
    struct call_device device = device_of(caller);
    call_store_request(store, slice_of(id), &device, slice_of(callee), take, answers);
}

static bool has_answers(void *arg)
{
    const struct answers *answers = ((void **)arg)[0];
    return answers->count >= *(const size_t *)((void **)arg)[1];
}

static void await(struct redis_fleet *fleet, struct answers *answers, size_t count)
{
    assert_true(worker_loop_until(&fleet->worker, has_answers, (void *[]){answers, &count}, 10000));
    assert_int_equal(answers->count, count);
}

static enum call_result get(struct redis_fleet *fleet, struct call_store *store, const char *user)
{
    struct answers answers = {0};
    call_store_get(store, SLICE_NONE, slice_of(user), take, &answers);
    await(fleet, &answers, 1);
    return answers.last;
}

/* Everybody calls everybody at once from two gateways: all are answered, nobody is in two calls, and who is
 * in one is so with somebody who is in the same. */
static void nobody_is_in_two_calls(void **state)
{
    enum { USERS = 6, ROUNDS = 40 };
    static const char *const NAMES[USERS] = {"a", "b", "c", "d", "e", "f"};
    struct redis_fleet *fleet = *state;
    struct call_store *stores[] = {make(fleet, 0, &fleet->clock), make(fleet, 1, &fleet->clock)};
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct answers answers = {0};
        char id[32];
        size_t asked = 0;
        for (unsigned i = 0; i < USERS * USERS; i++) {
            unsigned pair = (i * 7 + round * 5) % (USERS * USERS); /* in ever another order */
            if (pair / USERS == pair % USERS)
                continue;
            snprintf(id, sizeof(id), "call-%u-%u", round, pair);
            request(stores[(i + round) % 2], id, NAMES[pair / USERS], NAMES[pair % USERS],
                    &answers);
            asked++;
        }
        await(fleet, &answers, asked);
        size_t in_call = 0;
        for (size_t i = 0; i < USERS; i++)
            in_call += get(fleet, stores[0], NAMES[i]) == CALL_DONE;
        assert_true(answers.results[CALL_DONE] >= 1);
        assert_int_equal(answers.results[CALL_UNAVAILABLE] + answers.results[CALL_UNKNOWN], 0);
        assert_int_equal(in_call, 2 * answers.results[CALL_DONE]);
        for (size_t i = 0; i < USERS; i++) {
            struct answers over = {0};
            call_store_end(stores[1], SLICE_NONE, slice_of(NAMES[i]), take, &over);
            await(fleet, &over, 1);
        }
    }
    call_store_free(&stores[0]);
    call_store_free(&stores[1]);
}

/* Two who call each other at the same moment talk to each other. */
static void crossing_requests_meet(void **state)
{
    struct redis_fleet *fleet = *state;
    struct call_store *stores[] = {make(fleet, 0, &fleet->clock), make(fleet, 1, &fleet->clock)};
    struct answers answers = {0};
    request(stores[0], "there", "alice", "bob", &answers);
    request(stores[1], "back", "bob", "alice", &answers);
    await(fleet, &answers, 2);
    assert_int_equal(answers.results[CALL_DONE], 1);
    assert_int_equal(answers.results[CALL_GLARE], 1);
    call_store_free(&stores[0]);
    call_store_free(&stores[1]);
}

static const char *claim_key(const struct redis_fleet *fleet, const char *user, char out[64])
{
    snprintf(out, 64, fleet->cluster ? "user:{%s}:call" : "user:%s:call", user);
    return out;
}

/* A gateway that died after it claimed, or after it ended a call, leaves claims of nothing. */
static void claims_of_nothing_hold_nobody(void **state)
{
    struct redis_fleet *fleet = *state;
    struct call_store *store = make(fleet, 0, &fleet->clock);
    char text[64];
    struct slice key = slice_of(claim_key(fleet, "bob", text));
    struct answers answers = {0};
    redis_fleet_ask(fleet, key,
                    REDIS_ARGS(SLICE("SET"), key, SLICE("01ARZ3NDEKTSV4RRFFQ69G5FAVgone")));
    request(store, "c", "alice", "bob", &answers);
    await(fleet, &answers, 1);
    assert_int_equal(answers.last, CALL_DONE);
    assert_int_equal(get(fleet, store, "bob"), CALL_DONE);
    call_store_free(&store);
}

/* Steps 1 and 2 of a request whose gateway then dies: in its way at first, and gone by its time. */
static void a_request_that_dies_half_way_lets_go(void **state)
{
    struct redis_fleet *fleet = *state;
    struct call_store *dying = make(fleet, 0, &fleet->clock);
    struct call_store *store = make(fleet, 1, &fleet->clock);
    struct answers answers = {0}, late = {0};
    request(dying, "never", "alice", "bob", &late);
    call_store_free(&dying); /* between two steps */
    await(fleet, &late, 1);
    assert_int_equal(late.last, CALL_UNAVAILABLE);
    assert_int_equal(get(fleet, store, "alice"), CALL_NOT_FOUND);
    redis_fleet_pass(fleet, 5000);
    request(store, "c", "alice", "bob", &answers);
    await(fleet, &answers, 1);
    assert_int_equal(answers.last, CALL_DONE);
    call_store_free(&store);
}

/* The gateway that ended the call is gone before it heard so: another tells. */
static void an_end_that_nobody_told_is_found(void **state)
{
    struct redis_fleet *fleet = *state;
    struct call_store *store = make(fleet, 0, &fleet->clock);
    struct answers answers = {0};
    char name[REDIS_SERVER_REPLY_MAX];
    request(store, "c", "alice", "bob", &answers);
    await(fleet, &answers, 1);
    struct slice record = redis_fleet_find(fleet, "call:*", name);
    redis_fleet_ask(fleet, record,
                    REDIS_ARGS(SLICE("HSET"), record, SLICE("state"), SLICE("ended"),
                               SLICE("reason"), SLICE("hangup"), SLICE("ended_at"),
                               SLICE("2023-11-14T22:13:20.000Z")));
    redis_fleet_pass(fleet, RING_MS);
    call_store_reap(store, CALL_REAP_MAX, take_ended, &answers);
    await(fleet, &answers, 2);
    assert_int_equal(answers.ended, 1);
    redis_fleet_pass(fleet, 5000);
    call_store_reap(store, CALL_REAP_MAX, take_ended, &answers);
    await(fleet, &answers, 3);
    assert_int_equal(answers.ended, 1);
    call_store_free(&store);
}

static void foreign_values_do_no_harm(void **state)
{
    static const char *const TYPES[][2] = {{"SADD", "x"}, {"SET", "short"}, {"RPUSH", "y"}};
    struct redis_fleet *fleet = *state;
    struct call_store *store = make(fleet, 0, &fleet->clock);
    for (size_t i = 0; i < sizeof(TYPES) / sizeof(TYPES[0]); i++) {
        char text[64], id[8];
        struct slice key = slice_of(claim_key(fleet, "bob", text));
        struct answers answers = {0};
        snprintf(id, sizeof(id), "c%zu", i);
        redis_fleet_ask(fleet, key, REDIS_ARGS(SLICE("DEL"), key));
        redis_fleet_ask(fleet, key, REDIS_ARGS(slice_of(TYPES[i][0]), key, slice_of(TYPES[i][1])));
        assert_int_equal(get(fleet, store, "bob"), CALL_NOT_FOUND);
        redis_fleet_ask(fleet, key, REDIS_ARGS(slice_of(TYPES[i][0]), key, slice_of(TYPES[i][1])));
        request(store, id, "alice", "bob", &answers);
        await(fleet, &answers, 1);
        assert_int_equal(answers.last, CALL_DONE);
        call_store_end(store, slice_of(id), SLICE("bob"), take, &answers);
        await(fleet, &answers, 2);
        assert_int_equal(answers.last, CALL_DONE);
    }
    call_store_free(&store);
}

static void a_record_that_is_no_call_counts_as_none(void **state)
{
    struct redis_fleet *fleet = *state;
    struct call_store *store = make(fleet, 0, &fleet->clock);
    struct answers answers = {0};
    char names[2][REDIS_SERVER_REPLY_MAX];
    request(store, "c", "alice", "bob", &answers);
    await(fleet, &answers, 1);
    struct slice record = redis_fleet_find(fleet, "call:*", names[0]);
    struct slice index = redis_fleet_find(fleet, "calls:due*", names[1]);
    redis_fleet_empty(fleet);
    redis_fleet_ask(fleet, record, REDIS_ARGS(SLICE("RPUSH"), record, SLICE("x")));
    redis_fleet_ask(fleet, index, REDIS_ARGS(SLICE("ZADD"), index, SLICE("1"), SLICE("c")));
    call_store_end(store, SLICE("c"), SLICE("alice"), take, &answers);
    await(fleet, &answers, 2);
    assert_int_equal(answers.last, CALL_NOT_FOUND);
    call_store_reap(store, CALL_REAP_MAX, take_ended, &answers);
    await(fleet, &answers, 3);
    assert_int_equal(answers.ended, 0);
    assert_string_equal(redis_fleet_ask(fleet, index, REDIS_ARGS(SLICE("ZCARD"), index)), "0");
    request(store, "c", "alice", "bob", &answers);
    await(fleet, &answers, 4);
    assert_int_equal(answers.last, CALL_DONE);
    redis_fleet_ask(fleet, record,
                    REDIS_ARGS(SLICE("HSET"), record, SLICE("callee_due_at"), SLICE("soon"),
                               SLICE("caller_conn"), SLICE("none"), SLICE("due_at"), SLICE("")));
    call_store_end(store, SLICE("c"), SLICE("alice"), take, &answers);
    await(fleet, &answers, 5);
    assert_int_equal(answers.last, CALL_DONE);
    call_store_free(&store);
}

/* A time field as text, taken over as an earlier gateway wrote it: in milliseconds. */
static void age_time(struct redis_fleet *fleet, struct slice record, const char *field,
                     char text[TIME_TEXT_LEN + 1])
{
    int64_t ms;
    char number[24];
    const char *told =
        redis_fleet_ask(fleet, record, REDIS_ARGS(SLICE("HGET"), record, slice_of(field)));
    assert_true(time_text_parse(slice_of(told), &ms));
    snprintf(text, TIME_TEXT_LEN + 1, "%s", told);
    snprintf(number, sizeof(number), "%" PRId64, ms);
    redis_fleet_ask(fleet, record,
                    REDIS_ARGS(SLICE("HSET"), record, slice_of(field), slice_of(number)));
}

static void a_call_of_an_earlier_gateway_goes_on(void **state)
{
    static const char *const FIELDS[] = {"due_at", "caller_due_at", "started_at"};
    struct redis_fleet *fleet = *state;
    struct call_store *store = make(fleet, 0, &fleet->clock);
    struct call_device alice = device_of("alice"), bob = device_of("bob");
    struct answers answers = {0};
    char name[REDIS_SERVER_REPLY_MAX], texts[3][TIME_TEXT_LEN + 1];
    request(store, "c", "alice", "bob", &answers);
    await(fleet, &answers, 1);
    struct slice record = redis_fleet_find(fleet, "call:*", name);
    for (size_t i = 0; i < 3; i++)
        age_time(fleet, record, FIELDS[i], texts[i]);
    call_store_attach(store, &alice, take, &answers);
    await(fleet, &answers, 2);
    assert_int_equal(answers.last, CALL_DONE);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(
            redis_fleet_ask(fleet, record, REDIS_ARGS(SLICE("HGET"), record, slice_of(FIELDS[i]))),
            texts[i]);
    call_store_reap(store, CALL_REAP_MAX, take_ended, &answers);
    await(fleet, &answers, 3);
    assert_int_equal(answers.ended, 0);
    call_store_answer(store, SLICE("c"), &bob, take, &answers);
    await(fleet, &answers, 4);
    assert_int_equal(answers.last, CALL_DONE);
    call_store_free(&store);
}

/* After a call nothing is left of it but the record that is kept for a minute. */
static void nothing_stays_behind(void **state)
{
    struct redis_fleet *fleet = *state;
    struct call_store *store = make(fleet, 0, NULL);
    struct answers answers = {0};
    request(store, "c", "alice", "bob", &answers);
    await(fleet, &answers, 1);
    call_store_end(store, SLICE("c"), SLICE("bob"), take, &answers);
    await(fleet, &answers, 2);
    redis_fleet_settle(fleet, 1);
    size_t keys = 0;
    for (size_t i = 0; i < (fleet->cluster ? REDIS_CLUSTER_MASTERS : 1); i++) {
        char reply[REDIS_SERVER_REPLY_MAX];
        redis_server_ask(&fleet->servers[i], reply, "DBSIZE", NULL);
        keys += (size_t)strtol(reply, NULL, 10);
    }
    assert_int_equal(keys, 1);
    call_store_free(&store);
}

static void without_an_answer_only_what_may_have_happened_is_unknown(void **state)
{
    struct redis_fleet *fleet = *state;
    struct call_store *store = make(fleet, 0, NULL);
    struct call_device bob = device_of("bob");
    struct answers answers = {0};
    redis_fleet_kill(fleet);
    request(store, "c", "alice", "bob", &answers);
    call_store_answer(store, SLICE("c"), &bob, take, &answers);
    call_store_end(store, SLICE_NONE, SLICE("bob"), take, &answers);
    call_store_get(store, SLICE("c"), SLICE("bob"), take, &answers);
    call_store_attach(store, &bob, take, &answers);
    call_store_reap(store, CALL_REAP_MAX, take_ended, &answers);
    await(fleet, &answers, 6);
    assert_int_equal(answers.results[CALL_UNAVAILABLE], 4);
    assert_int_equal(answers.results[CALL_UNKNOWN], 1); /* the answer: it needs no claim first */
    assert_int_equal(answers.ended, 0);
    call_store_free(&store);
}

static int run(bool cluster)
{
    const struct call_store_suite_backend backend = {
        .name = cluster ? "redis_call on a cluster" : "redis_call",
        .context = &the_fleet,
        .ring_timeout_ms = RING_MS,
        .reconnect_grace_ms = GRACE_MS,
        .lease_window_ms = WINDOW_MS,
        .start = redis_fleet_empty,
        .port = port,
        .stop = settle,
        .pass = redis_fleet_pass,
        .wall_ms = wall_ms,
        .poll = redis_fleet_poll,
        .settle = settle,
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(nobody_is_in_two_calls, set_up),
        cmocka_unit_test_setup(crossing_requests_meet, set_up),
        cmocka_unit_test_setup(claims_of_nothing_hold_nobody, set_up),
        cmocka_unit_test_setup(a_request_that_dies_half_way_lets_go, set_up),
        cmocka_unit_test_setup(an_end_that_nobody_told_is_found, set_up),
        cmocka_unit_test_setup(foreign_values_do_no_harm, set_up),
        cmocka_unit_test_setup(a_record_that_is_no_call_counts_as_none, set_up),
        cmocka_unit_test_setup(a_call_of_an_earlier_gateway_goes_on, set_up),
        cmocka_unit_test_setup(nothing_stays_behind, set_up),
        cmocka_unit_test_setup(without_an_answer_only_what_may_have_happened_is_unknown, set_up),
    };
    redis_fleet_open(&the_fleet, cluster);
    int failed = call_store_suite_run(&backend) +
                 cmocka_run_group_tests_name("redis_call_own", tests, NULL, NULL);
    redis_fleet_close(&the_fleet);
    return failed;
}

int main(void)
{
    return run(false) + run(true);
}
