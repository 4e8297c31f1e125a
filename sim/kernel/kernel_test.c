/* Programs on the simulated machines: what they see of time, threads, the network and crashes. */
#include "base/container.h"
#include "disk/disk.h"
#include "kernel/descriptor.h"
#include "network/link.h"
#include "network/socket.h"
#include "world/trace.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { HERE = 10 << 24 | 1, THERE = 10 << 24 | 2, PORT = 99, LATENCY_US = 1000 };

struct fixture {
    struct machine *here;
    struct machine *there;
};

static struct fixture fixture;

static int set_up(void **state)
{
    (void)state;
    trace_open(NULL);
    kernel_open(7);
    link_reset();
    fixture.here = machine_make("here", HERE);
    fixture.there = machine_make("there", THERE);
    fixture.here->latency_us = fixture.there->latency_us = LATENCY_US;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    kernel_close();
    return 0;
}

static void sleep_ms(int ms)
{
    struct pollfd nothing = {.fd = -1};
    poll(&nothing, 1, ms);
}

/* ---- events ---- */

struct numbered {
    struct event event;
    int number;
};

static int last_number;

static void on_numbered(struct event *event)
{
    const struct numbered *numbered = CONTAINER_OF(event, struct numbered, event);
    assert_true(numbered->number > last_number);
    last_number = numbered->number;
}

static void events_run_by_time_then_in_the_order_in_which_they_were_set(void **state)
{
    struct numbered events[100];
    (void)state;
    last_number = -1;
    for (int i = 0; i < 100; i++)
        events[i] = (struct numbered){.event.run = on_numbered, .number = i};
    for (int i = 99; i >= 0; i -= 2) /* pairs at one time, first the later half */
        kernel_set_event(&events[i].event, 100000);
    for (int i = 0; i < 100; i++)
        kernel_set_event(&events[i].event, i / 2 * 1000);
    event_cancel(kernel_events(), &events[50].event);
    kernel_run(1000000);
    assert_int_equal(last_number, 99);
    assert_int_equal(kernel_now_us(), 1000000);
}

/* ---- time ---- */

static int run_sleeper(void *arg)
{
    struct timespec before, after;
    int64_t *slept_ms = arg;
    clock_gettime(CLOCK_REALTIME, &before);
    sleep_ms(10000);
    clock_gettime(CLOCK_REALTIME, &after);
    *slept_ms = (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000;
    return 0;
}

static void a_stepped_clock_jumps_and_a_fast_one_wakes_early(void **state)
{
    int64_t stepped_ms = 0, fast_ms = 0;
    (void)state;
    machine_set_drift(fixture.there, 100000); /* ten per cent */
    process_start(fixture.here, "stepped", run_sleeper, &stepped_ms);
    process_start(fixture.there, "fast", run_sleeper, &fast_ms);
    kernel_run(5000000);
    machine_step_wall(fixture.here, 60000000);
    kernel_run(9500000);
    assert_in_range(fast_ms, 9800, 10100);
    assert_int_equal(stepped_ms, 0);
    kernel_run(11000000);
    assert_in_range(stepped_ms, 69990, 70010);
}

/* ---- threads ---- */

struct shared {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int value;
};

static void *run_setter(void *arg)
{
    struct shared *shared = arg;
    sleep_ms(50);
    pthread_mutex_lock(&shared->mutex);
    shared->value = 42;
    pthread_cond_signal(&shared->changed);
    pthread_mutex_unlock(&shared->mutex);
    return arg;
}

static int run_threads(void *arg)
{
    struct shared shared = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, run_setter, &shared);
    pthread_mutex_lock(&shared.mutex);
    while (shared.value == 0)
        pthread_cond_wait(&shared.changed, &shared.mutex);
    pthread_mutex_unlock(&shared.mutex);
    pthread_join(thread, &result);
    *(int *)arg = result == &shared ? shared.value : -1;
    return 0;
}

static void threads_wait_for_each_other(void **state)
{
    int value = 0;
    (void)state;
    process_start(fixture.here, "threads", run_threads, &value);
    kernel_run(1000000);
    assert_int_equal(value, 42);
    assert_true(list_empty(kernel_processes()));
}

/* ---- the network ---- */

static int run_server(void *arg)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    char byte;
    bind(listener, (struct sockaddr *)&address, sizeof(address));
    listen(listener, 1);
    poll(&(struct pollfd){.fd = listener, .events = POLLIN}, 1, -1);
    int fd = accept4(listener, NULL, NULL, 0);
    void *kept = malloc(1000); /* only a crash frees it */
    while (poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, -1) > 0 &&
           recv(fd, &byte, 1, 0) == 1)
        send(fd, &byte, 1, 0);
    return arg == kept;
}

struct client {
    int answers;
    int64_t round_trip_us;
    int error; /* errno, or -1 for an orderly end */
};

/* Sends a byte every 100 ms until something goes wrong. */
static int run_client(void *arg)
{
    struct client *client = arg;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = htonl(THERE)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    char byte = 'x';
    connect(fd, (struct sockaddr *)&address, sizeof(address));
    poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
    for (;;) {
        int64_t sent_us = kernel_now_us();
        if (send(fd, &byte, 1, 0) < 0)
            break;
        poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, -1);
        ssize_t got = recv(fd, &byte, 1, 0);
        if (got <= 0) {
            client->error = got < 0 ? errno : -1;
            return 0;
        }
        client->answers++;
        client->round_trip_us = kernel_now_us() - sent_us;
        sleep_ms(100);
    }
    client->error = errno;
    return 0;
}

static void bytes_take_their_time_and_a_crash_ends_the_connection(void **state)
{
    struct client client = {0};
    struct process *server = process_start(fixture.there, "server", run_server, NULL);
    (void)state;
    kernel_run(1000);
    process_start(fixture.here, "client", run_client, &client);
    kernel_run(1000000);
    assert_in_range(client.answers, 5, 10);
    assert_in_range(client.round_trip_us, 4 * LATENCY_US, 4 * LATENCY_US + 500);
    assert_true(server->memory.bytes >= 1000);
    process_crash(&server);
    kernel_run(2000000);
    assert_int_not_equal(client.error, 0);
}

static void a_cut_link_delays_and_loses_nothing(void **state)
{
    struct client client = {0};
    (void)state;
    process_start(fixture.there, "server", run_server, NULL);
    kernel_run(1000);
    process_start(fixture.here, "client", run_client, &client);
    kernel_run(1000000);
    int before = client.answers;
    link_cut(fixture.there, fixture.here, 5000000); /* one way only */
    kernel_run(4900000);
    assert_in_range(client.answers, before, before + 1);
    kernel_run(8000000);
    assert_true(client.answers > before + 5);
    assert_int_equal(client.error, 0);
}

static void a_machine_without_power_is_silent_and_resets_when_it_is_back(void **state)
{
    struct client client = {0};
    struct process *server = process_start(fixture.there, "server", run_server, NULL);
    (void)state;
    kernel_run(1000);
    process_start(fixture.here, "client", run_client, &client);
    kernel_run(50000); /* between two bytes */
    fixture.there->is_off = true;
    process_crash(&server);
    kernel_run(3000000);
    assert_int_equal(client.error, 0);
    fixture.there->is_off = false;
    kernel_run(10000000);
    assert_int_equal(client.error, ECONNRESET);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(events_run_by_time_then_in_the_order_in_which_they_were_set),
        TEST(a_stepped_clock_jumps_and_a_fast_one_wakes_early),
        TEST(threads_wait_for_each_other),
        TEST(bytes_take_their_time_and_a_crash_ends_the_connection),
        TEST(a_cut_link_delays_and_loses_nothing),
        TEST(a_machine_without_power_is_silent_and_resets_when_it_is_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
