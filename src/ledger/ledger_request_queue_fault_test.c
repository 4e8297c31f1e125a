/* The queue while memory runs out: it refuses what it cannot keep, and what it has stays in order. */
#include "ledger/ledger_request_queue.h"

#include "support/alloc_fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { COUNT_MAX = 64 };

static _Atomic int64_t gauge;
static _Atomic uint64_t over_share;

static bool init_queue(struct ledger_request_queue *queue)
{
    return ledger_request_queue_init(
        queue, &(struct ledger_request_queue_options){.count_max = COUNT_MAX,
                                                      .slice_cost = UINT64_MAX,
                                                      .gauge = &gauge,
                                                      .over_share = &over_share});
}

static size_t init_and_destroy(alloc_fault_start fail_at, size_t n)
{
    struct ledger_request_queue queue;
    fail_at(n);
    bool made = init_queue(&queue);
    size_t failed = alloc_fault_off();
    assert_int_equal(made, failed == 0);
    if (made)
        ledger_request_queue_destroy(&queue);
    return failed;
}

static void test_queue_without_memory_is_not_made(void **state)
{
    (void)state;
    assert_int_equal(alloc_fault_sweep(alloc_fault_after, init_and_destroy), LEDGER_LANES + 1);
}

static void test_user_without_memory_is_refused_and_others_go_on(void **state)
{
    struct ledger_request_queue queue;
    struct ledger_request first = {.operation = LEDGER_MESSAGE_APPEND,
                                   .input.user = SLICE("alice")};
    struct ledger_request second = first, other = first;
    (void)state;
    other.input.user = SLICE("bob");
    assert_true(init_queue(&queue));
    assert_true(ledger_request_queue_put(&queue, &first));
    alloc_fault_from(1);
    assert_false(ledger_request_queue_put(&queue, &other));
    assert_true(ledger_request_queue_put(&queue, &second)); /* alice's flow exists */
    assert_int_equal(alloc_fault_off(), 1);
    assert_ptr_equal(ledger_request_queue_take(&queue, 1), &first);
    assert_ptr_equal(ledger_request_queue_take(&queue, 1), &second);
    assert_int_equal(gauge, 0);
    assert_int_equal(over_share, 0);
    ledger_request_queue_destroy(&queue);
}

static void test_request_that_cannot_be_put_back_stays_with_its_taker(void **state)
{
    struct ledger_request_queue queue;
    struct ledger_request request = {.operation = LEDGER_CHAT_CREATE, .input.user = SLICE("alice")};
    (void)state;
    assert_true(init_queue(&queue));
    assert_true(ledger_request_queue_put(&queue, &request));
    assert_ptr_equal(ledger_request_queue_take(&queue, 1), &request);
    alloc_fault_from(1);
    assert_false(ledger_request_queue_put_back(&queue, &request)); /* alice's flow is gone */
    assert_int_equal(alloc_fault_off(), 1);
    assert_int_equal(gauge, 0);
    assert_true(ledger_request_queue_put_back(&queue, &request));
    assert_ptr_equal(ledger_request_queue_take(&queue, 1), &request);
    ledger_request_queue_destroy(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_queue_without_memory_is_not_made),
        cmocka_unit_test(test_user_without_memory_is_refused_and_others_go_on),
        cmocka_unit_test(test_request_that_cannot_be_put_back_stays_with_its_taker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
