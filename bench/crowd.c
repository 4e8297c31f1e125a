/*
 * crowd: a chat in which one member stops reading; the others must not be affected.
 *
 *   crowd --port PORT --tokens FILE --members N --chat ID --messages M --body BYTES
 *
 * The token file has one token a line, of members of the chat. The first member sends M messages. The
 * last, the slow reader, reads nothing and only sends heartbeats. All others must receive each message
 * once and in order. The sender stays at most WINDOW messages ahead of the slowest of them, so only the
 * slow reader is ever behind.
 *
 * When all have received everything, the program prints "heard" with the time that took, and waits for a
 * line on its input. The slow reader then reads everything that the server kept for it, and the program
 * prints what it read:
 *
 *   {"messages":…,"warned":…,"closing":{…the server's message…},"code":…}
 *
 * A message that is missing, doubled or out of order ends the program with status 1 and an explanation.
 */
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cost.h"
#include "pool.h"
#include "solo.h"
#include "tokens.h"

enum {
    WINDOW = 16,
    CONNECTS_AT_ONCE = 64,
    SLOW_RECEIVE_BYTES = 4096,
    HEARTBEAT_MS = 3000,
    NS_PER_MS = 1000000,
    TURN_MS = 20,
};

/* The pool passes this struct to its callbacks. */
struct job {
    struct pool *pool;
    const char *chat;
    size_t members;
    uint64_t messages;
    size_t body_bytes;
    uint64_t sent;
    uint64_t acknowledged;
    uint64_t *received; /* by member: the last sequence */
    uint64_t *missing;  /* by sequence: how many readers have not received it yet */
    uint64_t complete;  /* all readers have received all messages up to this one */
    uint64_t heartbeat_ns;
    struct solo slow_reader;
};

static size_t reader_count(const struct job *job)
{
    return job->members - 2; /* without the sender and the slow reader */
}

/* ---- messages ---- */

static uint64_t read_sequence(const char *text, size_t count)
{
    const char *at = memmem(text, count, "\"sequence\":", 11);
    if (at == NULL)
        cost_fail("no sequence in: %.*s", (int)count, text);
    return strtoull(at + 11, NULL, 10); /* a digit is followed by , or } */
}

static bool is_message(const char *text, size_t count)
{
    return dialect_contains(text, count, "\"type\":\"message\"");
}

static void count_message(struct job *job, size_t member, uint64_t sequence)
{
    if (sequence != job->received[member] + 1)
        cost_fail("member %zu received %" PRIu64 " after %" PRIu64, member, sequence,
                  job->received[member]);
    job->received[member] = sequence;
    job->missing[sequence]--;
    while (job->complete < job->sent && job->missing[job->complete + 1] == 0)
        job->complete++;
}

static void on_text(struct job *job, size_t member, const char *text, size_t count)
{
    if (dialect_contains(text, count, "\"message_ack\""))
        job->acknowledged++;
    else if (is_message(text, count))
        count_message(job, member, read_sequence(text, count));
    else if (dialect_contains(text, count, "\"type\":\"error\""))
        cost_fail("member %zu received an error: %.*s", member, (int)count, text);
}

static void send_next(struct job *job)
{
    char text[FRAME_PAYLOAD_BYTES_MAX];
    struct frame frame;
    job->sent++;
    job->missing[job->sent] = reader_count(job);
    int length = snprintf(text, sizeof(text),
                          "{\"type\":\"send_message\",\"chat_id\":\"%s\","
                          "\"client_message_id\":\"m%" PRIu64 "\",\"body\":\"%0*d\"}",
                          job->chat, job->sent, (int)job->body_bytes, 0);
    if (length >= (int)sizeof(text))
        cost_fail("the body is too long");
    frame_encode(&frame, FRAME_TEXT, text, (size_t)length);
    pool_send(job->pool, 0, &frame);
}

/* ---- connections ---- */

static void on_ready(struct job *job, size_t client)
{
    (void)job;
    (void)client;
}

static void connect_all(struct job *job)
{
    size_t others = job->members - 1;
    for (size_t opened = 0; pool_ready_count(job->pool) < others;) {
        while (opened < others && opened - pool_ready_count(job->pool) < CONNECTS_AT_ONCE)
            pool_open(job->pool, opened++);
        pool_turn(job->pool, TURN_MS);
    }
}

/* The slow reader sends heartbeats too: it is slow, not disconnected. */
static void send_heartbeats(struct job *job)
{
    static const char heartbeat[] = "{\"type\":\"heartbeat\"}";
    struct frame frame;
    uint64_t now_ns = cost_now_ns();
    if (now_ns - job->heartbeat_ns < (uint64_t)HEARTBEAT_MS * NS_PER_MS)
        return;
    job->heartbeat_ns = now_ns;
    frame_encode(&frame, FRAME_TEXT, heartbeat, sizeof(heartbeat) - 1);
    for (size_t i = 0; i + 1 < job->members; i++)
        pool_send(job->pool, i, &frame);
    solo_send(&job->slow_reader, heartbeat);
}

static void turn(struct job *job)
{
    pool_turn(job->pool, TURN_MS);
    send_heartbeats(job);
}

static void exchange_messages(struct job *job)
{
    uint64_t from_ns = cost_now_ns();
    while (job->complete < job->messages || job->acknowledged < job->messages) {
        while (job->sent < job->messages && job->sent < job->complete + WINDOW)
            send_next(job);
        turn(job);
    }
    printf("heard %" PRIu64 " messages, %zu members each, in %.1f s\n", job->messages,
           reader_count(job), (double)(cost_now_ns() - from_ns) / 1e9);
    fflush(stdout);
}

static void wait_for_input(struct job *job)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    while (poll(&input, 1, 0) == 0)
        turn(job);
}

/* ---- the slow reader ---- */

static unsigned close_code(const struct frame_view *frame)
{
    if (frame->payload_bytes < 2)
        return 0;
    return (unsigned)(uint8_t)frame->payload[0] << 8 | (uint8_t)frame->payload[1];
}

static void read_kept_messages(struct job *job)
{
    struct frame_view frame;
    uint64_t last = 0;
    unsigned code = 0, warnings = 0;
    char closing[1024] = "null";
    while (solo_read(&job->slow_reader, &frame)) {
        if (frame.opcode == FRAME_CLOSE)
            code = close_code(&frame);
        else if (is_message(frame.payload, frame.payload_bytes)) {
            uint64_t sequence = read_sequence(frame.payload, frame.payload_bytes);
            if (sequence != last + 1)
                cost_fail("the slow reader received %" PRIu64 " after %" PRIu64, sequence, last);
            last = sequence;
        } else if (dialect_contains(frame.payload, frame.payload_bytes, "\"SLOW_CONSUMER\""))
            warnings++;
        else if (dialect_contains(frame.payload, frame.payload_bytes, "\"connection_closing\""))
            snprintf(closing, sizeof(closing), "%.*s", (int)frame.payload_bytes, frame.payload);
        if (code)
            break;
    }
    printf("{\"messages\":%" PRIu64 ",\"warned\":%u,\"closing\":%s,\"code\":%u}\n", last, warnings,
           closing, code);
}

/* ---- command line ---- */

static const struct option options[] = {
    {"port", required_argument, NULL, 'p'},
    {"tokens", required_argument, NULL, 't'},
    {"members", required_argument, NULL, 'n'},
    {"chat", required_argument, NULL, 'c'},
    {"messages", required_argument, NULL, 'm'},
    {"body", required_argument, NULL, 'b'},
    {NULL, 0, NULL, 0},
};

static void run(struct job *job, uint16_t port, const char *const *tokens)
{
    struct pool_settings settings = {.dialect = dialect_find("native"),
                                     .server_port = port,
                                     .capacity = job->members - 1,
                                     .tokens = tokens};
    job->received = calloc(job->members, sizeof(*job->received));
    job->missing = calloc(job->messages + 2, sizeof(*job->missing));
    if (job->received == NULL || job->missing == NULL)
        cost_fail("out of memory");
    job->pool = pool_new(&settings, (struct pool_listener){job, on_ready, on_text});
    connect_all(job);
    solo_open(&job->slow_reader, port, tokens[job->members - 1], SLOW_RECEIVE_BYTES);
    printf("connected\n");
    fflush(stdout);
    exchange_messages(job);
    wait_for_input(job);
    read_kept_messages(job);
    solo_close(&job->slow_reader);
    pool_free(&job->pool);
    free(job->received);
    free(job->missing);
}

int main(int argc, char **argv)
{
    static struct job job;
    const char *token_file = NULL;
    unsigned long port = 0;
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'p')
            port = strtoul(optarg, NULL, 10);
        else if (option == 't')
            token_file = optarg;
        else if (option == 'n')
            job.members = strtoul(optarg, NULL, 10);
        else if (option == 'c')
            job.chat = optarg;
        else if (option == 'm')
            job.messages = strtoull(optarg, NULL, 10);
        else if (option == 'b')
            job.body_bytes = strtoul(optarg, NULL, 10);
        else
            return 2;
    }
    if (port == 0 || token_file == NULL || job.members < 3 || job.chat == NULL || job.messages == 0)
        cost_fail("--port, --tokens, --members (3 or more), --chat and --messages are required");
    cost_raise_descriptor_limit();
    const char **tokens = tokens_read(token_file, job.members);
    run(&job, (uint16_t)port, tokens);
    tokens_free(&tokens, job.members);
    return 0;
}
