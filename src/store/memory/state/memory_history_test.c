/* The ring of transitions: it lists a user's own, in order, and replaces the oldest when it is full. */
#include "store/memory/state/memory_history.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static int set_up(void **state)
{
    struct memory_history *history = calloc(1, sizeof(*history));
    assert_non_null(history);
    hash_key_init(&history->key, 42);
    *state = history;
    return 0;
}

static int tear_down(void **state)
{
    free(*state);
    return 0;
}

static void add_transition(struct memory_history *history, const char *user, int64_t version)
{
    struct presence presence = {
        .user_id = slice_of(user), .status = PRESENCE_AWAY, .version = version};
    memory_history_add(history, &presence, MEMORY_IDLE, 1000 + version);
}

static void history_lists_the_users_own_transitions_oldest_first(void **state)
{
    struct memory_history *history = *state;
    struct state_history entries[4];
    add_transition(history, "alice", 1);
    add_transition(history, "bob", 2);
    add_transition(history, "alice", 3);
    assert_int_equal(memory_history_of(history, SLICE("alice"), entries, 4), 2);
    assert_int_equal(entries[0].version, 1);
    assert_int_equal(entries[1].version, 3);
    assert_int_equal(entries[1].at_ms, 1003);
    assert_int_equal(entries[1].status, PRESENCE_AWAY);
    assert_string_equal(entries[1].cause, "idle");
    assert_int_equal(memory_history_of(history, SLICE("carol"), entries, 4), 0);
}

static void history_leaves_out_the_oldest_beyond_the_maximum(void **state)
{
    struct memory_history *history = *state;
    struct state_history entries[2];
    for (int64_t version = 1; version <= 5; version++)
        add_transition(history, "alice", version);
    assert_int_equal(memory_history_of(history, SLICE("alice"), entries, 2), 2);
    assert_int_equal(entries[0].version, 4);
    assert_int_equal(entries[1].version, 5);
}

static void full_ring_replaces_its_oldest_entry(void **state)
{
    struct memory_history *history = *state;
    struct state_history entries[MEMORY_HISTORY_ENTRIES + 1];
    add_transition(history, "bob", 1);
    for (int64_t version = 1; version <= MEMORY_HISTORY_ENTRIES; version++)
        add_transition(history, "alice", version);
    assert_int_equal(memory_history_of(history, SLICE("bob"), entries, 1), 0);
    assert_int_equal(
        memory_history_of(history, SLICE("alice"), entries, MEMORY_HISTORY_ENTRIES + 1),
        MEMORY_HISTORY_ENTRIES);
    assert_int_equal(entries[0].version, 1);
    add_transition(history, "alice", 999);
    memory_history_of(history, SLICE("alice"), entries, MEMORY_HISTORY_ENTRIES + 1);
    assert_int_equal(entries[0].version, 2);
    assert_int_equal(entries[MEMORY_HISTORY_ENTRIES - 1].version, 999);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(history_lists_the_users_own_transitions_oldest_first),
        TEST(history_leaves_out_the_oldest_beyond_the_maximum),
        TEST(full_ring_replaces_its_oldest_entry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
