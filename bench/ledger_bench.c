/*
 * Measures the cost of a durable acknowledgement: messages acknowledged per second through the ledger port,
 * with 1, 16, 256 and 2,000 senders that each wait for their answer before they send again, compared with
 * plain SQLite, which inserts the same rows (message, counter, outbox) in transactions of 256, in the same run and
 * on the same disk.
 *
 *   ledger_bench DIRECTORY [SECONDS_PER_STEP [MESSAGES_BEFORE]]
 *
 * MESSAGES_BEFORE fills the chat first, to show that a long chat is as fast as a short one; the first step then
 * measures the time to read a page at its start, middle and end. Prints one line of JSON per step.
 */
#include "base/random.h"
#include "base/ulid.h"
#include "ledger/ledger_messages.h"
#include "ledger/ledger_request_inbox.h"
#include "ledger/sqlite/sqlite_ledger.h"

#include "cost.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SENDERS_MAX = 2000,
    PLAIN_BATCH = 256,
    BODY_BYTES = 100,
    SAMPLES_MAX = 1 << 20,
    PAGE_MESSAGES = 100,
    PAGES = 300
};

static const char BODY[BODY_BYTES + 1] =
    "The quick brown fox jumps over the lazy dog, and the lazy dog lets it: it has seen better jumps ..";

struct bench {
    struct loop loop;
    struct ledger_request_inbox inbox;
    struct ledger_client client;
    struct random random;
    int64_t until_us;
    unsigned long sent;
    unsigned long acknowledged;
    unsigned long failed;
    unsigned in_flight;
    int64_t *samples;
    size_t sample_count;
};

/* Messages per second, and the processor time of all threads per message. */
struct rate {
    double per_second;
    double cpu_us;
};

struct stopwatch {
    uint64_t started_ns;
    uint64_t started_cpu_ns;
};

struct sender {
    struct bench *bench;
    unsigned number;
    int64_t started_us;
};

static void die(const char *what)
{
    fprintf(stderr, "ledger_bench: %s\n", what);
    exit(1);
}

static struct stopwatch start_stopwatch(void)
{
    return (struct stopwatch){cost_now_ns(), cost_cpu_ns(getpid())};
}

static struct rate stop_stopwatch(const struct stopwatch *watch, unsigned long messages)
{
    double elapsed_s = (double)(cost_now_ns() - watch->started_ns) / 1e9;
    double cpu_us = (double)(cost_cpu_ns(getpid()) - watch->started_cpu_ns) / 1e3;
    return (struct rate){(double)messages / elapsed_s, messages ? cpu_us / (double)messages : 0};
}

static void send_next(struct sender *sender);

static void on_message_appended(void *arg, const struct ledger_append_outcome *outcome)
{
    struct sender *sender = arg;
    struct bench *bench = sender->bench;
    bench->in_flight--;
    if (outcome->status != LEDGER_OK)
        bench->failed++;
    else
        bench->acknowledged++;
    if (bench->sample_count < SAMPLES_MAX)
        bench->samples[bench->sample_count++] = clock_microseconds() - sender->started_us;
    if (clock_microseconds() < bench->until_us)
        send_next(sender);
}

static void send_next(struct sender *sender)
{
    struct bench *bench = sender->bench;
    struct ulid ulid = ulid_make(bench->loop.clock.wall_ms, &bench->random);
    char id[ULID_TEXT_LEN];
    char client_id[32];
    ulid_write(id, &ulid);
    int len = snprintf(client_id, sizeof(client_id), "m-%lu", bench->sent++);
    sender->started_us = clock_microseconds();
    bench->in_flight++;
    ledger_message_append(&bench->client, SLICE("bench"), SLICE("alice"),
                          (struct slice){client_id, (size_t)len}, (struct slice){id, sizeof(id)},
                          (struct slice){BODY, BODY_BYTES}, on_message_appended, sender);
}

static int compare_samples(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a;
    int64_t right = *(const int64_t *)b;
    return left < right ? -1 : left > right;
}

static double percentile_ms(struct bench *bench, unsigned percent)
{
    if (bench->sample_count == 0)
        return 0;
    qsort(bench->samples, bench->sample_count, sizeof(*bench->samples), compare_samples);
    size_t index = (bench->sample_count - 1) * percent / 100;
    return (double)bench->samples[index] / 1000;
}

static struct rate measure_ledger(struct bench *bench, unsigned senders, double seconds)
{
    static struct sender all[SENDERS_MAX];
    struct stopwatch watch = start_stopwatch();
    bench->until_us = clock_microseconds() + (int64_t)(seconds * 1e6);
    bench->acknowledged = bench->failed = 0;
    bench->sample_count = 0;
    for (unsigned i = 0; i < senders; i++) {
        all[i] = (struct sender){.bench = bench, .number = i};
        send_next(&all[i]);
    }
    while (bench->in_flight)
        loop_turn(&bench->loop, 1000);
    return stop_stopwatch(&watch, bench->acknowledged);
}

static void on_chat_created(void *arg, const struct ledger_chat_outcome *outcome)
{
    if (outcome->status != LEDGER_OK)
        die("cannot make the chat");
    *(bool *)arg = true;
}

static void make_chat(struct bench *bench)
{
    bool made = false;
    struct slice member = SLICE("bob");
    ledger_chat_create(&bench->client, SLICE("bench"), SLICE("alice"), &member, 1, true,
                       on_chat_created, &made);
    while (!made)
        loop_turn(&bench->loop, 1000);
}

/* ---- the same rows in plain SQLite ---- */

static void run_sql(sqlite3 *database, const char *sql)
{
    if (sqlite3_exec(database, sql, NULL, NULL, NULL) != SQLITE_OK)
        die(sqlite3_errmsg(database));
}

static void run_statement(sqlite3 *database, sqlite3_stmt *statement)
{
    if (sqlite3_step(statement) != SQLITE_DONE)
        die(sqlite3_errmsg(database));
    sqlite3_reset(statement);
}

static sqlite3_stmt *prepare_statement(sqlite3 *database, const char *sql)
{
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) != SQLITE_OK)
        die(sqlite3_errmsg(database));
    return statement;
}

struct plain {
    sqlite3 *database;
    sqlite3_stmt *message;
    sqlite3_stmt *counter;
    sqlite3_stmt *outbox;
    struct random random;
    int64_t sequence;
};

static void insert_plain(struct plain *plain)
{
    char id[ULID_TEXT_LEN];
    char client_id[32];
    struct ulid ulid = ulid_make(1, &plain->random);
    ulid_write(id, &ulid);
    snprintf(client_id, sizeof(client_id), "m-%lld", (long long)++plain->sequence);
    sqlite3_bind_int64(plain->message, 1, plain->sequence);
    sqlite3_bind_text(plain->message, 2, id, sizeof(id), SQLITE_STATIC);
    sqlite3_bind_text(plain->message, 3, client_id, -1, SQLITE_STATIC);
    sqlite3_bind_text(plain->message, 4, BODY, BODY_BYTES, SQLITE_STATIC);
    run_statement(plain->database, plain->message);
    sqlite3_bind_int64(plain->counter, 1, plain->sequence);
    run_statement(plain->database, plain->counter);
    sqlite3_bind_int64(plain->outbox, 1, plain->sequence);
    run_statement(plain->database, plain->outbox);
}

static struct rate measure_plain(const char *path, double seconds)
{
    struct plain plain = {0};
    random_init_seeded(&plain.random, 1);
    if (sqlite3_open(path, &plain.database) != SQLITE_OK)
        die("cannot open the plain file");
    run_sql(
        plain.database,
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; UPDATE chat_counters SET sequence = 0;");
    plain.message = prepare_statement(
        plain.database, "INSERT INTO messages (chat_id, sequence, message_id, sender, "
                        "client_message_id, body, sent_at_ms) VALUES "
                        "('bench', ?1, ?2, 'alice', ?3, ?4, 1794775261030)");
    plain.counter = prepare_statement(
        plain.database, "UPDATE chat_counters SET sequence = ?1 WHERE chat_id = 'bench'");
    plain.outbox = prepare_statement(plain.database,
                                     "INSERT INTO outbox (chat_id, sequence) VALUES ('bench', ?1)");
    struct stopwatch watch = start_stopwatch();
    int64_t until_us = clock_microseconds() + (int64_t)(seconds * 1e6);
    while (clock_microseconds() < until_us) {
        run_sql(plain.database, "BEGIN IMMEDIATE");
        for (int i = 0; i < PLAIN_BATCH; i++)
            insert_plain(&plain);
        run_sql(plain.database, "COMMIT");
    }
    struct rate rate = stop_stopwatch(&watch, (unsigned long)plain.sequence);
    sqlite3_finalize(plain.message);
    sqlite3_finalize(plain.counter);
    sqlite3_finalize(plain.outbox);
    sqlite3_close(plain.database);
    return rate;
}

/* ---- opening and closing ---- */

static void on_requests_finished(void *arg, struct ledger_request *chain)
{
    (void)arg;
    ledger_complete(chain);
}

static void open_bench(struct bench *bench, struct ledger **ledger, const char *path)
{
    struct sqlite_ledger_error error;
    *ledger = sqlite_ledger_open(path, NULL, &error);
    if (!*ledger)
        die(error.text);
    if (!loop_init(&bench->loop) ||
        !ledger_request_inbox_init(&bench->inbox, &bench->loop, on_requests_finished, NULL))
        die("cannot create a loop");
    random_init_system(&bench->random);
    ledger_client_init(&bench->client, *ledger, &bench->loop.clock, ledger_request_inbox_post,
                       &bench->inbox);
    make_chat(bench);
}

static void close_bench(struct bench *bench, struct ledger **ledger)
{
    ledger_close(ledger);
    ledger_request_inbox_free(&bench->inbox);
    loop_free(&bench->loop);
}

/* Makes a new file with the schema and the chat, for plain SQLite. */
static void make_plain_file(const char *path)
{
    static struct bench bench;
    struct ledger *ledger;
    open_bench(&bench, &ledger, path);
    close_bench(&bench, &ledger);
}

/* Inserts messages into the chat in one transaction of plain SQLite. */
static void fill_chat(const char *path, unsigned long messages)
{
    char sql[1024];
    sqlite3 *database;
    if (!messages)
        return;
    make_plain_file(path);
    if (sqlite3_open(path, &database) != SQLITE_OK)
        die("cannot open the file to fill");
    snprintf(
        sql, sizeof(sql),
        "BEGIN; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %lu) "
        "INSERT INTO messages (chat_id, sequence, message_id, sender, client_message_id, body, "
        "sent_at_ms) SELECT 'bench', i, hex(randomblob(13)), 'alice', 'before-' || i, '%s', "
        "1794775261030 + i FROM n; "
        "UPDATE chat_counters SET sequence = %lu WHERE chat_id = 'bench'; COMMIT;",
        messages, BODY, messages);
    run_sql(database, sql);
    sqlite3_close(database);
}

/* ---- pages ---- */

static void on_page_read(void *arg, const struct ledger_messages_outcome *outcome)
{
    if (outcome->status != LEDGER_OK || outcome->count != PAGE_MESSAGES)
        die("a page is incomplete");
    *(bool *)arg = true;
}

/* Returns the median time to read a page while nothing else happens. */
static double measure_page_us(struct bench *bench, uint64_t after)
{
    bench->sample_count = 0;
    for (int i = 0; i < PAGES; i++) {
        bool read = false;
        int64_t started_us = clock_microseconds();
        ledger_messages_after(&bench->client, SLICE("bench"), SLICE("bob"), after, PAGE_MESSAGES,
                              on_page_read, &read);
        while (!read)
            loop_turn(&bench->loop, 1000);
        bench->samples[bench->sample_count++] = clock_microseconds() - started_us;
    }
    return percentile_ms(bench, 50) * 1000;
}

static void measure_pages(struct bench *bench, unsigned long messages)
{
    if (messages < PAGE_MESSAGES)
        return;
    printf("{\"messages\":%lu,\"first_page_us\":%.0f,\"middle_page_us\":%.0f,"
           "\"last_page_us\":%.0f}\n",
           messages, measure_page_us(bench, 0),
           measure_page_us(bench, (messages - PAGE_MESSAGES) / 2),
           measure_page_us(bench, messages - PAGE_MESSAGES));
    fflush(stdout);
}

/* ---- steps ---- */

static struct rate measure_fresh_plain(const char *path, double seconds)
{
    remove(path);
    make_plain_file(path);
    return measure_plain(path, seconds);
}

/* Measures plain SQLite before and after, because machines drift. */
static void measure_step(struct bench *bench, const char *plain_path, unsigned senders,
                         double seconds)
{
    struct rate before = measure_fresh_plain(plain_path, seconds / 2);
    struct rate rate = measure_ledger(bench, senders, seconds);
    struct rate after = measure_fresh_plain(plain_path, seconds / 2);
    double plain = (before.per_second + after.per_second) / 2;
    printf("{\"senders\":%u,\"acknowledged_per_second\":%.0f,\"plain_per_second\":%.0f,"
           "\"ratio\":%.2f,\"p99_ms\":%.2f,\"failed\":%lu,\"cpu_us\":%.2f,\"plain_cpu_us\":%.2f}\n",
           senders, rate.per_second, plain, rate.per_second / plain, percentile_ms(bench, 99),
           bench->failed, rate.cpu_us, (before.cpu_us + after.cpu_us) / 2);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const unsigned STEPS[] = {1, 16, 256, 2000};
    static struct bench bench;
    struct ledger *ledger;
    char path[4096];
    char plain_path[4096];
    if (argc < 2)
        die("usage: ledger_bench DIRECTORY [SECONDS_PER_STEP [MESSAGES_BEFORE]]");
    double seconds = argc > 2 ? strtod(argv[2], NULL) : 3;
    unsigned long messages = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;
    snprintf(path, sizeof(path), "%s/ledger.db", argv[1]);
    snprintf(plain_path, sizeof(plain_path), "%s/plain.db", argv[1]);
    bench.samples = malloc(SAMPLES_MAX * sizeof(*bench.samples));
    if (!bench.samples)
        die("out of memory");
    fill_chat(path, messages);
    open_bench(&bench, &ledger, path);
    measure_pages(&bench, messages);
    for (size_t i = 0; i < sizeof(STEPS) / sizeof(STEPS[0]); i++)
        measure_step(&bench, plain_path, STEPS[i], seconds);
    close_bench(&bench, &ledger);
    free(bench.samples);
    return 0;
}
