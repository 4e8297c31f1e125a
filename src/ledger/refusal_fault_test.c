/* Calls while memory runs out: each is answered once, from outside the call. */
#include "support/alloc_fault.h"
#include "support/script_ledger.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct answers {
    struct script_ledger script;
    unsigned count[LEDGER_STATUS_COUNT];
    unsigned again; /* calls a completion is still to make */
};

static void append(struct answers *answers);

static void appended(void *arg, const struct ledger_append_outcome *outcome)
{
    struct answers *answers = arg;
    answers->count[outcome->status]++;
    assert_int_equal(outcome->sequence, 0);
    if (answers->again > 0) {
        answers->again--;
        append(answers);
    }
}

static void append(struct answers *answers)
{
    ledger_message_append(&answers->script.client, SLICE("chat"), SLICE("alice"), SLICE("1"),
                          SLICE("id"), SLICE("body"), appended, answers);
}

static void listed(void *arg, const struct ledger_ids_outcome *outcome)
{
    assert_int_equal(outcome->count, 0);
    ((struct answers *)arg)->count[outcome->status]++;
}

static void prepare(struct answers *answers)
{
    *answers = (struct answers){0};
    script_ledger_init(&answers->script);
}

static void without_a_request_the_answer_is_busy(void **state)
{
    (void)state;
    struct answers answers;
    prepare(&answers);
    alloc_fault_from(1);
    append(&answers);
    ledger_contacts_list(&answers.script.client, SLICE("alice"), listed, &answers);
    assert_int_equal(alloc_fault_off(), 2); /* and nothing was tried for their ids */
    assert_int_equal(answers.count[LEDGER_BUSY], 0);
    assert_int_equal(ledger_client_deadline_ms(&answers.script.client),
                     answers.script.clock.now_ms);
    ledger_client_expire(&answers.script.client);
    assert_int_equal(answers.count[LEDGER_BUSY], 2);
    assert_int_equal(ledger_metrics(&answers.script.ledger)->answers[LEDGER_BUSY], 2);
    assert_int_equal(ledger_client_deadline_ms(&answers.script.client), INT64_MAX);
    assert_int_equal(answers.script.asked[LEDGER_MESSAGE_APPEND], 0);
    append(&answers);
    script_ledger_turn(&answers.script);
    assert_int_equal(answers.count[LEDGER_OK], 1);
}

static void who_calls_again_from_a_refusal_is_answered_the_next_time(void **state)
{
    (void)state;
    struct answers answers;
    prepare(&answers);
    answers.again = 2;
    alloc_fault_from(1);
    append(&answers);
    for (unsigned expected = 1; expected <= 3; expected++) {
        ledger_client_expire(&answers.script.client);
        assert_int_equal(answers.count[LEDGER_BUSY], expected);
    }
    assert_int_equal(alloc_fault_off(), 3);
    assert_int_equal(answers.script.client.refusal_count, 0);
}

static void any_number_is_answered(void **state)
{
    enum { CALLS = 3 * LEDGER_REFUSALS_MAX + 1 };
    (void)state;
    struct answers answers;
    prepare(&answers);
    alloc_fault_from(1);
    for (int i = 0; i < LEDGER_REFUSALS_MAX; i++)
        append(&answers);
    assert_int_equal(answers.count[LEDGER_BUSY], 0);
    append(&answers); /* the others are answered, not this one */
    assert_int_equal(answers.count[LEDGER_BUSY], LEDGER_REFUSALS_MAX);
    for (int i = LEDGER_REFUSALS_MAX + 1; i < CALLS; i++)
        append(&answers);
    alloc_fault_off();
    ledger_client_expire(&answers.script.client);
    assert_int_equal(answers.count[LEDGER_BUSY], CALLS);
    assert_int_equal(ledger_metrics(&answers.script.ledger)->answers[LEDGER_BUSY], CALLS);
    assert_int_equal(ledger_client_deadline_ms(&answers.script.client), INT64_MAX);
}

static void who_calls_again_is_answered_also_beyond_the_room(void **state)
{
    enum { CALLS = LEDGER_REFUSALS_MAX + 1, AGAIN = 5 * LEDGER_REFUSALS_MAX };
    (void)state;
    struct answers answers;
    prepare(&answers);
    answers.again = AGAIN;
    alloc_fault_from(1);
    for (int i = 0; i < CALLS; i++)
        append(&answers);
    for (int i = 0; answers.script.client.refusal_count > 0 && i < AGAIN; i++)
        ledger_client_expire(&answers.script.client);
    assert_int_equal(alloc_fault_off(), CALLS + AGAIN);
    assert_int_equal(answers.count[LEDGER_BUSY], CALLS + AGAIN);
}

/* The request is there, its ids are not. */
static void without_memory_for_the_ids_it_is_unavailable(void **state)
{
    (void)state;
    struct answers answers;
    prepare(&answers);
    alloc_fault_after(2);
    append(&answers);
    assert_int_equal(alloc_fault_off(), 1);
    script_ledger_turn(&answers.script);
    assert_int_equal(answers.count[LEDGER_UNAVAILABLE], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_request_the_answer_is_busy),
        cmocka_unit_test(who_calls_again_from_a_refusal_is_answered_the_next_time),
        cmocka_unit_test(any_number_is_answered),
        cmocka_unit_test(who_calls_again_is_answered_also_beyond_the_room),
        cmocka_unit_test(without_memory_for_the_ids_it_is_unavailable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
