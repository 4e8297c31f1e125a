#include "ledger/last_seen.h"

#include "ledger/ledger_request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* A backend that holds one batch until the test answers it. */
struct stub {
    struct ledger base;
    struct ledger_request *request;
    unsigned batches;
};

static void stub_submit(struct ledger *ledger, struct ledger_request *request)
{
    struct stub *stub = (struct stub *)ledger;
    assert_null(stub->request); /* one in flight at a time */
    assert_int_equal(request->operation, LEDGER_LAST_SEEN_PUT);
    stub->request = request;
    stub->batches++;
}

static void complete_at_once(void *arg, struct ledger_request *done)
{
    (void)arg;
    ledger_complete(done);
}

struct fixture {
    struct stub stub;
    struct clock clock;
    struct ledger_client client;
    struct last_seen last_seen;
};

static int set_up(void **state)
{
    static const struct ledger_backend backend = {.submit = stub_submit};
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    fixture->stub.base.backend = &backend;
    ledger_client_init(&fixture->client, &fixture->stub.base, &fixture->clock, complete_at_once,
                       NULL);
    assert_true(last_seen_init(&fixture->last_seen, &fixture->client, 1));
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    last_seen_free(&fixture->last_seen);
    free(fixture);
    return 0;
}

static void advance_clock(struct fixture *fixture, int64_t ms)
{
    fixture->clock.now_ms += ms;
    last_seen_tick(&fixture->last_seen);
}

static void answer_batch(struct fixture *fixture, enum ledger_status status)
{
    struct ledger_request *request = fixture->stub.request;
    assert_non_null(request);
    fixture->stub.request = NULL;
    ledger_request_fail(request, status);
    ledger_request_finish(request);
}

static void note_many(struct fixture *fixture, int count, int64_t seen_ms)
{
    char user[24];
    for (int i = 0; i < count; i++) {
        snprintf(user, sizeof(user), "user-%d", i);
        last_seen_note(&fixture->last_seen, slice_of(user), seen_ms, (uint64_t)seen_ms);
    }
}

static void test_notes_of_one_user_become_one_entry(void **state)
{
    struct fixture *fixture = *state;
    last_seen_note(&fixture->last_seen, SLICE("alice"), 10, 1);
    last_seen_note(&fixture->last_seen, SLICE("alice"), 30, 3);
    last_seen_note(&fixture->last_seen, SLICE("alice"), 20, 2);
    assert_int_equal(last_seen_due_ms(&fixture->last_seen), LAST_SEEN_HOLD_MS);
    advance_clock(fixture, LAST_SEEN_HOLD_MS - 1);
    assert_null(fixture->stub.request);
    advance_clock(fixture, 1);
    const struct ledger_request_input *input = &fixture->stub.request->input;
    assert_int_equal(input->seen_count, 1);
    assert_true(slice_is(input->seen[0].user, "alice"));
    assert_int_equal(input->seen[0].last_seen_ms, 30);
    assert_int_equal(input->seen[0].presence_version, 3);
    answer_batch(fixture, LEDGER_OK);
    assert_true(last_seen_idle(&fixture->last_seen));
    assert_int_equal(last_seen_due_ms(&fixture->last_seen), INT64_MAX);
}

static void test_many_users_become_few_batches(void **state)
{
    struct fixture *fixture = *state;
    note_many(fixture, 10 * LEDGER_LAST_SEEN_BATCH_MAX, 5);
    advance_clock(fixture, LAST_SEEN_HOLD_MS);
    while (fixture->stub.request)
        answer_batch(fixture, LEDGER_OK);
    assert_int_equal(fixture->stub.batches, 10);
    assert_true(last_seen_idle(&fixture->last_seen));
}

static void test_note_during_a_batch_goes_into_the_next_one(void **state)
{
    struct fixture *fixture = *state;
    note_many(fixture, 2, 5);
    advance_clock(fixture, LAST_SEEN_HOLD_MS);
    last_seen_note(&fixture->last_seen, SLICE("user-1"), 9, 9);
    answer_batch(fixture, LEDGER_OK);
    assert_null(fixture->stub.request); /* it waits like any other note */
    advance_clock(fixture, LAST_SEEN_HOLD_MS);
    assert_int_equal(fixture->stub.request->input.seen_count, 1);
    assert_int_equal(fixture->stub.request->input.seen[0].last_seen_ms, 9);
    answer_batch(fixture, LEDGER_OK);
    assert_true(last_seen_idle(&fixture->last_seen));
}

static void test_failed_batch_is_retried(void **state)
{
    struct fixture *fixture = *state;
    note_many(fixture, 3, 5);
    advance_clock(fixture, LAST_SEEN_HOLD_MS);
    answer_batch(fixture, LEDGER_UNAVAILABLE);
    advance_clock(fixture, LAST_SEEN_RETRY_MS - 1);
    assert_null(fixture->stub.request);
    advance_clock(fixture, 1);
    assert_int_equal(fixture->stub.request->input.seen_count, 3);
    answer_batch(fixture, LEDGER_OK);
    assert_true(last_seen_idle(&fixture->last_seen));
}

static void test_flush_sends_at_once(void **state)
{
    struct fixture *fixture = *state;
    note_many(fixture, 1, 5);
    last_seen_flush(&fixture->last_seen);
    last_seen_note(&fixture->last_seen, SLICE("late"), 6, 6);
    answer_batch(fixture, LEDGER_OK);
    assert_non_null(fixture->stub.request);
    answer_batch(fixture, LEDGER_OK);
    assert_true(last_seen_idle(&fixture->last_seen));
}

static void test_users_beyond_the_bound_are_dropped(void **state)
{
    struct fixture *fixture = *state;
    note_many(fixture, LAST_SEEN_USERS_MAX + 5, 5);
    assert_int_equal(fixture->last_seen.dropped, 5);
    note_many(fixture, 1, 7); /* known users are still noted */
    assert_int_equal(fixture->last_seen.dropped, 5);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_notes_of_one_user_become_one_entry),
        TEST(test_many_users_become_few_batches),
        TEST(test_note_during_a_batch_goes_into_the_next_one),
        TEST(test_failed_batch_is_retried),
        TEST(test_flush_sends_at_once),
        TEST(test_users_beyond_the_bound_are_dropped),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
