/* Operations while memory runs out: each is answered once, from outside its function. */
#include "support/alloc_fault.h"
#include "support/script_ledger.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct answers {
    struct script_ledger script;
    unsigned count[LEDGER_STATUS_COUNT];
    unsigned again; /* operations that completions still have to start */
};

static void append_message(struct answers *answers);

static void on_appended(void *arg, const struct ledger_append_outcome *outcome)
{
    struct answers *answers = arg;
    answers->count[outcome->status]++;
    assert_int_equal(outcome->sequence, 0);
    if (answers->again > 0) {
        answers->again--;
        append_message(answers);
    }
}

static void append_message(struct answers *answers)
{
    ledger_message_append(&answers->script.client, SLICE("chat"), SLICE("alice"), SLICE("1"),
                          SLICE("id"), SLICE("body"), on_appended, answers);
}

static void on_contacts_listed(void *arg, const struct ledger_ids_outcome *outcome)
{
    assert_int_equal(outcome->count, 0);
    ((struct answers *)arg)->count[outcome->status]++;
}

static void init_answers(struct answers *answers)
{
    *answers = (struct answers){0};
    script_ledger_init(&answers->script);
}

static void test_operation_without_memory_is_answered_busy(void **state)
{
    (void)state;
    struct answers answers;
    init_answers(&answers);
    alloc_fault_from(1);
    append_message(&answers);
    ledger_contacts_list(&answers.script.client, SLICE("alice"), on_contacts_listed, &answers);
    assert_int_equal(alloc_fault_off(), 2); /* no memory was requested for their ids */
    assert_int_equal(answers.count[LEDGER_BUSY], 0);
    assert_int_equal(ledger_client_deadline_ms(&answers.script.client),
                     answers.script.clock.now_ms);
    ledger_client_expire(&answers.script.client);
    assert_int_equal(answers.count[LEDGER_BUSY], 2);
    assert_int_equal(ledger_metrics(&answers.script.ledger)->answers[LEDGER_BUSY], 2);
    assert_int_equal(ledger_client_deadline_ms(&answers.script.client), INT64_MAX);
    assert_int_equal(answers.script.submitted[LEDGER_MESSAGE_APPEND], 0);
    append_message(&answers);
    script_ledger_turn(&answers.script);
    assert_int_equal(answers.count[LEDGER_OK], 1);
}

static void test_operation_from_a_refused_completion_is_answered_next_time(void **state)
{
    (void)state;
    struct answers answers;
    init_answers(&answers);
    answers.again = 2;
    alloc_fault_from(1);
    append_message(&answers);
    for (unsigned expected = 1; expected <= 3; expected++) {
        ledger_client_expire(&answers.script.client);
        assert_int_equal(answers.count[LEDGER_BUSY], expected);
    }
    assert_int_equal(alloc_fault_off(), 3);
    assert_int_equal(answers.script.client.refusal_count, 0);
}

static void test_any_number_of_refusals_is_answered(void **state)
{
    enum { OPERATIONS = 3 * LEDGER_REFUSALS_MAX + 1 };
    (void)state;
    struct answers answers;
    init_answers(&answers);
    alloc_fault_from(1);
    for (int i = 0; i < LEDGER_REFUSALS_MAX; i++)
        append_message(&answers);
    assert_int_equal(answers.count[LEDGER_BUSY], 0);
    append_message(&answers); /* answers the others, not itself */
    assert_int_equal(answers.count[LEDGER_BUSY], LEDGER_REFUSALS_MAX);
    for (int i = LEDGER_REFUSALS_MAX + 1; i < OPERATIONS; i++)
        append_message(&answers);
    alloc_fault_off();
    ledger_client_expire(&answers.script.client);
    assert_int_equal(answers.count[LEDGER_BUSY], OPERATIONS);
    assert_int_equal(ledger_metrics(&answers.script.ledger)->answers[LEDGER_BUSY], OPERATIONS);
    assert_int_equal(ledger_client_deadline_ms(&answers.script.client), INT64_MAX);
}

static void test_repeated_operations_beyond_the_bound_are_answered(void **state)
{
    enum { OPERATIONS = LEDGER_REFUSALS_MAX + 1, AGAIN = 5 * LEDGER_REFUSALS_MAX };
    (void)state;
    struct answers answers;
    init_answers(&answers);
    answers.again = AGAIN;
    alloc_fault_from(1);
    for (int i = 0; i < OPERATIONS; i++)
        append_message(&answers);
    for (int i = 0; answers.script.client.refusal_count > 0 && i < AGAIN; i++)
        ledger_client_expire(&answers.script.client);
    assert_int_equal(alloc_fault_off(), OPERATIONS + AGAIN);
    assert_int_equal(answers.count[LEDGER_BUSY], OPERATIONS + AGAIN);
}

static void test_operation_without_memory_for_ids_is_unavailable(void **state)
{
    (void)state;
    struct answers answers;
    init_answers(&answers);
    alloc_fault_after(2);
    append_message(&answers);
    assert_int_equal(alloc_fault_off(), 1);
    script_ledger_turn(&answers.script);
    assert_int_equal(answers.count[LEDGER_UNAVAILABLE], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operation_without_memory_is_answered_busy),
        cmocka_unit_test(test_operation_from_a_refused_completion_is_answered_next_time),
        cmocka_unit_test(test_any_number_of_refusals_is_answered),
        cmocka_unit_test(test_repeated_operations_beyond_the_bound_are_answered),
        cmocka_unit_test(test_operation_without_memory_for_ids_is_unavailable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
