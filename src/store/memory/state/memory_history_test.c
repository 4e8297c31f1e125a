/* The ring of transitions: whose they are, in which order, and what goes when it is full. */
#include "store/memory/state/memory_history.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static int set_up(void **state)
{
    struct memory_history *history = calloc(1, sizeof(*history));
    assert_non_null(history);
    history->hash_seed = 42;
    *state = history;
    return 0;
}

static int tear_down(void **state)
{
    free(*state);
    return 0;
}

static void add(struct memory_history *history, const char *user, int64_t version)
{
    struct presence presence = {
        .user_id = slice_of(user), .status = PRESENCE_AWAY, .version = version};
    memory_history_add(history, &presence, MEMORY_IDLE, 1000 + version);
}

static void each_user_has_their_own_oldest_first(void **state)
{
    struct memory_history *history = *state;
    struct state_history told[4];
    add(history, "alice", 1);
    add(history, "bob", 2);
    add(history, "alice", 3);
    assert_int_equal(memory_history_of(history, SLICE("alice"), told, 4), 2);
    assert_int_equal(told[0].version, 1);
    assert_int_equal(told[1].version, 3);
    assert_int_equal(told[1].at_ms, 1003);
    assert_int_equal(told[1].status, PRESENCE_AWAY);
    assert_string_equal(told[1].cause, "idle");
    assert_int_equal(memory_history_of(history, SLICE("carol"), told, 4), 0);
}

static void of_too_many_the_oldest_are_left_out(void **state)
{
    struct memory_history *history = *state;
    struct state_history told[2];
    for (int64_t version = 1; version <= 5; version++)
        add(history, "alice", version);
    assert_int_equal(memory_history_of(history, SLICE("alice"), told, 2), 2);
    assert_int_equal(told[0].version, 4);
    assert_int_equal(told[1].version, 5);
}

static void a_full_ring_forgets_its_oldest(void **state)
{
    struct memory_history *history = *state;
    struct state_history told[MEMORY_HISTORY_ENTRIES + 1];
    add(history, "bob", 1);
    for (int64_t version = 1; version <= MEMORY_HISTORY_ENTRIES; version++)
        add(history, "alice", version);
    assert_int_equal(memory_history_of(history, SLICE("bob"), told, 1), 0);
    assert_int_equal(memory_history_of(history, SLICE("alice"), told, MEMORY_HISTORY_ENTRIES + 1),
                     MEMORY_HISTORY_ENTRIES);
    assert_int_equal(told[0].version, 1);
    add(history, "alice", 999);
    memory_history_of(history, SLICE("alice"), told, MEMORY_HISTORY_ENTRIES + 1);
    assert_int_equal(told[0].version, 2);
    assert_int_equal(told[MEMORY_HISTORY_ENTRIES - 1].version, 999);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_user_has_their_own_oldest_first),
        TEST(of_too_many_the_oldest_are_left_out),
        TEST(a_full_ring_forgets_its_oldest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
