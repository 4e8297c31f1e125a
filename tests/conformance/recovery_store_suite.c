#include "conformance/recovery_store_suite.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { PORTS = 2, TEXT_MAX = 8192 };

/* What a take() gave. */
struct given {
    unsigned answers;
    bool found;
    size_t event_count;
    size_t topic_count;
    uint64_t ceiling;
    char sid[64];
    char events[TEXT_MAX];
    char topics[TEXT_MAX];
};

struct suite {
    const struct recovery_store_suite_backend *backend;
    struct recovery_store *ports[PORTS];
    struct given given;
};

static void settle(const struct suite *suite)
{
    if (suite->backend->settle)
        suite->backend->settle(suite->backend->context);
}

static void add(char out[TEXT_MAX], struct slice text)
{
    size_t len = strlen(out);
    snprintf(out + len, TEXT_MAX - len, "%.*s ", SLICE_FORMAT(text));
}

static void taken(void *arg, const struct parked_session *record)
{
    struct given *given = arg;
    *given = (struct given){.answers = given->answers + 1, .found = record != NULL};
    if (!record)
        return;
    given->event_count = record->event_count;
    given->topic_count = record->topic_count;
    given->ceiling = record->ceiling;
    snprintf(given->sid, sizeof(given->sid), "%.*s", SLICE_FORMAT(record->sid));
    for (size_t i = 0; i < record->event_count; i++)
        add(given->events, record->events[i].frames);
    for (size_t i = 0; i < record->topic_count; i++)
        add(given->topics, record->topics[i]);
}

static bool take_at(struct suite *suite, size_t port, const char *user, const char *pid,
                    uint64_t offset)
{
    suite->given.answers = 0;
    recovery_take(suite->ports[port], slice_of(user), slice_of(pid), offset, taken, &suite->given);
    settle(suite);
    assert_int_equal(suite->given.answers, 1);
    return suite->given.found;
}

/* Elsewhere than where it was parked. */
static bool take(struct suite *suite, const char *user, const char *pid, uint64_t offset)
{
    return take_at(suite, 1, user, pid, offset);
}

static void park(struct suite *suite, const char *user, const char *pid)
{
    const struct recovery_event sent = {10, 1010, SLICE("ten")};
    const struct slice topics[] = {SLICE("presence:bob"), SLICE("chat:a b\n:presence")};
    recovery_park(suite->ports[0], &(struct parked_session){.user_id = slice_of(user),
                                                            .pid = slice_of(pid),
                                                            .sid = SLICE("public"),
                                                            .floor = 5,
                                                            .ceiling = UINT64_MAX - 7,
                                                            .events = &sent,
                                                            .event_count = 1,
                                                            .topics = topics,
                                                            .topic_count = 2});
    settle(suite);
}

static void append(struct suite *suite, const char *user, uint64_t id, const char *frames)
{
    struct slice users[] = {SLICE("nobody"), slice_of(user)};
    recovery_append(suite->ports[1], users, 2,
                    &(struct recovery_event){RECOVERY_MISSED, id, slice_of(frames)});
    settle(suite);
}

static void append_many(struct suite *suite, const char *user, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        append(suite, user, 2000 + i, "x");
}

static void what_came_before_and_after_the_cut_is_given_back_once(void **state)
{
    struct suite *suite = *state;
    park(suite, "ann", "secret");
    append(suite, "ann", 11, "eleven");
    append(suite, "bob", 12, "not hers");
    append(suite, "ann", 13, "a \x1e b");
    assert_true(take(suite, "ann", "secret", 9));
    assert_string_equal(suite->given.events, "ten eleven a \x1e b ");
    assert_string_equal(suite->given.topics, "presence:bob chat:a b\n:presence ");
    assert_string_equal(suite->given.sid, "public");
    assert_true(suite->given.ceiling == UINT64_MAX - 7);
    assert_false(take(suite, "ann", "secret", 9));
}

static void nothing_but_a_name_is_recovered_too(void **state)
{
    struct suite *suite = *state;
    recovery_park(suite->ports[0], &(struct parked_session){.user_id = SLICE("ann"),
                                                            .pid = SLICE("secret"),
                                                            .sid = SLICE("public")});
    settle(suite);
    assert_true(take(suite, "ann", "secret", 0));
    assert_int_equal(suite->given.event_count + suite->given.topic_count, 0);
}

static void what_the_client_has_is_not_given_again(void **state)
{
    struct suite *suite = *state;
    park(suite, "ann", "secret");
    append(suite, "ann", 11, "eleven");
    assert_true(take(suite, "ann", "secret", 10));
    assert_string_equal(suite->given.events, "eleven ");
}

static void an_event_that_comes_twice_is_kept_once(void **state)
{
    struct suite *suite = *state;
    park(suite, "ann", "secret");
    append(suite, "ann", 11, "eleven");
    append(suite, "ann", 12, "twelve");
    append(suite, "ann", 11, "eleven");
    append(suite, "ann", 1010, "ten"); /* it had come before the cut */
    append(suite, "ann", 0, "zero");
    append(suite, "ann", 0, "zero");
    assert_true(take(suite, "ann", "secret", 9));
    assert_string_equal(suite->given.events, "ten eleven twelve zero zero ");
}

static void only_the_private_id_and_the_user_open_it(void **state)
{
    struct suite *suite = *state;
    park(suite, "ann", "secret");
    assert_false(take(suite, "eve", "secret", 10));
    assert_false(take(suite, "ann", "guess", 10));
    assert_false(take(suite, "a", "nn:secret", 10));
    assert_true(take(suite, "ann", "secret", 10));
}

static void of_two_who_ask_at_once_one_gets_it(void **state)
{
    struct suite *suite = *state;
    struct given other = {0};
    park(suite, "ann", "secret");
    suite->given.answers = 0;
    recovery_take(suite->ports[0], SLICE("ann"), SLICE("secret"), 10, taken, &suite->given);
    recovery_take(suite->ports[1], SLICE("ann"), SLICE("secret"), 10, taken, &other);
    settle(suite);
    assert_int_equal(suite->given.answers + other.answers, 2);
    assert_int_equal(suite->given.found + other.found, 1);
}

static void after_the_window_it_is_gone(void **state)
{
    struct suite *suite = *state;
    park(suite, "ann", "secret");
    suite->backend->pass(suite->backend->context, suite->backend->window_ms - 1);
    park(suite, "ann", "later");
    suite->backend->pass(suite->backend->context, 1);
    assert_false(take(suite, "ann", "secret", 10));
    assert_true(take(suite, "ann", "later", 10));
}

static void every_session_of_a_user_gets_what_comes(void **state)
{
    struct suite *suite = *state;
    park(suite, "ann", "phone");
    append(suite, "ann", 11, "eleven");
    park(suite, "ann", "laptop");
    append(suite, "ann", 12, "twelve");
    assert_true(take(suite, "ann", "phone", 10));
    assert_string_equal(suite->given.events, "eleven twelve ");
    append(suite, "ann", 13, "thirteen");
    assert_true(take(suite, "ann", "laptop", 10));
    assert_string_equal(suite->given.events, "twelve thirteen ");
}

/* Better nothing than a part of it. */
static void what_is_no_longer_whole_is_not_recovered(void **state)
{
    struct suite *suite = *state;
    park(suite, "ann", "secret");
    assert_false(take(suite, "ann", "secret", 4)); /* the fifth was not parked */
    park(suite, "ann", "secret");
    append_many(suite, "ann", RECOVERY_EVENTS_MAX);
    assert_false(take(suite, "ann", "secret", 9)); /* the tenth had to go */
    park(suite, "ann", "secret");
    append_many(suite, "ann", RECOVERY_EVENTS_MAX);
    assert_true(take(suite, "ann", "secret", 10));
    assert_int_equal(suite->given.event_count, RECOVERY_EVENTS_MAX);
    park(suite, "ann", "secret");
    append_many(suite, "ann", RECOVERY_EVENTS_MAX + 1);
    assert_false(take(suite, "ann", "secret", 10));
}

static void bytes_are_bounded_too(void **state)
{
    struct suite *suite = *state;
    static char large[RECOVERY_EVENT_BYTES_MAX / 2 + 1];
    memset(large, 'x', sizeof(large) - 1);
    park(suite, "ann", "secret");
    append(suite, "ann", 11, large);
    append(suite, "ann", 12, large);
    assert_true(take(suite, "ann", "secret", 10));
    assert_int_equal(suite->given.event_count, 2);
    park(suite, "ann", "secret");
    append(suite, "ann", 11, large);
    append(suite, "ann", 12, large);
    append(suite, "ann", 13, "x");
    assert_false(take(suite, "ann", "secret", 10));
}

static void the_oldest_of_too_many_makes_room(void **state)
{
    struct suite *suite = *state;
    char pid[16];
    for (int i = 0; i <= RECOVERY_USER_SESSIONS_MAX; i++) {
        snprintf(pid, sizeof(pid), "%d", i);
        park(suite, "ann", pid);
        suite->backend->pass(suite->backend->context, 1);
    }
    assert_false(take(suite, "ann", "0", 10));
    assert_true(take(suite, "ann", "1", 10));
}

/* An event that was on its way to the connection. */
static void who_parked_expects_late_events(void **state)
{
    struct suite *suite = *state;
    assert_false(recovery_expects(suite->ports[0], SLICE("ann")));
    park(suite, "ann", "secret");
    assert_true(recovery_expects(suite->ports[0], SLICE("ann")));
    assert_false(recovery_expects(suite->ports[0], SLICE("bob")));
}

static void what_was_parked_before_a_disturbance_is_not_given(void **state)
{
    struct suite *suite = *state;
    park(suite, "ann", "secret");
    suite->backend->pass(suite->backend->context, 10);
    recovery_invalidate(suite->ports[1]);
    suite->backend->pass(suite->backend->context, 10);
    assert_false(take(suite, "ann", "secret", 10));
    park(suite, "ann", "secret");
    suite->backend->pass(suite->backend->context, 100);
    assert_true(take(suite, "ann", "secret", 10));
}

static struct suite the_suite;

static int set_up(void **state)
{
    the_suite.backend->start(the_suite.backend->context);
    for (size_t i = 0; i < PORTS; i++)
        the_suite.ports[i] = the_suite.backend->port(the_suite.backend->context);
    *state = &the_suite;
    return 0;
}

static int tear_down(void **state)
{
    struct suite *suite = *state;
    for (size_t i = 0; i < PORTS; i++)
        recovery_store_free(&suite->ports[i]);
    suite->backend->stop(suite->backend->context);
    return 0;
}

int recovery_store_suite_run(const struct recovery_store_suite_backend *backend)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_came_before_and_after_the_cut_is_given_back_once),
        TEST(nothing_but_a_name_is_recovered_too),
        TEST(what_the_client_has_is_not_given_again),
        TEST(an_event_that_comes_twice_is_kept_once),
        TEST(only_the_private_id_and_the_user_open_it),
        TEST(of_two_who_ask_at_once_one_gets_it),
        TEST(after_the_window_it_is_gone),
        TEST(every_session_of_a_user_gets_what_comes),
        TEST(what_is_no_longer_whole_is_not_recovered),
        TEST(bytes_are_bounded_too),
        TEST(the_oldest_of_too_many_makes_room),
        TEST(who_parked_expects_late_events),
        TEST(what_was_parked_before_a_disturbance_is_not_given),
    };
#undef TEST
    the_suite = (struct suite){.backend = backend};
    return cmocka_run_group_tests_name(backend->name, tests, NULL, NULL);
}
