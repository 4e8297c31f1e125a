#include "conformance/typing_store_suite.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { PORTS = 2, POLLS_MAX = 1000 };

#define CHAT SLICE("chat")
#define ALICE SLICE("alice")
#define BOB SLICE("bob")

struct suite {
    const struct typing_store_suite_backend *backend;
    struct typing_store *ports[PORTS];
    bool answered;
    struct typing_outcome outcome;
    bool stopped;
    struct typing_user users[TYPING_READ_MAX];
    char ids[TYPING_READ_MAX][USER_ID_BYTES_MAX];
    size_t count;
};

static struct ulid device(unsigned number)
{
    struct ulid conn_id = {{0}};
    memcpy(conn_id.bytes, &number, sizeof(number));
    return conn_id;
}

static void await(struct suite *suite)
{
    for (int i = 0; i < POLLS_MAX && !suite->answered && suite->backend->poll; i++)
        suite->backend->poll(suite->backend->context);
    assert_true(suite->answered);
}

static void answer(struct suite *suite, enum state_status status)
{
    assert_int_equal(status, STATE_OK);
    assert_false(suite->answered); /* once */
    suite->answered = true;
}

static void take_outcome(void *arg, enum state_status status, const struct typing_outcome *outcome)
{
    struct suite *suite = arg;
    answer(suite, status);
    suite->outcome = *outcome;
}

static enum typing_result start(struct suite *suite, size_t port, struct slice chat,
                                struct slice user, unsigned number)
{
    struct ulid conn_id = device(number);
    suite->answered = false;
    typing_store_start(suite->ports[port], chat, user, &conn_id, take_outcome, suite);
    await(suite);
    return suite->outcome.result;
}

static void take_stopped(void *arg, enum state_status status, bool stopped)
{
    struct suite *suite = arg;
    answer(suite, status);
    suite->stopped = stopped;
}

/* Device 0: all of them. */
static bool stop(struct suite *suite, size_t port, struct slice chat, struct slice user,
                 unsigned number)
{
    struct ulid conn_id = device(number);
    suite->answered = false;
    typing_store_stop(suite->ports[port], chat, user, number ? &conn_id : NULL, take_stopped,
                      suite);
    await(suite);
    return suite->stopped;
}

static void take_users(void *arg, enum state_status status, const struct typing_user *users,
                       size_t count)
{
    struct suite *suite = arg;
    answer(suite, status);
    assert_true(count <= TYPING_READ_MAX);
    suite->count = count;
    for (size_t i = 0; i < count; i++) {
        memcpy(suite->ids[i], users[i].user_id.data, users[i].user_id.len);
        suite->users[i] = users[i];
        suite->users[i].user_id.data = suite->ids[i];
    }
}

static size_t read_chat(struct suite *suite, size_t port, struct slice chat, size_t max)
{
    suite->answered = false;
    typing_store_read(suite->ports[port], chat, max, take_users, suite);
    await(suite);
    return suite->count;
}

/* How long a user still types, as a read of the chat has it; 0: does not. */
static int64_t left_ms(struct suite *suite, struct slice chat, struct slice user)
{
    size_t count = read_chat(suite, 1, chat, TYPING_READ_MAX);
    for (size_t i = 0; i < count; i++)
        if (slice_equal(suite->users[i].user_id, user))
            return suite->users[i].left_ms;
    return 0;
}

static void pass(struct suite *suite, int64_t duration_ms)
{
    suite->backend->pass(suite->backend->context, duration_ms);
}

/* ---- the tests ---- */

static void who_starts_is_read_everywhere(void **state)
{
    struct suite *suite = *state;
    assert_int_equal(read_chat(suite, 0, CHAT, 10), 0);
    assert_int_equal(start(suite, 0, CHAT, ALICE, 1), TYPING_STARTED);
    assert_int_equal(start(suite, 1, CHAT, BOB, 2), TYPING_STARTED);
    assert_int_equal(read_chat(suite, 1, CHAT, 10), 2);
    assert_int_equal(read_chat(suite, 0, SLICE("chat2"), 10), 0);
    assert_in_range(left_ms(suite, CHAT, ALICE), 1, suite->backend->ttl_ms);
}

static void silence_ends_it(void **state)
{
    struct suite *suite = *state;
    start(suite, 0, CHAT, ALICE, 1);
    pass(suite, suite->backend->ttl_ms / 2);
    assert_int_not_equal(left_ms(suite, CHAT, ALICE), 0);
    pass(suite, suite->backend->ttl_ms / 2);
    assert_int_equal(left_ms(suite, CHAT, ALICE), 0);
    assert_false(stop(suite, 0, CHAT, ALICE, 1)); /* it was over before */
    assert_int_equal(start(suite, 0, CHAT, ALICE, 1), TYPING_STARTED);
}

/* Whatever a backend still holds of those who went silent. */
static void who_comes_back_after_a_silence_starts_anew(void **state)
{
    enum { OTHERS = 20 };
    struct suite *suite = *state;
    for (unsigned i = 1; i <= OTHERS; i++) {
        char user[16];
        int len = snprintf(user, sizeof(user), "user-%u", i);
        start(suite, 0, CHAT, (struct slice){user, (size_t)len}, i);
    }
    start(suite, 0, CHAT, ALICE, OTHERS + 1);
    pass(suite, suite->backend->ttl_ms);
    assert_int_equal(start(suite, 0, CHAT, ALICE, OTHERS + 1), TYPING_STARTED);
}

static void renewing_keeps_it(void **state)
{
    struct suite *suite = *state;
    assert_int_equal(start(suite, 0, CHAT, ALICE, 1), TYPING_STARTED);
    for (int i = 0; i < 4; i++) {
        pass(suite, suite->backend->ttl_ms / 2);
        assert_int_equal(start(suite, i % PORTS, CHAT, ALICE, 1), TYPING_RENEWED);
    }
    assert_int_not_equal(left_ms(suite, CHAT, ALICE), 0);
}

static void updates_are_limited_per_user_and_chat(void **state)
{
    struct suite *suite = *state;
    int64_t interval_ms = suite->backend->interval_ms;
    start(suite, 0, CHAT, ALICE, 1);
    pass(suite, interval_ms / 2);
    assert_int_equal(start(suite, 1, CHAT, ALICE, 2), TYPING_LIMITED); /* another device */
    assert_in_range(suite->outcome.retry_after_ms, 1, interval_ms);
    assert_int_equal(start(suite, 0, CHAT, BOB, 3), TYPING_STARTED);
    assert_int_equal(start(suite, 0, SLICE("chat2"), ALICE, 1), TYPING_STARTED);
    pass(suite, interval_ms / 2);
    assert_int_equal(start(suite, 0, CHAT, ALICE, 1), TYPING_RENEWED);
}

static void a_dropped_update_changes_nothing(void **state)
{
    struct suite *suite = *state;
    int64_t ttl_ms = suite->backend->ttl_ms, interval_ms = suite->backend->interval_ms;
    start(suite, 0, CHAT, ALICE, 1);
    pass(suite, interval_ms / 2);
    assert_int_equal(start(suite, 0, CHAT, ALICE, 1), TYPING_LIMITED);
    assert_int_equal(start(suite, 0, CHAT, ALICE, 2), TYPING_LIMITED);
    assert_true(stop(suite, 0, CHAT, ALICE, 1)); /* the second device never typed */
    pass(suite, interval_ms / 2);
    start(suite, 0, CHAT, ALICE, 1);
    pass(suite, interval_ms / 2);
    start(suite, 0, CHAT, ALICE, 1);
    pass(suite, ttl_ms - interval_ms / 2);
    assert_int_equal(left_ms(suite, CHAT, ALICE), 0);
}

static void a_stop_is_taken_and_lifts_no_limit(void **state)
{
    struct suite *suite = *state;
    start(suite, 0, CHAT, ALICE, 1);
    assert_true(stop(suite, 1, CHAT, ALICE, 1));
    assert_false(stop(suite, 0, CHAT, ALICE, 1));
    assert_int_equal(left_ms(suite, CHAT, ALICE), 0);
    assert_int_equal(start(suite, 0, CHAT, ALICE, 1), TYPING_LIMITED);
    assert_false(stop(suite, 0, CHAT, ALICE, 1));
    pass(suite, suite->backend->interval_ms);
    assert_int_equal(start(suite, 0, CHAT, ALICE, 1), TYPING_STARTED);
}

static void the_last_device_ends_it(void **state)
{
    struct suite *suite = *state;
    start(suite, 0, CHAT, ALICE, 1);
    pass(suite, suite->backend->interval_ms);
    assert_int_equal(start(suite, 1, CHAT, ALICE, 2), TYPING_RENEWED);
    assert_false(stop(suite, 0, CHAT, ALICE, 1));
    assert_false(stop(suite, 0, CHAT, ALICE, 7)); /* one that never typed */
    assert_int_not_equal(left_ms(suite, CHAT, ALICE), 0);
    assert_true(stop(suite, 1, CHAT, ALICE, 2));
}

static void all_devices_end_at_once(void **state)
{
    struct suite *suite = *state;
    start(suite, 0, CHAT, ALICE, 1);
    pass(suite, suite->backend->interval_ms);
    start(suite, 1, CHAT, ALICE, 2);
    start(suite, 1, CHAT, BOB, 3);
    assert_true(stop(suite, 0, CHAT, ALICE, 0));
    assert_false(stop(suite, 1, CHAT, ALICE, 2));
    assert_int_not_equal(left_ms(suite, CHAT, BOB), 0);
}

static void a_device_that_went_silent_does_not_count(void **state)
{
    struct suite *suite = *state;
    start(suite, 0, CHAT, ALICE, 1);
    pass(suite, suite->backend->ttl_ms - suite->backend->interval_ms);
    start(suite, 0, CHAT, ALICE, 2);
    pass(suite, suite->backend->interval_ms);
    assert_true(stop(suite, 0, CHAT, ALICE, 2)); /* the first is over by now */
}

static void of_many_devices_the_newest_are_known(void **state)
{
    struct suite *suite = *state;
    int64_t interval_ms = suite->backend->interval_ms;
    for (unsigned i = 1; i <= TYPING_DEVICES_MAX + 2; i++) {
        assert_int_not_equal(start(suite, 0, CHAT, ALICE, i), TYPING_LIMITED);
        pass(suite, interval_ms);
    }
    assert_int_not_equal(left_ms(suite, CHAT, ALICE), 0);
    for (unsigned i = 1; i < TYPING_DEVICES_MAX + 2; i++)
        assert_false(stop(suite, 0, CHAT, ALICE, i));
    assert_true(stop(suite, 0, CHAT, ALICE, TYPING_DEVICES_MAX + 2));
}

static void reading_is_bounded(void **state)
{
    struct suite *suite = *state;
    for (unsigned i = 1; i <= TYPING_READ_MAX + 5; i++) {
        char user[16];
        int len = snprintf(user, sizeof(user), "user-%u", i);
        start(suite, i % PORTS, CHAT, (struct slice){user, (size_t)len}, i);
    }
    assert_int_equal(read_chat(suite, 0, CHAT, TYPING_READ_MAX + 5), TYPING_READ_MAX);
    assert_int_equal(read_chat(suite, 0, CHAT, 3), 3);
    assert_int_equal(read_chat(suite, 0, CHAT, 0), 0);
}

/* Bytes that mean something elsewhere, the longest ids, and pairs that would run into one another. */
static void ids_are_bytes(void **state)
{
    struct suite *suite = *state;
    char longest[CHAT_ID_BYTES_MAX];
    memset(longest, 'x', sizeof(longest));
    struct slice wide = {longest, sizeof(longest)};
    struct slice odd = {"{a}:\0*\xff", 7};
    assert_int_equal(start(suite, 0, wide, wide, 1), TYPING_STARTED);
    assert_int_equal(start(suite, 0, odd, odd, 2), TYPING_STARTED);
    assert_int_not_equal(left_ms(suite, wide, wide), 0);
    assert_int_not_equal(left_ms(suite, odd, odd), 0);
    assert_int_equal(start(suite, 0, SLICE("ab"), SLICE("c"), 3), TYPING_STARTED);
    assert_int_equal(start(suite, 0, SLICE("a"), SLICE("bc"), 4), TYPING_STARTED);
    assert_true(stop(suite, 0, SLICE("ab"), SLICE("c"), 3));
    assert_int_not_equal(left_ms(suite, SLICE("a"), SLICE("bc")), 0);
}

/* ---- against a model ---- */

enum { MODEL_CHATS = 2, MODEL_USERS = 3, MODEL_DEVICES = 3, MODEL_STEPS = 3000 };

struct model {
    int64_t now_ms;
    int64_t updated_ms[MODEL_CHATS][MODEL_USERS];
    int64_t ends_ms[MODEL_CHATS][MODEL_USERS][MODEL_DEVICES];
};

static bool model_types(const struct model *model, size_t chat, size_t user)
{
    for (size_t i = 0; i < MODEL_DEVICES; i++)
        if (model->ends_ms[chat][user][i] > model->now_ms)
            return true;
    return false;
}

static enum typing_result model_start(struct model *model,
                                      const struct typing_store_suite_backend *backend, size_t chat,
                                      size_t user, size_t index)
{
    if (model->now_ms < model->updated_ms[chat][user] + backend->interval_ms)
        return TYPING_LIMITED;
    enum typing_result result = model_types(model, chat, user) ? TYPING_RENEWED : TYPING_STARTED;
    model->updated_ms[chat][user] = model->now_ms;
    model->ends_ms[chat][user][index] = model->now_ms + backend->ttl_ms;
    return result;
}

static bool model_stop(struct model *model, size_t chat, size_t user, size_t index, bool all)
{
    bool typed = model_types(model, chat, user);
    for (size_t i = 0; i < MODEL_DEVICES; i++)
        if (all || i == index)
            model->ends_ms[chat][user][i] = 0;
    return typed && !model_types(model, chat, user);
}

static void steps_follow_a_model(void **state)
{
    static const char *const NAMES[] = {"a", "b", "c"};
    struct suite *suite = *state;
    struct random random;
    struct model model = {.now_ms = 1};
    random_init_seeded(&random, 7);
    for (size_t chat = 0; chat < MODEL_CHATS; chat++)
        for (size_t user = 0; user < MODEL_USERS; user++)
            model.updated_ms[chat][user] = INT64_MIN / 2;
    for (int step = 0; step < MODEL_STEPS; step++) {
        size_t c = random_below(&random, MODEL_CHATS), u = random_below(&random, MODEL_USERS);
        size_t d = random_below(&random, MODEL_DEVICES), port = random_below(&random, PORTS);
        struct slice chat = slice_of(NAMES[c]), user = slice_of(NAMES[u]);
        int64_t passing_ms = (int64_t)random_below(&random, (uint64_t)suite->backend->interval_ms);
        if (random_below(&random, 10) == 0)
            passing_ms += suite->backend->ttl_ms;
        pass(suite, passing_ms);
        model.now_ms += passing_ms;
        bool all = random_below(&random, 3) == 0;
        if (random_below(&random, 3))
            assert_int_equal(start(suite, port, chat, user, (unsigned)d + 1),
                             model_start(&model, suite->backend, c, u, d));
        else
            assert_int_equal(stop(suite, port, chat, user, all ? 0 : (unsigned)d + 1),
                             model_stop(&model, c, u, d, all));
        assert_int_equal(left_ms(suite, chat, user) > 0, model_types(&model, c, u));
    }
}

/* ---- running ---- */

static const struct typing_store_suite_backend *running;

static int set_up(void **state)
{
    static struct suite suite;
    suite = (struct suite){.backend = running};
    running->start(running->context);
    for (size_t i = 0; i < PORTS; i++)
        suite.ports[i] = running->port(running->context);
    *state = &suite;
    return 0;
}

static int tear_down(void **state)
{
    struct suite *suite = *state;
    for (size_t i = 0; i < PORTS; i++)
        typing_store_free(&suite->ports[i]);
    running->stop(running->context);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int typing_store_suite_run(const struct typing_store_suite_backend *backend)
{
    const struct CMUnitTest tests[] = {
        TEST(who_starts_is_read_everywhere),
        TEST(silence_ends_it),
        TEST(who_comes_back_after_a_silence_starts_anew),
        TEST(renewing_keeps_it),
        TEST(updates_are_limited_per_user_and_chat),
        TEST(a_dropped_update_changes_nothing),
        TEST(a_stop_is_taken_and_lifts_no_limit),
        TEST(the_last_device_ends_it),
        TEST(all_devices_end_at_once),
        TEST(a_device_that_went_silent_does_not_count),
        TEST(of_many_devices_the_newest_are_known),
        TEST(reading_is_bounded),
        TEST(ids_are_bytes),
        TEST(steps_follow_a_model),
    };
    running = backend;
    return cmocka_run_group_tests_name(backend->name, tests, NULL, NULL);
}
