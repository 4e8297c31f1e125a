/* A connection to real servers: each command is answered once and in order, also when the server fails. */
#include "redis/redis_connection.h"

#include "redis/redis_pending.h"
#include "redis/redis_socket.h"
#include "support/redis_connection_fixture.h"

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

/* What a busy machine may add to a time limit. */
enum { BUSY_MACHINE_MS = 5000 };

static void commands_wait_for_the_first_connection(void **state)
{
    struct redis_connection_fixture *fixture = *state;
    redis_connection_fixture_open(fixture, REDIS_DEFAULTS);
    assert_int_equal(redis_connection_problem(fixture->connection), REDIS_NOT_TRIED);
    for (int i = 0; i < 10; i++)
        assert_true(redis_connection_fixture_echo(fixture));
    assert_int_equal(fixture->answered, 0);
    redis_connection_fixture_await_answers(fixture);
    assert_int_equal(fixture->without_reply + fixture->in_disorder + fixture->errors, 0);
    assert_int_equal(redis_connection_problem(fixture->connection), REDIS_FINE);
    assert_string_equal(redis_connection_fixture_run(fixture, "CLIENT GETNAME"), "rollcall");
}

static void hundred_thousand_replies_are_in_order(void **state)
{
    enum { COMMANDS = 100000 };
    struct redis_connection_fixture *fixture = *state;
    redis_connection_fixture_open(fixture, REDIS_DEFAULTS);
    redis_connection_fixture_await_problem(fixture, REDIS_FINE, REDIS_CONNECTION_FIXTURE_SOON_MS);
    int64_t start_us = clock_microseconds();
    for (unsigned refused = 0; fixture->answered < COMMANDS;) {
        while (fixture->sent < COMMANDS && redis_connection_fixture_echo(fixture))
            ;
        if (fixture->sent < COMMANDS && refused++ == 0)
            assert_int_equal(redis_connection_pending(fixture->connection), REDIS_PENDING_MAX);
        loop_turn(&fixture->worker.loop, 1000);
    }
    print_message("%d commands in %lld ms\n", COMMANDS,
                  (long long)(clock_microseconds() - start_us) / 1000);
    assert_int_equal(fixture->without_reply + fixture->in_disorder + fixture->errors, 0);
}

/* Listens on a free loopback port; nothing is accepted. */
static int listen_on_free_port(uint16_t *port)
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

static bool has_connection(void *arg)
{
    struct pollfd listener = {.fd = *(int *)arg, .events = POLLIN};
    return poll(&listener, 1, 0) == 1;
}

/* Otherwise the kernel could send unsent bytes after those of the next connection. */
static void abandoned_connection_is_reset(void **state)
{
    struct redis_connection_fixture *fixture = *state;
    char bytes[4096];
    uint16_t port;
    int listener = listen_on_free_port(&port);
    redis_connection_fixture_open_at(fixture, "127.0.0.1", port);
    assert_true(worker_loop_until(&fixture->worker, has_connection, &listener,
                                  REDIS_CONNECTION_FIXTURE_SOON_MS));
    int accepted = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    close(listener);
    redis_connection_fixture_await_problem(fixture, REDIS_SILENT, REDIS_CONNECTION_FIXTURE_SOON_MS);
    worker_loop_run(&fixture->worker, 50);              /* it is closed at the end of the turn */
    ssize_t len = read(accepted, bytes, sizeof(bytes)); /* the handshake */
    if (len > 0)
        len = read(accepted, bytes, sizeof(bytes));
    assert_int_equal(len, -1);
    assert_int_equal(errno, ECONNRESET);
    close(accepted);
}

static void unsent_bytes_are_bounded(void **state)
{
    struct redis_connection_fixture *fixture = *state;
    char *long_text = calloc(1, 1 << 20);
    redis_connection_fixture_open(fixture, REDIS_DEFAULTS);
    redis_connection_fixture_await_problem(fixture, REDIS_FINE, REDIS_CONNECTION_FIXTURE_SOON_MS);
    const struct slice args[] = {SLICE("ECHO"), {long_text, 1 << 20}};
    unsigned accepted = 0;
    while (accepted < 100 &&
           redis_connection_fixture_send(fixture, args, 2, on_connection_fixture_reply))
        accepted++;
    assert_in_range(accepted, 20, REDIS_OUT_BYTES_MAX >> 20);
    redis_connection_fixture_await_answers(fixture);
    assert_string_not_equal(fixture->last, "nothing");
    free(long_text);
}

static void hanging_server_is_detected_and_reconnected(void **state)
{
    struct redis_connection_fixture *fixture = *state;
    redis_connection_fixture_open(fixture, REDIS_DEFAULTS);
    redis_connection_fixture_await_problem(fixture, REDIS_FINE, REDIS_CONNECTION_FIXTURE_SOON_MS);
    worker_loop_run(&fixture->worker, 700);
    redis_server_pause(&fixture->server);
    int64_t start_us = clock_microseconds();
    redis_connection_fixture_await_problem(fixture, REDIS_SILENT, REDIS_CONNECTION_FIXTURE_SOON_MS);
    int64_t noticed_ms = (clock_microseconds() - start_us) / 1000;
    print_message("noticed after %lld ms\n", (long long)noticed_ms);
    assert_in_range(noticed_ms, 0,
                    REDIS_PING_INTERVAL_MS + REDIS_COMMAND_LIMIT_MS + BUSY_MACHINE_MS);
    assert_false(redis_connection_fixture_echo(fixture));
    redis_server_resume(&fixture->server);
    redis_connection_fixture_await_problem(fixture, REDIS_FINE, REDIS_CONNECTION_FIXTURE_SOON_MS);
    assert_true(redis_connection_fixture_echo(fixture));
    redis_connection_fixture_await_answers(fixture);
    assert_int_equal(fixture->in_disorder + fixture->without_reply, 0);
}

static void commands_to_a_hanging_server_are_answered_in_time(void **state)
{
    struct redis_connection_fixture *fixture = *state;
    redis_connection_fixture_open(fixture, REDIS_DEFAULTS);
    redis_connection_fixture_await_problem(fixture, REDIS_FINE, REDIS_CONNECTION_FIXTURE_SOON_MS);
    redis_server_pause(&fixture->server);
    for (int i = 0; i < 1000; i++)
        assert_true(redis_connection_fixture_echo(fixture));
    int64_t start_us = clock_microseconds();
    redis_connection_fixture_await_answers(fixture);
    int64_t waited_ms = (clock_microseconds() - start_us) / 1000;
    assert_in_range(waited_ms, REDIS_COMMAND_LIMIT_MS - 100,
                    REDIS_COMMAND_LIMIT_MS + BUSY_MACHINE_MS);
    assert_int_equal(fixture->without_reply, 1000);
    redis_server_resume(&fixture->server);
}

static void killed_server_is_reconnected_after_its_restart(void **state)
{
    struct redis_connection_fixture *fixture = *state;
    redis_connection_fixture_open(fixture, REDIS_DEFAULTS);
    redis_connection_fixture_await_problem(fixture, REDIS_FINE, REDIS_CONNECTION_FIXTURE_SOON_MS);
    redis_server_pause(&fixture->server);
    for (int i = 0; i < 100; i++)
        assert_true(redis_connection_fixture_echo(fixture));
    loop_turn(&fixture->worker.loop, 0);
    redis_server_kill(&fixture->server);
    redis_connection_fixture_await_answers(fixture);
    assert_int_equal(fixture->without_reply, 100);
    assert_int_not_equal(redis_connection_problem(fixture->connection), REDIS_FINE);
    redis_connection_fixture_await_problem(fixture, REDIS_UNREACHABLE,
                                           REDIS_CONNECTION_FIXTURE_SOON_MS);
    assert_true(fixture->worker.metrics.values[METRIC_REDIS_CONNECTION_ERRORS] > 0);
    redis_server_restart(&fixture->server);
    redis_connection_fixture_await_problem(fixture, REDIS_FINE, REDIS_CONNECTION_FIXTURE_SOON_MS);
}

static void ended_connection_answers_pending_commands_with_null(void **state)
{
    struct redis_connection_fixture *fixture = *state;
    redis_connection_fixture_open(fixture, REDIS_DEFAULTS);
    redis_connection_fixture_await_problem(fixture, REDIS_FINE, REDIS_CONNECTION_FIXTURE_SOON_MS);
    for (int i = 0; i < 10; i++)
        assert_true(redis_connection_fixture_echo(fixture));
    redis_connection_end(&fixture->connection);
    assert_null(fixture->connection);
    assert_int_equal(fixture->answered, 10);
    assert_int_equal(fixture->without_reply, 10);
    worker_loop_run(&fixture->worker, 50);
    assert_true(list_empty(&fixture->context.ending));
}

static void on_reply_end_connection(void *arg, const struct resp_value *reply)
{
    struct redis_connection_fixture *fixture = arg;
    (void)reply;
    fixture->answered++;
    redis_connection_end(&fixture->connection);
}

static void completion_may_end_the_connection(void **state)
{
    struct redis_connection_fixture *fixture = *state;
    redis_connection_fixture_open(fixture, REDIS_DEFAULTS);
    redis_connection_fixture_send(fixture, (const struct slice[]){SLICE("PING")}, 1,
                                  on_reply_end_connection);
    for (int i = 0; i < 3; i++)
        redis_connection_fixture_send(fixture, (const struct slice[]){SLICE("PING")}, 1,
                                      on_connection_fixture_reply);
    redis_connection_fixture_await_answers(fixture);
    assert_string_equal(fixture->last, "nothing");
    worker_loop_run(&fixture->worker, 50);
    assert_true(list_empty(&fixture->context.ending));
}

static void fenced_commands_are_answered_once(void **state)
{
    struct redis_connection_fixture *fixture = *state;
    redis_connection_fixture_open(fixture, REDIS_DEFAULTS);
    assert_true(redis_connection_send_fenced(
        fixture->connection, SLICE("*3\r\n$9\r\nSUBSCRIBE\r\n$1\r\na\r\n$1\r\nb\r\n"),
        on_connection_fixture_reply, fixture));
    fixture->sent++;
    redis_connection_fixture_await_answers(fixture);
    assert_string_equal(fixture->last, "PONG");
    assert_int_equal(fixture->pushes, 2);
    assert_true(redis_connection_send_fenced(
        fixture->connection, SLICE("*1\r\n$9\r\nSUBSCRIBE\r\n*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\nc\r\n"),
        on_connection_fixture_reply, fixture));
    fixture->sent++;
    redis_connection_fixture_await_answers(fixture);
    assert_non_null(strstr(fixture->last, "wrong number of arguments"));
    assert_int_equal(fixture->pushes, 3);
    assert_string_equal(redis_connection_fixture_run(fixture, "ECHO x"), "x");
}

/* ---- barriers ---- */

struct counted_barrier {
    struct redis_barrier barrier;
    struct redis_connection_fixture *fixture;
    unsigned passed, failed;
    unsigned answered_before; /* commands, when it ended */
};

static void on_counted_barrier(struct redis_barrier *barrier, bool is_passed)
{
    struct counted_barrier *counted = (struct counted_barrier *)(void *)barrier;
    counted->passed += is_passed;
    counted->failed += !is_passed;
    counted->answered_before = counted->fixture->answered;
}

static struct counted_barrier counted_barrier_of(struct redis_connection_fixture *fixture)
{
    return (struct counted_barrier){.barrier.done = on_counted_barrier, .fixture = fixture};
}

static bool is_barrier_over(void *arg)
{
    const struct counted_barrier *counted = arg;
    return counted->passed + counted->failed > 0;
}

static void barrier_waits_for_a_command_that_was_not_written_yet(void **state)
{
    struct redis_connection_fixture *fixture = *state;
    redis_connection_fixture_open(fixture, REDIS_DEFAULTS);
    redis_connection_fixture_await_problem(fixture, REDIS_FINE, REDIS_CONNECTION_FIXTURE_SOON_MS);
    struct counted_barrier first = counted_barrier_of(fixture), second = first, third = first;
    redis_server_pause(&fixture->server);
    assert_true(redis_connection_fixture_echo(fixture));
    worker_loop_run(&fixture->worker, 20); /* the ECHO is written, and came too early */
    assert_true(redis_connection_await(fixture->connection, &first.barrier));
    assert_int_equal(redis_connection_pending(fixture->connection), 2);
    assert_true(redis_connection_await(fixture->connection, &second.barrier));
    assert_int_equal(redis_connection_pending(fixture->connection), 2); /* they share a PING */
    worker_loop_run(&fixture->worker, 20);
    assert_true(redis_connection_await(fixture->connection, &third.barrier));
    assert_int_equal(redis_connection_pending(fixture->connection), 2); /* it waits for that */
    assert_true(redis_connection_fixture_echo(fixture));
    assert_int_equal(first.passed + second.passed + third.passed, 0);
    redis_server_resume(&fixture->server);
    worker_loop_until(&fixture->worker, is_barrier_over, &third, REDIS_CONNECTION_FIXTURE_SOON_MS);
    assert_int_equal(first.passed + second.passed + third.passed, 3);
    assert_int_equal(first.answered_before, 1);
    assert_int_equal(third.answered_before, 2); /* with the ECHO that follows it, without a PING */
    assert_int_equal(redis_connection_pending(fixture->connection), 0);
}

static void barrier_fails_with_its_connection_and_with_an_error(void **state)
{
    struct redis_connection_fixture *fixture = *state;
    redis_connection_fixture_open(fixture, REDIS_DEFAULTS);
    redis_connection_fixture_await_problem(fixture, REDIS_FINE, REDIS_CONNECTION_FIXTURE_SOON_MS);
    struct counted_barrier refused = counted_barrier_of(fixture), lost = refused;
    redis_connection_fixture_send(fixture, (const struct slice[]){SLICE("UNKNOWN")}, 1,
                                  on_connection_fixture_reply);
    assert_true(redis_connection_await(fixture->connection, &refused.barrier));
    redis_connection_fixture_await_answers(fixture);
    assert_int_equal(refused.failed, 1);
    assert_true(redis_connection_await(fixture->connection, &lost.barrier));
    redis_connection_end(&fixture->connection);
    assert_int_equal(lost.failed, 1);
    assert_int_equal(lost.passed + refused.passed, 0);
}

#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, redis_connection_fixture_set_up,                         \
                                    redis_connection_fixture_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(commands_wait_for_the_first_connection),
        TEST(hundred_thousand_replies_are_in_order),
        TEST(unsent_bytes_are_bounded),
        TEST(abandoned_connection_is_reset),
        TEST(hanging_server_is_detected_and_reconnected),
        TEST(commands_to_a_hanging_server_are_answered_in_time),
        TEST(killed_server_is_reconnected_after_its_restart),
        TEST(ended_connection_answers_pending_commands_with_null),
        TEST(completion_may_end_the_connection),
        TEST(fenced_commands_are_answered_once),
        TEST(barrier_waits_for_a_command_that_was_not_written_yet),
        TEST(barrier_fails_with_its_connection_and_with_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
