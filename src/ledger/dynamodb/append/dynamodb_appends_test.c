/*
 * Messages on DynamoDB beyond what every backend promises: a spoilt counter halts the chat, several processes share one chat,
 * and a process that is killed loses nothing that it acknowledged.
 */
#include "conformance/ledger_harness.h"
#include "ledger/dynamodb/dynamodb_test_server.h"
#include "ledger/ledger_metrics.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define expect(answer, text) assert_string_equal(answer, text)

/* Tables with one chat "c" of alice and bob, and a ledger. */
struct fixture {
    struct dynamodb_test_server server;
    struct ledger *ledger;
    struct harness harness;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    dynamodb_test_server_make_tables(&fixture->server);
    fixture->ledger = dynamodb_test_server_open(&fixture->server);
    harness_init(&fixture->harness, fixture->ledger);
    harness_chat_create(&fixture->harness, "c", "alice", "bob");
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    ledger_close(&fixture->ledger);
    harness_free(&fixture->harness);
    free(fixture);
    return 0;
}

/* ---- halting ---- */

static void set_counter(const struct fixture *fixture, int64_t value)
{
    dynamodb_test_server_call(&fixture->server, "UpdateItem",
                              "{'TableName':'@chat_counters','Key':{'chat_id':{'S':'c'}},"
                              "'UpdateExpression':'SET sequence_counter = :v',"
                              "'ExpressionAttributeValues':{':v':{'N':'%lld'}}}",
                              (long long)value);
}

static void delete_counter(const struct fixture *fixture)
{
    dynamodb_test_server_call(&fixture->server, "DeleteItem",
                              "{'TableName':'@chat_counters','Key':{'chat_id':{'S':'c'}}}");
}

static uint64_t halted_appends(const struct fixture *fixture)
{
    return atomic_load(&ledger_metrics(fixture->ledger)->halted_appends);
}

static uint64_t duplicate_sequences(const struct fixture *fixture)
{
    return atomic_load(&ledger_metrics(fixture->ledger)->duplicate_sequences);
}

static void store_three_messages(struct harness *h)
{
    expect(harness_send(h, "c", "alice", "1", "one"), "ok 1 m-1");
    expect(harness_send(h, "c", "bob", "2", "two"), "ok 2 m-2");
    expect(harness_send(h, "c", "alice", "3", "three"), "ok 3 m-3");
}

/* The chat is halted: nothing new is stored, but what was stored is known and read. */
static void expect_halted(struct fixture *fixture, const char *repair)
{
    struct harness *h = &fixture->harness;
    uint64_t before = halted_appends(fixture);
    expect(harness_send(h, "c", "alice", "4", "four"), "halted");
    expect(harness_send(h, "c", "carol", "4", "four"), "not_found");
    expect(harness_send(h, "c", "bob", "2", "two"), "ok 2 m-2 duplicate");
    expect(harness_after(h, "c", "bob", 1, 0), "ok c#2:bob:two c#3:alice:three /3");
    assert_int_equal(halted_appends(fixture), before + 1);
    expect(harness_repair(h, "c", false), repair);
    expect(harness_send(h, "c", "alice", "4", "four"), "halted");
}

static void expect_repaired(struct fixture *fixture, const char *repair)
{
    struct harness *h = &fixture->harness;
    expect(harness_repair(h, "c", true), repair);
    expect(harness_repair(h, "c", true), "ok 3/3");
    expect(harness_send(h, "c", "alice", "4", "four"), "ok 4 m-4");
    expect(harness_after(h, "c", "bob", 3, 0), "ok c#4:alice:four /4");
}

static void test_missing_counter_halts_the_chat(void **state)
{
    struct fixture *fixture = *state;
    store_three_messages(&fixture->harness);
    delete_counter(fixture);
    expect_halted(fixture, "ok needed missing 0/3");
    expect_repaired(fixture, "ok needed missing 0/3");
    assert_int_equal(duplicate_sequences(fixture), 0);
}

static void test_counter_behind_its_messages_halts_the_chat(void **state)
{
    struct fixture *fixture = *state;
    store_three_messages(&fixture->harness);
    set_counter(fixture, 1);
    expect_halted(fixture, "ok needed 1/3");
    assert_int_equal(duplicate_sequences(fixture), 2);
    expect_repaired(fixture, "ok needed 1/3");
}

static void test_counter_ahead_of_its_messages_halts_the_chat(void **state)
{
    struct fixture *fixture = *state;
    store_three_messages(&fixture->harness);
    set_counter(fixture, 7);
    expect_halted(fixture, "ok needed 7/3");
    assert_int_equal(duplicate_sequences(fixture), 0);
    expect_repaired(fixture, "ok needed 7/3");
}

/* ---- texts ---- */

/* A text that is not UTF-8 cannot be stored; it is refused alone, not with the messages around it. */
static void test_message_that_is_not_utf8_is_refused_alone(void **state)
{
    struct harness *h = &((struct fixture *)*state)->harness;
    const char *bodies[] = {"one", "\xff\xfe", "three"};
    for (int i = 0; i < 3; i++) {
        char id[8];
        snprintf(id, sizeof(id), "%d", i);
        ledger_message_append(&h->client, SLICE("c"), SLICE("alice"), slice_of(id), slice_of(id),
                              slice_of(bodies[i]), harness_count_append, h);
    }
    harness_settle(h);
    assert_int_equal(h->statuses[LEDGER_INVALID], 1);
    expect(harness_after(h, "c", "bob", 0, 0), "ok c#1:alice:one c#2:alice:three /2");
}

/* ---- gathering ---- */

enum { GATHERED_MESSAGES = 600 };

static void send_text(struct harness *h, const char *sender, const char *text)
{
    ledger_message_append(&h->client, SLICE("c"), slice_of(sender), slice_of(text), slice_of(text),
                          slice_of(text), harness_count_append, h);
}

static void test_messages_of_a_chat_share_transactions(void **state)
{
    struct fixture *fixture = *state;
    struct harness *h = &fixture->harness;
    const struct ledger_metrics *metrics = ledger_metrics(fixture->ledger);
    uint64_t before = atomic_load(&metrics->commits);
    for (int i = 0; i < GATHERED_MESSAGES; i++) {
        char text[16];
        snprintf(text, sizeof(text), "%d", i);
        send_text(h, i % 2 ? "bob" : "alice", text);
    }
    harness_settle(h);
    assert_int_equal(h->statuses[LEDGER_OK], GATHERED_MESSAGES + 1); /* the chat's too */
    assert_true(atomic_load(&metrics->commits) - before <= GATHERED_MESSAGES / 20);
    expect(harness_repair(h, "c", false), "ok 600/600");
}

/* A batch in which some are new, some repeated, one's sender is no member: each gets its own answer, in order. */
static void test_repeated_messages_do_not_disturb_the_others(void **state)
{
    struct harness *h = &((struct fixture *)*state)->harness;
    harness_send(h, "c", "alice", "a", "a");
    harness_send(h, "c", "bob", "b", "b");
    memset(h->statuses, 0, sizeof(h->statuses));
    static const char *const SENDS[][2] = {
        {"alice", "new-1"}, {"alice", "a"},     {"bob", "new-1"},   {"carol", "x"},
        {"bob", "b"},       {"alice", "new-2"}, {"alice", "new-2"}, {"alice", "new-3"}};
    for (size_t i = 0; i < sizeof(SENDS) / sizeof(SENDS[0]); i++)
        send_text(h, SENDS[i][0], SENDS[i][1]);
    harness_settle(h);
    assert_int_equal(h->statuses[LEDGER_OK], 7);
    assert_int_equal(h->statuses[LEDGER_NOT_FOUND], 1);
    expect(harness_after(h, "c", "bob", 2, 0),
           "ok c#3:alice:new-1 c#4:bob:new-1 c#5:alice:new-2 c#6:alice:new-3 /6");
}

/* ---- what is remembered ---- */

/* Another ledger, as in another process, changes what this one remembers of the chat. */
static void test_changes_by_other_ledgers_are_noticed(void **state)
{
    struct fixture *fixture = *state;
    struct harness *h = &fixture->harness, other;
    struct ledger *ledger = dynamodb_test_server_open(&fixture->server);
    harness_init(&other, ledger);
    expect(harness_send(h, "c", "alice", "1", "one"), "ok 1 m-1");
    expect(harness_send(h, "c", "bob", "2", "two"), "ok 2 m-2");
    expect(harness_send(&other, "c", "bob", "3", "three"), "ok 3 m-3");
    expect(harness_send(h, "c", "bob", "3", "three"), "ok 3 m-3 duplicate");
    expect(harness_send(h, "c", "bob", "4", "four"), "ok 4 m-4");
    harness_block(&other, "alice", "bob");
    expect(harness_send(h, "c", "bob", "5", "five"), "forbidden");
    harness_unblock(&other, "alice", "bob");
    expect(harness_send(h, "c", "bob", "5", "five"), "ok 5 m-5");
    harness_member_remove(&other, "c", "alice", "bob");
    expect(harness_send(h, "c", "bob", "6", "six"), "not_found");
    expect(harness_send(h, "c", "alice", "6", "six"), "ok 6 m-6");
    harness_member_add(&other, "c", "alice", "bob");
    expect(harness_send(h, "c", "bob", "7", "seven"), "ok 7 m-7");
    ledger_close(&ledger);
    harness_free(&other);
}

/* ---- several processes ---- */

enum { PROCESSES = 3, PROCESS_MESSAGES = 200, PROCESS_WINDOW = 20, KILL_AFTER = 60 };

/* Sends `count` messages, a window at a time, and writes each acknowledged text into the pipe. */
struct sender_process {
    struct harness harness;
    const char *name;
    int acknowledged;
};

struct sent_text {
    struct sender_process *process;
    char text[24];
};

static void on_text_stored(void *arg, const struct ledger_append_outcome *outcome)
{
    struct sent_text *sent = arg;
    harness_count_append(&sent->process->harness, outcome);
    if (outcome->status == LEDGER_OK &&
        write(sent->process->acknowledged, sent->text, sizeof(sent->text)) != sizeof(sent->text))
        _exit(1);
}

static void send_texts(struct sender_process *process, unsigned count)
{
    struct harness *h = &process->harness;
    struct sent_text *texts = calloc(count, sizeof(*texts));
    for (unsigned i = 0; i < count; i++) {
        texts[i].process = process;
        snprintf(texts[i].text, sizeof(texts[i].text), "%s-%u", process->name, i);
        struct slice text = slice_of(texts[i].text);
        ledger_message_append(&h->client, SLICE("c"),
                              process->name[0] % 2 ? SLICE("alice") : SLICE("bob"), text, text,
                              text, on_text_stored, &texts[i]);
        while (i + 1 - h->answers >= PROCESS_WINDOW)
            harness_turn(h, true);
    }
    harness_settle(h);
    free(texts);
}

/* Runs in a child, which has a ledger of its own. */
static _Noreturn void run_sender(const struct fixture *fixture, const char *name, int acknowledged)
{
    struct sender_process process = {.name = name, .acknowledged = acknowledged};
    struct ledger *ledger = dynamodb_test_server_open(&fixture->server);
    harness_init(&process.harness, ledger);
    send_texts(&process, PROCESS_MESSAGES);
    ledger_close(&ledger);
    _exit(process.harness.statuses[LEDGER_OK] == PROCESS_MESSAGES ? 0 : 2);
}

static pid_t start_sender(const struct fixture *fixture, const char *name, int pipe_ends[2])
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(pipe_ends[0]);
        run_sender(fixture, name, pipe_ends[1]);
    }
    return child;
}

/* All texts of the chat, each of which occurs once; their number. */
struct stored_texts {
    struct buffer texts; /* " text " … */
    uint64_t count;
    bool has_more;
};

static void on_texts_read(void *arg, const struct ledger_messages_outcome *outcome)
{
    struct stored_texts *stored = arg;
    assert_int_equal(outcome->status, LEDGER_OK);
    stored->has_more = outcome->has_more;
    for (size_t i = 0; i < outcome->count; i++) {
        assert_int_equal(outcome->messages[i].sequence, ++stored->count);
        buffer_printf(&stored->texts, " %.*s ", SLICE_FORMAT(outcome->messages[i].body));
    }
}

static void read_texts(struct fixture *fixture, struct stored_texts *stored)
{
    do {
        ledger_messages_after(&fixture->harness.client, SLICE("c"), SLICE_NONE, stored->count, 0,
                              on_texts_read, stored);
        harness_settle(&fixture->harness);
    } while (stored->has_more);
    buffer_append_byte(&stored->texts, '\0');
}

static unsigned count_text(const struct stored_texts *stored, const char *text)
{
    char padded[32];
    unsigned count = 0;
    snprintf(padded, sizeof(padded), " %s ", text);
    for (const char *at = stored->texts.data; (at = strstr(at, padded)); at++)
        count++;
    return count;
}

/* Every acknowledged text is stored, and none twice; the sequences are dense and the counter agrees. */
static unsigned check_stored_texts(struct fixture *fixture, int acknowledged)
{
    struct stored_texts stored = {0};
    char text[sizeof(((struct sent_text *)0)->text)], repair[64];
    unsigned count = 0;
    read_texts(fixture, &stored);
    for (; read(acknowledged, text, sizeof(text)) == sizeof(text); count++)
        assert_int_equal(count_text(&stored, text), 1);
    for (int process = 0; process < PROCESSES; process++)
        for (int i = 0; i < PROCESS_MESSAGES; i++) {
            snprintf(text, sizeof(text), "%c-%d", 'a' + process, i);
            assert_true(count_text(&stored, text) <= 1);
        }
    snprintf(repair, sizeof(repair), "ok %llu/%llu", (unsigned long long)stored.count,
             (unsigned long long)stored.count);
    expect(harness_repair(&fixture->harness, "c", false), repair);
    assert_true(stored.count >= count);
    buffer_free(&stored.texts);
    return count;
}

static void test_processes_that_share_a_chat_store_dense_sequences(void **state)
{
    struct fixture *fixture = *state;
    static const char *const NAMES[PROCESSES] = {"a", "b", "c"};
    pid_t children[PROCESSES];
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    for (int i = 0; i < PROCESSES; i++)
        children[i] = start_sender(fixture, NAMES[i], ends);
    close(ends[1]);
    for (int i = 0; i < PROCESSES; i++) {
        waitpid(children[i], &status, 0);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    assert_int_equal(check_stored_texts(fixture, ends[0]), PROCESSES * PROCESS_MESSAGES);
    close(ends[0]);
}

/* One of two is killed amid its sends, several times; the other notices nothing. */
static void test_killed_process_leaves_dense_sequences(void **state)
{
    struct fixture *fixture = *state;
    int of_killed[2], of_other[2], status;
    char text[sizeof(((struct sent_text *)0)->text)];
    assert_int_equal(pipe(of_killed), 0);
    assert_int_equal(pipe(of_other), 0);
    pid_t other = start_sender(fixture, "a", of_other);
    pid_t killed = start_sender(fixture, "b", of_killed);
    close(of_killed[1]);
    close(of_other[1]);
    for (int i = 0; i < KILL_AFTER; i++)
        assert_int_equal(read(of_killed[0], text, sizeof(text)), sizeof(text));
    kill(killed, SIGKILL);
    waitpid(killed, &status, 0);
    assert_true(WIFSIGNALED(status));
    waitpid(other, &status, 0);
    assert_int_equal(WEXITSTATUS(status), 0);
    check_stored_texts(fixture, of_killed[0]);
    assert_int_equal(check_stored_texts(fixture, of_other[0]), PROCESS_MESSAGES);
    close(of_killed[0]);
    close(of_other[0]);
}

#define APPENDS_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        APPENDS_TEST(test_missing_counter_halts_the_chat),
        APPENDS_TEST(test_counter_behind_its_messages_halts_the_chat),
        APPENDS_TEST(test_counter_ahead_of_its_messages_halts_the_chat),
        APPENDS_TEST(test_message_that_is_not_utf8_is_refused_alone),
        APPENDS_TEST(test_messages_of_a_chat_share_transactions),
        APPENDS_TEST(test_repeated_messages_do_not_disturb_the_others),
        APPENDS_TEST(test_changes_by_other_ledgers_are_noticed),
        APPENDS_TEST(test_processes_that_share_a_chat_store_dense_sequences),
        APPENDS_TEST(test_killed_process_leaves_dense_sequences),
    };
    if (!dynamodb_test_server_init())
        return 1;
    if (getenv("ROLLCALL_TEST"))
        cmocka_set_test_filter(getenv("ROLLCALL_TEST"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
