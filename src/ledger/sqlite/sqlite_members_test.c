/* The check for blocks before every message in a chat of two: its result, and its cost. */
#include "ledger/sqlite/sqlite_operations.h"
#include "ledger/sqlite/sqlite_schema.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct database database;

static int open_memory(void **unused)
{
    (void)unused;
    assert_true(database_open(&database, ":memory:", DATABASE_WRITER, NULL));
    assert_true(sqlite_schema_migrate(&database));
    assert_true(database_run_script(
        &database, "INSERT INTO chats (chat_id, creator, created_at_ms, member_count)"
                   "  VALUES ('c', 'alice', 0, 2);"
                   "INSERT INTO chat_members (chat_id, user_id, since_ms) "
                   "  VALUES ('c', 'alice', 0), ('c', 'bob', 0);"));
    return 0;
}

static int close_memory(void **unused)
{
    (void)unused;
    database_close(&database);
    return 0;
}

static bool is_blocked(struct slice user)
{
    bool blocked = sqlite_members_have_block(&database, SLICE("c"), user);
    assert_false(database_failed(&database));
    return blocked;
}

static void test_block_between_members_is_found_for_both(void **unused)
{
    (void)unused;
    assert_true(database_run_script(&database, "INSERT INTO blocks VALUES ('alice', 'carol', 0)"));
    assert_false(is_blocked(SLICE("alice")));
    assert_true(database_run_script(&database, "INSERT INTO blocks VALUES ('alice', 'bob', 0)"));
    assert_true(is_blocked(SLICE("alice")));
    assert_true(is_blocked(SLICE("bob")));
}

/* Returns how many steps SQLite's machine has taken since this function ran last. */
static int take_vm_steps(void)
{
    int steps = 0;
    for (size_t i = 0; i < DATABASE_STATEMENTS_MAX; i++)
        if (database.statements[i].handle)
            steps +=
                sqlite3_stmt_status(database.statements[i].handle, SQLITE_STMTSTATUS_VM_STEP, true);
    return steps;
}

static void test_cost_does_not_grow_with_the_number_of_blocks(void **unused)
{
    (void)unused;
    assert_false(is_blocked(SLICE("alice")));
    int steps = take_vm_steps();
    assert_true(database_run_script(
        &database, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)"
                   " INSERT INTO blocks SELECT 'alice', 'x' || i, 0 FROM n"
                   " UNION ALL SELECT 'x' || i, 'alice', 0 FROM n"));
    take_vm_steps();
    assert_false(is_blocked(SLICE("alice")));
    assert_in_range(take_vm_steps(), 1, 2 * steps);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_memory, close_memory)
    const struct CMUnitTest tests[] = {
        TEST(test_block_between_members_is_found_for_both),
        TEST(test_cost_does_not_grow_with_the_number_of_blocks),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
