/* Large chats are stored in slices: others write between the slices, and nobody sees the chat before the last. The file
 * layer holds the commits, so that each test decides what happens between two slices. */
#include "conformance/ledger_harness.h"
#include "ledger/ledger_metrics.h"
#include "ledger/sqlite/sqlite_ledger.h"
#include "ledger/sqlite/sqlite_test_file.h"
#include "ledger/sqlite/sqlite_test_vfs.h"

#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define expect(answer, text) assert_string_equal(answer, text)

enum { SLICES = 8, MEMBERS = SLICES * SQLITE_LEDGER_SLICE_IDS, NOT_ANSWERED = -1 };

struct fixture {
    struct test_file file;
    struct ledger *ledger;
    struct harness harness;
    int created; /* the status of the creation */
    size_t created_members;
    int other_created;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct sqlite_ledger_options options = {.vfs = TEST_VFS_NAME};
    struct sqlite_ledger_error error;
    test_vfs_register();
    test_file_make(&fixture->file);
    fixture->ledger = sqlite_ledger_open(fixture->file.path, &options, &error);
    if (!fixture->ledger)
        fail_msg("%s", error.text);
    harness_init(&fixture->harness, fixture->ledger);
    expect(harness_chat_create(&fixture->harness, "c", "alice", "bob"),
           "ok created c by alice (2 alice bob) 0/0");
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    test_vfs_fail_writes(SQLITE_OK);
    test_vfs_hold_syncs(false);
    ledger_close(&fixture->ledger);
    harness_free(&fixture->harness);
    test_file_remove(&fixture->file);
    free(fixture);
    return 0;
}

/* ---- steps of the tests ---- */

static int64_t count_rows(const struct fixture *fixture, const char *sql)
{
    sqlite3 *handle;
    sqlite3_stmt *count;
    assert_int_equal(sqlite3_open(fixture->file.path, &handle), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(handle, sql, -1, &count, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(count), SQLITE_ROW);
    int64_t rows = sqlite3_column_int64(count, 0);
    sqlite3_finalize(count);
    sqlite3_close(handle);
    return rows;
}

static int64_t count_stored_members(const struct fixture *fixture)
{
    return count_rows(fixture, "SELECT count(*) FROM chat_members WHERE chat_id = 'large'");
}

static void on_created(void *arg, const struct ledger_chat_outcome *outcome)
{
    struct fixture *fixture = arg;
    assert_int_equal(fixture->created, NOT_ANSWERED);
    fixture->created = (int)outcome->status;
    fixture->created_members = outcome->chat.member_count;
}

static void on_other_created(void *arg, const struct ledger_chat_outcome *outcome)
{
    struct fixture *fixture = arg;
    assert_int_equal(fixture->other_created, NOT_ANSWERED);
    fixture->other_created = (int)outcome->status;
}

/* mallory creates the chat with member-0, member-1, ... */
static void start_creation(struct fixture *fixture)
{
    char(*ids)[16] = calloc(MEMBERS, sizeof(*ids));
    struct slice *members = calloc(MEMBERS, sizeof(*members));
    assert_true(ids && members);
    for (size_t i = 0; i < MEMBERS; i++) {
        int len = snprintf(ids[i], sizeof(ids[i]), "member-%zu", i);
        members[i] = (struct slice){ids[i], (size_t)len};
    }
    fixture->created = NOT_ANSWERED;
    ledger_chat_create(&fixture->harness.client, SLICE("large"), SLICE("mallory"), members, MEMBERS,
                       true, on_created, fixture);
    free(members);
    free(ids);
}

/* Stops the writer at a commit, with some of the slices committed. */
static void stop_between_slices(struct fixture *fixture)
{
    test_vfs_hold_syncs(true);
    start_creation(fixture);
    assert_true(test_vfs_await_held_sync());
    while (count_stored_members(fixture) < 2 * SQLITE_LEDGER_SLICE_IDS)
        assert_true(test_vfs_step_sync());
    assert_in_range(count_stored_members(fixture), 1, MEMBERS / 2);
    harness_turn(&fixture->harness, false);
    assert_int_equal(fixture->created, NOT_ANSWERED);
}

static int finish_creation(struct fixture *fixture)
{
    test_vfs_hold_syncs(false);
    while (fixture->created == NOT_ANSWERED)
        harness_turn(&fixture->harness, true);
    return fixture->created;
}

static void create_other(struct fixture *fixture, const char *creator)
{
    fixture->other_created = NOT_ANSWERED;
    ledger_chat_create(&fixture->harness.client, SLICE("large"), slice_of(creator),
                       &SLICE("member-1"), 1, true, on_other_created, fixture);
}

static int finish_other(struct fixture *fixture)
{
    while (fixture->other_created == NOT_ANSWERED)
        harness_turn(&fixture->harness, true);
    return fixture->other_created;
}

/* The next creation of the chat waits until all of the failed one is cleared. */
static void expect_created_anew(struct fixture *fixture)
{
    start_creation(fixture);
    assert_int_equal(finish_creation(fixture), LEDGER_OK);
    assert_int_equal(fixture->created_members, MEMBERS + 1);
    assert_int_equal(count_stored_members(fixture), MEMBERS + 1);
    assert_int_equal(count_rows(fixture, "SELECT count(*) FROM chat_drafts"), 0);
}

static void expect_unseen(struct fixture *fixture)
{
    struct harness *h = &fixture->harness;
    expect(harness_chat(h, "large", ""), "not_found");
    expect(harness_chat(h, "large", "mallory"), "not_found");
    expect(harness_member(h, "large", "member-1"), "not_found");
    expect(harness_after(h, "large", "member-1", 0, 0), "not_found");
    expect(harness_chats(h, "member-1", "", 0, 0, true), "ok");
    expect(harness_chats(h, "mallory", "", 0, 0, true), "ok");
    expect(strstr(harness_graph(h, "member-1", 10), "chats:"), "chats:");
}

/* ---- what others see and do ---- */

static void test_chat_is_seen_by_nobody_before_its_last_slice(void **state)
{
    struct fixture *fixture = *state;
    struct harness *h = &fixture->harness;
    stop_between_slices(fixture);
    expect_unseen(fixture);
    unsigned before = h->statuses[LEDGER_NOT_FOUND];
    ledger_message_append(&h->client, SLICE("large"), SLICE("member-1"), SLICE("m"), SLICE("m"),
                          SLICE("body"), harness_count_append, h);
    ledger_chat_member_add(&h->client, SLICE("large"), SLICE("member-1"), SLICE("dave"),
                           harness_count_change, h);
    assert_int_equal(finish_creation(fixture), LEDGER_OK);
    assert_int_equal(h->statuses[LEDGER_NOT_FOUND], before + 2);
    assert_int_equal(fixture->created_members, MEMBERS + 1);
    expect(harness_member(h, "large", "member-1"), "ok");
    expect(harness_send(h, "large", "member-1", "m", "body"), "ok 1 m-m");
    assert_int_equal(count_rows(fixture, "SELECT count(*) FROM chat_drafts"), 0);
}

static void test_messages_are_committed_between_slices(void **state)
{
    struct fixture *fixture = *state;
    struct harness *h = &fixture->harness;
    test_vfs_hold_syncs(true);
    start_creation(fixture);
    assert_true(test_vfs_await_held_sync());
    unsigned before = h->statuses[LEDGER_OK];
    for (unsigned sent = 0; sent < SLICES / 2 - 1; sent++) {
        char id[2] = {(char)('a' + sent), '\0'};
        ledger_message_append(&h->client, SLICE("c"), SLICE("alice"), slice_of(id), slice_of(id),
                              SLICE("body"), harness_count_append, h);
        assert_true(test_vfs_step_sync()); /* the message is in the group that is held now */
        assert_true(test_vfs_step_sync());
        while (h->statuses[LEDGER_OK] == before + sent)
            harness_turn(h, true);
        assert_int_equal(fixture->created, NOT_ANSWERED);
    }
    assert_int_equal(finish_creation(fixture), LEDGER_OK);
}

static void test_creation_outlives_the_patience_of_its_client(void **state)
{
    struct fixture *fixture = *state;
    struct harness *h = &fixture->harness;
    stop_between_slices(fixture);
    h->clock.now_ms += LEDGER_TIME_LIMIT_MS;
    ledger_client_expire(&h->client);
    assert_int_equal(fixture->created, LEDGER_TIMEOUT);
    test_vfs_hold_syncs(false);
    start_creation(fixture); /* the client repeats it */
    assert_int_equal(finish_creation(fixture), LEDGER_OK);
    harness_settle(h);
    assert_int_equal(count_stored_members(fixture), MEMBERS + 1);
}

/* ---- creations that fail half-way ---- */

static void test_failure_between_slices_leaves_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct harness *h = &fixture->harness;
    stop_between_slices(fixture);
    test_vfs_fail_writes(SQLITE_FULL);
    assert_int_equal(finish_creation(fixture), LEDGER_UNAVAILABLE);
    assert_in_range(count_stored_members(fixture), 1, MEMBERS / 2);
    expect_unseen(fixture);
    test_vfs_fail_writes(SQLITE_OK);
    expect(harness_send(h, "c", "alice", "1", "x"), "ok 1 m-1");
    expect_unseen(fixture);
    expect_created_anew(fixture);
}

static void test_all_drafts_end_when_a_group_fails(void **state)
{
    struct fixture *fixture = *state;
    struct harness *h = &fixture->harness;
    stop_between_slices(fixture);
    test_vfs_fail_writes(SQLITE_FULL);
    create_other(fixture, "mallory"); /* would wait for the draft */
    assert_int_equal(finish_creation(fixture), LEDGER_UNAVAILABLE);
    test_vfs_fail_writes(SQLITE_OK);
    finish_other(fixture);
    harness_settle(h);
    expect(harness_send(h, "c", "alice", "1", "x"), "ok 1 m-1");
}

static void on_blocked(void *arg, const struct ledger_block_outcome *outcome)
{
    assert_int_equal(outcome->status, LEDGER_OK);
    harness_count_change(arg, &(struct ledger_change_outcome){.status = outcome->status});
}

static void on_settings_put(void *arg, const struct ledger_settings_outcome *outcome)
{
    assert_int_equal(outcome->status, LEDGER_OK);
    harness_count_change(arg, &(struct ledger_change_outcome){.status = outcome->status});
}

/* member-1 is in the first slice, so its row is stored already. */
static void test_block_between_slices_prevents_the_chat(void **state)
{
    struct fixture *fixture = *state;
    struct harness *h = &fixture->harness;
    stop_between_slices(fixture);
    ledger_block_put(&h->client, SLICE("member-1"), SLICE("mallory"), on_blocked, h);
    assert_int_equal(finish_creation(fixture), LEDGER_FORBIDDEN);
    expect_unseen(fixture);
    expect(harness_unblock(h, "member-1", "mallory"), "ok changed");
    expect_created_anew(fixture);
}

static void test_consent_withdrawn_between_slices_prevents_the_chat(void **state)
{
    struct fixture *fixture = *state;
    struct harness *h = &fixture->harness;
    enum ledger_group_adds contacts_only = LEDGER_GROUP_ADDS_CONTACTS_ONLY;
    stop_between_slices(fixture);
    ledger_settings_put(&h->client, SLICE("member-1"),
                        &(struct ledger_settings_patch){.group_adds = &contacts_only},
                        on_settings_put, h);
    assert_int_equal(finish_creation(fixture), LEDGER_FORBIDDEN);
    expect_unseen(fixture);
    harness_consent(h, "member-1", "everyone", NULL);
    expect_created_anew(fixture);
}

/* ---- two creations of the same chat ---- */

static void test_second_creation_waits_and_conflicts(void **state)
{
    struct fixture *fixture = *state;
    stop_between_slices(fixture);
    create_other(fixture, "bob");
    assert_true(test_vfs_step_sync());
    harness_turn(&fixture->harness, false);
    assert_int_equal(fixture->other_created, NOT_ANSWERED);
    assert_int_equal(finish_creation(fixture), LEDGER_OK);
    assert_int_equal(finish_other(fixture), LEDGER_CONFLICT);
    assert_int_equal(fixture->created_members, MEMBERS + 1);
}

static void test_second_creation_succeeds_after_the_first_was_refused(void **state)
{
    struct fixture *fixture = *state;
    struct harness *h = &fixture->harness;
    stop_between_slices(fixture);
    create_other(fixture, "bob");
    ledger_block_put(&h->client, SLICE("member-1"), SLICE("mallory"), on_blocked, h);
    assert_int_equal(finish_creation(fixture), LEDGER_FORBIDDEN);
    assert_int_equal(finish_other(fixture), LEDGER_OK);
    expect(harness_chat(h, "large", "bob"), "ok large by bob (2 bob member-1) 0/0");
    assert_int_equal(count_stored_members(fixture), 2);
    assert_int_equal(count_rows(fixture, "SELECT count(*) FROM chat_drafts"), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_chat_is_seen_by_nobody_before_its_last_slice),
        TEST(test_messages_are_committed_between_slices),
        TEST(test_creation_outlives_the_patience_of_its_client),
        TEST(test_failure_between_slices_leaves_nothing),
        TEST(test_all_drafts_end_when_a_group_fails),
        TEST(test_block_between_slices_prevents_the_chat),
        TEST(test_consent_withdrawn_between_slices_prevents_the_chat),
        TEST(test_second_creation_waits_and_conflicts),
        TEST(test_second_creation_succeeds_after_the_first_was_refused),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
