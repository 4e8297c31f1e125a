#include "ledger/breaker_ledger.h"

#include "ledger/ledger_request.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { THREADS = 4, CALLS_PER_THREAD = 2000 };

/* A ledger that answers as it is told, or keeps requests to itself. */
struct script {
    struct ledger ledger;
    _Atomic int status;
    bool holding;
    struct ledger_request *held;
    _Atomic unsigned asked;
};

/* A worker that completes what is posted when it is asked to. */
struct worker {
    struct ledger_client client;
    struct clock clock;
    struct ledger_request *posted;
    unsigned answers[LEDGER_STATUS_COUNT];
};

static _Atomic int64_t now_ms;

static int64_t read_now(void)
{
    return now_ms;
}

static void script_submit(struct ledger *ledger, struct ledger_request *request)
{
    struct script *script = (struct script *)ledger;
    script->asked++;
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

static void post(void *arg, struct ledger_request *done)
{
    struct worker *worker = arg;
    while (done) {
        struct ledger_request *next = done->next;
        done->next = worker->posted;
        worker->posted = done;
        done = next;
    }
}

static void answered(void *arg, const struct ledger_append_outcome *outcome)
{
    ((struct worker *)arg)->answers[outcome->status]++;
}

static void page_answered(void *arg, const struct ledger_messages_outcome *outcome)
{
    ((struct worker *)arg)->answers[outcome->status]++;
}

static void complete(struct worker *worker)
{
    struct ledger_request *posted = worker->posted;
    worker->posted = NULL;
    ledger_complete(posted);
}

static void append(struct worker *worker)
{
    ledger_message_append(&worker->client, SLICE("c"), SLICE("alice"), SLICE("1"), SLICE("m"),
                          SLICE("body"), answered, worker);
}

static void release(struct script *script, enum ledger_status status)
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
    struct worker worker;
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
    fixture->guarded = breaker_ledger_make(&fixture->script.ledger, &limits, read_now);
    ledger_client_init(&fixture->worker.client, fixture->guarded, &fixture->worker.clock, post,
                       &fixture->worker);
    now_ms = 1000;
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    complete(&fixture->worker);
    assert_int_equal(fixture->worker.client.outstanding, 0);
    ledger_close(&fixture->guarded);
    free(fixture);
    return 0;
}

static void fail_five_times(struct fixture *fixture)
{
    fixture->script.status = LEDGER_UNAVAILABLE;
    for (int i = 0; i < 5; i++)
        append(&fixture->worker);
    complete(&fixture->worker);
    assert_int_equal(breaker_ledger_state(fixture->guarded), BREAKER_OPEN);
}

static void test_failures_open_it_and_writes_are_refused_at_once(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(ledger_retry_after_ms(&fixture->worker.client), 0);
    fail_five_times(fixture);
    assert_int_equal(ledger_retry_after_ms(&fixture->worker.client), 30000);
    append(&fixture->worker);
    complete(&fixture->worker);
    assert_int_equal(fixture->worker.answers[LEDGER_UNAVAILABLE], 6);
    assert_int_equal(fixture->script.asked, 5);
}

static void test_reads_pass_and_do_not_count(void **state)
{
    struct fixture *fixture = *state;
    fixture->script.status = LEDGER_UNAVAILABLE;
    for (int i = 0; i < 20; i++)
        ledger_messages_after(&fixture->worker.client, SLICE("c"), SLICE_NONE, 0, 1, page_answered,
                              &fixture->worker);
    complete(&fixture->worker);
    assert_int_equal(breaker_ledger_state(fixture->guarded), BREAKER_CLOSED);
    fail_five_times(fixture);
    ledger_messages_after(&fixture->worker.client, SLICE("c"), SLICE_NONE, 0, 1, page_answered,
                          &fixture->worker);
    assert_int_equal(fixture->script.asked, 26);
}

static void test_refusals_are_answers_and_busy_is_none(void **state)
{
    struct fixture *fixture = *state;
    const enum ledger_status harmless[] = {LEDGER_HALTED, LEDGER_FORBIDDEN, LEDGER_NOT_FOUND,
                                           LEDGER_BUSY, LEDGER_OK};
    for (int i = 0; i < 50; i++) {
        fixture->script.status = harmless[i % 5];
        append(&fixture->worker);
    }
    ledger_message_append(&fixture->worker.client, SLICE_NONE, SLICE("alice"), SLICE("1"),
                          SLICE("m"), SLICE("body"), answered, &fixture->worker);
    complete(&fixture->worker);
    assert_int_equal(breaker_ledger_state(fixture->guarded), BREAKER_CLOSED);
    assert_int_equal(fixture->worker.answers[LEDGER_INVALID], 1);
}

static void test_time_outs_count_once_whatever_comes_later(void **state)
{
    struct fixture *fixture = *state;
    fixture->script.holding = true;
    for (int i = 0; i < 5; i++)
        append(&fixture->worker);
    fixture->worker.clock.now_ms += LEDGER_TIME_LIMIT_MS;
    ledger_client_expire(&fixture->worker.client);
    assert_int_equal(fixture->worker.answers[LEDGER_TIMEOUT], 5);
    assert_int_equal(breaker_ledger_state(fixture->guarded), BREAKER_OPEN);
    release(&fixture->script, LEDGER_OK);
    complete(&fixture->worker);
    assert_int_equal(fixture->worker.answers[LEDGER_OK], 0);
    assert_int_equal(breaker_ledger_state(fixture->guarded), BREAKER_OPEN);
}

static void test_a_failure_after_its_time_out_is_the_same_failure(void **state)
{
    struct fixture *fixture = *state;
    fixture->script.holding = true;
    for (int i = 0; i < 3; i++)
        append(&fixture->worker);
    fixture->worker.clock.now_ms += LEDGER_TIME_LIMIT_MS;
    ledger_client_expire(&fixture->worker.client);
    release(&fixture->script, LEDGER_UNAVAILABLE);
    assert_int_equal(breaker_ledger_state(fixture->guarded), BREAKER_CLOSED);
}

static void test_a_probe_ends_the_outage(void **state)
{
    struct fixture *fixture = *state;
    fail_five_times(fixture);
    now_ms += 30000;
    fixture->script.holding = true;
    append(&fixture->worker);
    append(&fixture->worker); /* one probe at a time */
    assert_int_equal(fixture->script.asked, 6);
    assert_int_equal(ledger_retry_after_ms(&fixture->worker.client), 1000);
    release(&fixture->script, LEDGER_OK);
    assert_int_equal(breaker_ledger_state(fixture->guarded), BREAKER_CLOSED);
    assert_int_equal(ledger_retry_after_ms(&fixture->worker.client), 0);
}

/* ---- threads ---- */

static void *call_often(void *arg)
{
    struct fixture *fixture = arg;
    struct worker worker = {0};
    ledger_client_init(&worker.client, fixture->guarded, &worker.clock, post, &worker);
    for (int i = 0; i < CALLS_PER_THREAD; i++) {
        now_ms += 10;
        fixture->script.status = i % 3 ? LEDGER_UNAVAILABLE : LEDGER_OK;
        append(&worker);
        complete(&worker);
    }
    assert_true(worker.answers[LEDGER_OK] + worker.answers[LEDGER_UNAVAILABLE] == CALLS_PER_THREAD);
    return NULL;
}

static void test_workers_share_it(void **state)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_often, *state), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_failures_open_it_and_writes_are_refused_at_once,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_reads_pass_and_do_not_count, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refusals_are_answers_and_busy_is_none, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_time_outs_count_once_whatever_comes_later, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_failure_after_its_time_out_is_the_same_failure,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_probe_ends_the_outage, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_workers_share_it, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
