/* Messages that the SQLite ledger acknowledged survive the death of its process, and a chat that it was creating exists
 * completely or not at all. */
#include "conformance/ledger_harness.h"
#include "ledger/sqlite/sqlite_ledger.h"
#include "ledger/sqlite/sqlite_test_file.h"

#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <sys/wait.h>

#include <cmocka.h>

enum { KILL_ROUNDS = 10, KILL_IN_FLIGHT = 64, LARGE_MEMBERS = LEDGER_CHAT_MEMBERS_MAX - 1 };

static int acknowledgements; /* the pipe's write end, in the child only */

static void on_message_appended(void *arg, const struct ledger_append_outcome *outcome)
{
    harness_count_append(arg, outcome);
    uint64_t sequence = outcome->sequence;
    if (outcome->status == LEDGER_OK &&
        write(acknowledgements, &sequence, sizeof(sequence)) != sizeof(sequence))
        _exit(1);
}

static struct ledger *open_ledger(const char *path)
{
    struct sqlite_ledger_error error;
    struct ledger *ledger = sqlite_ledger_open(path, NULL, &error);
    if (!ledger)
        fail_msg("%s", error.text);
    return ledger;
}

static void make_chat(const char *path)
{
    struct harness harness;
    struct ledger *ledger = open_ledger(path);
    harness_init(&harness, ledger);
    harness_chat_create(&harness, "c", "alice", "bob");
    ledger_close(&ledger);
    harness_free(&harness);
}

static void on_large_chat_created(void *arg, const struct ledger_chat_outcome *outcome)
{
    harness_count_change(arg, &(struct ledger_change_outcome){.status = outcome->status});
    if (outcome->status == LEDGER_OK && outcome->chat.member_count != LARGE_MEMBERS + 1)
        _exit(1);
}

static void create_large_chat(struct harness *h, const char *chat)
{
    static char ids[LARGE_MEMBERS][16];
    static struct slice members[LARGE_MEMBERS];
    for (size_t i = 0; i < LARGE_MEMBERS; i++) {
        int len = snprintf(ids[i], sizeof(ids[i]), "member-%zu", i);
        members[i] = (struct slice){ids[i], (size_t)len};
    }
    ledger_chat_create(&h->client, slice_of(chat), SLICE("mallory"), members, LARGE_MEMBERS, true,
                       on_large_chat_created, h);
}

/* Sends for ever, `in_flight` at a time, and reports each acknowledgement before it sends more. With `large_chat`, it
 * starts to create that chat before. */
static _Noreturn void send_forever(const char *path, int round, unsigned in_flight,
                                   const char *large_chat)
{
    struct harness h;
    struct sqlite_ledger_error error;
    struct ledger *ledger = sqlite_ledger_open(path, NULL, &error);
    if (!ledger)
        _exit(1);
    harness_init(&h, ledger);
    if (large_chat)
        create_large_chat(&h, large_chat);
    for (unsigned sent = 0;; sent++) {
        char id[32];
        int len = snprintf(id, sizeof(id), "%d-%u", round, sent);
        struct slice name = {id, (size_t)len};
        ledger_message_append(&h.client, SLICE("c"), SLICE("alice"), name, name, name,
                              on_message_appended, &h);
        while (sent + 1 - h.answers >= in_flight)
            harness_turn(&h, true);
    }
}

/* Reads at most `count` acknowledgements, or until the child's end of the pipe is gone. Returns the
 * highest sequence. */
static uint64_t read_acknowledgements(int from, unsigned count)
{
    uint64_t sequence, highest = 0;
    while (count-- > 0 && read(from, &sequence, sizeof(sequence)) == sizeof(sequence))
        highest = sequence > highest ? sequence : highest;
    return highest;
}

/* Kills the child after a number of acknowledgements. Returns the highest acknowledged sequence. */
static uint64_t kill_while_sending(const char *path, int round, unsigned kill_after,
                                   unsigned in_flight, const char *large_chat)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(ends[0]);
        acknowledgements = ends[1];
        send_forever(path, round, in_flight, large_chat);
    }
    close(ends[1]);
    uint64_t before = read_acknowledgements(ends[0], kill_after);
    assert_true(before > 0);
    kill(child, SIGKILL);
    uint64_t after = read_acknowledgements(ends[0], UINT_MAX);
    close(ends[0]);
    waitpid(child, NULL, 0);
    return after > before ? after : before;
}

static uint64_t count_rows(const char *path, const char *sql)
{
    sqlite3 *handle;
    sqlite3_stmt *count;
    assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(handle, sql, -1, &count, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(count), SQLITE_ROW);
    uint64_t rows = (uint64_t)sqlite3_column_int64(count, 0);
    sqlite3_finalize(count);
    sqlite3_close(handle);
    return rows;
}

/* The schema makes sequences unique and they start at 1. So if there are as many rows as the highest sequence,
 * none is missing. */
static uint64_t count_messages(const char *path)
{
    return count_rows(
        path, "SELECT count(*) FROM messages WHERE sequence >= 1 AND body = client_message_id");
}

/* Returns the ledger's own count of messages after a kill, and checks that it needs no repair. */
static uint64_t count_after_kill(const char *path)
{
    char expected[64];
    unsigned long long stored = 0;
    struct harness harness;
    struct ledger *ledger = open_ledger(path);
    harness_init(&harness, ledger);
    assert_int_equal(sscanf(harness_repair(&harness, "c", false), "ok %*u/%llu", &stored), 1);
    snprintf(expected, sizeof(expected), "ok %llu/%llu", stored, stored);
    assert_string_equal(harness_repair(&harness, "c", false), expected);
    ledger_close(&ledger);
    harness_free(&harness);
    return stored;
}

static void test_acknowledged_messages_survive_kill(void **unused)
{
    (void)unused;
    struct test_file file;
    test_file_make(&file);
    make_chat(file.path);
    uint64_t total = 0;
    for (int round = 0; round < KILL_ROUNDS; round++) {
        /* no multiple of the requests in flight, so at a different point in each round */
        unsigned kill_after = 500 + 197 * (unsigned)round;
        uint64_t highest = kill_while_sending(file.path, round, kill_after, KILL_IN_FLIGHT, NULL);
        uint64_t stored = count_after_kill(file.path);
        assert_int_equal(count_messages(file.path), stored);
        assert_true(stored >= highest);
        assert_true(highest >= total);
        total = highest;
    }
    assert_true(total > KILL_ROUNDS); /* a child that acknowledges nothing proves nothing */
    print_message("%llu messages acknowledged over %d kills\n", (unsigned long long)total,
                  KILL_ROUNDS);
    test_file_remove(&file);
}

static void expect_whole_chat_or_none(const char *path, const char *chat)
{
    struct harness h;
    struct ledger *ledger = open_ledger(path);
    harness_init(&h, ledger);
    const char *seen = harness_member(&h, chat, "member-1");
    bool exists = strcmp(seen, "ok") == 0;
    if (!exists)
        assert_string_equal(seen, "not_found");
    assert_string_equal(harness_member(&h, chat, "member-9998"), exists ? "ok" : "not_found");
    if (!exists) { /* the id is free, once the rest is cleared */
        char expected[64];
        snprintf(expected, sizeof(expected), "ok created %s by mallory (2 bob mallory) 0/0", chat);
        assert_string_equal(harness_chat_create(&h, chat, "mallory", "bob"), expected);
    }
    ledger_close(&ledger);
    harness_free(&h);
    assert_int_equal(count_rows(path, "SELECT count(*) FROM chat_drafts"), 0);
    assert_int_equal(count_rows(path, "SELECT count(*) FROM chat_members m LEFT JOIN chats c "
                                      "ON c.chat_id = m.chat_id WHERE c.chat_id IS NULL"),
                     0);
}

static void test_large_chat_exists_completely_or_not_at_all_after_kill(void **unused)
{
    (void)unused;
    struct test_file file;
    uint64_t unfinished = 0;
    test_file_make(&file);
    make_chat(file.path);
    for (int round = 0; round < KILL_ROUNDS; round++) {
        char chat[16];
        snprintf(chat, sizeof(chat), "large-%d", round);
        /* One message at a time, so that about one is acknowledged per slice. */
        kill_while_sending(file.path, KILL_ROUNDS + round, 1 + 2 * (unsigned)round, 2, chat);
        unfinished += count_rows(file.path, "SELECT count(*) FROM chat_drafts");
        expect_whole_chat_or_none(file.path, chat);
    }
    print_message("%llu of %d kills were between two slices\n", (unsigned long long)unfinished,
                  KILL_ROUNDS);
    assert_true(unfinished > 0);
    test_file_remove(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_acknowledged_messages_survive_kill),
        cmocka_unit_test(test_large_chat_exists_completely_or_not_at_all_after_kill),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
