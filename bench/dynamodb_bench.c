/*
 * Measures messages on DynamoDB, all in one run against one server:
 *
 *   bare      one transaction after the other, without the ledger: the counter, the message, the record of its
 *             client_message_id and the condition that the chat exists
 *   single    one sender, who waits for each answer before the next message: no two messages share a transaction
 *   gathered  256 senders in the same chat, who do the same
 *
 *   dynamodb_bench http://127.0.0.1:PORT [ROUNDS [bare]]
 *
 * The steps take turns, a second each, in every round, so that whatever else the machine does touches them all. Prints one line
 * of JSON per step, then the ratios and the resident memory that the client has added; with `bare` it runs that step alone.
 * `bench/dynamodb` starts a DynamoDB Local and runs it.
 */
#include "base/random.h"
#include "base/ulid.h"
#include "ledger/dynamodb/dynamodb_admin.h"
#include "ledger/dynamodb/dynamodb_ledger.h"
#include "ledger/ledger_messages.h"
#include "ledger/ledger_request_inbox.h"

#include "cost.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    ROUNDS = 10,
    WARM_UP_ROUNDS = 3,
    TURN_US = 1000000,
    SENDERS_MAX = 256,
    BODY_BYTES = 100,
    SAMPLES_MAX = 1 << 17,
    TEXT_MAX = 4096
};

static const char BODY[BODY_BYTES + 1] =
    "The quick brown fox jumps over the lazy dog, and the lazy dog lets it: it has seen better jumps ..";

static const char LOOPBACK[] = "http://127.0.0.1:";

static const struct config_dynamodb SETTINGS = {.retry = {3, 100, 5000},
                                                .transaction_conflict = {5, 50}};

struct step {
    const char *name;
    unsigned senders; /* 0: without the ledger */
    bool skips_outbox;
    int64_t taken_us;
    int64_t samples[SAMPLES_MAX]; /* microseconds from the send to its answer */
    size_t sample_count;
};

struct bench {
    struct loop loop;
    struct ledger *ledger;
    struct ledger_request_inbox inbox;
    struct ledger_client client;
    struct random random;
    struct step *step; /* whose turn it is */
    unsigned step_count;
    int64_t until_us;
    unsigned long sent;
    unsigned in_flight;
};

struct sender {
    struct bench *bench;
    int64_t started_us;
};

static void die(const char *what)
{
    fprintf(stderr, "dynamodb_bench: %s\n", what);
    exit(1);
}

/* ---- samples ---- */

static void add_sample(struct step *step, int64_t started_us)
{
    if (step->sample_count < SAMPLES_MAX)
        step->samples[step->sample_count++] = clock_microseconds() - started_us;
}

static int compare_samples(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return left < right ? -1 : left > right;
}

static double percentile_ms(const struct step *step, size_t percent)
{
    size_t index = (step->sample_count - 1) * percent / 100;
    return (double)step->samples[index] / 1000;
}

static double rate_of(const struct step *step)
{
    return (double)step->sample_count * 1e6 / (double)step->taken_us;
}

static void print_step(struct step *step)
{
    if (step->sample_count == 0 || step->sample_count == SAMPLES_MAX)
        die("too few or too many were measured");
    qsort(step->samples, step->sample_count, sizeof(*step->samples), compare_samples);
    printf("{\"step\":\"%s\",\"per_second\":%.0f,\"p50_ms\":%.2f,\"p99_ms\":%.2f}\n", step->name,
           rate_of(step), percentile_ms(step, 50), percentile_ms(step, 99));
}

/* ---- through the ledger ---- */

static void send_next(struct sender *sender);

static void on_message_stored(void *arg, const struct ledger_append_outcome *outcome)
{
    struct sender *sender = arg;
    struct bench *bench = sender->bench;
    bench->in_flight--;
    if (outcome->status != LEDGER_OK)
        die(ledger_status_name(outcome->status));
    add_sample(bench->step, sender->started_us);
    if (clock_microseconds() < bench->until_us)
        send_next(sender);
}

static void send_next(struct sender *sender)
{
    struct bench *bench = sender->bench;
    struct ulid ulid = ulid_make(bench->loop.clock.wall_ms, &bench->random);
    char id[ULID_TEXT_LEN];
    ulid_write(id, &ulid);
    sender->started_us = clock_microseconds();
    bench->sent++;
    bench->in_flight++;
    ledger_message_append(&bench->client, SLICE("bench"),
                          bench->sent % 2 ? SLICE("alice") : SLICE("bob"),
                          (struct slice){id, sizeof(id)}, (struct slice){id, sizeof(id)},
                          (struct slice){BODY, BODY_BYTES}, on_message_stored, sender);
}

static void take_ledger_turn(struct bench *bench)
{
    static struct sender all[SENDERS_MAX];
    bench->client.skips_outbox = bench->step->skips_outbox;
    for (unsigned i = 0; i < bench->step->senders; i++) {
        all[i] = (struct sender){.bench = bench};
        send_next(&all[i]);
    }
    while (bench->in_flight)
        loop_turn(&bench->loop, 1000);
}

static void on_chat_created(void *arg, const struct ledger_chat_outcome *outcome)
{
    if (outcome->status != LEDGER_OK)
        die("cannot make the chat");
    *(bool *)arg = true;
}

static void make_chat(struct bench *bench, const char *chat)
{
    bool made = false;
    struct slice member = SLICE("bob");
    ledger_chat_create(&bench->client, slice_of(chat), SLICE("alice"), &member, 1, true,
                       on_chat_created, &made);
    while (!made)
        loop_turn(&bench->loop, 1000);
}

/* ---- without the ledger ---- */

static int connect_loopback(unsigned port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
        die("cannot connect");
    return fd;
}

/* The body of a transaction that stores message number `sequence` of the chat "bare". */
static int write_bare_transaction(char *out, const char *prefix, unsigned long sequence)
{
    return snprintf(
        out, TEXT_MAX,
        "{\"ClientRequestToken\":\"%s%lu\",\"TransactItems\":["
        "{\"Update\":{\"TableName\":\"%schat_counters\",\"Key\":{\"chat_id\":{\"S\":\"bare\"}},"
        "\"UpdateExpression\":\"SET sequence_counter = :n, activity_ms = :n\","
        "\"ConditionExpression\":\"sequence_counter = :o\",\"ExpressionAttributeValues\":"
        "{\":n\":{\"N\":\"%lu\"},\":o\":{\"N\":\"%lu\"}}}},"
        "{\"ConditionCheck\":{\"TableName\":\"%schats\",\"Key\":{\"chat_id\":{\"S\":\"bare\"},"
        "\"part_key\":{\"S\":\"chat\"}},\"ConditionExpression\":\"attribute_exists(chat_id)\"}},"
        "{\"Put\":{\"TableName\":\"%smessages\",\"Item\":{\"chat_id\":{\"S\":\"bare\"},"
        "\"sequence\":{\"N\":\"%lu\"},\"body_text\":{\"S\":\"%s\"},\"sender_id\":{\"S\":\"alice\"}},"
        "\"ConditionExpression\":\"attribute_not_exists(chat_id)\"}},"
        "{\"Put\":{\"TableName\":\"%ssends\",\"Item\":{\"sender_key\":{\"S\":\"4:bare:alice\"},"
        "\"client_message_id\":{\"S\":\"%lu\"},\"sequence_number\":{\"N\":\"%lu\"}},"
        "\"ConditionExpression\":\"attribute_not_exists(sender_key)\"}}]}",
        prefix, sequence, prefix, sequence, sequence - 1, prefix, prefix, sequence, BODY, prefix,
        sequence, sequence);
}

/* Sends a transaction over a connection that stays open and waits for its answer, which is short. */
static void run_bare_transaction(int fd, const char *body, int body_len)
{
    char request[2 * TEXT_MAX], answer[TEXT_MAX];
    int len =
        snprintf(request, sizeof(request),
                 "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n"
                 "X-Amz-Target: DynamoDB_20120810.TransactWriteItems\r\n"
                 "Content-Type: application/x-amz-json-1.0\r\nAuthorization: AWS4-HMAC-SHA256 "
                 "Credential=bench/20260101/local/dynamodb/aws4_request, SignedHeaders=host, "
                 "Signature=00\r\n\r\n%.*s",
                 body_len, body_len, body);
    size_t got = 0;
    if (write(fd, request, (size_t)len) != len)
        die("cannot write");
    do {
        ssize_t n = read(fd, answer + got, sizeof(answer) - 1 - got);
        if (n <= 0)
            die("the server closed the connection");
        got += (size_t)n;
        answer[got] = '\0';
    } while (!strstr(answer, "\r\n\r\n{}"));
    if (strncmp(answer, "HTTP/1.1 200", 12) != 0)
        die(answer);
}

static void take_bare_turn(struct bench *bench, unsigned port, const char *prefix)
{
    static unsigned long sequence;
    char body[TEXT_MAX];
    int fd = connect_loopback(port);
    while (clock_microseconds() < bench->until_us) {
        int64_t sent_us = clock_microseconds();
        run_bare_transaction(fd, body, write_bare_transaction(body, prefix, ++sequence));
        add_sample(bench->step, sent_us);
    }
    close(fd);
}

/* ---- the run ---- */

static void on_requests_finished(void *arg, struct ledger_request *chain)
{
    (void)arg;
    ledger_complete(chain);
}

static void open_bench(struct bench *bench, const char *url)
{
    char error[DYNAMODB_LEDGER_ERROR_TEXT_MAX];
    bench->ledger = dynamodb_ledger_open(url, &SETTINGS, error);
    if (!bench->ledger)
        die(error);
    ledger_client_init(&bench->client, bench->ledger, &bench->loop.clock, ledger_request_inbox_post,
                       &bench->inbox);
}

enum { BARE, SINGLE, SKIPPING, GATHERED, STEPS };

static struct step steps[STEPS] = {
    [BARE] = {.name = "bare"},
    [SINGLE] = {.name = "single", .senders = 1},
    [SKIPPING] = {.name = "single without the outbox", .senders = 1, .skips_outbox = true},
    [GATHERED] = {.name = "gathered", .senders = SENDERS_MAX},
};

static void run_round(struct bench *bench, unsigned port, const char *prefix)
{
    for (unsigned i = 0; i < bench->step_count; i++) {
        int64_t started_us = clock_microseconds();
        bench->step = &steps[i];
        bench->until_us = started_us + TURN_US;
        if (steps[i].senders)
            take_ledger_turn(bench);
        else
            take_bare_turn(bench, port, prefix);
        steps[i].taken_us += clock_microseconds() - started_us;
    }
}

static void forget_rounds(void)
{
    for (unsigned i = 0; i < STEPS; i++) {
        steps[i].sample_count = 0;
        steps[i].taken_us = 0;
    }
}

static void print_results(const struct bench *bench, uint64_t added_bytes)
{
    for (unsigned i = 0; i < bench->step_count; i++)
        print_step(&steps[i]);
    if (bench->step_count < STEPS)
        return;
    double bare_ms = percentile_ms(&steps[BARE], 50);
    printf("{\"gathered_over_single\":%.1f,\"single_p50_over_bare_p50\":%.2f,"
           "\"single_without_outbox_p50_over_bare_p50\":%.2f,\"added_resident_mb\":%.1f}\n",
           rate_of(&steps[GATHERED]) / rate_of(&steps[SINGLE]),
           percentile_ms(&steps[SINGLE], 50) / bare_ms,
           percentile_ms(&steps[SKIPPING], 50) / bare_ms, (double)added_bytes / (1 << 20));
}

static void make_tables(const char *url)
{
    char error[DYNAMODB_ADMIN_ERROR_MAX];
    if (!dynamodb_admin_create_tables(url, error))
        die(error);
}

int main(int argc, char **argv)
{
    static struct bench bench;
    char url[TEXT_MAX], prefix[64];
    if (argc < 2 || strncmp(argv[1], LOOPBACK, strlen(LOOPBACK)) != 0)
        die("usage: dynamodb_bench http://127.0.0.1:PORT [ROUNDS [bare]]");
    unsigned port = (unsigned)strtoul(argv[1] + strlen(LOOPBACK), NULL, 10);
    unsigned long rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : ROUNDS;
    bench.step_count = argc > 3 && strcmp(argv[3], "bare") == 0 ? BARE + 1 : STEPS;
    setenv("AWS_ACCESS_KEY_ID", "bench", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "bench", 1);
    snprintf(prefix, sizeof(prefix), "bench%d-", (int)getpid());
    snprintf(url, sizeof(url), "dynamodb://local?endpoint=%s&prefix=%s", argv[1], prefix);
    random_init_system(&bench.random);
    if (!loop_init(&bench.loop) ||
        !ledger_request_inbox_init(&bench.inbox, &bench.loop, on_requests_finished, NULL))
        die("cannot create a loop");
    for (unsigned i = 0; i < STEPS; i++) /* resident before the client is */
        memset(steps[i].samples, 1, sizeof(steps[i].samples));
    uint64_t before_bytes = cost_resident_bytes(getpid());
    make_tables(url);
    open_bench(&bench, url);
    make_chat(&bench, "bench");
    make_chat(&bench, "bare");
    for (unsigned round = 0; round < WARM_UP_ROUNDS; round++)
        run_round(&bench, port, prefix);
    forget_rounds();
    for (unsigned long round = 0; round < rounds; round++)
        run_round(&bench, port, prefix);
    print_results(&bench, cost_resident_bytes(getpid()) - before_bytes);
    ledger_close(&bench.ledger);
    ledger_request_inbox_free(&bench.inbox);
    loop_free(&bench.loop);
    return 0;
}
