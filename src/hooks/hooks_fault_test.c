/* Asks the application while an allocation fails: each question is answered exactly once, and nothing is left behind. */
#include "hooks/connect_hook.h"
#include "hooks/event_hook.h"
#include "support/alloc_fault.h"
#include "support/script_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define ANSWER                                                                                     \
    "HTTP/1.1 200 OK\r\nContent-Length: 35\r\n\r\n{\"allow\":true,\"display_name\":\"Alice\"}"

enum { TURN_MS = 5, TURNS_MAX = 3000, QUESTIONS = 3 };

static struct script_server server;

static void on_fault_event(void *arg, const struct event_answer *answer)
{
    (void)answer;
    ++*(int *)arg;
}

static void on_fault_connect(void *arg, const struct connect_answer *answer)
{
    assert_true(answer->verdict != CONNECT_REFUSED);
    ++*(int *)arg;
}

static void ask_all(struct hook *hook, struct event_hook *events, int *answers)
{
    struct identity identity = {.user = "alice", .user_len = 5};
    struct ulid conn_id = {.bytes = {1}};
    struct event_question question = {.user_id = SLICE("alice"),
                                      .device_id = SLICE("phone"),
                                      .conn_id = conn_id,
                                      .name = SLICE("x"),
                                      .data = SLICE("1"),
                                      .args = SLICE("1")};
    event_hook_ask(events, &question, on_fault_event, answers);
    event_hook_ask(events, &question, on_fault_event, answers);
    connect_hook_ask(hook, &identity, SLICE("phone"), &conn_id, on_fault_connect, answers);
}

static size_t ask_once(alloc_fault_start fail_at, size_t n)
{
    struct config_hooks config = {.in_flight_max = 8, .circuit_breaker = {1000, 60000, 60000, 1}};
    struct loop loop;
    struct random random;
    struct metrics metrics = {0};
    struct webhook_secret secret = {.len = 16};
    struct event_hook events;
    int answers = 0;
    random_init_system(&random);
    script_server_start(&server);
    for (int i = 0; i < QUESTIONS; i++)
        script_server_then(&server, ANSWER);
    assert_true(loop_init(&loop));
    struct hook hook = {.name = "event",
                        .url = server.url,
                        .signer = {.secret = &secret},
                        .time_limit_ms = 20000,
                        .client = http_client_make(&loop, 8),
                        .loop = &loop,
                        .random = &random,
                        .metrics = &metrics};
    hook.gate = hook_gate_make("event", &config);
    assert_true(event_hook_init(&events, &hook, 8, 1));
    fail_at(n);
    ask_all(&hook, &events, &answers);
    for (int i = 0; i < TURNS_MAX && answers < QUESTIONS; i++) {
        loop_turn(&loop, TURN_MS);
        script_server_serve(&server);
    }
    size_t failed = alloc_fault_off();
    assert_int_equal(answers, QUESTIONS);
    assert_int_equal(events.lanes.size, 0);
    http_client_free(&hook.client);
    event_hook_free(&events);
    webhook_signer_free(&hook.signer);
    hook_gate_free(&hook.gate);
    loop_free(&loop);
    script_server_stop(&server);
    return failed;
}

static void questions_without_memory_are_answered_once(void **state)
{
    (void)state;
    assert_true(alloc_fault_sweep(alloc_fault_after, ask_once) > 8);
    assert_true(alloc_fault_sweep(alloc_fault_from, ask_once) > 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(questions_without_memory_are_answered_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
