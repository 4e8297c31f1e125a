/*
 * swarm: up to 20,000 clients of a fleet that send heartbeats; bench/million runs many of these.
 *
 *   swarm --ports P,P,… --source ADDRESS --tokens FILE --first N --clients N --heartbeat-ms MS
 *         [--connects-at-once N] [--reconnect-ms MS]
 *
 * It connects at once and runs until its input ends. The lines of its input are commands:
 *
 *   ready          prints {"ready":…}
 *   sample         prints {"ready":…,"heartbeats":…,"round_trips_us":[[us,count],…],…}, and counts from zero again
 *   heartbeat MS   changes the interval; prints nothing
 */
#include <arpa/inet.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../cost.h"
#include "swarm.h"

#define COMMAND_BYTES_MAX 64

/* ---- reports ---- */

/* Keeps three digits, so that a report stays short. */
static uint64_t round_bucket(uint64_t value)
{
    uint64_t unit = 1;
    while (value / unit >= 1000)
        unit *= 10;
    return value / unit * unit;
}

static void print_latency(const struct latency *latency)
{
    uint64_t bucket = 0, count = 0;
    const char *separator = "";
    printf(",\"round_trips_us\":[");
    for (uint64_t at = 0; at <= LATENCY_BUCKETS; at++) {
        if (at == LATENCY_BUCKETS || round_bucket(at) != bucket) {
            if (count > 0)
                printf("%s[%" PRIu64 ",%" PRIu64 "]", separator, bucket * SWARM_LATENCY_UNIT_US,
                       count);
            separator = count > 0 ? "," : separator;
            bucket = round_bucket(at);
            count = 0;
        }
        if (at < LATENCY_BUCKETS)
            count += latency->buckets[at];
    }
    printf("]");
}

static void print_slots(const char *name, const uint32_t *slots)
{
    size_t count = SWARM_SLOTS;
    while (count > 0 && slots[count - 1] == 0)
        count--;
    printf(",\"%s\":[", name);
    for (size_t i = 0; i < count; i++)
        printf("%s%" PRIu32, i == 0 ? "" : ",", slots[i]);
    printf("]");
}

static void print_sample(struct swarm *swarm)
{
    const struct swarm_counts *counts = swarm_counts(swarm);
    printf("{\"ready\":%zu,\"heartbeats\":%" PRIu64 ",\"unanswered\":%" PRIu64 ",\"lost\":%" PRIu64
           ",\"refused\":%" PRIu64 ",\"syncs\":%" PRIu64 ",\"bytes_in\":%" PRIu64
           ",\"bytes_out\":%" PRIu64,
           swarm_ready_count(swarm), counts->heartbeats, counts->unanswered, counts->lost,
           counts->refused, counts->syncs, counts->bytes_in, counts->bytes_out);
    print_latency(&counts->round_trips);
    print_slots("slowest_us", counts->slowest_us);
    print_slots("comebacks", counts->comebacks);
    printf("}\n");
    swarm_reset_counts(swarm);
}

/* ---- commands ---- */

static void run_command(struct swarm *swarm, const char *line)
{
    if (strcmp(line, "ready") == 0)
        printf("{\"ready\":%zu}\n", swarm_ready_count(swarm));
    else if (strcmp(line, "sample") == 0)
        print_sample(swarm);
    else if (strncmp(line, "heartbeat ", 10) == 0 && strtoul(line + 10, NULL, 10) > 0)
        swarm_set_heartbeat(swarm, (uint32_t)strtoul(line + 10, NULL, 10));
    else
        cost_fail("unknown command %s", line);
    fflush(stdout);
}

/* Returns false when the input has ended. A line is written and read at once. */
static bool read_command(struct swarm *swarm)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    char line[COMMAND_BYTES_MAX];
    if (poll(&input, 1, 0) <= 0)
        return true;
    ssize_t got = read(STDIN_FILENO, line, sizeof(line) - 1);
    if (got <= 0)
        return false;
    line[got] = '\0';
    line[strcspn(line, "\n")] = '\0';
    run_command(swarm, line);
    return true;
}

/* ---- command line ---- */

static const struct option options[] = {
    {"ports", required_argument, NULL, 'p'},
    {"source", required_argument, NULL, 's'},
    {"tokens", required_argument, NULL, 't'},
    {"first", required_argument, NULL, 'f'},
    {"clients", required_argument, NULL, 'n'},
    {"heartbeat-ms", required_argument, NULL, 'h'},
    {"connects-at-once", required_argument, NULL, 'c'},
    {"reconnect-ms", required_argument, NULL, 'r'},
    {NULL, 0, NULL, 0},
};

static void parse_ports(struct swarm_settings *settings, char *text)
{
    for (char *port = strtok(text, ","); port != NULL; port = strtok(NULL, ",")) {
        if (settings->server_count == SWARM_SERVERS_MAX)
            cost_fail("more than %d servers", SWARM_SERVERS_MAX);
        settings->ports[settings->server_count++] = (uint16_t)strtoul(port, NULL, 10);
    }
}

static void parse_option(struct swarm_settings *settings, int option)
{
    if (option == 'p')
        parse_ports(settings, optarg);
    else if (option == 's' && inet_pton(AF_INET, optarg, &settings->source) != 1)
        cost_fail("%s is not an IPv4 address", optarg);
    else if (option == 't')
        settings->token_file = optarg;
    else if (option == 'f')
        settings->first = strtoul(optarg, NULL, 10);
    else if (option == 'n')
        settings->client_count = strtoul(optarg, NULL, 10);
    else if (option == 'h')
        settings->heartbeat_ms = (uint32_t)strtoul(optarg, NULL, 10);
    else if (option == 'c')
        settings->connects_at_once = strtoul(optarg, NULL, 10);
    else if (option == 'r')
        settings->reconnect_ms = (uint32_t)strtoul(optarg, NULL, 10);
    else if (option == '?')
        exit(2);
}

int main(int argc, char **argv)
{
    static struct swarm_settings settings = {.connects_at_once = 16, .reconnect_ms = 2000};
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
        parse_option(&settings, option);
    if (settings.server_count == 0 || settings.token_file == NULL || settings.client_count == 0 ||
        settings.heartbeat_ms == 0 || settings.source.s_addr == 0)
        cost_fail("--ports, --source, --tokens, --clients and --heartbeat-ms are required");
    cost_raise_descriptor_limit();
    struct swarm *swarm = swarm_new(&settings);
    while (read_command(swarm))
        swarm_turn(swarm);
    swarm_free(&swarm);
    return 0;
}
