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

struct fixture {
    const struct typing_store_suite_backend *backend;
    struct typing_store *ports[PORTS];
    bool answered;
    struct typing_outcome outcome;
    bool stopped;
    struct typing_user users[TYPING_READ_MAX];
    char ids[TYPING_READ_MAX][USER_ID_BYTES_MAX];
    size_t count;
};

static struct ulid connection_id(unsigned number)
{
    struct ulid conn_id = {{0}};
    memcpy(conn_id.bytes, &number, sizeof(number));
    return conn_id;
}

static void await_answer(struct fixture *fixture)
{
    for (int i = 0; i < POLLS_MAX && !fixture->answered && fixture->backend->poll; i++)
        fixture->backend->poll(fixture->backend->context);
    assert_true(fixture->answered);
}

static void note_answer(struct fixture *fixture, enum state_status status)
{
    assert_int_equal(status, STATE_OK);
    assert_false(fixture->answered); /* a second answer */
    fixture->answered = true;
}

static void on_typing_started(void *arg, enum state_status status,
                              const struct typing_outcome *outcome)
{
    struct fixture *fixture = arg;
    note_answer(fixture, status);
    fixture->outcome = *outcome;
}

static enum typing_result start_typing(struct fixture *fixture, size_t port, struct slice chat,
                                       struct slice user, unsigned number)
{
    struct ulid conn_id = connection_id(number);
    fixture->answered = false;
    typing_store_start(fixture->ports[port], chat, user, &conn_id, on_typing_started, fixture);
    await_answer(fixture);
    return fixture->outcome.result;
}

static void on_typing_stopped(void *arg, enum state_status status, bool stopped)
{
    struct fixture *fixture = arg;
    note_answer(fixture, status);
    fixture->stopped = stopped;
}

/* Device 0 means all devices. */
static bool stop_typing(struct fixture *fixture, size_t port, struct slice chat, struct slice user,
                        unsigned number)
{
    struct ulid conn_id = connection_id(number);
    fixture->answered = false;
    typing_store_stop(fixture->ports[port], chat, user, number ? &conn_id : NULL, on_typing_stopped,
                      fixture);
    await_answer(fixture);
    return fixture->stopped;
}

static void on_users_read(void *arg, enum state_status status, const struct typing_user *users,
                          size_t count)
{
    struct fixture *fixture = arg;
    note_answer(fixture, status);
    assert_true(count <= TYPING_READ_MAX);
    fixture->count = count;
    for (size_t i = 0; i < count; i++) {
        memcpy(fixture->ids[i], users[i].user_id.data, users[i].user_id.len);
        fixture->users[i] = users[i];
        fixture->users[i].user_id.data = fixture->ids[i];
    }
}

static size_t read_chat(struct fixture *fixture, size_t port, struct slice chat, size_t max)
{
    fixture->answered = false;
    typing_store_read(fixture->ports[port], chat, max, on_users_read, fixture);
    await_answer(fixture);
    return fixture->count;
}

/* Returns how long the user's notice still lasts when the chat is read; 0 without a notice. */
static int64_t read_left_ms(struct fixture *fixture, struct slice chat, struct slice user)
{
    size_t count = read_chat(fixture, 1, chat, TYPING_READ_MAX);
    for (size_t i = 0; i < count; i++)
        if (slice_equal(fixture->users[i].user_id, user))
            return fixture->users[i].left_ms;
    return 0;
}

static void pass_time(struct fixture *fixture, int64_t duration_ms)
{
    fixture->backend->pass(fixture->backend->context, duration_ms);
}

/* ---- tests ---- */

static void users_who_type_are_read_on_every_gateway(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(read_chat(fixture, 0, CHAT, 10), 0);
    assert_int_equal(start_typing(fixture, 0, CHAT, ALICE, 1), TYPING_STARTED);
    assert_int_equal(start_typing(fixture, 1, CHAT, BOB, 2), TYPING_STARTED);
    assert_int_equal(read_chat(fixture, 1, CHAT, 10), 2);
    assert_int_equal(read_chat(fixture, 0, SLICE("chat2"), 10), 0);
    assert_in_range(read_left_ms(fixture, CHAT, ALICE), 1, fixture->backend->ttl_ms);
}

static void notice_ends_after_its_time_to_live(void **state)
{
    struct fixture *fixture = *state;
    start_typing(fixture, 0, CHAT, ALICE, 1);
    pass_time(fixture, fixture->backend->ttl_ms / 2);
    assert_int_not_equal(read_left_ms(fixture, CHAT, ALICE), 0);
    pass_time(fixture, fixture->backend->ttl_ms / 2);
    assert_int_equal(read_left_ms(fixture, CHAT, ALICE), 0);
    assert_false(stop_typing(fixture, 0, CHAT, ALICE, 1)); /* the notice has ended */
    assert_int_equal(start_typing(fixture, 0, CHAT, ALICE, 1), TYPING_STARTED);
}

/* A backend may still hold records of users whose notices ended. */
static void update_after_the_notice_ended_is_a_new_start(void **state)
{
    enum { OTHERS = 20 };
    struct fixture *fixture = *state;
    for (unsigned i = 1; i <= OTHERS; i++) {
        char user[16];
        int len = snprintf(user, sizeof(user), "user-%u", i);
        start_typing(fixture, 0, CHAT, (struct slice){user, (size_t)len}, i);
    }
    start_typing(fixture, 0, CHAT, ALICE, OTHERS + 1);
    pass_time(fixture, fixture->backend->ttl_ms);
    assert_int_equal(start_typing(fixture, 0, CHAT, ALICE, OTHERS + 1), TYPING_STARTED);
}

static void update_renews_the_notice(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(start_typing(fixture, 0, CHAT, ALICE, 1), TYPING_STARTED);
    for (int i = 0; i < 4; i++) {
        pass_time(fixture, fixture->backend->ttl_ms / 2);
        assert_int_equal(start_typing(fixture, i % PORTS, CHAT, ALICE, 1), TYPING_RENEWED);
    }
    assert_int_not_equal(read_left_ms(fixture, CHAT, ALICE), 0);
}

static void updates_are_limited_per_user_and_chat(void **state)
{
    struct fixture *fixture = *state;
    int64_t interval_ms = fixture->backend->interval_ms;
    start_typing(fixture, 0, CHAT, ALICE, 1);
    pass_time(fixture, interval_ms / 2);
    assert_int_equal(start_typing(fixture, 1, CHAT, ALICE, 2), TYPING_LIMITED); /* another device */
    assert_in_range(fixture->outcome.retry_after_ms, 1, interval_ms);
    assert_int_equal(start_typing(fixture, 0, CHAT, BOB, 3), TYPING_STARTED);
    assert_int_equal(start_typing(fixture, 0, SLICE("chat2"), ALICE, 1), TYPING_STARTED);
    pass_time(fixture, interval_ms / 2);
    assert_int_equal(start_typing(fixture, 0, CHAT, ALICE, 1), TYPING_RENEWED);
}

static void limited_update_changes_nothing(void **state)
{
    struct fixture *fixture = *state;
    int64_t ttl_ms = fixture->backend->ttl_ms, interval_ms = fixture->backend->interval_ms;
    start_typing(fixture, 0, CHAT, ALICE, 1);
    pass_time(fixture, interval_ms / 2);
    assert_int_equal(start_typing(fixture, 0, CHAT, ALICE, 1), TYPING_LIMITED);
    assert_int_equal(start_typing(fixture, 0, CHAT, ALICE, 2), TYPING_LIMITED);
    assert_true(stop_typing(fixture, 0, CHAT, ALICE, 1)); /* the second device has no notice */
    pass_time(fixture, interval_ms / 2);
    start_typing(fixture, 0, CHAT, ALICE, 1);
    pass_time(fixture, interval_ms / 2);
    start_typing(fixture, 0, CHAT, ALICE, 1);
    pass_time(fixture, ttl_ms - interval_ms / 2);
    assert_int_equal(read_left_ms(fixture, CHAT, ALICE), 0);
}

static void stop_is_not_limited_and_resets_no_limit(void **state)
{
    struct fixture *fixture = *state;
    start_typing(fixture, 0, CHAT, ALICE, 1);
    assert_true(stop_typing(fixture, 1, CHAT, ALICE, 1));
    assert_false(stop_typing(fixture, 0, CHAT, ALICE, 1));
    assert_int_equal(read_left_ms(fixture, CHAT, ALICE), 0);
    assert_int_equal(start_typing(fixture, 0, CHAT, ALICE, 1), TYPING_LIMITED);
    assert_false(stop_typing(fixture, 0, CHAT, ALICE, 1));
    pass_time(fixture, fixture->backend->interval_ms);
    assert_int_equal(start_typing(fixture, 0, CHAT, ALICE, 1), TYPING_STARTED);
}

static void user_stops_typing_with_the_last_device(void **state)
{
    struct fixture *fixture = *state;
    start_typing(fixture, 0, CHAT, ALICE, 1);
    pass_time(fixture, fixture->backend->interval_ms);
    assert_int_equal(start_typing(fixture, 1, CHAT, ALICE, 2), TYPING_RENEWED);
    assert_false(stop_typing(fixture, 0, CHAT, ALICE, 1));
    assert_false(stop_typing(fixture, 0, CHAT, ALICE, 7)); /* a device without a notice */
    assert_int_not_equal(read_left_ms(fixture, CHAT, ALICE), 0);
    assert_true(stop_typing(fixture, 1, CHAT, ALICE, 2));
}

static void stop_without_a_device_ends_all_notices(void **state)
{
    struct fixture *fixture = *state;
    start_typing(fixture, 0, CHAT, ALICE, 1);
    pass_time(fixture, fixture->backend->interval_ms);
    start_typing(fixture, 1, CHAT, ALICE, 2);
    start_typing(fixture, 1, CHAT, BOB, 3);
    assert_true(stop_typing(fixture, 0, CHAT, ALICE, 0));
    assert_false(stop_typing(fixture, 1, CHAT, ALICE, 2));
    assert_int_not_equal(read_left_ms(fixture, CHAT, BOB), 0);
}

static void ended_notice_of_a_device_does_not_count(void **state)
{
    struct fixture *fixture = *state;
    start_typing(fixture, 0, CHAT, ALICE, 1);
    pass_time(fixture, fixture->backend->ttl_ms - fixture->backend->interval_ms);
    start_typing(fixture, 0, CHAT, ALICE, 2);
    pass_time(fixture, fixture->backend->interval_ms);
    assert_true(stop_typing(fixture, 0, CHAT, ALICE, 2)); /* the first device's notice has ended */
}

static void oldest_devices_beyond_the_bound_are_dropped(void **state)
{
    struct fixture *fixture = *state;
    int64_t interval_ms = fixture->backend->interval_ms;
    for (unsigned i = 1; i <= TYPING_DEVICES_MAX + 2; i++) {
        assert_int_not_equal(start_typing(fixture, 0, CHAT, ALICE, i), TYPING_LIMITED);
        pass_time(fixture, interval_ms);
    }
    assert_int_not_equal(read_left_ms(fixture, CHAT, ALICE), 0);
    for (unsigned i = 1; i < TYPING_DEVICES_MAX + 2; i++)
        assert_false(stop_typing(fixture, 0, CHAT, ALICE, i));
    assert_true(stop_typing(fixture, 0, CHAT, ALICE, TYPING_DEVICES_MAX + 2));
}

static void read_returns_at_most_max_users(void **state)
{
    struct fixture *fixture = *state;
    for (unsigned i = 1; i <= TYPING_READ_MAX + 5; i++) {
        char user[16];
        int len = snprintf(user, sizeof(user), "user-%u", i);
        start_typing(fixture, i % PORTS, CHAT, (struct slice){user, (size_t)len}, i);
    }
    assert_int_equal(read_chat(fixture, 0, CHAT, TYPING_READ_MAX + 5), TYPING_READ_MAX);
    assert_int_equal(read_chat(fixture, 0, CHAT, 3), 3);
    assert_int_equal(read_chat(fixture, 0, CHAT, 0), 0);
}

/* The longest ids, special characters, and pairs of ids whose concatenation is the same. */
static void ids_may_have_any_bytes_and_full_length(void **state)
{
    struct fixture *fixture = *state;
    char longest[CHAT_ID_BYTES_MAX];
    memset(longest, 'x', sizeof(longest));
    struct slice wide = {longest, sizeof(longest)};
    struct slice odd = {"{a}:\0*\xff", 7};
    assert_int_equal(start_typing(fixture, 0, wide, wide, 1), TYPING_STARTED);
    assert_int_equal(start_typing(fixture, 0, odd, odd, 2), TYPING_STARTED);
    assert_int_not_equal(read_left_ms(fixture, wide, wide), 0);
    assert_int_not_equal(read_left_ms(fixture, odd, odd), 0);
    assert_int_equal(start_typing(fixture, 0, SLICE("ab"), SLICE("c"), 3), TYPING_STARTED);
    assert_int_equal(start_typing(fixture, 0, SLICE("a"), SLICE("bc"), 4), TYPING_STARTED);
    assert_true(stop_typing(fixture, 0, SLICE("ab"), SLICE("c"), 3));
    assert_int_not_equal(read_left_ms(fixture, SLICE("a"), SLICE("bc")), 0);
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

static void operations_match_a_model_over_random_steps(void **state)
{
    static const char *const NAMES[] = {"a", "b", "c"};
    struct fixture *fixture = *state;
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
        int64_t passing_ms =
            (int64_t)random_below(&random, (uint64_t)fixture->backend->interval_ms);
        if (random_below(&random, 10) == 0)
            passing_ms += fixture->backend->ttl_ms;
        pass_time(fixture, passing_ms);
        model.now_ms += passing_ms;
        bool all = random_below(&random, 3) == 0;
        if (random_below(&random, 3))
            assert_int_equal(start_typing(fixture, port, chat, user, (unsigned)d + 1),
                             model_start(&model, fixture->backend, c, u, d));
        else
            assert_int_equal(stop_typing(fixture, port, chat, user, all ? 0 : (unsigned)d + 1),
                             model_stop(&model, c, u, d, all));
        assert_int_equal(read_left_ms(fixture, chat, user) > 0, model_types(&model, c, u));
    }
}

/* ---- running ---- */

static const struct typing_store_suite_backend *the_backend;

static int set_up(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){.backend = the_backend};
    the_backend->start(the_backend->context);
    for (size_t i = 0; i < PORTS; i++)
        fixture.ports[i] = the_backend->port(the_backend->context);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    for (size_t i = 0; i < PORTS; i++)
        typing_store_free(&fixture->ports[i]);
    the_backend->stop(the_backend->context);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int typing_store_suite_run(const struct typing_store_suite_backend *backend)
{
    const struct CMUnitTest tests[] = {
        TEST(users_who_type_are_read_on_every_gateway),
        TEST(notice_ends_after_its_time_to_live),
        TEST(update_after_the_notice_ended_is_a_new_start),
        TEST(update_renews_the_notice),
        TEST(updates_are_limited_per_user_and_chat),
        TEST(limited_update_changes_nothing),
        TEST(stop_is_not_limited_and_resets_no_limit),
        TEST(user_stops_typing_with_the_last_device),
        TEST(stop_without_a_device_ends_all_notices),
        TEST(ended_notice_of_a_device_does_not_count),
        TEST(oldest_devices_beyond_the_bound_are_dropped),
        TEST(read_returns_at_most_max_users),
        TEST(ids_may_have_any_bytes_and_full_length),
        TEST(operations_match_a_model_over_random_steps),
    };
    the_backend = backend;
    return cmocka_run_group_tests_name(backend->name, tests, NULL, NULL);
}
