/* Messages that the SQLite ledger acknowledged survive the death of its process. */
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

enum { KILL_ROUNDS = 10, KILL_IN_FLIGHT = 64 };

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

/* Sends for ever, KILL_IN_FLIGHT at a time, and reports each acknowledgement before it sends more. */
static _Noreturn void send_forever(const char *path, int round)
{
    struct harness h;
    struct sqlite_ledger_error error;
    struct ledger *ledger = sqlite_ledger_open(path, NULL, &error);
    if (!ledger)
        _exit(1);
    harness_init(&h, ledger);
    for (unsigned sent = 0;; sent++) {
        char id[32];
        int len = snprintf(id, sizeof(id), "%d-%u", round, sent);
        struct slice name = {id, (size_t)len};
        ledger_message_append(&h.client, SLICE("c"), SLICE("alice"), name, name, name,
                              on_message_appended, &h);
        while (sent + 1 - h.answers >= KILL_IN_FLIGHT)
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

/* Kills the child at a different point of its work in each round: after a number of acknowledgements that
 * is no multiple of the requests in flight. Returns the highest acknowledged sequence. */
static uint64_t kill_while_sending(const char *path, int round)
{
    int ends[2];
    unsigned kill_after = 500 + 197 * (unsigned)round;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(ends[0]);
        acknowledgements = ends[1];
        send_forever(path, round);
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

/* The schema makes sequences unique and they start at 1. So if there are as many rows as the highest sequence,
 * none is missing. */
static uint64_t count_messages(const char *path)
{
    sqlite3 *handle;
    sqlite3_stmt *count;
    assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(handle,
                                        "SELECT count(*) FROM messages "
                                        "WHERE sequence >= 1 AND body = client_message_id",
                                        -1, &count, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(count), SQLITE_ROW);
    uint64_t rows = (uint64_t)sqlite3_column_int64(count, 0);
    sqlite3_finalize(count);
    sqlite3_close(handle);
    return rows;
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
        uint64_t highest = kill_while_sending(file.path, round);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_acknowledged_messages_survive_kill),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
