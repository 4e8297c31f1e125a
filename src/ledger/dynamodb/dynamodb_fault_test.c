/* The ledger on DynamoDB while memory runs out: it does not open, or what it writes and reads is known to be incomplete. */
#include "ledger/dynamodb/dynamodb_ledger.h"

#include "ledger/dynamodb/client/dynamodb_item.h"
#include "ledger/dynamodb/dynamodb_turns.h"
#include "support/alloc_fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct config_dynamodb SETTINGS = {.retry = {3, 100, 5000},
                                                .transaction_conflict = {5, 50}};

/* ---- opening ---- */

static size_t open_and_close(alloc_fault_start fail_at, size_t n)
{
    char error[DYNAMODB_LEDGER_ERROR_TEXT_MAX] = "";
    fail_at(n);
    struct ledger *ledger =
        dynamodb_ledger_open("dynamodb://local?endpoint=http://127.0.0.1:9", &SETTINGS, error);
    size_t failed = alloc_fault_off();
    assert_true(ledger || failed > 0);
    if (ledger)
        ledger_close(&ledger);
    else
        assert_non_null(strstr(error, "out of memory"));
    return failed;
}

static void test_ledger_without_memory_does_not_open(void **state)
{
    (void)state;
    assert_true(alloc_fault_sweep(alloc_fault_after, open_and_close) > 4);
    alloc_fault_sweep(alloc_fault_from, open_and_close);
}

/* ---- items ---- */

struct fixture {
    struct clock clock;
    struct ledger_client ledger_client;
    struct dynamodb_client client;
    struct dynamodb_task task;
};

static void make_task(struct fixture *fixture)
{
    *fixture = (struct fixture){.client = {.table_prefix = "test-"}};
    fixture->ledger_client.clock = &fixture->clock;
    fixture->task = (struct dynamodb_task){
        .client = &fixture->client,
        .request = ledger_request_make(&fixture->ledger_client, LEDGER_SETTINGS_GET, NULL)};
}

static void free_task(struct fixture *fixture)
{
    ledger_request_free(fixture->task.request);
    dynamodb_task_end(&fixture->task);
}

static size_t write_item(alloc_fault_start fail_at, size_t n)
{
    struct fixture fixture;
    make_task(&fixture);
    struct dynamodb_task *task = &fixture.task;
    fail_at(n);
    struct dynamodb_key key = {DYNAMODB_USERS, dynamodb_pair(task, SLICE("a"), SLICE("b")),
                               dynamodb_join(task, "member#", SLICE("alice")), 0};
    dynamodb_write_item(task, &key, DYNAMODB_VALUES(DYNAMODB_NUMBER("since_ms", INT64_MAX)));
    size_t failed = alloc_fault_off();
    assert_int_equal(task->body.failed || task->request->exhausted, failed > 0);
    if (!failed)
        assert_true(slice_is(buffer_slice(&task->body),
                             "{\"user_id\":{\"S\":\"1:a:b\"},\"part_key\":{\"S\":\"member#alice\"},"
                             "\"since_ms\":{\"N\":\"9223372036854775807\"}}"));
    free_task(&fixture);
    return failed;
}

static size_t read_item(alloc_fault_start fail_at, size_t n)
{
    char text[2048] = "{", *end = text + 1;
    struct fixture fixture;
    struct dynamodb_item item = {0};
    struct json json;
    make_task(&fixture);
    for (int i = 0; i < 40; i++)
        end += snprintf(end, sizeof(text) - (size_t)(end - text), "%s\"a%d\":{\"N\":\"%d\"}",
                        i ? "," : "", i, i);
    *end++ = '}';
    json_init(&json, text, (size_t)(end - text));
    fail_at(n);
    dynamodb_read_item(&fixture.task, &json, &item);
    size_t failed = alloc_fault_off();
    assert_true(json_done(&json));
    assert_int_equal(fixture.task.request->exhausted, failed > 0);
    if (!failed)
        assert_int_equal(dynamodb_item_number(&item, "a39"), 39);
    free_task(&fixture);
    return failed;
}

static void test_incomplete_items_are_noticed(void **state)
{
    (void)state;
    assert_true(alloc_fault_sweep(alloc_fault_after, write_item) > 1);
    alloc_fault_sweep(alloc_fault_from, write_item);
    assert_true(alloc_fault_sweep(alloc_fault_after, read_item) > 1);
    alloc_fault_sweep(alloc_fault_from, read_item);
}

/* ---- turns ---- */

/* Without memory to make the second wait it starts at once, and both end. */
static void test_turns_without_memory_keep_nobody_waiting(void **state)
{
    struct ledger_request first = {.operation = LEDGER_BLOCK_PUT, .input.user = SLICE("alice")};
    struct ledger_request second = first;
    struct dynamodb_turns turns;
    (void)state;
    assert_true(dynamodb_turns_init(&turns, 1));
    alloc_fault_from(1);
    assert_true(dynamodb_turns_take(&turns, &first));
    assert_true(dynamodb_turns_take(&turns, &second));
    assert_int_equal(alloc_fault_off(), 2);
    assert_null(dynamodb_turns_next(&turns, &first));
    assert_null(dynamodb_turns_next(&turns, &second));
    dynamodb_turns_free(&turns);
}

static void test_requests_of_one_user_take_turns(void **state)
{
    struct ledger_request first = {.operation = LEDGER_BLOCK_PUT, .input.user = SLICE("alice")};
    struct ledger_request second = first, third = first, other = first, read = first;
    struct dynamodb_turns turns;
    (void)state;
    other.input.user = SLICE("bob");
    read.operation = LEDGER_BLOCKS_LIST;
    assert_true(dynamodb_turns_init(&turns, 1));
    assert_true(dynamodb_turns_take(&turns, &first));
    assert_false(dynamodb_turns_take(&turns, &second));
    assert_false(dynamodb_turns_take(&turns, &third));
    assert_true(dynamodb_turns_take(&turns, &other));
    assert_true(dynamodb_turns_take(&turns, &read));
    assert_ptr_equal(dynamodb_turns_next(&turns, &first), &second);
    assert_ptr_equal(dynamodb_turns_next(&turns, &second), &third);
    assert_null(dynamodb_turns_next(&turns, &other));
    assert_null(dynamodb_turns_next(&turns, &read));
    assert_null(dynamodb_turns_next(&turns, &third));
    assert_true(dynamodb_turns_take(&turns, &first));
    assert_null(dynamodb_turns_next(&turns, &first));
    dynamodb_turns_free(&turns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ledger_without_memory_does_not_open),
        cmocka_unit_test(test_incomplete_items_are_noticed),
        cmocka_unit_test(test_turns_without_memory_keep_nobody_waiting),
        cmocka_unit_test(test_requests_of_one_user_take_turns),
    };
    setenv("AWS_ACCESS_KEY_ID", "test", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "test", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
