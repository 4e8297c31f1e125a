/* Accepting connections, also when descriptors or kernel memory run out. */
#include "net/listener.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    struct loop loop;
    struct listener listener;
    struct rlimit descriptors; /* the original limit */
    int client;
    unsigned accepted;
};

/* Only the test advances the clock. */
static void keep_clock(struct clock *clock)
{
    (void)clock;
}

static void on_accepted(void *arg, int fd)
{
    ((struct fixture *)arg)->accepted++;
    close(fd);
}

static void turn(struct fixture *fixture)
{
    loop_turn(&fixture->loop, 0);
}

/* Connected when it returns: the kernel does not wait for accept(). */
static int dial(const struct fixture *fixture)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(fixture->listener.port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_return_code(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

/* Leaves no descriptor for accept(). */
static void use_up_descriptors(struct fixture *fixture)
{
    int next = dup(fixture->client); /* the lowest free one */
    struct rlimit limit = fixture->descriptors;
    close(next);
    limit.rlim_cur = (rlim_t)next;
    assert_return_code(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void give_descriptors_back(const struct fixture *fixture)
{
    assert_return_code(setrlimit(RLIMIT_NOFILE, &fixture->descriptors), 0);
}

static void pass(struct fixture *fixture, int64_t ms)
{
    fixture->loop.clock.now_ms += ms;
    turn(fixture);
}

static void connection_is_accepted(void **state)
{
    struct fixture *fixture = *state;
    turn(fixture);
    assert_int_equal(fixture->accepted, 1);
}

static void listener_pauses_without_descriptors_then_accepts(void **state)
{
    struct fixture *fixture = *state;
    use_up_descriptors(fixture);
    turn(fixture);
    give_descriptors_back(fixture);
    turn(fixture); /* paused: does not spin */
    assert_int_equal(fixture->accepted, 0);
    pass(fixture, LISTENER_PAUSE_MS);
    turn(fixture);
    assert_int_equal(fixture->accepted, 1);
}

/* Watching the socket again needs kernel memory, which may be short as well. */
static void listener_retries_when_epoll_fails_after_a_pause(void **state)
{
    struct fixture *fixture = *state;
    int epoll_fd = fixture->loop.epoll_fd;
    use_up_descriptors(fixture);
    turn(fixture);
    give_descriptors_back(fixture);
    fixture->loop.epoll_fd = -1;
    pass(fixture, LISTENER_PAUSE_MS);
    fixture->loop.epoll_fd = epoll_fd;
    pass(fixture, LISTENER_PAUSE_MS);
    turn(fixture);
    assert_int_equal(fixture->accepted, 1);
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct listener_options options = {
        .address = "127.0.0.1:0", .accept_queue_max = 8, .unsent_bytes_max = 4096};
    char error[LISTENER_ERROR_TEXT_MAX];
    *state = fixture;
    if (!loop_init(&fixture->loop) || getrlimit(RLIMIT_NOFILE, &fixture->descriptors) < 0 ||
        !listener_open(&fixture->listener, &fixture->loop, &options, on_accepted, fixture, error))
        return -1;
    fixture->loop.advance = keep_clock;
    fixture->client = dial(fixture);
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    give_descriptors_back(fixture);
    close(fixture->client);
    listener_close(&fixture->listener);
    loop_free(&fixture->loop);
    free(fixture);
    return 0;
}

#define with_fixture(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_fixture(connection_is_accepted),
        with_fixture(listener_pauses_without_descriptors_then_accepts),
        with_fixture(listener_retries_when_epoll_fails_after_a_pause),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
