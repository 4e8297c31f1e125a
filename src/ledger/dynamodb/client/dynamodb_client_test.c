/* The failure table by the clock: how often a call is tried, after which waits, and when it ends. Against a scripted server,
 * on a loop whose time the test moves. */
#include "ledger/dynamodb/client/dynamodb_client.h"
#include "ledger/ledger_metrics.h"
#include "support/script_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define THROTTLED                                                                                  \
    "HTTP/1.1 400 Bad\r\nContent-Length: 34\r\n\r\n{\"__type\":\"x#ThrottlingException\"}"
#define CONFLICT                                                                                   \
    "HTTP/1.1 400 Bad\r\nContent-Length: 43\r\n\r\n{\"__type\":\"x#TransactionConflictException\"}"
#define UNAVAILABLE                                                                                \
    "HTTP/1.1 503 Bad\r\nContent-Length: 31\r\n\r\n{\"__type\":\"ServiceUnavailable\"}"
#define INVALID                                                                                    \
    "HTTP/1.1 400 Bad\r\nContent-Length: 34\r\n\r\n{\"__type\":\"x#ValidationException\"}"
#define CONDITION                                                                                  \
    "HTTP/1.1 400 Bad\r\nContent-Length: 44\r\n\r\n{\"__type\":\"ConditionalCheckFailedException\"}"
#define INTERNAL                                                                                   \
    "HTTP/1.1 500 Bad\r\nContent-Length: 34\r\n\r\n{\"__type\":\"x#InternalServerError\"}"
#define CUT "HTTP/1.1 200 OK\r\nContent-Length: 100\r\nConnection: close\r\n\r\n{"
#define OK_ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"

enum {
    TURN_MS = 1,
    TURNS_MAX = 60000,
    QUIET_TURNS = 6, /* after which nothing is on its way */
    STEP_MS = 10,
    LIMIT_MS = 5000,
    SLACK_MS = 60,
};

static int64_t passed_ms; /* the hook that advances a loop has no argument */

static void advance_test_clock(struct clock *clock)
{
    clock->now_ms = 1000 + passed_ms;
    clock->wall_ms = 1700000000000 + passed_ms;
}

struct fixture {
    struct loop loop;
    struct random random;
    struct ledger_metrics metrics;
    struct script_server server;
    struct dynamodb_client client;
    struct ledger_client ledger_client;
    struct ledger_request *request;
    struct fiber_pool *fibers;
    bool ended;
    enum dynamodb_outcome outcome;
    struct dynamodb_task task;
    int64_t arrived_ms[SCRIPT_SERVER_EXCHANGES_MAX];
    int64_t ended_ms;
};

static int set_up(void **state)
{
    static struct fixture fixture;
    memset(&fixture, 0, sizeof(fixture));
    passed_ms = 0;
    setenv("AWS_ACCESS_KEY_ID", "AKID", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
    script_server_start(&fixture.server);
    assert_true(loop_init(&fixture.loop));
    fixture.loop.advance = advance_test_clock;
    advance_test_clock(&fixture.loop.clock);
    wheel_init(&fixture.loop.wheel, fixture.loop.clock.now_ms);
    random_init_seeded(&fixture.random, 7);
    fixture.client = (struct dynamodb_client){
        .loop = &fixture.loop,
        .http = http_client_make(&fixture.loop, 4),
        .random = &fixture.random,
        .metrics = &fixture.metrics,
        .settings = {.retry = {.max_attempts = 3,
                               .initial_backoff_ms = 100,
                               .max_backoff_ms = 5000},
                     .transaction_conflict = {.max_attempts = 5, .jitter_ms = 50}},
        .url = fixture.server.url,
        .scope = "aws:amz:here:dynamodb",
        .table_prefix = ""};
    struct aws_credentials_options options = {
        .loop = &fixture.loop, .http = fixture.client.http, .region = "here"};
    fixture.client.credentials = aws_credentials_make(&options);
    fixture.ledger_client = (struct ledger_client){.clock = &fixture.loop.clock};
    fixture.request = ledger_request_make(&fixture.ledger_client, LEDGER_SETTINGS_GET, NULL);
    fixture.fibers = fiber_pool_make(1);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    aws_credentials_free(&fixture->client.credentials);
    http_client_free(&fixture->client.http);
    fiber_pool_free(&fixture->fibers);
    ledger_request_free(fixture->request);
    loop_free(&fixture->loop);
    script_server_stop(&fixture->server);
    return 0;
}

static void run_call(struct fiber *fiber, void *arg)
{
    struct fixture *fixture = arg;
    fixture->task = (struct dynamodb_task){.client = &fixture->client,
                                           .fiber = fiber,
                                           .request = fixture->request,
                                           .deadline_ms = fixture->loop.clock.now_ms + LIMIT_MS};
    buffer_append_text(&fixture->task.body, "{\"ClientRequestToken\":\"t\"}");
    fixture->outcome = dynamodb_client_call(&fixture->task, "TransactWriteItems");
    dynamodb_task_end(&fixture->task);
    fixture->ended_ms = fixture->loop.clock.now_ms;
    fixture->ended = true;
}

/* Makes the call; time passes only while nothing is on its way. */
static void make_call(struct fixture *fixture)
{
    int quiet = 0;
    assert_true(fiber_start(fixture->fibers, run_call, fixture));
    for (int i = 0; i < TURNS_MAX && !fixture->ended; i++) {
        size_t before = fixture->server.request_count;
        loop_turn(&fixture->loop, TURN_MS);
        script_server_serve(&fixture->server);
        for (size_t n = before; n < fixture->server.request_count; n++)
            fixture->arrived_ms[n] = fixture->loop.clock.now_ms;
        quiet = fixture->server.request_count > before ? 0 : quiet + 1;
        if (quiet >= QUIET_TURNS)
            passed_ms += STEP_MS;
    }
    assert_true(fixture->ended);
}

static int64_t wait_before(const struct fixture *fixture, size_t at)
{
    return fixture->arrived_ms[at] - fixture->arrived_ms[at - 1];
}

static void assert_wait(const struct fixture *fixture, size_t at, int64_t least_ms, int64_t most_ms)
{
    int64_t wait_ms = wait_before(fixture, at);
    if (wait_ms < least_ms || wait_ms > most_ms + SLACK_MS)
        print_error("try %zu came after %lld ms\n", at, (long long)wait_ms);
    assert_true(wait_ms >= least_ms && wait_ms <= most_ms + SLACK_MS);
}

static void answer_times(struct fixture *fixture, const char *answer, int times)
{
    for (int i = 0; i < times; i++)
        script_server_then(&fixture->server, answer);
}

static void test_throttled_call_is_tried_three_times(void **state)
{
    struct fixture *fixture = *state;
    answer_times(fixture, THROTTLED, 2);
    answer_times(fixture, OK_ANSWER, 1);
    make_call(fixture);
    assert_int_equal(fixture->outcome, DYNAMODB_DONE);
    assert_int_equal(fixture->server.request_count, 3);
    assert_wait(fixture, 1, 100, 100);
    assert_wait(fixture, 2, 200, 200);
    assert_int_equal(fixture->metrics.throttles, 2);
}

static void test_call_that_stays_throttled_fails_after_the_third_try(void **state)
{
    struct fixture *fixture = *state;
    answer_times(fixture, THROTTLED, 10);
    make_call(fixture);
    assert_int_equal(fixture->outcome, DYNAMODB_FAILED);
    assert_int_equal(fixture->server.request_count, 3);
    assert_int_equal(fixture->metrics.throttles, 3);
}

static void test_waits_of_a_throttled_call_double_up_to_their_bound(void **state)
{
    struct fixture *fixture = *state;
    fixture->client.settings.retry.max_attempts = 100;
    fixture->client.settings.retry.max_backoff_ms = 500;
    answer_times(fixture, THROTTLED, 5);
    answer_times(fixture, OK_ANSWER, 1);
    make_call(fixture);
    static const int64_t expected_ms[] = {100, 200, 400, 500, 500};
    for (size_t i = 0; i < 5; i++)
        assert_wait(fixture, i + 1, expected_ms[i], expected_ms[i]);
}

static void test_conflict_is_tried_five_times_with_jitter(void **state)
{
    struct fixture *fixture = *state;
    answer_times(fixture, CONFLICT, 10);
    make_call(fixture);
    assert_int_equal(fixture->outcome, DYNAMODB_FAILED);
    assert_int_equal(fixture->server.request_count, 5);
    for (size_t i = 1; i < 5; i++)
        assert_wait(fixture, i, 50, 500);
    assert_int_equal(fixture->metrics.conflicts, 5);
    assert_int_equal(fixture->metrics.throttles, 0);
}

static void test_failed_condition_is_an_answer(void **state)
{
    struct fixture *fixture = *state;
    answer_times(fixture, CONDITION, 1);
    make_call(fixture);
    assert_int_equal(fixture->outcome, DYNAMODB_REFUSED);
    assert_int_equal(fixture->server.request_count, 1);
    assert_false(fixture->task.failed);
}

static void test_unavailable_and_invalid_fail_at_once(void **state)
{
    struct fixture *fixture = *state;
    answer_times(fixture, UNAVAILABLE, 1);
    make_call(fixture);
    assert_int_equal(fixture->outcome, DYNAMODB_FAILED);
    fixture->ended = false;
    answer_times(fixture, INVALID, 1);
    make_call(fixture);
    assert_int_equal(fixture->outcome, DYNAMODB_FAILED);
    assert_int_equal(fixture->server.request_count, 2);
}

static const char *body_of(const struct fixture *fixture, size_t at)
{
    return strstr(fixture->server.requests[at], "\r\n\r\n");
}

static void test_unknown_outcome_is_asked_again_with_the_same_bytes(void **state)
{
    struct fixture *fixture = *state;
    answer_times(fixture, INTERNAL, 1);
    answer_times(fixture, CUT, 1);
    answer_times(fixture, OK_ANSWER, 1);
    make_call(fixture);
    assert_int_equal(fixture->outcome, DYNAMODB_DONE);
    assert_int_equal(fixture->server.request_count, 3);
    assert_string_equal(body_of(fixture, 0), body_of(fixture, 1));
    assert_string_equal(body_of(fixture, 0), body_of(fixture, 2));
}

static void test_call_ends_with_its_time(void **state)
{
    struct fixture *fixture = *state;
    fixture->client.settings.retry.max_attempts = 100;
    fixture->client.settings.retry.initial_backoff_ms = 2000;
    int64_t started_ms = fixture->loop.clock.now_ms;
    answer_times(fixture, THROTTLED, 10);
    make_call(fixture);
    assert_int_equal(fixture->outcome, DYNAMODB_FAILED);
    assert_true(fixture->ended_ms - started_ms <= LIMIT_MS);
    assert_int_equal(fixture->server.request_count, 2); /* at 0 and 2 s; the next would be at 6 s */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_throttled_call_is_tried_three_times),
        TEST(test_call_that_stays_throttled_fails_after_the_third_try),
        TEST(test_waits_of_a_throttled_call_double_up_to_their_bound),
        TEST(test_conflict_is_tried_five_times_with_jitter),
        TEST(test_failed_condition_is_an_answer),
        TEST(test_unavailable_and_invalid_fail_at_once),
        TEST(test_unknown_outcome_is_asked_again_with_the_same_bytes),
        TEST(test_call_ends_with_its_time),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
