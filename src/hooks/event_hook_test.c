/* Events go to the application one by one per connection, within their bounds, and each is answered once. */
#include "hooks/event_hook.h"
#include "support/script_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define OK_ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n7"
#define FAILURE "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"

enum { TURN_MS = 5, TURNS_MAX = 6000, EVENTS_MAX = 8 };

static struct {
    struct loop loop;
    struct random random;
    struct metrics metrics;
    struct webhook_secret secret;
    struct script_server server;
    struct hook hook;
    struct event_hook events;
    size_t answers;
    enum event_result results[EVENTS_MAX];
} world;

static int set_up_with(uint32_t in_flight_max, int64_t time_limit_ms)
{
    struct config_hooks config = {
        .in_flight_max = in_flight_max,
        .circuit_breaker = {.failure_threshold = 2,
                            .failure_window_ms = 60000,
                            .open_duration_ms = 60000,
                            .half_open_probe_count = 1},
    };
    memset(&world, 0, sizeof(world));
    random_init_system(&world.random);
    script_server_start(&world.server);
    assert_true(loop_init(&world.loop));
    world.hook = (struct hook){
        .name = "event",
        .url = world.server.url,
        .signer = {.secret = &world.secret},
        .time_limit_ms = time_limit_ms,
        .gate = hook_gate_make("event", &config),
        .client = http_client_make(&world.loop, in_flight_max),
        .loop = &world.loop,
        .random = &world.random,
        .metrics = &world.metrics,
    };
    assert_true(event_hook_init(&world.events, &world.hook, in_flight_max, 1));
    return 0;
}

static int set_up(void **state)
{
    (void)state;
    return set_up_with(8, 20000);
}

static int tear_down(void **state)
{
    (void)state;
    world.hook.closed = true;
    http_client_free(&world.hook.client);
    assert_int_equal(world.events.lanes.size, 0);
    assert_int_equal(world.events.waiting_bytes, 0);
    event_hook_free(&world.events);
    webhook_signer_free(&world.hook.signer);
    hook_gate_free(&world.hook.gate);
    script_server_stop(&world.server);
    loop_free(&world.loop);
    return 0;
}

static void on_event(void *arg, const struct event_answer *answer)
{
    (void)arg;
    world.results[world.answers++] = answer->result;
}

static void ask(const char *user, uint8_t connection, const char *name)
{
    struct event_question question = {.user_id = slice_of(user),
                                      .device_id = SLICE("phone"),
                                      .conn_id = {.bytes = {connection}},
                                      .name = slice_of(name),
                                      .data = SLICE_NONE,
                                      .args = SLICE_NONE};
    event_hook_ask(&world.events, &question, on_event, NULL);
}

static void run_until(size_t answers)
{
    for (int i = 0; i < TURNS_MAX && world.answers < answers; i++) {
        loop_turn(&world.loop, TURN_MS);
        script_server_serve(&world.server);
    }
    assert_int_equal(world.answers, answers);
}

static void settle(void)
{
    for (int i = 0; i < 20; i++) {
        loop_turn(&world.loop, TURN_MS);
        script_server_serve(&world.server);
    }
}

static void events_of_a_connection_wait_for_one_another_and_others_do_not(void **state)
{
    (void)state;
    script_server_then(&world.server, NULL); /* never answered */
    script_server_then(&world.server, OK_ANSWER);
    ask("alice", 1, "first");
    settle();
    ask("alice", 1, "second");
    ask("bob", 2, "other");
    run_until(1);
    assert_int_equal(world.results[0], EVENT_ANSWERED);
    assert_int_equal(world.server.request_count, 2);
    assert_non_null(strstr(world.server.requests[1], "\"other\""));
}

static void answers_come_in_order_and_lanes_end(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++)
        script_server_then(&world.server, OK_ANSWER);
    for (int i = 0; i < 5; i++)
        ask("alice", 1, (const char *[]){"a0", "a1", "a2", "a3", "a4"}[i]);
    assert_true(world.events.waiting_bytes > 0);
    run_until(5);
    for (size_t i = 0; i < 5; i++) {
        char name[] = {'a', (char)('0' + i), 0};
        assert_non_null(strstr(world.server.requests[i], name));
    }
    assert_int_equal(world.events.lanes.size, 0);
}

static void one_user_has_a_share_of_what_is_in_flight(void **state)
{
    (void)state;
    ask("alice", 1, "x");
    ask("alice", 2, "x");
    assert_int_equal(world.answers, 0);
    ask("alice", 3, "x");
    assert_int_equal(world.answers, 1);
    assert_int_equal(world.results[0], EVENT_BUSY);
    ask("bob", 4, "x");
    assert_int_equal(world.answers, 1);
}

static void breaker_refuses_what_waits_too(void **state)
{
    (void)state;
    script_server_then(&world.server, FAILURE);
    script_server_then(&world.server, FAILURE);
    for (int i = 0; i < 4; i++)
        ask("alice", 1, "x");
    run_until(4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(world.results[i], EVENT_FAILED);
    assert_int_equal(world.server.request_count, 2);
    assert_true(hook_gate_is_shut(world.hook.gate, world.loop.clock.now_ms));
}

static void event_that_waited_as_long_as_an_answer_may_take_is_refused_unasked(void **state)
{
    (void)state;
    world.hook.time_limit_ms = 300;
    ask("alice", 1, "slow");
    world.hook.time_limit_ms = 20; /* of those that wait */
    ask("alice", 1, "late");
    run_until(2);
    assert_int_equal(world.results[0], EVENT_FAILED);
    assert_int_equal(world.results[1], EVENT_BUSY);
    assert_int_equal(world.server.request_count, 1);
}

static void events_that_wait_at_the_end_are_answered_once(void **state)
{
    (void)state;
    ask("alice", 1, "x");
    ask("alice", 1, "x");
    ask("alice", 1, "x");
    settle();
    world.hook.closed = true;
    http_client_free(&world.hook.client);
    assert_int_equal(world.answers, 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(events_of_a_connection_wait_for_one_another_and_others_do_not),
        TEST(answers_come_in_order_and_lanes_end),
        TEST(one_user_has_a_share_of_what_is_in_flight),
        TEST(breaker_refuses_what_waits_too),
        TEST(event_that_waited_as_long_as_an_answer_may_take_is_refused_unasked),
        TEST(events_that_wait_at_the_end_are_answered_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
