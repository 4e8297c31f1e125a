/* Sessions that wait to be recovered: what is kept, for whom, how long, and what is given back. */
#include "store/memory_recovery.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { WINDOW_MS = 1000 };

static struct clock now;
static struct memory_recovery *recovery;
static struct recovery_store *store;

/* What the last take() gave. */
static bool given;
static char events[4096];
static size_t event_count;
static char sid[64];

static int open_store(void **unused)
{
    (void)unused;
    now = (struct clock){.now_ms = 5000, .wall_ms = 5000};
    recovery = memory_recovery_make(WINDOW_MS, 7);
    store = memory_recovery_store(recovery, &now);
    return recovery && store ? 0 : -1;
}

static int close_store(void **unused)
{
    (void)unused;
    recovery_store_free(&store);
    memory_recovery_free(&recovery);
    return 0;
}

static void taken(void *arg, const struct recovery_record *record)
{
    (void)arg;
    given = record != NULL;
    events[0] = '\0';
    event_count = record ? record->event_count : 0;
    for (size_t i = 0; i < event_count && i < 8; i++)
        snprintf(events + strlen(events), sizeof(events) - strlen(events), "%.*s ",
                 SLICE_FORMAT(record->events[i].frames));
    if (record)
        snprintf(sid, sizeof(sid), "%.*s", SLICE_FORMAT(record->sid));
}

static void take(const char *user, const char *pid, uint64_t offset)
{
    recovery_take(store, slice_of(user), slice_of(pid), offset, taken, NULL);
}

static void park(const char *user, const char *pid)
{
    const struct recovery_event sent = {10, SLICE("ten")};
    const struct slice topics[] = {SLICE("presence:bob"), SLICE("chat:c:presence")};
    recovery_park(store, &(struct recovery_record){.user_id = slice_of(user),
                                                   .pid = slice_of(pid),
                                                   .sid = SLICE("public"),
                                                   .events = &sent,
                                                   .event_count = 1,
                                                   .topics = topics,
                                                   .topic_count = 2});
}

static void append(const char *user, uint64_t offset, const char *frames)
{
    struct slice users[] = {SLICE("nobody"), slice_of(user)};
    recovery_append(store, users, 2, &(struct recovery_event){offset, slice_of(frames)});
}

static void what_came_before_and_after_the_cut_is_given_back_once(void **unused)
{
    (void)unused;
    assert_true(recovery_is_empty(store));
    park("ann", "secret");
    assert_false(recovery_is_empty(store));
    append("ann", 11, "eleven");
    append("bob", 12, "not hers");
    take("ann", "secret", 9);
    assert_true(given);
    assert_string_equal(events, "ten eleven ");
    assert_string_equal(sid, "public");
    assert_true(recovery_is_empty(store));
    take("ann", "secret", 9);
    assert_false(given);
}

static void what_the_client_has_is_not_given_again(void **unused)
{
    (void)unused;
    park("ann", "secret");
    append("ann", 11, "eleven");
    take("ann", "secret", 10);
    assert_string_equal(events, "eleven ");
}

static void only_the_private_id_and_the_user_open_it(void **unused)
{
    (void)unused;
    park("ann", "secret");
    take("eve", "secret", 10);
    assert_false(given);
    take("ann", "guess", 10);
    assert_false(given);
    take("ann", "secret", 10);
    assert_true(given);
}

static void after_the_window_it_is_gone(void **unused)
{
    (void)unused;
    park("ann", "secret");
    now.now_ms += WINDOW_MS;
    take("ann", "secret", 10);
    assert_false(given);
    assert_true(recovery_is_empty(store));
}

/* Better nothing than a part of it. */
static void what_is_no_longer_whole_is_not_recovered(void **unused)
{
    (void)unused;
    park("ann", "secret");
    for (uint64_t i = 0; i < RECOVERY_EVENTS_MAX; i++)
        append("ann", 11 + i, "x");
    take("ann", "secret", 9); /* the tenth had to go */
    assert_false(given);
    park("ann", "secret");
    for (uint64_t i = 0; i < RECOVERY_EVENTS_MAX; i++)
        append("ann", 11 + i, "x");
    take("ann", "secret", 10);
    assert_true(given);
    assert_int_equal(event_count, RECOVERY_EVENTS_MAX);
}

static void bytes_are_bounded_too(void **unused)
{
    (void)unused;
    static char large[RECOVERY_EVENT_BYTES_MAX / 2 + 1];
    memset(large, 'x', sizeof(large) - 1);
    park("ann", "secret");
    append("ann", 11, large);
    append("ann", 12, large);
    append("ann", 13, large);
    take("ann", "secret", 10);
    assert_false(given);
}

static void the_oldest_of_too_many_makes_room(void **unused)
{
    (void)unused;
    char pid[16];
    for (int i = 0; i <= RECOVERY_USER_SESSIONS_MAX; i++) {
        snprintf(pid, sizeof(pid), "%d", i);
        park("ann", pid);
    }
    take("ann", "0", 10);
    assert_false(given);
    take("ann", "1", 10);
    assert_true(given);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_store, close_store)
    const struct CMUnitTest tests[] = {
        TEST(what_came_before_and_after_the_cut_is_given_back_once),
        TEST(what_the_client_has_is_not_given_again),
        TEST(only_the_private_id_and_the_user_open_it),
        TEST(after_the_window_it_is_gone),
        TEST(what_is_no_longer_whole_is_not_recovered),
        TEST(bytes_are_bounded_too),
        TEST(the_oldest_of_too_many_makes_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
