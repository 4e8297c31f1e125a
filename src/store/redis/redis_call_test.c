/* The call store on Redis, on a single server and on a cluster: the suite of all backends, and tests of its own. */
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

static struct call_store *make_store(struct redis_fleet *fleet, size_t client,
                                     const struct clock *clock)
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

static struct call_store *make_port(void *context)
{
    struct redis_fleet *fleet = context;
    return make_store(fleet, redis_fleet_next_client(fleet), &fleet->clock);
}

static void settle(void *context)
{
    redis_fleet_settle(context, STEPS_OF_A_RENEWAL);
}

static int64_t wall_ms(void *context)
{
    return ((struct redis_fleet *)context)->clock.wall_ms;
}

/* ---- tests of its own ---- */

enum { USERS_MAX = 8 };

struct answers {
    size_t count;
    size_t results[CALL_UNKNOWN + 1];
    enum call_result last;
    char last_id[CALL_ID_BYTES_MAX + 1];
    size_t ended;
};

static void on_answer(void *arg, const struct call_answer *answer)
{
    struct answers *answers = arg;
    answers->count++;
    answers->results[answer->result]++;
    answers->last = answer->result;
    if (answer->call)
        snprintf(answers->last_id, sizeof(answers->last_id), "%.*s",
                 SLICE_FORMAT(answer->call->id));
}

static void on_reaped(void *arg, const struct call *ended, size_t count)
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

static struct call_device phone_of(const char *user)
{
    struct call_device device = {slice_of(user), SLICE("phone"), {{1}}};
    device.conn_id.bytes[1] = (uint8_t)user[0];
    return device;
}

static void send_request(struct call_store *store, const char *id, const char *caller,
                         const char *callee, struct answers *answers)
{
    struct call_device device = phone_of(caller);
    call_store_request(store, slice_of(id), &device, slice_of(callee), on_answer, answers);
}

static bool has_enough_answers(void *arg)
{
    const struct answers *answers = ((void **)arg)[0];
    return answers->count >= *(const size_t *)((void **)arg)[1];
}

static void await_answers(struct redis_fleet *fleet, struct answers *answers, size_t count)
{
    assert_true(
        worker_loop_until(&fleet->worker, has_enough_answers, (void *[]){answers, &count}, 10000));
    assert_int_equal(answers->count, count);
}

static enum call_result get_result(struct redis_fleet *fleet, struct call_store *store,
                                   const char *user)
{
    struct answers answers = {0};
    call_store_get(store, SLICE_NONE, slice_of(user), on_answer, &answers);
    await_answers(fleet, &answers, 1);
    return answers.last;
}

/* All users call each other at once from two gateways. Every request is answered, nobody is in two calls, and the other
 * party of a user's call is in the same call. */
static void concurrent_requests_put_nobody_into_two_calls(void **state)
{
    enum { USERS = 6, ROUNDS = 40 };
    static const char *const NAMES[USERS] = {"a", "b", "c", "d", "e", "f"};
    struct redis_fleet *fleet = *state;
    struct call_store *stores[] = {make_store(fleet, 0, &fleet->clock),
                                   make_store(fleet, 1, &fleet->clock)};
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct answers answers = {0};
        char id[32];
        size_t sent = 0;
        for (unsigned i = 0; i < USERS * USERS; i++) {
            unsigned pair = (i * 7 + round * 5) % (USERS * USERS); /* another order in each round */
            if (pair / USERS == pair % USERS)
                continue;
            snprintf(id, sizeof(id), "call-%u-%u", round, pair);
            send_request(stores[(i + round) % 2], id, NAMES[pair / USERS], NAMES[pair % USERS],
                         &answers);
            sent++;
        }
        await_answers(fleet, &answers, sent);
        size_t in_call = 0;
        for (size_t i = 0; i < USERS; i++)
            in_call += get_result(fleet, stores[0], NAMES[i]) == CALL_DONE;
        assert_true(answers.results[CALL_DONE] >= 1);
        assert_int_equal(answers.results[CALL_UNAVAILABLE] + answers.results[CALL_UNKNOWN], 0);
        assert_int_equal(in_call, 2 * answers.results[CALL_DONE]);
        for (size_t i = 0; i < USERS; i++) {
            struct answers over = {0};
            call_store_end(stores[1], SLICE_NONE, slice_of(NAMES[i]), on_answer, &over);
            await_answers(fleet, &over, 1);
        }
    }
    call_store_free(&stores[0]);
    call_store_free(&stores[1]);
}

static void crossing_requests_become_one_call(void **state)
{
    struct redis_fleet *fleet = *state;
    struct call_store *stores[] = {make_store(fleet, 0, &fleet->clock),
                                   make_store(fleet, 1, &fleet->clock)};
    struct answers answers = {0};
    send_request(stores[0], "call-1", "alice", "bob", &answers);
    send_request(stores[1], "call-2", "bob", "alice", &answers);
    await_answers(fleet, &answers, 2);
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

/* A gateway that dies after it claimed, or after it ended a call, leaves such claims. */
static void claim_without_a_call_stops_no_requests(void **state)
{
    struct redis_fleet *fleet = *state;
    struct call_store *store = make_store(fleet, 0, &fleet->clock);
    char text[64];
    struct slice key = slice_of(claim_key(fleet, "bob", text));
    struct answers answers = {0};
    redis_fleet_ask(fleet, key,
                    REDIS_ARGS(SLICE("SET"), key, SLICE("01ARZ3NDEKTSV4RRFFQ69G5FAVgone")));
    send_request(store, "c", "alice", "bob", &answers);
    await_answers(fleet, &answers, 1);
    assert_int_equal(answers.last, CALL_DONE);
    assert_int_equal(get_result(fleet, store, "bob"), CALL_DONE);
    call_store_free(&store);
}

/* The gateway dies after step 1 or 2 of its request. What it left makes others wait at first, and then times out. */
static void request_whose_gateway_dies_stops_no_later_ones(void **state)
{
    struct redis_fleet *fleet = *state;
    struct call_store *dying = make_store(fleet, 0, &fleet->clock);
    struct call_store *store = make_store(fleet, 1, &fleet->clock);
    struct answers answers = {0}, late = {0};
    send_request(dying, "never", "alice", "bob", &late);
    call_store_free(&dying); /* between two steps of the request */
    await_answers(fleet, &late, 1);
    assert_int_equal(late.last, CALL_UNAVAILABLE);
    assert_int_equal(get_result(fleet, store, "alice"), CALL_NOT_FOUND);
    redis_fleet_pass(fleet, 5000);
    send_request(store, "c", "alice", "bob", &answers);
    await_answers(fleet, &answers, 1);
    assert_int_equal(answers.last, CALL_DONE);
    call_store_free(&store);
}

/* The gateway that ended the call died before it notified the parties: the reaper returns the call, once. */
static void end_that_was_not_acknowledged_is_reaped(void **state)
{
    struct redis_fleet *fleet = *state;
    struct call_store *store = make_store(fleet, 0, &fleet->clock);
    struct answers answers = {0};
    char name[REDIS_SERVER_REPLY_MAX];
    send_request(store, "c", "alice", "bob", &answers);
    await_answers(fleet, &answers, 1);
    struct slice record = redis_fleet_find(fleet, "call:*", name);
    redis_fleet_ask(fleet, record,
                    REDIS_ARGS(SLICE("HSET"), record, SLICE("state"), SLICE("ended"),
                               SLICE("reason"), SLICE("hangup"), SLICE("ended_at"),
                               SLICE("2023-11-14T22:13:20.000Z")));
    redis_fleet_pass(fleet, RING_MS);
    call_store_reap(store, CALL_REAP_MAX, on_reaped, &answers);
    await_answers(fleet, &answers, 2);
    assert_int_equal(answers.ended, 1);
    redis_fleet_pass(fleet, 5000);
    call_store_reap(store, CALL_REAP_MAX, on_reaped, &answers);
    await_answers(fleet, &answers, 3);
    assert_int_equal(answers.ended, 1);
    call_store_free(&store);
}

/* Returns how many scripts all masters have run. */
static long count_scripts(const struct redis_fleet *fleet)
{
    static const char name[] = "cmdstat_evalsha:calls=";
    char reply[REDIS_SERVER_REPLY_MAX];
    long calls = 0;
    for (size_t i = 0; i < (fleet->cluster ? REDIS_CLUSTER_MASTERS : 1); i++) {
        redis_server_ask(&fleet->servers[i], reply, "INFO", "commandstats", NULL);
        const char *found = strstr(reply, name);
        calls += found ? strtol(found + strlen(name), NULL, 10) : 0;
    }
    return calls;
}

static void reaper_asks_nothing_while_there_are_no_calls(void **state)
{
    struct redis_fleet *fleet = *state;
    struct call_store *store = make_store(fleet, 0, &fleet->clock);
    struct call_store *other = make_store(fleet, 1, &fleet->clock);
    struct answers answers = {0}, other_answers = {0};
    size_t passes = 0;
    redis_fleet_settle(fleet, 2);  /* it was emptied, which is reported too */
    for (; passes < 3; passes++) { /* until all shards are known to be empty */
        call_store_reap(store, CALL_REAP_MAX, on_reaped, &answers);
        await_answers(fleet, &answers, passes + 1);
        redis_fleet_settle(fleet, 2);
    }
    long before = count_scripts(fleet);
    for (; passes < 6; passes++)
        call_store_reap(store, CALL_REAP_MAX, on_reaped, &answers);
    await_answers(fleet, &answers, passes);
    assert_int_equal(count_scripts(fleet), before);
    send_request(other, "c", "alice", "bob", &other_answers); /* by another gateway */
    await_answers(fleet, &other_answers, 1);
    redis_fleet_settle(fleet, 2);
    redis_fleet_pass(fleet, RING_MS + 1);
    call_store_reap(store, CALL_REAP_MAX, on_reaped, &answers);
    await_answers(fleet, &answers, passes + 1);
    assert_int_equal(answers.ended, 1);
    call_store_free(&store);
    call_store_free(&other);
}

static void foreign_claim_values_are_ignored(void **state)
{
    static const char *const TYPES[][2] = {{"SADD", "x"}, {"SET", "short"}, {"RPUSH", "y"}};
    struct redis_fleet *fleet = *state;
    struct call_store *store = make_store(fleet, 0, &fleet->clock);
    for (size_t i = 0; i < sizeof(TYPES) / sizeof(TYPES[0]); i++) {
        char text[64], id[8];
        struct slice key = slice_of(claim_key(fleet, "bob", text));
        struct answers answers = {0};
        snprintf(id, sizeof(id), "c%zu", i);
        redis_fleet_ask(fleet, key, REDIS_ARGS(SLICE("DEL"), key));
        redis_fleet_ask(fleet, key, REDIS_ARGS(slice_of(TYPES[i][0]), key, slice_of(TYPES[i][1])));
        assert_int_equal(get_result(fleet, store, "bob"), CALL_NOT_FOUND);
        redis_fleet_ask(fleet, key, REDIS_ARGS(slice_of(TYPES[i][0]), key, slice_of(TYPES[i][1])));
        send_request(store, id, "alice", "bob", &answers);
        await_answers(fleet, &answers, 1);
        assert_int_equal(answers.last, CALL_DONE);
        call_store_end(store, slice_of(id), SLICE("bob"), on_answer, &answers);
        await_answers(fleet, &answers, 2);
        assert_int_equal(answers.last, CALL_DONE);
    }
    call_store_free(&store);
}

static void record_that_is_not_a_call_counts_as_absent(void **state)
{
    struct redis_fleet *fleet = *state;
    struct call_store *store = make_store(fleet, 0, &fleet->clock);
    struct answers answers = {0};
    char names[2][REDIS_SERVER_REPLY_MAX];
    send_request(store, "c", "alice", "bob", &answers);
    await_answers(fleet, &answers, 1);
    struct slice record = redis_fleet_find(fleet, "call:*", names[0]);
    struct slice index = redis_fleet_find(fleet, "calls:due*", names[1]);
    redis_fleet_empty(fleet);
    redis_fleet_ask(fleet, record, REDIS_ARGS(SLICE("RPUSH"), record, SLICE("x")));
    redis_fleet_ask(fleet, index, REDIS_ARGS(SLICE("ZADD"), index, SLICE("1"), SLICE("c")));
    call_store_end(store, SLICE("c"), SLICE("alice"), on_answer, &answers);
    await_answers(fleet, &answers, 2);
    assert_int_equal(answers.last, CALL_NOT_FOUND);
    call_store_reap(store, CALL_REAP_MAX, on_reaped, &answers);
    await_answers(fleet, &answers, 3);
    assert_int_equal(answers.ended, 0);
    assert_string_equal(redis_fleet_ask(fleet, index, REDIS_ARGS(SLICE("ZCARD"), index)), "0");
    send_request(store, "c", "alice", "bob", &answers);
    await_answers(fleet, &answers, 4);
    assert_int_equal(answers.last, CALL_DONE);
    redis_fleet_ask(fleet, record,
                    REDIS_ARGS(SLICE("HSET"), record, SLICE("callee_due_at"), SLICE("soon"),
                               SLICE("caller_conn"), SLICE("none"), SLICE("due_at"), SLICE("")));
    call_store_end(store, SLICE("c"), SLICE("alice"), on_answer, &answers);
    await_answers(fleet, &answers, 5);
    assert_int_equal(answers.last, CALL_DONE);
    call_store_free(&store);
}

/* Rewrites a time field as an earlier version wrote it, in milliseconds; `text` gets the text that it had. */
static void rewrite_time_in_ms(struct redis_fleet *fleet, struct slice record, const char *field,
                               char text[TIME_TEXT_LEN + 1])
{
    int64_t ms;
    char number[24];
    const char *written =
        redis_fleet_ask(fleet, record, REDIS_ARGS(SLICE("HGET"), record, slice_of(field)));
    assert_true(time_text_parse(slice_of(written), &ms));
    snprintf(text, TIME_TEXT_LEN + 1, "%s", written);
    snprintf(number, sizeof(number), "%" PRId64, ms);
    redis_fleet_ask(fleet, record,
                    REDIS_ARGS(SLICE("HSET"), record, slice_of(field), slice_of(number)));
}

static void call_written_by_an_earlier_version_continues(void **state)
{
    static const char *const FIELDS[] = {"due_at", "caller_due_at", "started_at"};
    struct redis_fleet *fleet = *state;
    struct call_store *store = make_store(fleet, 0, &fleet->clock);
    struct call_device alice = phone_of("alice"), bob = phone_of("bob");
    struct answers answers = {0};
    char name[REDIS_SERVER_REPLY_MAX], texts[3][TIME_TEXT_LEN + 1];
    send_request(store, "c", "alice", "bob", &answers);
    await_answers(fleet, &answers, 1);
    struct slice record = redis_fleet_find(fleet, "call:*", name);
    for (size_t i = 0; i < 3; i++)
        rewrite_time_in_ms(fleet, record, FIELDS[i], texts[i]);
    call_store_attach(store, &alice, on_answer, &answers);
    await_answers(fleet, &answers, 2);
    assert_int_equal(answers.last, CALL_DONE);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(
            redis_fleet_ask(fleet, record, REDIS_ARGS(SLICE("HGET"), record, slice_of(FIELDS[i]))),
            texts[i]);
    call_store_reap(store, CALL_REAP_MAX, on_reaped, &answers);
    await_answers(fleet, &answers, 3);
    assert_int_equal(answers.ended, 0);
    call_store_answer(store, SLICE("c"), &bob, on_answer, &answers);
    await_answers(fleet, &answers, 4);
    assert_int_equal(answers.last, CALL_DONE);
    call_store_free(&store);
}

/* The record is kept for a minute. */
static void ended_call_leaves_only_its_record(void **state)
{
    struct redis_fleet *fleet = *state;
    struct call_store *store = make_store(fleet, 0, NULL);
    struct answers answers = {0};
    send_request(store, "c", "alice", "bob", &answers);
    await_answers(fleet, &answers, 1);
    call_store_end(store, SLICE("c"), SLICE("bob"), on_answer, &answers);
    await_answers(fleet, &answers, 2);
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

static void without_an_answer_only_a_possible_change_is_unknown(void **state)
{
    struct redis_fleet *fleet = *state;
    struct call_store *store = make_store(fleet, 0, NULL);
    struct call_device bob = phone_of("bob");
    struct answers answers = {0};
    redis_fleet_kill(fleet);
    send_request(store, "c", "alice", "bob", &answers);
    call_store_answer(store, SLICE("c"), &bob, on_answer, &answers);
    call_store_end(store, SLICE_NONE, SLICE("bob"), on_answer, &answers);
    call_store_get(store, SLICE("c"), SLICE("bob"), on_answer, &answers);
    call_store_attach(store, &bob, on_answer, &answers);
    call_store_reap(store, CALL_REAP_MAX, on_reaped, &answers);
    await_answers(fleet, &answers, 6);
    assert_int_equal(answers.results[CALL_UNAVAILABLE], 4);
    assert_int_equal(answers.results[CALL_UNKNOWN],
                     1); /* the answer operation, which reads no claim first */
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
        .port = make_port,
        .stop = settle,
        .pass = redis_fleet_pass,
        .wall_ms = wall_ms,
        .poll = redis_fleet_poll,
        .settle = settle,
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(concurrent_requests_put_nobody_into_two_calls, set_up),
        cmocka_unit_test_setup(crossing_requests_become_one_call, set_up),
        cmocka_unit_test_setup(claim_without_a_call_stops_no_requests, set_up),
        cmocka_unit_test_setup(request_whose_gateway_dies_stops_no_later_ones, set_up),
        cmocka_unit_test_setup(end_that_was_not_acknowledged_is_reaped, set_up),
        cmocka_unit_test_setup(reaper_asks_nothing_while_there_are_no_calls, set_up),
        cmocka_unit_test_setup(foreign_claim_values_are_ignored, set_up),
        cmocka_unit_test_setup(record_that_is_not_a_call_counts_as_absent, set_up),
        cmocka_unit_test_setup(call_written_by_an_earlier_version_continues, set_up),
        cmocka_unit_test_setup(ended_call_leaves_only_its_record, set_up),
        cmocka_unit_test_setup(without_an_answer_only_a_possible_change_is_unknown, set_up),
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
