/* Opens ledger files that older programs wrote: nothing of them is lost, and their chats become groups. */
#include "conformance/ledger_harness.h"
#include "ledger/sqlite/sqlite_ledger.h"
#include "ledger/sqlite/sqlite_test_file.h"

#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define expect(answer, text) assert_string_equal(answer, text)

/* The tables of version 1, as its program made them. */
static const char VERSION_1[] =
    "CREATE TABLE users (user_id TEXT NOT NULL PRIMARY KEY,"
    "  presence_visibility INTEGER NOT NULL DEFAULT 0,"
    "  last_seen_visibility INTEGER NOT NULL DEFAULT 0, last_seen_ms INTEGER NOT NULL DEFAULT 0,"
    "  presence_version INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;"
    "CREATE TABLE contacts (user_id TEXT NOT NULL, contact_id TEXT NOT NULL,"
    "  request_id TEXT NOT NULL, since_ms INTEGER NOT NULL,"
    "  PRIMARY KEY (user_id, contact_id)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE contact_requests (from_user TEXT NOT NULL, to_user TEXT NOT NULL,"
    "  request_id TEXT NOT NULL UNIQUE, created_at_ms INTEGER NOT NULL, hidden INTEGER NOT NULL,"
    "  PRIMARY KEY (from_user, to_user)) STRICT, WITHOUT ROWID;"
    "CREATE INDEX contact_requests_incoming ON contact_requests (to_user, hidden, request_id);"
    "CREATE INDEX contact_requests_outgoing ON contact_requests (from_user, request_id);"
    "CREATE TABLE blocks (user_id TEXT NOT NULL, blocked_id TEXT NOT NULL,"
    "  since_ms INTEGER NOT NULL, PRIMARY KEY (user_id, blocked_id)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE chats (chat_id TEXT NOT NULL PRIMARY KEY, creator TEXT NOT NULL,"
    "  created_at_ms INTEGER NOT NULL, member_count INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
    "CREATE TABLE chat_members (chat_id TEXT NOT NULL REFERENCES chats, user_id TEXT NOT NULL,"
    "  since_ms INTEGER NOT NULL, PRIMARY KEY (chat_id, user_id)) STRICT, WITHOUT ROWID;"
    "CREATE INDEX chat_members_of_user ON chat_members (user_id, chat_id);"
    "CREATE TABLE calls (user_id TEXT NOT NULL, call_id TEXT NOT NULL, caller TEXT NOT NULL,"
    "  callee TEXT NOT NULL, reason TEXT NOT NULL, started_at_ms INTEGER NOT NULL,"
    "  answered_at_ms INTEGER NOT NULL, ended_at_ms INTEGER NOT NULL,"
    "  PRIMARY KEY (user_id, call_id)) STRICT, WITHOUT ROWID;"
    "CREATE INDEX calls_latest ON calls (user_id, ended_at_ms, call_id);";

/* What versions 2 and 3 added. */
static const char VERSION_3[] =
    "CREATE TABLE chat_counters (chat_id TEXT NOT NULL PRIMARY KEY,"
    "  sequence INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
    "CREATE TABLE messages (chat_id TEXT NOT NULL, sequence INTEGER NOT NULL,"
    "  message_id TEXT NOT NULL, sender TEXT NOT NULL, client_message_id TEXT NOT NULL,"
    "  body TEXT NOT NULL, sent_at_ms INTEGER NOT NULL,"
    "  PRIMARY KEY (chat_id, sequence)) STRICT, WITHOUT ROWID;"
    "CREATE UNIQUE INDEX messages_idempotency ON messages (chat_id, sender, client_message_id);"
    "CREATE TABLE cursors (chat_id TEXT NOT NULL, user_id TEXT NOT NULL, device_id TEXT NOT NULL,"
    "  sequence INTEGER NOT NULL, PRIMARY KEY (chat_id, user_id, device_id)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE outbox (position INTEGER PRIMARY KEY, chat_id TEXT NOT NULL,"
    "  sequence INTEGER NOT NULL, UNIQUE (chat_id, sequence)) STRICT;"
    "CREATE TABLE dead_letters (position INTEGER PRIMARY KEY, chat_id TEXT NOT NULL,"
    "  sequence INTEGER NOT NULL, reason TEXT NOT NULL, created_at_ms INTEGER NOT NULL,"
    "  UNIQUE (chat_id, sequence)) STRICT;"
    "ALTER TABLE chats ADD COLUMN members_version INTEGER NOT NULL DEFAULT 1;"
    "PRAGMA user_version = 3;";

/* A chat of two under an id that clients made, one whose creator has left, one of 150 members. */
static const char CONTENT[] =
    "INSERT INTO users (user_id, presence_visibility) VALUES ('alice', 2);"
    "INSERT INTO contacts VALUES ('alice', 'bob', 'r1', 1), ('bob', 'alice', 'r1', 1);"
    "INSERT INTO chats VALUES ('dm:alice:bob', 'bob', 100, 2, 1), ('left', 'zoe', 200, 3, 5),"
    "  ('large', 'alice', 300, 150, 1), ('empty', 'zoe', 50, 0, 2);"
    "INSERT INTO chat_members VALUES ('dm:alice:bob', 'alice', 100), ('dm:alice:bob', 'bob', 100),"
    "  ('left', 'alice', 250), ('left', 'bob', 220), ('left', 'carol', 220);"
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 149) INSERT INTO "
    "  chat_members SELECT 'large', 'member-' || i, 300 FROM n UNION ALL SELECT 'large', 'alice', 300;"
    "INSERT INTO messages VALUES ('dm:alice:bob', 1, 'm1', 'alice', 'x1', 'one', 400),"
    "  ('dm:alice:bob', 2, 'm2', 'bob', 'x1', 'two', 500),"
    "  ('dm:alice:bob', 3, 'm3', 'alice', 'x2', 'three', 600),"
    "  ('left', 1, 'm4', 'zoe', 'x1', 'farewell', 210);"
    "INSERT INTO chat_counters VALUES ('dm:alice:bob', 3), ('left', 1), ('large', 0), ('empty', 0);"
    "INSERT INTO cursors VALUES ('dm:alice:bob', 'bob', 'phone', 1);"
    "INSERT INTO outbox (chat_id, sequence) VALUES ('dm:alice:bob', 3);";

static void write_file(const struct test_file *file, const char *const *scripts)
{
    sqlite3 *handle;
    assert_int_equal(sqlite3_open(file->path, &handle), SQLITE_OK);
    for (; *scripts; scripts++)
        assert_int_equal(sqlite3_exec(handle, *scripts, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(handle);
}

static void check_messages(struct harness *h)
{
    expect(harness_after(h, "dm:alice:bob", "bob", 0, 0),
           "ok dm:alice:bob#1:alice:one dm:alice:bob#2:bob:two dm:alice:bob#3:alice:three /3");
    expect(harness_outbox(h, 0), "ok dm:alice:bob#3:alice:three /0");
    expect(harness_chat(h, "dm:alice:bob", "bob"), "ok dm:alice:bob by bob (2 alice bob) 1/3");
    expect(harness_chat(h, "dm:alice:bob", "alice"), "ok dm:alice:bob by bob (2 alice bob) 1/3");
    expect(harness_send(h, "dm:alice:bob", "alice", "x1", "one"), "ok 1 m1 duplicate published");
}

static void check_groups(struct harness *h)
{
    expect(harness_chat_roles(h, "dm:alice:bob", "alice"), "ok group admins:bob open bob:::1");
    expect(harness_chat_roles(h, "left", "alice"), "ok group admins:bob open");
    expect(harness_chat_roles(h, "large", "alice"), "ok group admins:alice open");
    expect(harness_chats(h, "alice", "", 0, 0, false),
           "ok dm:alice:bob by bob (2) 1/3 large by alice (150) 0/0 left by zoe (3) 1/1");
    expect(harness_graph(h, "alice", 2),
           "ok nobody contacts contacts:bob blocked: blocked_by: chats:dm:alice:bob,large");
}

static void check_former_chats(struct harness *h)
{
    expect(harness_former_chats(h, "zoe", "", 0), "ok left");
    expect(harness_former_chats(h, "alice", "", 0), "ok");
    expect(harness_erase(h, "left", "zoe"), "ok");
    expect(harness_after(h, "left", "bob", 0, 0), "ok left#1:zoe: /1");
}

/* An old client still creates the chat of the two under its own id, and gets the one that exists. */
static void check_old_ids(struct harness *h)
{
    expect(harness_chat_create(h, "dm:alice:bob", "alice", "bob"),
           "ok dm:alice:bob by bob (2 alice bob) 1/3");
    expect(harness_chat_create(h, "dm:alice:bob", "mallory", "alice"), "invalid");
    expect(harness_send(h, "dm:alice:bob", "bob", "x9", "four"), "ok 4 m-x9");
    expect(harness_send(h, "large", "member-7", "x9", "hello"), "ok 1 m-x9");
    expect(harness_chats(h, "alice", "", 0, 1, false), "ok large by alice (150) 1/1 more");
    expect(harness_direct(h, "direct-1", "alice", "bob"),
           "ok created direct-1 by alice (2 alice bob) 0/0");
}

static void check_migrated(const struct test_file *file, void (*check)(struct harness *h))
{
    struct sqlite_ledger_error error;
    struct harness harness;
    struct ledger *ledger = sqlite_ledger_open(file->path, NULL, &error);
    assert_non_null(ledger);
    harness_init(&harness, ledger);
    check(&harness);
    ledger_close(&ledger);
    harness_free(&harness);
}

static void test_version_3_loses_nothing_and_gets_roles(void **unused)
{
    struct test_file file;
    (void)unused;
    test_file_make(&file);
    write_file(&file, (const char *const[]){VERSION_1, VERSION_3, CONTENT, NULL});
    check_migrated(&file, check_messages);
    check_migrated(&file, check_groups);
    check_migrated(&file, check_former_chats);
    check_migrated(&file, check_old_ids);
    test_file_remove(&file);
}

static void check_first_message(struct harness *h)
{
    expect(harness_chat_roles(h, "c", "bob"), "ok group admins:alice open");
    expect(harness_send(h, "c", "alice", "1", "first"), "ok 1 m-1");
}

static void test_version_1_is_migrated(void **unused)
{
    struct test_file file;
    (void)unused;
    test_file_make(&file);
    write_file(&file, (const char *const[]){
                          VERSION_1,
                          "INSERT INTO chats VALUES ('c', 'alice', 1, 2);"
                          "INSERT INTO chat_members VALUES ('c', 'alice', 1), ('c', 'bob', 1);"
                          "PRAGMA user_version = 1;",
                          NULL});
    check_migrated(&file, check_first_message);
    test_file_remove(&file);
}

/* Makes the file what version 11 wrote: events with bodies. */
static const char VERSION_11[] =
    "ALTER TABLE events DROP COLUMN sequence; ALTER TABLE dead_events DROP COLUMN sequence;"
    "INSERT INTO events VALUES ('q', 1, 'chat.created', 'c', 4000, '{\"chat_id\":\"c\"}'),"
    "  ('q', 2, 'message.created', 'c', 5000, '{\"sequence\":1,\"body\":\"first\",\"sent_at\":1}');"
    "INSERT INTO dead_events VALUES"
    "  ('q', 0, 'message.undelivered', 'c', 5000, '{\"sequence\":1,\"body\":\"first\"}', 'refused');"
    "PRAGMA user_version = 11;";

static void store_first_message(struct harness *h)
{
    harness_chat_create(h, "c", "alice", "bob");
    harness_send(h, "c", "alice", "1", "first");
}

static void check_events(struct harness *h)
{
    h->shows_data = h->shows_bodies = true;
    expect(harness_events(h, "q", 0),
           "ok chat.created@4000:c{\"chat_id\":\"c\"}#0: "
           "message.created@5000:c{\"sequence\":1,\"sent_at\":1}#1:first");
    expect(harness_dead_events(h, "", "", 0),
           "ok message.undelivered@5000:c{\"sequence\":1}#1:(q refused)");
    harness_message_delete(h, "c", 1);
    assert_null(strstr(harness_events(h, "q", 0), "first"));
}

static void test_events_of_version_11_lose_their_copies_of_bodies(void **unused)
{
    struct test_file file;
    (void)unused;
    test_file_make(&file);
    check_migrated(&file, store_first_message);
    write_file(&file, (const char *const[]){VERSION_11, NULL});
    check_migrated(&file, check_events);
    test_file_remove(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version_3_loses_nothing_and_gets_roles),
        cmocka_unit_test(test_version_1_is_migrated),
        cmocka_unit_test(test_events_of_version_11_lose_their_copies_of_bodies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
