/* The SQLite ledger on a file or disk that fails or is slow. */
#include "conformance/ledger_harness.h"
#include "ledger/ledger_metrics.h"
#include "ledger/sqlite/database.h"
#include "ledger/sqlite/sqlite_ledger.h"
#include "ledger/sqlite/sqlite_schema.h"
#include "ledger/sqlite/sqlite_test_file.h"
#include "ledger/sqlite/sqlite_test_vfs.h"

#include <fcntl.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define expect(answer, text) assert_string_equal(answer, text)

/* ---- a ledger on the faulty file layer, with one client and a clock that the test moves ---- */

static _Atomic uint64_t now_us;

static uint64_t read_test_clock_us(void)
{
    return now_us;
}

static void pass_time_ms(uint64_t ms)
{
    now_us += ms * 1000;
}

struct fixture {
    struct test_file file;
    struct ledger *ledger;
    struct harness harness;
};

static void open_ledger(struct fixture *fixture, size_t queue_max)
{
    struct sqlite_ledger_options options = {
        .queue_max = queue_max, .vfs = TEST_VFS_NAME, .now_us = read_test_clock_us};
    struct sqlite_ledger_error error;
    fixture->ledger = sqlite_ledger_open(fixture->file.path, &options, &error);
    if (!fixture->ledger)
        fail_msg("%s", error.text);
    harness_init(&fixture->harness, fixture->ledger);
}

static void close_ledger(struct fixture *fixture)
{
    ledger_close(&fixture->ledger);
    harness_free(&fixture->harness);
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    test_vfs_register();
    test_file_make(&fixture->file);
    open_ledger(fixture, 0);
    *state = fixture;
    return 0;
}

/* A test that fails half-way must not leave its fault to the next one. */
static void clear_faults(void)
{
    test_vfs_fail_writes(SQLITE_OK);
    test_vfs_fail_syncs(SQLITE_OK);
    test_vfs_fail_opens(SQLITE_OK);
    test_vfs_hold_syncs(false);
    test_vfs_skip_sleeps(false);
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    clear_faults();
    close_ledger(fixture);
    test_file_remove(&fixture->file);
    free(fixture);
    return 0;
}

static void run_sql(const struct fixture *fixture, const char *sql)
{
    sqlite3 *handle;
    assert_int_equal(sqlite3_open(fixture->file.path, &handle), SQLITE_OK);
    assert_int_equal(sqlite3_exec(handle, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(handle);
}

static void send_async(struct harness *h, const char *id)
{
    ledger_message_append(&h->client, SLICE("c"), SLICE("alice"), slice_of(id), slice_of(id),
                          SLICE("body"), harness_count_append, h);
}

/* ---- opening ---- */

static void test_rows_survive_closing(void **state)
{
    struct fixture *fixture = *state;
    harness_chat_create(&fixture->harness, "c", "alice", "bob");
    harness_send(&fixture->harness, "c", "alice", "1", "kept");
    close_ledger(fixture);
    open_ledger(fixture, 0);
    expect(harness_after(&fixture->harness, "c", "bob", 0, 0), "ok c#1:alice:kept /1");
}

static void test_second_process_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct sqlite_ledger_error error;
    char holder[64];
    snprintf(holder, sizeof(holder), "process %ld", (long)getpid());
    assert_null(sqlite_ledger_open(fixture->file.path, NULL, &error));
    assert_non_null(strstr(error.text, "in use by"));
    assert_non_null(strstr(error.text, holder));
    assert_null(sqlite_ledger_open("/nowhere/at/all.db", NULL, &error));
    assert_non_null(strstr(error.text, "/nowhere/at/all.db"));
}

static void test_newer_schema_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct sqlite_ledger_error error;
    close_ledger(fixture);
    run_sql(fixture, "PRAGMA user_version=99");
    assert_null(sqlite_ledger_open(fixture->file.path, NULL, &error));
    assert_non_null(strstr(error.text, "99"));
    char version[64];
    snprintf(version, sizeof(version), "PRAGMA user_version=%d", sqlite_schema_version());
    run_sql(fixture, version);
    open_ledger(fixture, 0);
}

static void test_file_that_is_no_database_is_refused(void **state)
{
    struct sqlite_ledger_error error;
    struct test_file garbage;
    (void)state;
    test_file_make(&garbage);
    FILE *file = fopen(garbage.path, "w");
    for (int i = 0; i < 5000; i++)
        fputs("not a database ", file);
    fclose(file);
    assert_null(sqlite_ledger_open(garbage.path, NULL, &error));
    assert_non_null(strstr(error.text, "not a database"));
    test_file_remove(&garbage);
}

/* ---- a store that fails and recovers ---- */

static bool is_available(const struct fixture *fixture)
{
    return ledger_metrics(fixture->ledger)->available;
}

/* Sends are refused while the store fails, and succeed afterwards as if nothing had happened. */
static void fail_and_recover(struct fixture *fixture, void (*inject)(int code), int code)
{
    struct harness *h = &fixture->harness;
    harness_chat_create(h, "c", "alice", "bob");
    expect(harness_send(h, "c", "alice", "1", "before"), "ok 1 m-1");
    inject(code);
    expect(harness_send(h, "c", "alice", "2", "during"), "unavailable");
    expect(harness_send(h, "c", "alice", "3", "during"), "unavailable");
    assert_false(is_available(fixture));
    expect(harness_after(h, "c", "bob", 0, 0), "ok c#1:alice:before /1");
    inject(SQLITE_OK);
    pass_time_ms(SQLITE_LEDGER_REOPEN_INTERVAL_MS);
    expect(harness_send(h, "c", "alice", "2", "after"), "ok 2 m-2");
    assert_true(is_available(fixture));
    expect(harness_after(h, "c", "bob", 0, 0), "ok c#1:alice:before c#2:alice:after /2");
    expect(harness_repair(h, "c", false), "ok 2/2");
}

static void test_ledger_recovers_from_full_disk(void **state)
{
    fail_and_recover(*state, test_vfs_fail_writes, SQLITE_FULL);
}

static void test_ledger_recovers_from_failing_write(void **state)
{
    fail_and_recover(*state, test_vfs_fail_writes, SQLITE_IOERR_WRITE);
}

static void test_ledger_recovers_from_readonly_file(void **state)
{
    fail_and_recover(*state, test_vfs_fail_writes, SQLITE_READONLY);
}

static void test_ledger_recovers_from_failing_sync(void **state)
{
    fail_and_recover(*state, test_vfs_fail_syncs, SQLITE_IOERR_FSYNC);
}

static void test_reopening_is_retried_once_per_interval(void **state)
{
    struct fixture *fixture = *state;
    struct harness *h = &fixture->harness;
    const struct ledger_metrics *metrics = ledger_metrics(fixture->ledger);
    harness_chat_create(h, "c", "alice", "bob");
    test_vfs_fail_opens(SQLITE_CANTOPEN);
    test_vfs_fail_writes(SQLITE_IOERR_WRITE);
    expect(harness_send(h, "c", "alice", "1", "x"), "unavailable");
    test_vfs_fail_writes(SQLITE_OK);
    expect(harness_send(h, "c", "alice", "1", "x"), "unavailable");
    assert_int_equal(metrics->reopens, 1);
    pass_time_ms(SQLITE_LEDGER_REOPEN_INTERVAL_MS);
    expect(harness_send(h, "c", "alice", "1", "x"), "unavailable");
    assert_int_equal(metrics->reopens, 2);
    test_vfs_fail_opens(SQLITE_OK);
    pass_time_ms(SQLITE_LEDGER_REOPEN_INTERVAL_MS - 1);
    expect(harness_send(h, "c", "alice", "1", "x"), "unavailable");
    assert_int_equal(metrics->reopens, 2);
    pass_time_ms(1);
    expect(harness_send(h, "c", "alice", "1", "x"), "ok 1 m-1");
    assert_int_equal(metrics->reopens, 3);
}

static void test_locked_database_fails_writes_after_a_wait_and_no_reads(void **state)
{
    struct fixture *fixture = *state;
    struct harness *h = &fixture->harness;
    sqlite3 *other;
    harness_chat_create(h, "c", "alice", "bob");
    assert_int_equal(sqlite3_open(fixture->file.path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
    test_vfs_skip_sleeps(true);
    expect(harness_send(h, "c", "alice", "1", "x"), "unavailable");
    assert_true(test_vfs_skipped_us() >= DATABASE_BUSY_MS * 1000);
    test_vfs_skip_sleeps(false);
    expect(harness_after(h, "c", "bob", 0, 0), "ok /0");
    assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(other);
    expect(harness_send(h, "c", "alice", "1", "x"), "ok 1 m-1");
}

/* Overwrites (or restores) all pages but the first, which holds the schema. */
static void swap_pages(const struct fixture *fixture, char *pages, size_t bytes)
{
    int file = open(fixture->file.path, O_RDWR);
    char *found = malloc(bytes);
    assert_true(file >= 0 && found);
    assert_int_equal(pread(file, found, bytes, 4096), bytes);
    assert_int_equal(pwrite(file, pages, bytes, 4096), bytes);
    memcpy(pages, found, bytes);
    free(found);
    close(file);
}

static void test_ledger_recovers_from_damaged_file(void **state)
{
    struct fixture *fixture = *state;
    enum { DAMAGE_BYTES = 20 * 4096 };
    char *pages = malloc(DAMAGE_BYTES);
    memset(pages, 0xa5, DAMAGE_BYTES);
    harness_chat_create(&fixture->harness, "c", "alice", "bob");
    close_ledger(fixture); /* so that everything is in the file and nothing in the log */
    swap_pages(fixture, pages, DAMAGE_BYTES);
    open_ledger(fixture, 0);
    struct harness *h = &fixture->harness;
    expect(harness_send(h, "c", "alice", "1", "x"), "unavailable");
    expect(harness_chat(h, "c", "alice"), "unavailable");
    expect(harness_contacts(h, "alice"), "unavailable");
    swap_pages(fixture, pages, DAMAGE_BYTES);
    free(pages);
    pass_time_ms(SQLITE_LEDGER_REOPEN_INTERVAL_MS);
    expect(harness_send(h, "c", "alice", "1", "x"), "ok 1 m-1");
    expect(harness_chat(h, "c", "alice"), "ok c by alice (2 alice bob) 0/1");
    /* The other reader executes it, if the first one took both requests before. */
    harness_chat(h, "c", "alice");
    expect(harness_chat(h, "c", "alice"), "ok c by alice (2 alice bob) 0/1");
}

/* ---- a store that is slow ---- */

/* One user has a quarter of the queue. */
static void test_full_share_of_the_queue_answers_busy(void **state)
{
    struct fixture *fixture = *state;
    close_ledger(fixture);
    open_ledger(fixture, 16);
    struct harness *h = &fixture->harness;
    harness_chat_create(h, "c", "alice", "bob");
    unsigned before = h->answers;
    test_vfs_hold_syncs(true);
    send_async(h, "first");
    assert_true(test_vfs_await_held_sync()); /* the writer has it and waits for the disk */
    for (char id[2] = "a"; id[0] <= 'j'; id[0]++)
        send_async(h, id);
    harness_turn(h, false);
    assert_int_equal(h->statuses[LEDGER_BUSY], 6);
    assert_int_equal(h->answers, before + 6);
    assert_int_equal(ledger_metrics(fixture->ledger)->writes_waiting, 4);
    assert_int_equal(ledger_metrics(fixture->ledger)->over_share, 6);
    test_vfs_hold_syncs(false);
    harness_await(h, before + 11);
    expect(harness_repair(h, "c", false), "ok 5/5");
}

static void test_abandoned_requests_are_skipped(void **state)
{
    struct fixture *fixture = *state;
    struct harness *h = &fixture->harness;
    harness_chat_create(h, "c", "alice", "bob");
    unsigned before = h->answers;
    test_vfs_hold_syncs(true);
    send_async(h, "first");
    assert_true(test_vfs_await_held_sync());
    send_async(h, "second"); /* waits in the queue until its client gives it up */
    h->clock.now_ms += LEDGER_TIME_LIMIT_MS;
    ledger_client_expire(&h->client);
    assert_int_equal(h->answers, before + 2);
    assert_int_equal(h->statuses[LEDGER_TIMEOUT], 2);
    test_vfs_hold_syncs(false);
    harness_settle(h);
    assert_int_equal(h->answers, before + 2);
    expect(harness_repair(h, "c", false), "ok 1/1");
}

static void test_many_requests_share_one_commit(void **state)
{
    enum { REQUESTS = 2000 };
    struct fixture *fixture = *state;
    struct harness *h = &fixture->harness;
    const struct ledger_metrics *metrics = ledger_metrics(fixture->ledger);
    harness_chat_create(h, "c", "alice", "bob");
    uint64_t commits = metrics->commits;
    unsigned before = h->answers;
    char id[16];
    for (int i = 0; i < REQUESTS; i++) {
        snprintf(id, sizeof(id), "%d", i);
        send_async(h, id);
    }
    harness_await(h, before + REQUESTS);
    assert_true(metrics->commits - commits < REQUESTS / 10);
    assert_int_equal(metrics->appends, REQUESTS);
}

/* ---- corruption of a counter ---- */

static void test_corrupt_counter_halts_chat_until_repair(void **state)
{
    struct fixture *fixture = *state;
    struct harness *h = &fixture->harness;
    harness_chat_create(h, "c", "alice", "bob");
    harness_chat_create(h, "d", "alice", "bob");
    harness_send(h, "c", "alice", "1", "one");
    harness_send(h, "c", "alice", "2", "two");
    run_sql(fixture, "UPDATE chat_counters SET sequence = 1 WHERE chat_id = 'c'");
    expect(harness_send(h, "c", "alice", "3", "three"), "halted");
    expect(harness_send(h, "c", "alice", "2", "two"), "ok 2 m-2 duplicate");
    expect(harness_send(h, "d", "alice", "1", "elsewhere"), "ok 1 m-1");
    expect(harness_after(h, "c", "bob", 0, 0), "ok c#1:alice:one c#2:alice:two /2");
    expect(harness_repair(h, "c", false), "ok needed 1/2");
    expect(harness_send(h, "c", "alice", "3", "three"), "halted");
    expect(harness_repair(h, "c", true), "ok needed 1/2");
    expect(harness_send(h, "c", "alice", "3", "three"), "ok 3 m-3");
    run_sql(fixture, "DELETE FROM chat_counters WHERE chat_id = 'c'");
    expect(harness_send(h, "c", "alice", "4", "four"), "halted");
    expect(harness_repair(h, "c", true), "ok needed missing 0/3");
    expect(harness_send(h, "c", "alice", "4", "four"), "ok 4 m-4");
    assert_int_equal(ledger_metrics(fixture->ledger)->halted_appends, 3);
    assert_int_equal(ledger_metrics(fixture->ledger)->duplicate_sequences, 2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_rows_survive_closing),
        TEST(test_second_process_is_refused),
        TEST(test_newer_schema_is_refused),
        TEST(test_file_that_is_no_database_is_refused),
        TEST(test_ledger_recovers_from_full_disk),
        TEST(test_ledger_recovers_from_failing_write),
        TEST(test_ledger_recovers_from_readonly_file),
        TEST(test_ledger_recovers_from_failing_sync),
        TEST(test_reopening_is_retried_once_per_interval),
        TEST(test_locked_database_fails_writes_after_a_wait_and_no_reads),
        TEST(test_ledger_recovers_from_damaged_file),
        TEST(test_full_share_of_the_queue_answers_busy),
        TEST(test_abandoned_requests_are_skipped),
        TEST(test_many_requests_share_one_commit),
        TEST(test_corrupt_counter_halts_chat_until_repair),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
