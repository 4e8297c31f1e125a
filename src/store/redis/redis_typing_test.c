/* The typing store on Redis, on a single server and on a cluster: the suite of all backends, and tests of its own. */
#include "conformance/typing_store_suite.h"
#include "store/redis/redis_typing.h"
#include "support/redis_fleet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { TTL_MS = 5000, RATE = 1 };

static struct redis_fleet the_fleet;

static struct typing_store *make_store(struct redis_fleet *fleet, size_t client,
                                       const struct clock *clock)
{
    struct typing_store *store =
        redis_typing_make(&(struct redis_typing_options){.client = fleet->clients[client],
                                                         .ttl_ms = TTL_MS,
                                                         .rate_per_second = RATE,
                                                         .clock = clock});
    assert_non_null(store);
    return store;
}

static struct typing_store *make_port(void *context)
{
    struct redis_fleet *fleet = context;
    return make_store(fleet, redis_fleet_next_client(fleet), &fleet->clock);
}

static void stop(void *context)
{
    redis_fleet_settle(context, 1);
}

/* ---- tests of its own ---- */

struct answers {
    size_t count;
    size_t unavailable;
    size_t unknown;
    struct typing_outcome outcome;
    size_t users;
    bool stopped;
};

static void on_started(void *arg, enum state_status status, const struct typing_outcome *outcome)
{
    struct answers *answers = arg;
    answers->count++;
    answers->unavailable += status == STATE_UNAVAILABLE;
    answers->unknown += status == STATE_UNKNOWN;
    answers->outcome = *outcome;
}

static void on_users(void *arg, enum state_status status, const struct typing_user *users,
                     size_t count)
{
    struct answers *answers = arg;
    (void)users;
    answers->count++;
    answers->unavailable += status == STATE_UNAVAILABLE;
    answers->unknown += status == STATE_UNKNOWN;
    answers->users = count;
}

static int set_up(void **state)
{
    redis_fleet_empty(&the_fleet);
    *state = &the_fleet;
    return 0;
}

static void start_typing(struct redis_fleet *fleet, struct typing_store *store, const char *chat,
                         const char *user, struct answers *answers)
{
    struct ulid conn_id = {{1}};
    typing_store_start(store, slice_of(chat), slice_of(user), &conn_id, on_started, answers);
    redis_fleet_settle(fleet, 1);
}

/* Without a clock the scripts use the server's time. */
static void key_lives_as_long_as_its_notices(void **state)
{
    struct redis_fleet *fleet = *state;
    struct typing_store *store = make_store(fleet, 0, NULL);
    struct answers answers = {0};
    struct slice key = SLICE("typing:r:chat");
    start_typing(fleet, store, "chat", "alice", &answers);
    assert_int_equal(answers.outcome.result, TYPING_STARTED);
    start_typing(fleet, store, "chat", "alice", &answers);
    assert_int_equal(answers.outcome.result, TYPING_LIMITED);
    assert_in_range(answers.outcome.retry_after_ms, 1, 1000 / RATE);
    assert_string_equal(redis_fleet_ask(fleet, key, REDIS_ARGS(SLICE("TYPE"), key)), "hash");
    long left = strtol(redis_fleet_ask(fleet, key, REDIS_ARGS(SLICE("PTTL"), key)), NULL, 10);
    assert_in_range(left, 1, TTL_MS);
    typing_store_free(&store);
}

static void on_stopped(void *arg, enum state_status status, bool stopped)
{
    struct answers *answers = arg;
    answers->count++;
    answers->unavailable += status == STATE_UNAVAILABLE;
    answers->unknown += status == STATE_UNKNOWN;
    answers->stopped = stopped;
}

static bool stop_typing(struct redis_fleet *fleet, struct typing_store *store, const char *chat,
                        const char *user)
{
    struct answers answers = {0};
    typing_store_stop(store, slice_of(chat), slice_of(user), NULL, on_stopped, &answers);
    redis_fleet_settle(fleet, 2);
    assert_int_equal(answers.count - answers.unavailable - answers.unknown, 1);
    return answers.stopped;
}

static void hash_has_a_field_only_for_users_who_type(void **state)
{
    struct redis_fleet *fleet = *state;
    struct typing_store *store = make_store(fleet, 0, &fleet->clock);
    struct answers answers = {0};
    struct slice key = SLICE("typing:r:chat");
    start_typing(fleet, store, "chat", "alice", &answers);
    start_typing(fleet, store, "chat", "bob", &answers);
    assert_true(stop_typing(fleet, store, "chat", "bob"));
    assert_string_equal(redis_fleet_ask(fleet, key, REDIS_ARGS(SLICE("HKEYS"), key)), "alice ");
    start_typing(fleet, store, "chat", "bob", &answers);
    assert_int_equal(answers.outcome.result, TYPING_LIMITED);
    redis_fleet_pass(fleet, TTL_MS);
    start_typing(fleet, store, "chat", "bob", &answers); /* alice's notice has ended */
    assert_int_equal(answers.outcome.result, TYPING_STARTED);
    assert_string_equal(redis_fleet_ask(fleet, key, REDIS_ARGS(SLICE("HKEYS"), key)), "bob ");
    assert_true(stop_typing(fleet, store, "chat", "bob"));
    assert_string_equal(redis_fleet_ask(fleet, key, REDIS_ARGS(SLICE("EXISTS"), key)), "0");
    struct slice pace = SLICE("typing_pace:{typing:r:chat}:bob");
    long left = strtol(redis_fleet_ask(fleet, pace, REDIS_ARGS(SLICE("PTTL"), pace)), NULL, 10);
    assert_in_range(left, 1, TTL_MS);
    typing_store_free(&store);
}

static void brace_in_chat_id_resets_the_rate_limit_on_stop(void **state)
{
    struct redis_fleet *fleet = *state;
    struct typing_store *store = make_store(fleet, 0, &fleet->clock);
    static const char *const chats[] = {"a}b", "{a}b", "}{", "{}"};
    for (size_t i = 0; i < sizeof(chats) / sizeof(chats[0]); i++) {
        struct answers answers = {0};
        start_typing(fleet, store, chats[i], "alice", &answers);
        start_typing(fleet, store, chats[i], "alice", &answers);
        assert_int_equal(answers.outcome.result, TYPING_LIMITED);
        assert_true(stop_typing(fleet, store, chats[i], "alice"));
        start_typing(fleet, store, chats[i], "alice", &answers);
        assert_int_equal(answers.outcome.result, TYPING_STARTED);
        assert_int_equal(answers.unavailable + answers.unknown, 0);
    }
    typing_store_free(&store);
}

static void foreign_values_are_removed_or_ignored(void **state)
{
    struct redis_fleet *fleet = *state;
    struct typing_store *store = make_store(fleet, 0, &fleet->clock);
    struct answers answers = {0};
    struct slice key = SLICE("typing:r:chat"), pace = SLICE("typing_pace:{typing:r:chat}:alice");
    redis_fleet_ask(fleet, key, REDIS_ARGS(SLICE("SET"), key, SLICE("not a hash")));
    redis_fleet_ask(fleet, pace, REDIS_ARGS(SLICE("RPUSH"), pace, SLICE("not a time")));
    start_typing(fleet, store, "chat", "alice", &answers);
    assert_int_equal(answers.outcome.result, TYPING_STARTED);
    redis_fleet_ask(fleet, key,
                    REDIS_ARGS(SLICE("HSET"), key, SLICE("bob"), SLICE("soon x\r\n y 12 -1 \xff"),
                               SLICE("eve"), SLICE("")));
    typing_store_read(store, SLICE("chat"), 10, on_users, &answers);
    redis_fleet_settle(fleet, 1);
    assert_int_equal(answers.users, 1);
    start_typing(fleet, store, "chat", "bob", &answers);
    assert_int_equal(answers.outcome.result, TYPING_STARTED);
    assert_int_equal(answers.unavailable + answers.unknown, 0);
    typing_store_free(&store);
}

static void ended_notices_do_not_pile_up_in_a_busy_chat(void **state)
{
    enum { USERS = 3000, AT_ONCE = 50 };
    struct redis_fleet *fleet = *state;
    struct typing_store *store = make_store(fleet, 0, &fleet->clock);
    struct answers answers = {0};
    struct ulid conn_id = {{1}};
    for (unsigned i = 0; i < USERS; i++) {
        char user[16];
        int len = snprintf(user, sizeof(user), "user-%u", i);
        typing_store_start(store, SLICE("chat"), (struct slice){user, (size_t)len}, &conn_id,
                           on_started, &answers);
        if (i % AT_ONCE == 0) {
            redis_fleet_settle(fleet, 1);
            redis_fleet_pass(fleet, TTL_MS);
        }
    }
    redis_fleet_settle(fleet, 1);
    assert_int_equal(answers.count, USERS);
    struct slice key = SLICE("typing:r:chat");
    long fields = strtol(redis_fleet_ask(fleet, key, REDIS_ARGS(SLICE("HLEN"), key)), NULL, 10);
    assert_in_range(fields, AT_ONCE - 1, 2 * AT_ONCE);
    typing_store_free(&store);
}

static void operations_complete_after_the_store_is_freed(void **state)
{
    struct redis_fleet *fleet = *state;
    struct typing_store *store = make_store(fleet, 0, &fleet->clock);
    struct answers answers = {0};
    struct ulid conn_id = {{1}};
    typing_store_start(store, SLICE("chat"), SLICE("alice"), &conn_id, on_started, &answers);
    typing_store_read(store, SLICE("chat"), 10, on_users, &answers);
    typing_store_free(&store);
    redis_fleet_settle(fleet, 1);
    assert_int_equal(answers.count, 2);
}

static void without_an_answer_a_start_is_unknown_and_a_read_unavailable(void **state)
{
    struct redis_fleet *fleet = *state;
    struct typing_store *store = make_store(fleet, 0, NULL);
    struct answers answers = {0};
    redis_fleet_kill(fleet);
    struct ulid conn_id = {{1}};
    typing_store_start(store, SLICE("chat"), SLICE("alice"), &conn_id, on_started, &answers);
    typing_store_read(store, SLICE("chat"), 10, on_users, &answers);
    worker_loop_run(&fleet->worker, 200);
    assert_int_equal(answers.count, 2);
    assert_int_equal(answers.unavailable, 1); /* the read */
    assert_int_equal(answers.unknown, 1);     /* the start */
    typing_store_free(&store);
}

static int run(bool cluster)
{
    const struct typing_store_suite_backend backend = {
        .name = cluster ? "redis_typing_cluster" : "redis_typing",
        .context = &the_fleet,
        .ttl_ms = TTL_MS,
        .interval_ms = 1000 / RATE,
        .start = redis_fleet_empty,
        .port = make_port,
        .stop = stop,
        .pass = redis_fleet_pass,
        .poll = redis_fleet_poll,
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(key_lives_as_long_as_its_notices, set_up),
        cmocka_unit_test_setup(hash_has_a_field_only_for_users_who_type, set_up),
        cmocka_unit_test_setup(brace_in_chat_id_resets_the_rate_limit_on_stop, set_up),
        cmocka_unit_test_setup(foreign_values_are_removed_or_ignored, set_up),
        cmocka_unit_test_setup(ended_notices_do_not_pile_up_in_a_busy_chat, set_up),
        cmocka_unit_test_setup(operations_complete_after_the_store_is_freed, set_up),
        cmocka_unit_test_setup(without_an_answer_a_start_is_unknown_and_a_read_unavailable, set_up),
    };
    redis_fleet_open(&the_fleet, cluster);
    int failed = typing_store_suite_run(&backend) +
                 cmocka_run_group_tests_name("redis_typing_own", tests, NULL, NULL);
    redis_fleet_close(&the_fleet);
    return failed;
}

int main(void)
{
    return run(false) + run(true);
}
