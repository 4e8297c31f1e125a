#include "ledger/breaker_ledger.h"

#include "ledger/ledger_request.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { THREADS = 4, APPENDS_PER_THREAD = 2000 };

/* A ledger that answers every request with `status`, or holds it. */
struct script {
    struct ledger ledger;
    _Atomic int status;
    bool holding;
    struct ledger_request *held;
    _Atomic unsigned submitted;
};

/* Holds a client and completes its posted requests on demand. */
struct requester {
    struct ledger_client client;
    struct clock clock;
    struct ledger_request *posted;
    unsigned answers[LEDGER_STATUS_COUNT];
};

static _Atomic int64_t now_ms;

static int64_t read_test_clock_ms(void)
{
    return now_ms;
}

static void script_submit(struct ledger *ledger, struct ledger_request *request)
{
    struct script *script = (struct script *)ledger;
    script->submitted++;
    if (script->holding) {
        request->next = script->held;
        script->held = request;
        return;
    }
    ledger_request_fail(request, (enum ledger_status)script->status);
    ledger_request_finish(request);
}

static void script_close(struct ledger *ledger)
{
    (void)ledger;
}

static const struct ledger_backend SCRIPT = {.submit = script_submit, .close = script_close};

static void post_to_requester(void *arg, struct ledger_request *done)
{
    struct requester *requester = arg;
    while (done) {
        struct ledger_request *next = done->next;
        done->next = requester->posted;
        requester->posted = done;
        done = next;
    }
}

static void on_appended(void *arg, const struct ledger_append_outcome *outcome)
{
    ((struct requester *)arg)->answers[outcome->status]++;
}

static void on_messages_read(void *arg, const struct ledger_messages_outcome *outcome)
{
    ((struct requester *)arg)->answers[outcome->status]++;
}

static void complete_posted(struct requester *requester)
{
    struct ledger_request *posted = requester->posted;
    requester->posted = NULL;
    ledger_complete(posted);
}

static void append_message(struct requester *requester)
{
    ledger_message_append(&requester->client, SLICE("c"), SLICE("alice"), SLICE("1"), SLICE("m"),
                          SLICE("body"), on_appended, requester);
}

static void release_held(struct script *script, enum ledger_status status)
{
    struct ledger_request *held = script->held;
    script->held = NULL;
    for (struct ledger_request *request = held; request; request = request->next)
        ledger_request_fail(request, status);
    ledger_request_finish(held);
}

struct fixture {
    struct script script;
    struct ledger *guarded;
    struct requester requester;
};

static int set_up(void **state)
{
    const struct breaker_limits limits = {.failure_threshold = 5,
                                          .probe_count = 1,
                                          .failure_window_ms = 30000,
                                          .open_duration_ms = 30000};
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    assert_non_null(fixture);
    fixture->script.ledger.backend = &SCRIPT;
    fixture->script.status = LEDGER_OK;
    fixture->guarded = breaker_ledger_make(&fixture->script.ledger, &limits, read_test_clock_ms);
    ledger_client_init(&fixture->requester.client, fixture->guarded, &fixture->requester.clock,
                       post_to_requester, &fixture->requester);
    now_ms = 1000;
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    complete_posted(&fixture->requester);
    assert_int_equal(fixture->requester.client.outstanding, 0);
    ledger_close(&fixture->guarded);
    free(fixture);
    return 0;
}

static void fail_five_times(struct fixture *fixture)
{
    fixture->script.status = LEDGER_UNAVAILABLE;
    for (int i = 0; i < 5; i++)
        append_message(&fixture->requester);
    complete_posted(&fixture->requester);
    assert_int_equal(breaker_ledger_state(fixture->guarded), BREAKER_OPEN);
}

static void test_failures_open_breaker_and_writes_fail_at_once(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(ledger_retry_after_ms(&fixture->requester.client), 0);
    fail_five_times(fixture);
    assert_int_equal(ledger_retry_after_ms(&fixture->requester.client), 30000);
    append_message(&fixture->requester);
    complete_posted(&fixture->requester);
    assert_int_equal(fixture->requester.answers[LEDGER_UNAVAILABLE], 6);
    assert_int_equal(fixture->script.submitted, 5);
}

static void test_reads_pass_and_do_not_count(void **state)
{
    struct fixture *fixture = *state;
    fixture->script.status = LEDGER_UNAVAILABLE;
    for (int i = 0; i < 20; i++)
        ledger_messages_after(&fixture->requester.client, SLICE("c"), SLICE_NONE, 0, 1,
                              on_messages_read, &fixture->requester);
    complete_posted(&fixture->requester);
    assert_int_equal(breaker_ledger_state(fixture->guarded), BREAKER_CLOSED);
    fail_five_times(fixture);
    ledger_messages_after(&fixture->requester.client, SLICE("c"), SLICE_NONE, 0, 1,
                          on_messages_read, &fixture->requester);
    assert_int_equal(fixture->script.submitted, 26);
}

static void test_refusals_count_as_success_and_busy_as_neither(void **state)
{
    struct fixture *fixture = *state;
    const enum ledger_status harmless[] = {LEDGER_HALTED, LEDGER_FORBIDDEN, LEDGER_NOT_FOUND,
                                           LEDGER_BUSY, LEDGER_OK};
    for (int i = 0; i < 50; i++) {
        fixture->script.status = harmless[i % 5];
        append_message(&fixture->requester);
    }
    ledger_message_append(&fixture->requester.client, SLICE_NONE, SLICE("alice"), SLICE("1"),
                          SLICE("m"), SLICE("body"), on_appended, &fixture->requester);
    complete_posted(&fixture->requester);
    assert_int_equal(breaker_ledger_state(fixture->guarded), BREAKER_CLOSED);
    assert_int_equal(fixture->requester.answers[LEDGER_INVALID], 1);
}

static void test_timeouts_count_once_whatever_answer_follows(void **state)
{
    struct fixture *fixture = *state;
    fixture->script.holding = true;
    for (int i = 0; i < 5; i++)
        append_message(&fixture->requester);
    fixture->requester.clock.now_ms += LEDGER_TIME_LIMIT_MS;
    ledger_client_expire(&fixture->requester.client);
    assert_int_equal(fixture->requester.answers[LEDGER_TIMEOUT], 5);
    assert_int_equal(breaker_ledger_state(fixture->guarded), BREAKER_OPEN);
    release_held(&fixture->script, LEDGER_OK);
    complete_posted(&fixture->requester);
    assert_int_equal(fixture->requester.answers[LEDGER_OK], 0);
    assert_int_equal(breaker_ledger_state(fixture->guarded), BREAKER_OPEN);
}

/* The ledger works, so whoever waited too long asked for too much, or stood behind somebody who did. */
static void test_timeouts_while_other_writes_take_effect_do_not_count(void **state)
{
    struct fixture *fixture = *state;
    fixture->script.holding = true;
    for (int i = 0; i < 20; i++)
        append_message(&fixture->requester);
    fixture->script.holding = false;
    fixture->script.status = LEDGER_BUSY; /* no evidence that the ledger works */
    append_message(&fixture->requester);
    fixture->script.status = LEDGER_FORBIDDEN; /* an answer like any other */
    append_message(&fixture->requester);
    complete_posted(&fixture->requester);
    fixture->requester.clock.now_ms += LEDGER_TIME_LIMIT_MS;
    ledger_client_expire(&fixture->requester.client);
    assert_int_equal(fixture->requester.answers[LEDGER_TIMEOUT], 20);
    assert_int_equal(breaker_ledger_state(fixture->guarded), BREAKER_CLOSED);
    release_held(&fixture->script, LEDGER_TIMEOUT);
}

static void test_failure_after_its_timeout_is_not_counted_again(void **state)
{
    struct fixture *fixture = *state;
    fixture->script.holding = true;
    for (int i = 0; i < 3; i++)
        append_message(&fixture->requester);
    fixture->requester.clock.now_ms += LEDGER_TIME_LIMIT_MS;
    ledger_client_expire(&fixture->requester.client);
    release_held(&fixture->script, LEDGER_UNAVAILABLE);
    assert_int_equal(breaker_ledger_state(fixture->guarded), BREAKER_CLOSED);
}

static void test_successful_probe_closes_breaker(void **state)
{
    struct fixture *fixture = *state;
    fail_five_times(fixture);
    now_ms += 30000;
    fixture->script.holding = true;
    append_message(&fixture->requester);
    append_message(&fixture->requester); /* one probe at a time */
    assert_int_equal(fixture->script.submitted, 6);
    assert_int_equal(ledger_retry_after_ms(&fixture->requester.client), 1000);
    release_held(&fixture->script, LEDGER_OK);
    assert_int_equal(breaker_ledger_state(fixture->guarded), BREAKER_CLOSED);
    assert_int_equal(ledger_retry_after_ms(&fixture->requester.client), 0);
}

/* ---- threads ---- */

static void *append_from_thread(void *arg)
{
    struct fixture *fixture = arg;
    struct requester requester = {0};
    ledger_client_init(&requester.client, fixture->guarded, &requester.clock, post_to_requester,
                       &requester);
    for (int i = 0; i < APPENDS_PER_THREAD; i++) {
        now_ms += 10;
        fixture->script.status = i % 3 ? LEDGER_UNAVAILABLE : LEDGER_OK;
        append_message(&requester);
        complete_posted(&requester);
    }
    assert_true(requester.answers[LEDGER_OK] + requester.answers[LEDGER_UNAVAILABLE] ==
                APPENDS_PER_THREAD);
    return NULL;
}

static void test_breaker_is_safe_for_several_threads(void **state)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, append_from_thread, *state), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_failures_open_breaker_and_writes_fail_at_once, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_reads_pass_and_do_not_count, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refusals_count_as_success_and_busy_as_neither, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_timeouts_count_once_whatever_answer_follows, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_timeouts_while_other_writes_take_effect_do_not_count,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_failure_after_its_timeout_is_not_counted_again, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_successful_probe_closes_breaker, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_breaker_is_safe_for_several_threads, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
