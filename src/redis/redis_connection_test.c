/* A link against real servers: that answers come once and in order, and what happens when they do not. */
#include "redis/redis_connection.h"

#include "redis/redis_pending.h"
#include "redis/redis_socket.h"
#include "support/link_stage.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static void commands_wait_for_the_first_connection(void **state)
{
    struct link_stage *stage = *state;
    link_stage_open(stage, REDIS_DEFAULTS);
    assert_int_equal(redis_connection_problem(stage->link), REDIS_NOT_TRIED);
    for (int i = 0; i < 10; i++)
        assert_true(link_stage_echo(stage));
    assert_int_equal(stage->answered, 0);
    link_stage_await_answers(stage);
    assert_int_equal(stage->without_reply + stage->in_disorder + stage->errors, 0);
    assert_int_equal(redis_connection_problem(stage->link), REDIS_FINE);
    assert_string_equal(link_stage_ask(stage, "CLIENT GETNAME"), "rollcall");
}

static void a_hundred_thousand_answers_come_in_order(void **state)
{
    enum { COMMANDS = 100000 };
    struct link_stage *stage = *state;
    link_stage_open(stage, REDIS_DEFAULTS);
    link_stage_await_problem(stage, REDIS_FINE, LINK_STAGE_SOON_MS);
    int64_t start_us = clock_microseconds();
    for (unsigned refused = 0; stage->answered < COMMANDS;) {
        while (stage->asked < COMMANDS && link_stage_echo(stage))
            ;
        if (stage->asked < COMMANDS && refused++ == 0)
            assert_int_equal(redis_connection_pending(stage->link), REDIS_PENDING_MAX);
        loop_turn(&stage->worker.loop, 1000);
    }
    print_message("%d commands in %lld ms\n", COMMANDS,
                  (long long)(clock_microseconds() - start_us) / 1000);
    assert_int_equal(stage->without_reply + stage->in_disorder + stage->errors, 0);
}

/* On a free port of the loopback; nobody answers there. */
static int listen_only(uint16_t *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

static bool has_caller(void *arg)
{
    struct pollfd door = {.fd = *(int *)arg, .events = POLLIN};
    return poll(&door, 1, 0) == 1;
}

/* It is reset: the kernel brings nothing any more of what it may still have to send. */
static void a_connection_that_is_given_up_brings_nothing_later(void **state)
{
    struct link_stage *stage = *state;
    char bytes[4096];
    uint16_t port;
    int door = listen_only(&port);
    link_stage_open_at(stage, "127.0.0.1", port);
    assert_true(worker_loop_until(&stage->worker, has_caller, &door, LINK_STAGE_SOON_MS));
    int caller = accept4(door, NULL, NULL, SOCK_CLOEXEC);
    close(door);
    link_stage_await_problem(stage, REDIS_SILENT, LINK_STAGE_SOON_MS);
    worker_loop_run(&stage->worker, 50);              /* it is closed at the end of the turn */
    ssize_t len = read(caller, bytes, sizeof(bytes)); /* the greeting */
    if (len > 0)
        len = read(caller, bytes, sizeof(bytes));
    assert_int_equal(len, -1);
    assert_int_equal(errno, ECONNRESET);
    close(caller);
}

static void what_cannot_be_sent_is_bounded(void **state)
{
    struct link_stage *stage = *state;
    char *long_text = calloc(1, 1 << 20);
    link_stage_open(stage, REDIS_DEFAULTS);
    link_stage_await_problem(stage, REDIS_FINE, LINK_STAGE_SOON_MS);
    const struct slice words[] = {SLICE("ECHO"), {long_text, 1 << 20}};
    unsigned taken = 0;
    while (taken < 100 && link_stage_send(stage, words, 2, link_stage_take))
        taken++;
    assert_in_range(taken, 20, REDIS_OUT_BYTES_MAX >> 20);
    link_stage_await_answers(stage);
    assert_string_not_equal(stage->last, "nothing");
    free(long_text);
}

static void a_hanging_server_is_noticed(void **state)
{
    struct link_stage *stage = *state;
    link_stage_open(stage, REDIS_DEFAULTS);
    link_stage_await_problem(stage, REDIS_FINE, LINK_STAGE_SOON_MS);
    worker_loop_run(&stage->worker, 700);
    redis_server_pause(&stage->server);
    int64_t start_us = clock_microseconds();
    link_stage_await_problem(stage, REDIS_SILENT, LINK_STAGE_SOON_MS);
    int64_t noticed_ms = (clock_microseconds() - start_us) / 1000;
    print_message("noticed after %lld ms\n", (long long)noticed_ms);
    assert_in_range(noticed_ms, 0, REDIS_PING_INTERVAL_MS + REDIS_COMMAND_LIMIT_MS + 200);
    assert_false(link_stage_echo(stage));
    redis_server_resume(&stage->server);
    link_stage_await_problem(stage, REDIS_FINE, LINK_STAGE_SOON_MS);
    assert_true(link_stage_echo(stage));
    link_stage_await_answers(stage);
    assert_int_equal(stage->in_disorder + stage->without_reply, 0);
}

static void commands_to_a_hanging_server_are_answered_in_time(void **state)
{
    struct link_stage *stage = *state;
    link_stage_open(stage, REDIS_DEFAULTS);
    link_stage_await_problem(stage, REDIS_FINE, LINK_STAGE_SOON_MS);
    redis_server_pause(&stage->server);
    for (int i = 0; i < 1000; i++)
        assert_true(link_stage_echo(stage));
    int64_t start_us = clock_microseconds();
    link_stage_await_answers(stage);
    int64_t waited_ms = (clock_microseconds() - start_us) / 1000;
    assert_in_range(waited_ms, REDIS_COMMAND_LIMIT_MS - 100, REDIS_COMMAND_LIMIT_MS + 300);
    assert_int_equal(stage->without_reply, 1000);
    redis_server_resume(&stage->server);
}

static void a_killed_server_is_found_again(void **state)
{
    struct link_stage *stage = *state;
    link_stage_open(stage, REDIS_DEFAULTS);
    link_stage_await_problem(stage, REDIS_FINE, LINK_STAGE_SOON_MS);
    redis_server_pause(&stage->server);
    for (int i = 0; i < 100; i++)
        assert_true(link_stage_echo(stage));
    loop_turn(&stage->worker.loop, 0);
    redis_server_kill(&stage->server);
    link_stage_await_answers(stage);
    assert_int_equal(stage->without_reply, 100);
    assert_int_not_equal(redis_connection_problem(stage->link), REDIS_FINE);
    link_stage_await_problem(stage, REDIS_UNREACHABLE, LINK_STAGE_SOON_MS);
    assert_true(stage->worker.metrics.values[METRIC_REDIS_CONNECTION_ERRORS] > 0);
    redis_server_restart(&stage->server);
    link_stage_await_problem(stage, REDIS_FINE, 2 * REDIS_BACKOFF_MAX_MS);
}

static void an_ended_link_answers_what_waits(void **state)
{
    struct link_stage *stage = *state;
    link_stage_open(stage, REDIS_DEFAULTS);
    link_stage_await_problem(stage, REDIS_FINE, LINK_STAGE_SOON_MS);
    for (int i = 0; i < 10; i++)
        assert_true(link_stage_echo(stage));
    redis_connection_end(&stage->link);
    assert_null(stage->link);
    assert_int_equal(stage->answered, 10);
    assert_int_equal(stage->without_reply, 10);
    worker_loop_run(&stage->worker, 50);
    assert_true(list_empty(&stage->links.ending));
}

static void end_from_within(void *arg, const struct resp_value *reply)
{
    struct link_stage *stage = arg;
    (void)reply;
    stage->answered++;
    redis_connection_end(&stage->link);
}

static void a_link_may_be_ended_by_an_answer(void **state)
{
    struct link_stage *stage = *state;
    link_stage_open(stage, REDIS_DEFAULTS);
    link_stage_send(stage, (const struct slice[]){SLICE("PING")}, 1, end_from_within);
    for (int i = 0; i < 3; i++)
        link_stage_send(stage, (const struct slice[]){SLICE("PING")}, 1, link_stage_take);
    link_stage_await_answers(stage);
    assert_string_equal(stage->last, "nothing");
    worker_loop_run(&stage->worker, 50);
    assert_true(list_empty(&stage->links.ending));
}

static void fenced_commands_are_answered_together(void **state)
{
    struct link_stage *stage = *state;
    link_stage_open(stage, REDIS_DEFAULTS);
    assert_true(redis_connection_send_fenced(
        stage->link, SLICE("*3\r\n$9\r\nSUBSCRIBE\r\n$1\r\na\r\n$1\r\nb\r\n"), link_stage_take,
        stage));
    stage->asked++;
    link_stage_await_answers(stage);
    assert_string_equal(stage->last, "PONG");
    assert_int_equal(stage->pushes, 2);
    assert_true(redis_connection_send_fenced(
        stage->link, SLICE("*1\r\n$9\r\nSUBSCRIBE\r\n*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\nc\r\n"),
        link_stage_take, stage));
    stage->asked++;
    link_stage_await_answers(stage);
    assert_non_null(strstr(stage->last, "wrong number of arguments"));
    assert_int_equal(stage->pushes, 3);
    assert_string_equal(link_stage_ask(stage, "ECHO x"), "x");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, link_stage_set_up, link_stage_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(commands_wait_for_the_first_connection),
        TEST(a_hundred_thousand_answers_come_in_order),
        TEST(what_cannot_be_sent_is_bounded),
        TEST(a_connection_that_is_given_up_brings_nothing_later),
        TEST(a_hanging_server_is_noticed),
        TEST(commands_to_a_hanging_server_are_answered_in_time),
        TEST(a_killed_server_is_found_again),
        TEST(an_ended_link_answers_what_waits),
        TEST(a_link_may_be_ended_by_an_answer),
        TEST(fenced_commands_are_answered_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
