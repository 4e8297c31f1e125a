/*
 * messages: drives Rollcall with chat messages, as applications do: through the client library, one
 * client per user, each waiting for its acknowledgement before it sends again. Prints one line of JSON.
 *
 *   messages --port PORT --pid PID --tokens FILE --chat PREFIX --senders N --members M --seconds S
 *
 * The token file has one token a line. Users are in chats of M members in the order of the file: those of
 * chat PREFIX0 first. The first N users send; every member of a chat receives the others' messages. A body
 * contains its time of sending, so acknowledgement and delivery are measured with one clock.
 *
 * The first fifth of the time is not counted.
 */
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "cost.h"
#include "latency.h"
#include "rollcall.h"

enum {
    EVENTS_PER_TURN = 256,
    TIMERS_NS = 50 * 1000 * 1000, /* how often the timers of all clients are checked */
    CONNECTS_AT_ONCE = 64,
    BODY_BYTES = 100,
    LATENCY_UNIT = 10, /* a bucket of the histograms is 10 µs here, so they reach to a second */
};

struct run {
    uint16_t port;
    pid_t process;
    const char *token_file;
    const char *chat_prefix;
    size_t senders;
    size_t members;
    double seconds;
    struct user *users;
    size_t user_count;
    size_t ready;
    bool sending;
    bool counting;
    uint64_t acknowledged;
    uint64_t delivered;
    struct latency acknowledgements;
    struct latency deliveries;
};

struct user {
    struct run *run;
    struct rollcall *client;
    size_t number;
    int fd;       /* as registered in the epoll set */
    short events; /* as registered in the epoll set */
    uint64_t sent_ns;
    char chat[64];
};

/* ---- one user ---- */

static void send_next(struct user *user)
{
    char body[BODY_BYTES + 1];
    user->sent_ns = cost_now_ns();
    int len = snprintf(body, sizeof(body), "%llu ", (unsigned long long)user->sent_ns);
    memset(body + len, '.', sizeof(body) - 1 - (size_t)len);
    body[BODY_BYTES] = '\0';
    if (!rollcall_send(user->client, user->chat, NULL, body))
        cost_fail("the client library refused a message");
}

static void on_message_sent(struct user *user)
{
    struct run *run = user->run;
    if (run->counting) {
        run->acknowledged++;
        latency_add(&run->acknowledgements, (cost_now_ns() - user->sent_ns) / LATENCY_UNIT);
    }
    if (run->sending)
        send_next(user);
}

static void on_message_received(struct run *run, const char *body)
{
    if (!run->counting)
        return;
    run->delivered++;
    latency_add(&run->deliveries, (cost_now_ns() - strtoull(body, NULL, 10)) / LATENCY_UNIT);
}

static void on_event(void *arg, const struct rollcall_event *event)
{
    struct user *user = arg;
    switch (event->type) {
    case ROLLCALL_EVENT_STATE:
        user->run->ready += event->state == ROLLCALL_READY;
        if (event->state == ROLLCALL_BACKOFF || event->state == ROLLCALL_STOPPED)
            cost_fail("user %zu lost its connection", user->number);
        break;
    case ROLLCALL_EVENT_SENT:
        on_message_sent(user);
        break;
    case ROLLCALL_EVENT_MESSAGE:
        on_message_received(user->run, event->body);
        break;
    case ROLLCALL_EVENT_REFUSED:
    case ROLLCALL_EVENT_ERROR:
        cost_fail("user %zu received the error %s: %s", user->number, event->code, event->text);
    case ROLLCALL_EVENT_PRESENCE:
    case ROLLCALL_EVENT_OTHER:
        break;
    }
}

static void open_user(struct run *run, size_t number, const char *token)
{
    struct user *user = &run->users[number];
    *user = (struct user){.run = run, .number = number, .fd = -1};
    snprintf(user->chat, sizeof(user->chat), "%s%zu", run->chat_prefix, number / run->members);
    struct rollcall_options options = {.host = "127.0.0.1",
                                       .port = run->port,
                                       .token = token,
                                       .device_id = "bench",
                                       .event = on_event,
                                       .arg = user};
    user->client = rollcall_open(&options);
    if (!user->client)
        cost_fail("out of memory");
}

/* ---- all of them ---- */

/* Runs a client, then registers the events that it waits for. */
static void process_user(struct user *user, int epoll, short revents)
{
    rollcall_process(user->client, revents);
    int fd = rollcall_fd(user->client);
    short events = rollcall_poll_events(user->client);
    if (fd < 0 || (fd == user->fd && events == user->events))
        return;
    struct epoll_event wanted = {.events = (uint32_t)events, .data.ptr = user};
    if (epoll_ctl(epoll, fd == user->fd ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &wanted) != 0)
        cost_fail("cannot watch a socket");
    user->fd = fd;
    user->events = events;
}

/* Runs the first `count` users until `until_ns`, or until `ready` users are ready. */
static void turn_until(struct run *run, int epoll, size_t count, uint64_t until_ns, size_t ready)
{
    uint64_t timers_ns = 0;
    while (run->ready < ready && cost_now_ns() < until_ns) {
        struct epoll_event events[EVENTS_PER_TURN];
        if (cost_now_ns() >= timers_ns) {
            for (size_t i = 0; i < count; i++)
                process_user(&run->users[i], epoll, 0);
            timers_ns = cost_now_ns() + TIMERS_NS;
        }
        int found = epoll_wait(epoll, events, EVENTS_PER_TURN, TIMERS_NS / 1000000);
        for (int i = 0; i < found; i++)
            process_user(events[i].data.ptr, epoll, (short)events[i].events);
    }
}

static uint64_t after(double seconds)
{
    return cost_now_ns() + (uint64_t)(seconds * 1e9);
}

static void connect_all(struct run *run, int epoll)
{
    FILE *file = fopen(run->token_file, "r");
    char *token = NULL;
    size_t capacity = 0;
    if (!file)
        cost_fail("cannot read %s", run->token_file);
    for (size_t i = 0; i < run->user_count; i++) {
        if (getline(&token, &capacity, file) <= 0)
            cost_fail("%s has fewer than %zu tokens", run->token_file, run->user_count);
        token[strcspn(token, "\r\n")] = '\0';
        open_user(run, i, token);
        if ((i + 1) % CONNECTS_AT_ONCE == 0 || i + 1 == run->user_count)
            turn_until(run, epoll, i + 1, after(30), i + 1);
    }
    free(token);
    fclose(file);
    if (run->ready != run->user_count)
        cost_fail("only %zu of %zu are ready", run->ready, run->user_count);
}

static double in_ms(const struct latency *latency, double share)
{
    return (double)latency_quantile_us(latency, share) * LATENCY_UNIT / 1000;
}

static void measure(struct run *run, int epoll)
{
    run->sending = true;
    for (size_t i = 0; i < run->senders; i++)
        send_next(&run->users[i]);
    turn_until(run, epoll, run->user_count, after(run->seconds / 5), SIZE_MAX);
    run->counting = true;
    uint64_t started_ns = cost_now_ns();
    uint64_t started_cpu_ns = cost_cpu_ns(run->process);
    turn_until(run, epoll, run->user_count, after(run->seconds * 4 / 5), SIZE_MAX);
    double seconds = (double)(cost_now_ns() - started_ns) / 1e9;
    double cpu_us = (double)(cost_cpu_ns(run->process) - started_cpu_ns) / 1e3;
    if (run->acknowledged == 0)
        cost_fail("nothing was acknowledged");
    printf("{\"senders\":%zu,\"users\":%zu,\"members\":%zu,\"acknowledged_per_second\":%.0f,"
           "\"delivered_per_second\":%.0f,\"ack_p50_ms\":%.2f,\"ack_p99_ms\":%.2f,"
           "\"delivery_p99_ms\":%.2f,\"cpu_us_per_message\":%.2f}\n",
           run->senders, run->user_count, run->members, (double)run->acknowledged / seconds,
           (double)run->delivered / seconds, in_ms(&run->acknowledgements, 0.5),
           in_ms(&run->acknowledgements, 0.99), in_ms(&run->deliveries, 0.99),
           cpu_us / (double)run->acknowledged);
}

static void parse(struct run *run, int argc, char **argv)
{
    static const struct option OPTIONS[] = {
        {"port", required_argument, NULL, 'p'},    {"pid", required_argument, NULL, 'i'},
        {"tokens", required_argument, NULL, 't'},  {"chat", required_argument, NULL, 'c'},
        {"senders", required_argument, NULL, 'n'}, {"members", required_argument, NULL, 'm'},
        {"seconds", required_argument, NULL, 's'}, {NULL, 0, NULL, 0},
    };
    int option;
    while ((option = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1) {
        switch (option) {
        case 'p':
            run->port = (uint16_t)strtoul(optarg, NULL, 10);
            break;
        case 'i':
            run->process = (pid_t)strtoul(optarg, NULL, 10);
            break;
        case 't':
            run->token_file = optarg;
            break;
        case 'c':
            run->chat_prefix = optarg;
            break;
        case 'n':
            run->senders = strtoul(optarg, NULL, 10);
            break;
        case 'm':
            run->members = strtoul(optarg, NULL, 10);
            break;
        case 's':
            run->seconds = strtod(optarg, NULL);
            break;
        default:
            exit(2);
        }
    }
}

int main(int argc, char **argv)
{
    static struct run run = {.members = 10, .seconds = 2};
    parse(&run, argc, argv);
    if (!run.port || !run.process || !run.token_file || !run.chat_prefix || !run.senders ||
        run.members < 2)
        cost_fail("--port, --pid, --tokens, --chat, --senders and two or more --members");
    cost_raise_descriptor_limit();
    run.user_count = (run.senders + run.members - 1) / run.members * run.members;
    run.users = calloc(run.user_count, sizeof(*run.users));
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!run.users || epoll < 0)
        cost_fail("out of memory");
    connect_all(&run, epoll);
    measure(&run, epoll);
    return 0;
}
