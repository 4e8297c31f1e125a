/*
 * Measures the round trip of an event hook beside that of a bare libcurl POST of the same body, to the same application, in
 * the same run:
 *
 *     event_hook [rounds [URL]]
 *
 * URL is that of an application; bench/event_hook_application.mjs is one in Node. Without one, the application is a thread that
 * answers every request on a kept connection at once: then a bare POST is little more than system calls, and the difference
 * is what the hook itself takes (the JSON, the signature, libcurl's multi interface on the loop). Both sides take turns, a
 * hundred round trips each, so that other load on the machine hits both. It prints the medians and their ratio, and with
 * a URL exits 1 if the hook takes more than 1.2 times as long.
 */
#include "hooks/event_hook.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ANSWER                                                                                     \
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n{\"price\":1.5}"
#define DATA                                                                                       \
    "{\"symbol\":\"ROLL\",\"quantity\":12,\"note\":\"a body of usual size, about two hundred bytes with its names\"}"

enum { TURN_ROUNDS = 100, ROUNDS = 5000, CONNECTIONS_MAX = 8 };

static double bench_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* ---- the application ---- */

/* Answers requests whose head and body come in few reads; a request ends with its body's last brace. */
static void *serve_connection(void *arg)
{
    int fd = (int)(intptr_t)arg;
    char bytes[8192];
    size_t len = 0;
    ssize_t got;
    while ((got = read(fd, bytes + len, sizeof(bytes) - len)) > 0) {
        len += (size_t)got;
        if (bytes[len - 1] != '}')
            continue;
        len = 0;
        if (write(fd, ANSWER, sizeof(ANSWER) - 1) < 0)
            break;
    }
    close(fd);
    return NULL;
}

static void *serve_application(void *arg)
{
    int listener = (int)(intptr_t)arg, one = 1, fd;
    while ((fd = accept(listener, NULL, NULL)) >= 0) {
        pthread_t thread;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        pthread_create(&thread, NULL, serve_connection, (void *)(intptr_t)fd);
        pthread_detach(thread);
    }
    return NULL;
}

static void start_application(char url[64])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    pthread_t thread;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, len) != 0 || listen(listener, 8) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &len) != 0)
        abort();
    snprintf(url, 64, "http://127.0.0.1:%d/hook", ntohs(address.sin_port));
    pthread_create(&thread, NULL, serve_application, (void *)(intptr_t)listener);
    pthread_detach(thread);
}

/* ---- the two sides ---- */

static size_t drop_body(char *data, size_t size, size_t count, void *arg)
{
    (void)data, (void)arg;
    return size * count;
}

static double post_bare(CURL *easy)
{
    double start = bench_now_us();
    if (curl_easy_perform(easy) != CURLE_OK)
        abort();
    return bench_now_us() - start;
}

static void on_bench_answer(void *arg, const struct event_answer *answer)
{
    if (answer->result != EVENT_ANSWERED)
        abort();
    *(bool *)arg = true;
}

static double ask_hook(struct loop *loop, struct event_hook *events,
                       const struct event_question *question)
{
    bool is_answered = false;
    double start = bench_now_us();
    event_hook_ask(events, question, on_bench_answer, &is_answered);
    while (!is_answered)
        loop_turn(loop, 100);
    return bench_now_us() - start;
}

static CURL *make_bare(const char *url, struct curl_slist *headers)
{
    static const char body[] =
        "{\"user_id\":\"alice\",\"device_id\":\"phone\",\"conn_id\":"
        "\"01J9ZQ8K3V5W7X9YABCDEFGHJK\",\"name\":\"quote\",\"data\":" DATA ",\"args\":[" DATA "]}";
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, drop_body);
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    return easy;
}

static int compare_times(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double median(double *times, size_t count)
{
    qsort(times, count, sizeof(*times), compare_times);
    return times[count / 2];
}

int main(int argc, char **argv)
{
    size_t rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : ROUNDS;
    double *bare = calloc(rounds + TURN_ROUNDS, sizeof(*bare));
    double *hooked = calloc(rounds + TURN_ROUNDS, sizeof(*hooked));
    struct config_hooks config = {.in_flight_max = CONNECTIONS_MAX,
                                  .circuit_breaker = {5, 1, 1, 1}};
    struct webhook_secret secret = {.len = 32};
    struct metrics metrics = {0};
    struct random random;
    struct loop loop;
    struct event_hook events;
    char url[64];
    if (argc > 2)
        snprintf(url, sizeof(url), "%s", argv[2]);
    else
        start_application(url);
    random_init_system(&random);
    if (!bare || !hooked || rounds == 0 || !loop_init(&loop))
        return 2;
    struct hook hook = {.name = "event",
                        .url = url,
                        .signer = {.secret = &secret},
                        .time_limit_ms = 2000,
                        .gate = hook_gate_make("event", &config),
                        .client = http_client_make(&loop, CONNECTIONS_MAX),
                        .loop = &loop,
                        .random = &random,
                        .metrics = &metrics};
    struct event_question question = {.user_id = SLICE("alice"),
                                      .device_id = SLICE("phone"),
                                      .name = SLICE("quote"),
                                      .data = SLICE(DATA),
                                      .args = SLICE(DATA)};
    event_hook_init(&events, &hook, CONNECTIONS_MAX, 1);
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
    CURL *easy = make_bare(url, headers);
    for (size_t done = 0; done < rounds; done += TURN_ROUNDS) {
        for (size_t i = 0; i < TURN_ROUNDS; i++)
            bare[done + i] = post_bare(easy);
        for (size_t i = 0; i < TURN_ROUNDS; i++)
            hooked[done + i] = ask_hook(&loop, &events, &question);
    }
    double bare_us = median(bare, rounds), hooked_us = median(hooked, rounds);
    printf("bare libcurl POST %7.1f µs\nevent hook        %7.1f µs\nratio             %7.2f\n",
           bare_us, hooked_us, hooked_us / bare_us);
    curl_easy_cleanup(easy);
    curl_slist_free_all(headers);
    http_client_free(&hook.client);
    event_hook_free(&events);
    webhook_signer_free(&hook.signer);
    hook_gate_free(&hook.gate);
    loop_free(&loop);
    free(bare);
    free(hooked);
    return argc <= 2 || hooked_us <= 1.2 * bare_us ? 0 : 1;
}
