#include "conformance/recovery_store_suite.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { PORTS = 2, TEXT_MAX = 8192 };

/* The answer of a take. */
struct take_answer {
    unsigned answers;
    bool found;
    size_t event_count;
    size_t topic_count;
    uint64_t ceiling;
    char sid[64];
    char events[TEXT_MAX];
    char topics[TEXT_MAX];
};

struct fixture {
    const struct recovery_store_suite_backend *backend;
    struct recovery_store *ports[PORTS];
    struct take_answer taken;
};

static void settle(const struct fixture *fixture)
{
    if (fixture->backend->settle)
        fixture->backend->settle(fixture->backend->context);
}

static void add_text(char out[TEXT_MAX], struct slice text)
{
    size_t len = strlen(out);
    snprintf(out + len, TEXT_MAX - len, "%.*s ", SLICE_FORMAT(text));
}

static void on_session_taken(void *arg, const struct parked_session *session)
{
    struct take_answer *taken = arg;
    *taken = (struct take_answer){.answers = taken->answers + 1, .found = session != NULL};
    if (!session)
        return;
    taken->event_count = session->event_count;
    taken->topic_count = session->topic_count;
    taken->ceiling = session->ceiling;
    snprintf(taken->sid, sizeof(taken->sid), "%.*s", SLICE_FORMAT(session->sid));
    for (size_t i = 0; i < session->event_count; i++)
        add_text(taken->events, session->events[i].frames);
    for (size_t i = 0; i < session->topic_count; i++)
        add_text(taken->topics, session->topics[i]);
}

/* Takes a session on another gateway than the one that parked it. */
static bool take_session(struct fixture *fixture, const char *user, const char *pid,
                         uint64_t offset)
{
    fixture->taken.answers = 0;
    recovery_take(fixture->ports[1], slice_of(user), slice_of(pid), offset, on_session_taken,
                  &fixture->taken);
    settle(fixture);
    assert_int_equal(fixture->taken.answers, 1);
    return fixture->taken.found;
}

static void park_session(struct fixture *fixture, const char *user, const char *pid)
{
    const struct recovery_event sent = {10, 1010, SLICE("ten")};
    const struct slice topics[] = {SLICE("presence:bob"), SLICE("chat:a b\n:presence")};
    recovery_park(fixture->ports[0], &(struct parked_session){.user_id = slice_of(user),
                                                              .pid = slice_of(pid),
                                                              .sid = SLICE("public"),
                                                              .floor = 5,
                                                              .ceiling = UINT64_MAX - 7,
                                                              .events = &sent,
                                                              .event_count = 1,
                                                              .topics = topics,
                                                              .topic_count = 2});
    settle(fixture);
}

static void append_event(struct fixture *fixture, const char *user, uint64_t id, const char *frames)
{
    struct slice users[] = {SLICE("nobody"), slice_of(user)};
    recovery_append(fixture->ports[1], users, 2,
                    &(struct recovery_event){RECOVERY_MISSED, id, slice_of(frames)});
    settle(fixture);
}

static void append_events(struct fixture *fixture, const char *user, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        append_event(fixture, user, 2000 + i, "x");
}

static void events_before_and_after_the_cut_are_recovered_once(void **state)
{
    struct fixture *fixture = *state;
    park_session(fixture, "ann", "secret");
    append_event(fixture, "ann", 11, "eleven");
    append_event(fixture, "bob", 12, "not hers");
    append_event(fixture, "ann", 13, "a \x1e b");
    assert_true(take_session(fixture, "ann", "secret", 9));
    assert_string_equal(fixture->taken.events, "ten eleven a \x1e b ");
    assert_string_equal(fixture->taken.topics, "presence:bob chat:a b\n:presence ");
    assert_string_equal(fixture->taken.sid, "public");
    assert_true(fixture->taken.ceiling == UINT64_MAX - 7);
    assert_false(take_session(fixture, "ann", "secret", 9));
}

static void session_without_events_and_topics_is_recovered(void **state)
{
    struct fixture *fixture = *state;
    recovery_park(fixture->ports[0], &(struct parked_session){.user_id = SLICE("ann"),
                                                              .pid = SLICE("secret"),
                                                              .sid = SLICE("public")});
    settle(fixture);
    assert_true(take_session(fixture, "ann", "secret", 0));
    assert_int_equal(fixture->taken.event_count + fixture->taken.topic_count, 0);
}

static void events_up_to_the_offset_are_not_returned(void **state)
{
    struct fixture *fixture = *state;
    park_session(fixture, "ann", "secret");
    append_event(fixture, "ann", 11, "eleven");
    assert_true(take_session(fixture, "ann", "secret", 10));
    assert_string_equal(fixture->taken.events, "eleven ");
}

static void event_with_a_known_id_is_kept_once(void **state)
{
    struct fixture *fixture = *state;
    park_session(fixture, "ann", "secret");
    append_event(fixture, "ann", 11, "eleven");
    append_event(fixture, "ann", 12, "twelve");
    append_event(fixture, "ann", 11, "eleven");
    append_event(fixture, "ann", 1010, "ten"); /* it was sent before the cut */
    append_event(fixture, "ann", 0, "zero");
    append_event(fixture, "ann", 0, "zero");
    assert_true(take_session(fixture, "ann", "secret", 9));
    assert_string_equal(fixture->taken.events, "ten eleven twelve zero zero ");
}

static void session_is_taken_only_with_its_user_and_private_id(void **state)
{
    struct fixture *fixture = *state;
    park_session(fixture, "ann", "secret");
    assert_false(take_session(fixture, "eve", "secret", 10));
    assert_false(take_session(fixture, "ann", "guess", 10));
    assert_false(take_session(fixture, "a", "nn:secret", 10));
    assert_true(take_session(fixture, "ann", "secret", 10));
}

static void concurrent_takes_return_the_session_once(void **state)
{
    struct fixture *fixture = *state;
    struct take_answer other = {0};
    park_session(fixture, "ann", "secret");
    fixture->taken.answers = 0;
    recovery_take(fixture->ports[0], SLICE("ann"), SLICE("secret"), 10, on_session_taken,
                  &fixture->taken);
    recovery_take(fixture->ports[1], SLICE("ann"), SLICE("secret"), 10, on_session_taken, &other);
    settle(fixture);
    assert_int_equal(fixture->taken.answers + other.answers, 2);
    assert_int_equal(fixture->taken.found + other.found, 1);
}

static void session_expires_after_the_recovery_time(void **state)
{
    struct fixture *fixture = *state;
    park_session(fixture, "ann", "secret");
    fixture->backend->pass(fixture->backend->context, fixture->backend->recovery_ms - 1);
    park_session(fixture, "ann", "later");
    fixture->backend->pass(fixture->backend->context, 1);
    assert_false(take_session(fixture, "ann", "secret", 10));
    assert_true(take_session(fixture, "ann", "later", 10));
}

static void event_is_appended_to_every_session_of_its_user(void **state)
{
    struct fixture *fixture = *state;
    park_session(fixture, "ann", "phone");
    append_event(fixture, "ann", 11, "eleven");
    park_session(fixture, "ann", "laptop");
    append_event(fixture, "ann", 12, "twelve");
    assert_true(take_session(fixture, "ann", "phone", 10));
    assert_string_equal(fixture->taken.events, "eleven twelve ");
    append_event(fixture, "ann", 13, "thirteen");
    assert_true(take_session(fixture, "ann", "laptop", 10));
    assert_string_equal(fixture->taken.events, "twelve thirteen ");
}

static void session_that_dropped_a_missed_event_is_not_recovered(void **state)
{
    struct fixture *fixture = *state;
    park_session(fixture, "ann", "secret");
    assert_false(
        take_session(fixture, "ann", "secret", 4)); /* the event with offset 5 was not parked */
    park_session(fixture, "ann", "secret");
    append_events(fixture, "ann", RECOVERY_EVENTS_MAX);
    assert_false(
        take_session(fixture, "ann", "secret", 9)); /* the event with offset 10 was dropped */
    park_session(fixture, "ann", "secret");
    append_events(fixture, "ann", RECOVERY_EVENTS_MAX);
    assert_true(take_session(fixture, "ann", "secret", 10));
    assert_int_equal(fixture->taken.event_count, RECOVERY_EVENTS_MAX);
    park_session(fixture, "ann", "secret");
    append_events(fixture, "ann", RECOVERY_EVENTS_MAX + 1);
    assert_false(take_session(fixture, "ann", "secret", 10));
}

static void bytes_of_events_are_bounded(void **state)
{
    struct fixture *fixture = *state;
    static char large[RECOVERY_EVENT_BYTES_MAX / 2 + 1];
    memset(large, 'x', sizeof(large) - 1);
    park_session(fixture, "ann", "secret");
    append_event(fixture, "ann", 11, large);
    append_event(fixture, "ann", 12, large);
    assert_true(take_session(fixture, "ann", "secret", 10));
    assert_int_equal(fixture->taken.event_count, 2);
    park_session(fixture, "ann", "secret");
    append_event(fixture, "ann", 11, large);
    append_event(fixture, "ann", 12, large);
    append_event(fixture, "ann", 13, "x");
    assert_false(take_session(fixture, "ann", "secret", 10));
}

static void oldest_session_of_a_user_beyond_the_bound_is_dropped(void **state)
{
    struct fixture *fixture = *state;
    char pid[16];
    for (int i = 0; i <= RECOVERY_USER_SESSIONS_MAX; i++) {
        snprintf(pid, sizeof(pid), "%d", i);
        park_session(fixture, "ann", pid);
        fixture->backend->pass(fixture->backend->context, 1);
    }
    assert_false(take_session(fixture, "ann", "0", 10));
    assert_true(take_session(fixture, "ann", "1", 10));
}

/* An event may have been on its way to the connection that was cut. */
static void gateway_that_parked_expects_late_events(void **state)
{
    struct fixture *fixture = *state;
    assert_false(recovery_expects(fixture->ports[0], SLICE("ann")));
    park_session(fixture, "ann", "secret");
    assert_true(recovery_expects(fixture->ports[0], SLICE("ann")));
    assert_false(recovery_expects(fixture->ports[0], SLICE("bob")));
}

static void session_parked_before_an_invalidation_is_not_recovered(void **state)
{
    struct fixture *fixture = *state;
    park_session(fixture, "ann", "secret");
    fixture->backend->pass(fixture->backend->context, 10);
    recovery_invalidate(fixture->ports[1]);
    fixture->backend->pass(fixture->backend->context, 10);
    assert_false(take_session(fixture, "ann", "secret", 10));
    park_session(fixture, "ann", "secret");
    fixture->backend->pass(fixture->backend->context, 100);
    assert_true(take_session(fixture, "ann", "secret", 10));
}

static struct fixture the_fixture;

static int set_up(void **state)
{
    the_fixture.backend->start(the_fixture.backend->context);
    for (size_t i = 0; i < PORTS; i++)
        the_fixture.ports[i] = the_fixture.backend->port(the_fixture.backend->context);
    *state = &the_fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    for (size_t i = 0; i < PORTS; i++)
        recovery_store_free(&fixture->ports[i]);
    fixture->backend->stop(fixture->backend->context);
    return 0;
}

int recovery_store_suite_run(const struct recovery_store_suite_backend *backend)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(events_before_and_after_the_cut_are_recovered_once),
        TEST(session_without_events_and_topics_is_recovered),
        TEST(events_up_to_the_offset_are_not_returned),
        TEST(event_with_a_known_id_is_kept_once),
        TEST(session_is_taken_only_with_its_user_and_private_id),
        TEST(concurrent_takes_return_the_session_once),
        TEST(session_expires_after_the_recovery_time),
        TEST(event_is_appended_to_every_session_of_its_user),
        TEST(session_that_dropped_a_missed_event_is_not_recovered),
        TEST(bytes_of_events_are_bounded),
        TEST(oldest_session_of_a_user_beyond_the_bound_is_dropped),
        TEST(gateway_that_parked_expects_late_events),
        TEST(session_parked_before_an_invalidation_is_not_recovered),
    };
#undef TEST
    the_fixture = (struct fixture){.backend = backend};
    return cmocka_run_group_tests_name(backend->name, tests, NULL, NULL);
}
