/*
 * refusals: compares the time to refuse a message with the time to answer a heartbeat.
 *
 *   refusals --port PORT --token TOKEN --chat ID [--count N]
 *
 * Both are sent in turn on one connection, N times each, each after the last answer, so that a busy
 * machine affects both alike. Every message must be refused with SERVICE_UNAVAILABLE. Prints the
 * medians as one line of JSON: {"heartbeat_us":…,"refusal_us":…}.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost.h"
#include "dialect.h"
#include "solo.h"

#define COUNT_MAX 100000

struct round {
    const char *text;
    const char *answer; /* a text that the answer must contain */
};

static double round_trip_us(struct solo *solo, const struct round *round)
{
    struct frame_view frame;
    uint64_t from_ns = cost_now_ns();
    solo_send(solo, round->text);
    do {
        if (!solo_read(solo, &frame))
            cost_fail("the server closed the connection");
    } while (frame.opcode != FRAME_TEXT);
    double took_us = (double)(cost_now_ns() - from_ns) / 1000;
    if (!dialect_contains(frame.payload, frame.payload_bytes, round->answer))
        cost_fail("expected %s in: %.*s", round->answer, (int)frame.payload_bytes, frame.payload);
    return took_us;
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), compare);
    return values[count / 2];
}

static void measure(struct solo *solo, const char *chat, size_t count)
{
    char message[512];
    snprintf(message, sizeof(message),
             "{\"type\":\"send_message\",\"chat_id\":\"%s\",\"client_message_id\":\"refused\","
             "\"body\":\"text\"}",
             chat);
    struct round heartbeat = {"{\"type\":\"heartbeat\"}", "\"heartbeat_ack\""};
    struct round refusal = {message, "\"SERVICE_UNAVAILABLE\""};
    double *heartbeats_us = calloc(count, sizeof(*heartbeats_us));
    double *refusals_us = calloc(count, sizeof(*refusals_us));
    if (heartbeats_us == NULL || refusals_us == NULL)
        cost_fail("out of memory");
    for (size_t i = 0; i < count; i++) {
        heartbeats_us[i] = round_trip_us(solo, &heartbeat);
        refusals_us[i] = round_trip_us(solo, &refusal);
    }
    printf("{\"heartbeat_us\":%.1f,\"refusal_us\":%.1f}\n", median(heartbeats_us, count),
           median(refusals_us, count));
    free(heartbeats_us);
    free(refusals_us);
}

static const struct option options[] = {{"port", required_argument, NULL, 'p'},
                                        {"token", required_argument, NULL, 't'},
                                        {"chat", required_argument, NULL, 'c'},
                                        {"count", required_argument, NULL, 'n'},
                                        {NULL, 0, NULL, 0}};

int main(int argc, char **argv)
{
    static struct solo solo;
    const char *token = NULL, *chat = NULL;
    unsigned long port = 0, count = 1000;
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'p')
            port = strtoul(optarg, NULL, 10);
        else if (option == 't')
            token = optarg;
        else if (option == 'c')
            chat = optarg;
        else if (option == 'n')
            count = strtoul(optarg, NULL, 10);
        else
            return 2;
    }
    if (port == 0 || token == NULL || chat == NULL || count == 0 || count > COUNT_MAX)
        cost_fail("--port, --token and --chat are required");
    solo_open(&solo, (uint16_t)port, token, 0);
    measure(&solo, chat, count);
    solo_close(&solo);
    return 0;
}
