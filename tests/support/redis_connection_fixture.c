#include "support/redis_connection_fixture.h"

#include "net/tls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { COMMAND_ARGS_MAX = 8 };

static void on_fixture_problem_changed(struct redis_connection *connection, void *arg)
{
    (void)connection;
    (void)arg;
}

static void on_fixture_push(struct redis_connection *connection, void *arg,
                            const struct resp_value *push)
{
    (void)connection;
    (void)push;
    ((struct redis_connection_fixture *)arg)->pushes++;
}

static const struct redis_connection_owner owner = {on_fixture_problem_changed, on_fixture_push};

static bool has_problem(void *arg)
{
    struct redis_connection_fixture *fixture = arg;
    return redis_connection_problem(fixture->connection) == fixture->awaited_problem;
}

static bool all_answered(void *arg)
{
    struct redis_connection_fixture *fixture = arg;
    return fixture->answered == fixture->sent;
}

void redis_connection_fixture_await_problem(struct redis_connection_fixture *fixture,
                                            enum redis_problem problem, int64_t limit_ms)
{
    fixture->awaited_problem = problem;
    worker_loop_until(&fixture->worker, has_problem, fixture, limit_ms);
    assert_string_equal(redis_problem_name(redis_connection_problem(fixture->connection)),
                        redis_problem_name(problem));
}

void redis_connection_fixture_await_answers(struct redis_connection_fixture *fixture)
{
    assert_true(worker_loop_until(&fixture->worker, all_answered, fixture,
                                  REDIS_CONNECTION_FIXTURE_SOON_MS));
}

static void on_echo_reply(void *arg, const struct resp_value *reply)
{
    struct redis_connection_fixture *fixture = arg;
    char expected[16];
    snprintf(expected, sizeof(expected), "%u", fixture->answered++);
    if (!reply)
        fixture->without_reply++;
    else if (reply->type == RESP_ERROR)
        fixture->errors++;
    else if (!slice_is(reply->text, expected))
        fixture->in_disorder++;
}

void on_connection_fixture_reply(void *arg, const struct resp_value *reply)
{
    struct redis_connection_fixture *fixture = arg;
    fixture->answered++;
    struct slice text =
        reply ? slice_first(reply->text, sizeof(fixture->last) - 1) : SLICE("nothing");
    snprintf(fixture->last, sizeof(fixture->last), "%.*s", SLICE_FORMAT(text));
}

bool redis_connection_fixture_send(struct redis_connection_fixture *fixture,
                                   const struct slice *args, size_t count, redis_reply_done done)
{
    struct buffer command = BUFFER_INIT;
    resp_write_command(&command, args, count);
    bool accepted =
        redis_connection_send(fixture->connection, buffer_slice(&command), done, fixture);
    buffer_free(&command);
    fixture->sent += accepted;
    return accepted;
}

bool redis_connection_fixture_echo(struct redis_connection_fixture *fixture)
{
    char number[16];
    snprintf(number, sizeof(number), "%u", fixture->sent);
    return redis_connection_fixture_send(
        fixture, (const struct slice[]){SLICE("ECHO"), slice_of(number)}, 2, on_echo_reply);
}

const char *redis_connection_fixture_run(struct redis_connection_fixture *fixture, const char *line)
{
    struct slice args[COMMAND_ARGS_MAX];
    size_t count = 0;
    for (struct slice rest = slice_of(line); rest.data; count++) {
        assert_true(count < COMMAND_ARGS_MAX);
        rest = slice_split(rest, ' ', &args[count]);
    }
    assert_true(redis_connection_fixture_send(fixture, args, count, on_connection_fixture_reply));
    redis_connection_fixture_await_answers(fixture);
    return fixture->last;
}

void redis_connection_fixture_open_at(struct redis_connection_fixture *fixture, const char *host,
                                      uint16_t port)
{
    struct redis_address address;
    redis_address_set(&address, slice_of(host), port);
    fixture->connection = redis_connection_make(&fixture->context, &address, &owner, fixture);
    assert_non_null(fixture->connection);
}

void redis_connection_fixture_open(struct redis_connection_fixture *fixture,
                                   const char *const *options)
{
    redis_server_start(&fixture->server, options);
    redis_connection_fixture_open_at(fixture, "127.0.0.1", fixture->server.port);
}

int redis_connection_fixture_set_up(void **state)
{
    struct redis_connection_fixture *fixture = calloc(1, sizeof(*fixture));
    assert_non_null(fixture);
    *state = fixture;
    worker_loop_open(&fixture->worker);
    fixture->context = (struct redis_connection_context){
        .loop = &fixture->worker.loop,
        .streams = &fixture->worker.streams,
        .random = &fixture->worker.random,
        .metrics = &fixture->worker.metrics,
        .identity = {.user = "", .password = "", .name = "rollcall", .alone = true}};
    list_init(&fixture->context.ending);
    return 0;
}

int redis_connection_fixture_tear_down(void **state)
{
    struct redis_connection_fixture *fixture = *state;
    redis_connection_end(&fixture->connection);
    redis_connection_context_reap(&fixture->context);
    tls_context_drop(&fixture->context.tls);
    redis_server_stop(&fixture->server);
    worker_loop_close(&fixture->worker);
    free(fixture);
    return 0;
}
