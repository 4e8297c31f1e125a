/*
 * Measures what webhooks cost:
 *
 *     bench/webhooks [events]
 *
 * The ledger, on SQLite in a scratch folder, is filled with events of messages. Then the sender of a gateway posts them to an endpoint,
 * a process of its own, in signed batches of 100, and removes them. Times are processor times of this process: the sender's loop, libcurl and the
 * ledger's threads; those of the endpoint are left out. Prints events per second of one core.
 */
#include "ledger/ledger_request_inbox.h"
#include "ledger/sqlite/sqlite_ledger.h"
#include "log/log.h"
#include "webhooks/webhook_sender.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS = 100000, BODY_BYTES = 200, IN_FLIGHT_MAX = 1000 };

struct bench {
    struct loop loop;
    struct random random;
    struct metrics metrics;
    struct ledger *ledger;
    struct ledger_request_inbox inbox;
    struct ledger_client client;
    struct webhook_endpoints endpoints;
    struct config config;
    size_t pending;
    size_t stored;
};

static void fail(const char *what)
{
    fprintf(stderr, "bench/webhooks: %s\n", what);
    exit(1);
}

static double processor_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- the endpoint ---- */

/* Reads one request and answers it. Returns false at the end. */
static bool answer_one_request(int fd, char *bytes, size_t bytes_max, size_t *len)
{
    static const char ANSWER[] = "HTTP/1.1 204 No Content\r\n\r\n";
    for (;;) {
        char *end = memmem(bytes, *len, "\r\n\r\n", 4);
        char *length = end ? strcasestr(bytes, "Content-Length:") : NULL;
        size_t whole = length ? (size_t)(end + 4 - bytes) + strtoul(length + 15, NULL, 10) : 0;
        if (whole && *len >= whole) {
            memmove(bytes, bytes + whole, *len - whole);
            *len -= whole;
            return write(fd, ANSWER, sizeof(ANSWER) - 1) > 0;
        }
        ssize_t got = read(fd, bytes + *len, bytes_max - *len - 1);
        if (got <= 0)
            return false;
        *len += (size_t)got;
        bytes[*len] = '\0';
    }
}

static void run_endpoint(int listener)
{
    enum { BYTES_MAX = 4 << 20 };
    char *bytes = malloc(BYTES_MAX);
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        size_t len = 0;
        while (fd >= 0 && answer_one_request(fd, bytes, BYTES_MAX, &len))
            ;
        close(fd);
    }
}

static pid_t start_endpoint(uint16_t *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, len) != 0 || listen(listener, 8) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &len) != 0)
        fail("cannot listen");
    *port = ntohs(address.sin_port);
    pid_t pid = fork();
    if (pid == 0)
        run_endpoint(listener);
    close(listener);
    return pid;
}

/* ---- filling ---- */

static void on_chat_made(void *arg, const struct ledger_chat_outcome *outcome)
{
    ((struct bench *)arg)->pending--;
    if (outcome->status != LEDGER_OK)
        fail("cannot make a chat");
}

static void on_message_stored(void *arg, const struct ledger_append_outcome *outcome)
{
    struct bench *bench = arg;
    bench->pending--;
    bench->stored += outcome->status == LEDGER_OK;
}

static void fill_ledger(struct bench *bench, size_t events)
{
    static char body[BODY_BYTES];
    const struct slice bob = SLICE("bob");
    memset(body, 'x', sizeof(body));
    bench->pending++;
    ledger_chat_create(&bench->client, SLICE("c"), SLICE("alice"), &bob, 1, true, on_chat_made,
                       bench);
    while (bench->pending)
        loop_turn(&bench->loop, 10);
    for (size_t i = 0; i < events; i++) {
        char id[32];
        int len = snprintf(id, sizeof(id), "message-%zu", i);
        struct slice name = {id, (size_t)len};
        bench->pending++;
        ledger_message_append(&bench->client, SLICE("c"), SLICE("alice"), name, name,
                              (struct slice){body, sizeof(body)}, on_message_stored, bench);
        while (bench->pending >= IN_FLIGHT_MAX)
            loop_turn(&bench->loop, 10);
    }
    while (bench->pending)
        loop_turn(&bench->loop, 10);
    if (bench->stored != events)
        fail("cannot fill the ledger");
}

/* ---- sending ---- */

static void on_requests_done(void *arg, struct ledger_request *chain)
{
    (void)arg;
    ledger_complete(chain);
}

static int64_t events_sent(struct bench *bench)
{
    return atomic_load(&bench->metrics.values[METRIC_WEBHOOKS_SENT]);
}

static void measure_sender(struct bench *bench, size_t events)
{
    struct webhook_sender *sender =
        webhook_sender_make(&(struct webhook_sender_parts){.config = &bench->config,
                                                           .endpoints = &bench->endpoints,
                                                           .loop = &bench->loop,
                                                           .random = &bench->random,
                                                           .metrics = &bench->metrics,
                                                           .ledger = &bench->client,
                                                           .holder = SLICE("bench"),
                                                           .holds_queues = true});
    struct timespec before, after;
    double started = processor_seconds();
    clock_gettime(CLOCK_MONOTONIC, &before);
    webhook_sender_start(sender);
    while (events_sent(bench) < (int64_t)events)
        loop_turn(&bench->loop, 10);
    double used = processor_seconds() - started;
    clock_gettime(CLOCK_MONOTONIC, &after);
    double passed =
        (double)(after.tv_sec - before.tv_sec) + (double)(after.tv_nsec - before.tv_nsec) / 1e9;
    printf("%zu events: %.0f per second of a core (%.1f us each), %.0f per second that passed\n",
           events, (double)events / used, used / (double)events * 1e6, (double)events / passed);
    webhook_sender_stop(sender);
    ledger_client_close(&bench->client);
    ledger_close(&bench->ledger);
    ledger_request_inbox_drain(&bench->inbox);
    webhook_sender_free(&sender);
}

int main(int argc, char **argv)
{
    static struct bench bench;
    size_t events = argc > 1 ? strtoul(argv[1], NULL, 10) : EVENTS;
    char folder[] = "/tmp/rollcall-webhooks-XXXXXX", path[64], error[WEBHOOK_ERROR_TEXT_MAX];
    struct sqlite_ledger_error wrong;
    uint16_t port;
    pid_t endpoint = start_endpoint(&port);
    char url[64];
    log_init(LOG_LEVEL_ERROR, false);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/ types=message.created", port);
    bench.config.webhooks = (struct config_webhooks){.url = url,
                                                     .secret_file = "",
                                                     .ca_file = "",
                                                     .batch_max = 100,
                                                     .batch_ms = 200,
                                                     .give_up_ms = 86400000,
                                                     .timeout_ms = 10000,
                                                     .backlog_max = 10000000};
    if (!mkdtemp(folder) || !loop_init(&bench.loop) ||
        !webhook_endpoints_init(&bench.endpoints, &bench.config, error) ||
        webhook_secret_parse(&bench.endpoints.items[0].secret,
                             SLICE("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")))
        fail("cannot start");
    snprintf(path, sizeof(path), "%s/ledger.db", folder);
    random_init_system(&bench.random);
    bench.ledger = sqlite_ledger_open(path, NULL, &wrong);
    if (!bench.ledger ||
        !ledger_request_inbox_init(&bench.inbox, &bench.loop, on_requests_done, NULL))
        fail("cannot open the ledger");
    ledger_client_init(&bench.client, bench.ledger, &bench.loop.clock, ledger_request_inbox_post,
                       &bench.inbox);
    bench.client.skips_outbox = true;
    bench.client.event_queues = bench.endpoints.queues;
    bench.client.event_queue_count = bench.endpoints.queue_count;
    fill_ledger(&bench, events);
    measure_sender(&bench, events);
    kill(endpoint, SIGKILL);
    waitpid(endpoint, NULL, 0);
    snprintf(path, sizeof(path), "rm -rf %s", folder);
    return system(path) != 0;
}
