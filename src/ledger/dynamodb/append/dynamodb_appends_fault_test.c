/* Gathering messages while memory runs out: a message that cannot be kept is refused as BUSY, and answered once. */
#include "ledger/dynamodb/append/dynamodb_appends.h"

#include "support/alloc_fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct fixture {
    struct loop loop;
    struct random random;
    struct dynamodb_client client;
    struct dynamodb_appends *appends;
    unsigned answers;
};

static void on_append_done(void *arg, struct ledger_request *request)
{
    struct fixture *fixture = arg;
    fixture->answers++;
    assert_int_equal(request->outcome.any.status, LEDGER_BUSY);
}

static int set_up(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){0};
    assert_true(loop_init(&fixture.loop));
    random_init_seeded(&fixture.random, 1);
    fixture.client = (struct dynamodb_client){.loop = &fixture.loop, .random = &fixture.random};
    fixture.appends = dynamodb_appends_make(&fixture.client, on_append_done, &fixture);
    assert_non_null(fixture.appends);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    dynamodb_appends_free(&fixture->appends);
    loop_free(&fixture->loop);
    return 0;
}

static struct ledger_request make_append(struct slice chat)
{
    return (struct ledger_request){.operation = LEDGER_MESSAGE_APPEND,
                                   .input = {.chat = chat,
                                             .user = SLICE("alice"),
                                             .client_message_id = SLICE("1"),
                                             .id = SLICE("1"),
                                             .text = SLICE("text")}};
}

static void test_chat_without_memory_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct ledger_request request = make_append(SLICE("c"));
    alloc_fault_from(1);
    dynamodb_appends_add(fixture->appends, &request);
    assert_true(alloc_fault_off() > 0);
    assert_int_equal(fixture->answers, 1);
}

static void test_chat_without_a_fiber_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct ledger_request first = make_append(SLICE("c")), second = make_append(SLICE("c"));
    dynamodb_appends_add(fixture->appends, &first);
    dynamodb_appends_add(fixture->appends, &second);
    assert_int_equal(fixture->answers, 0);
    alloc_fault_from(1);
    loop_turn(&fixture->loop, 0);
    assert_true(alloc_fault_off() > 0);
    assert_int_equal(fixture->answers, 2);
}

static struct fixture *swept;

static size_t make_and_free(alloc_fault_start fail_at, size_t n)
{
    fail_at(n);
    struct dynamodb_appends *appends = dynamodb_appends_make(&swept->client, on_append_done, swept);
    size_t failed = alloc_fault_off();
    assert_int_equal(appends != NULL, failed == 0);
    dynamodb_appends_free(&appends);
    return failed;
}

static void test_without_memory_nothing_is_made(void **state)
{
    swept = *state;
    assert_true(alloc_fault_sweep(alloc_fault_after, make_and_free) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_chat_without_memory_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_chat_without_a_fiber_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_without_memory_nothing_is_made, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
