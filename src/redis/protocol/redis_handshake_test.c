#include "redis/protocol/redis_handshake.h"

#include "support/exact_copy.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct fixture {
    struct redis_identity identity;
    struct redis_handshake handshake;
    struct buffer out;
    enum redis_problem problem;
};

/* Checks the commands written since the last time. */
static void expect_commands(struct fixture *fixture, const char *expected)
{
    struct slice written = buffer_slice(&fixture->out);
    assert_int_equal(written.len, strlen(expected));
    assert_memory_equal(written.data ? written.data : "", expected, written.len);
    buffer_clear(&fixture->out);
}

static void begin(struct fixture *fixture)
{
    redis_handshake_begin(&fixture->handshake, &fixture->identity, &fixture->out);
}

static enum redis_handshake_result answer(struct fixture *fixture, const char *text)
{
    struct resp_parser parser = {0};
    const struct resp_value *reply;
    size_t len = strlen(text);
    char *copy = exact_copy(slice_of(text));
    assert_int_equal(resp_parse(&parser, (struct slice){copy, len}, &reply, &len), RESP_COMPLETE);
    enum redis_handshake_result result =
        redis_handshake_answer(&fixture->handshake, reply, &fixture->out, &fixture->problem);
    resp_parser_free(&parser);
    free(copy);
    return result;
}

static void handshake_without_login_sends_hello_and_ping(void **state)
{
    struct fixture *fixture = *state;
    begin(fixture);
    expect_commands(fixture, "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n");
    assert_int_equal(answer(fixture, "%1\r\n+role\r\n+master\r\n"), REDIS_HANDSHAKE_RUNNING);
    expect_commands(fixture, "*1\r\n$4\r\nPING\r\n");
    assert_int_equal(answer(fixture, "+PONG\r\n"), REDIS_HANDSHAKE_DONE);
    assert_false(fixture->handshake.version_2);
}

static void handshake_sends_login_name_and_database(void **state)
{
    struct fixture *fixture = *state;
    fixture->identity =
        (struct redis_identity){.user = "", .password = "p", .name = "gw", .database = 12};
    begin(fixture);
    expect_commands(fixture,
                    "*7\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$7\r\ndefault\r\n$1\r\np\r\n"
                    "$7\r\nSETNAME\r\n$2\r\ngw\r\n");
    assert_int_equal(answer(fixture, "%0\r\n"), REDIS_HANDSHAKE_RUNNING);
    expect_commands(fixture, "*2\r\n$6\r\nSELECT\r\n$2\r\n12\r\n*1\r\n$4\r\nPING\r\n");
    assert_int_equal(answer(fixture, "+OK\r\n"), REDIS_HANDSHAKE_RUNNING);
    assert_int_equal(answer(fixture, "+PONG\r\n"), REDIS_HANDSHAKE_DONE);
}

static void server_without_hello_is_used_in_version_2(void **state)
{
    struct fixture *fixture = *state;
    fixture->identity =
        (struct redis_identity){.user = "u", .password = "p", .name = "gw", .database = 1};
    begin(fixture);
    buffer_clear(&fixture->out);
    assert_int_equal(answer(fixture, "-ERR unknown command `HELLO`\r\n"), REDIS_HANDSHAKE_RUNNING);
    expect_commands(fixture, "*3\r\n$4\r\nAUTH\r\n$1\r\nu\r\n$1\r\np\r\n"
                             "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$2\r\ngw\r\n"
                             "*2\r\n$6\r\nSELECT\r\n$1\r\n1\r\n*1\r\n$4\r\nPING\r\n");
    assert_int_equal(answer(fixture, "+OK\r\n"), REDIS_HANDSHAKE_RUNNING);
    assert_int_equal(answer(fixture, "-ERR no names here\r\n"), REDIS_HANDSHAKE_RUNNING);
    assert_int_equal(answer(fixture, "+OK\r\n"), REDIS_HANDSHAKE_RUNNING);
    assert_int_equal(answer(fixture, "+PONG\r\n"), REDIS_HANDSHAKE_DONE);
    assert_true(fixture->handshake.version_2);
}

static void expect_refused(struct fixture *fixture, const char *first, const char *second,
                           enum redis_problem problem)
{
    begin(fixture);
    enum redis_handshake_result result = answer(fixture, first);
    if (second) {
        assert_int_equal(result, REDIS_HANDSHAKE_RUNNING);
        result = answer(fixture, second);
    }
    assert_int_equal(result, REDIS_HANDSHAKE_FAILED);
    assert_string_equal(redis_problem_name(fixture->problem), redis_problem_name(problem));
    buffer_clear(&fixture->out);
}

static void refusals_are_reported_as_problems(void **state)
{
    struct fixture *fixture = *state;
    fixture->identity.alone = true;
    expect_refused(fixture, "-WRONGPASS invalid\r\n", NULL, REDIS_LOGIN_REFUSED);
    expect_refused(fixture, "-NOAUTH HELLO must\r\n", NULL, REDIS_LOGIN_REFUSED);
    expect_refused(fixture, "-ERR max number of clients reached\r\n", NULL, REDIS_CROWDED);
    expect_refused(fixture, "-DENIED protected\r\n", NULL, REDIS_HANDSHAKE_REFUSED);
    expect_refused(fixture, "%1\r\n+role\r\n+replica\r\n", NULL, REDIS_READ_ONLY);
    expect_refused(fixture, "%1\r\n+mode\r\n+cluster\r\n", NULL, REDIS_CLUSTER_ON);
    expect_refused(fixture, "%0\r\n", "-LOADING\r\n", REDIS_LOADING);
    expect_refused(fixture, "%0\r\n", "-BUSY x\r\n", REDIS_BUSY);
    expect_refused(fixture, "%0\r\n", "*1\r\n$4\r\nPING\r\n", REDIS_NOT_UNDERSTOOD);
    fixture->identity.password = "p";
    expect_refused(fixture, "-NOPROTO\r\n", "-ERR Client sent AUTH, but no password is set\r\n",
                   REDIS_LOGIN_REFUSED);
}

static int set_up(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){.identity = {.user = "", .password = "", .name = ""}};
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    buffer_free(&((struct fixture *)*state)->out);
    return 0;
}

#define with_fixture(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_fixture(handshake_without_login_sends_hello_and_ping),
        with_fixture(handshake_sends_login_name_and_database),
        with_fixture(server_without_hello_is_used_in_version_2),
        with_fixture(refusals_are_reported_as_problems),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
