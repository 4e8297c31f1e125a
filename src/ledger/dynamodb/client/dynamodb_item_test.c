/* Items as DynamoDB writes them: what is written, and that reading it gives the same again. */
#include "ledger/dynamodb/client/dynamodb_item.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    struct clock clock;
    struct ledger_client ledger_client;
    struct dynamodb_client client;
    struct dynamodb_task task;
};

static int make_fixture(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){.client = {.table_prefix = "test-"}};
    fixture.ledger_client.clock = &fixture.clock;
    fixture.task = (struct dynamodb_task){
        .client = &fixture.client,
        .request = ledger_request_make(&fixture.ledger_client, LEDGER_SETTINGS_GET, NULL)};
    *state = &fixture.task;
    return 0;
}

static int free_fixture(void **state)
{
    struct dynamodb_task *task = *state;
    ledger_request_free(task->request);
    dynamodb_task_end(task);
    return 0;
}

static void expect_body(struct dynamodb_task *task, const char *expected)
{
    buffer_append_byte(&task->body, '\0');
    assert_string_equal(task->body.data, expected);
    buffer_clear(&task->body);
}

/* The text is copied: reading changes it in place. */
static struct dynamodb_item read_text(struct dynamodb_task *task, struct slice text, bool *is_whole)
{
    struct slice copy = ledger_request_copy(task->request, text);
    struct dynamodb_item item = {0};
    struct json json;
    json_init(&json, (char *)copy.data, copy.len);
    dynamodb_read_item(task, &json, &item);
    *is_whole = json_done(&json);
    return item;
}

/* Writes a value and reads it again. */
static struct dynamodb_item store_and_read(struct dynamodb_task *task, struct dynamodb_value value)
{
    bool is_whole;
    buffer_clear(&task->body);
    dynamodb_write_values(task, (struct dynamodb_values){&value, 1});
    struct dynamodb_item item = read_text(task, buffer_slice(&task->body), &is_whole);
    assert_true(is_whole);
    return item;
}

static void test_keys_have_the_parts_of_their_table(void **state)
{
    struct dynamodb_task *task = *state;
    struct dynamodb_key message = {DYNAMODB_MESSAGES, SLICE("c1"), SLICE_NONE, 47};
    struct dynamodb_key counter = {DYNAMODB_CHAT_COUNTERS, SLICE("c1"), SLICE_NONE, 0};
    struct dynamodb_key settings = {DYNAMODB_USERS, SLICE("alice"), SLICE("settings"), 0};
    dynamodb_write_key(task, &message);
    expect_body(task, "{\"chat_id\":{\"S\":\"c1\"},\"sequence\":{\"N\":\"47\"}}");
    dynamodb_write_key(task, &counter);
    expect_body(task, "{\"chat_id\":{\"S\":\"c1\"}}");
    dynamodb_write_key(task, &settings);
    expect_body(task, "{\"user_id\":{\"S\":\"alice\"},\"part_key\":{\"S\":\"settings\"}}");
    assert_false(task->invalid);
}

static void test_item_is_its_key_and_its_attributes(void **state)
{
    struct dynamodb_task *task = *state;
    struct dynamodb_key key = {DYNAMODB_CHAT_COUNTERS, SLICE("c1"), SLICE_NONE, 0};
    dynamodb_write_item(task, &key,
                        DYNAMODB_VALUES(DYNAMODB_NUMBER("sequence_counter", -1),
                                        DYNAMODB_TEXT("body_text", SLICE(""))));
    expect_body(task, "{\"chat_id\":{\"S\":\"c1\"},\"sequence_counter\":{\"N\":\"-1\"},"
                      "\"body_text\":{\"S\":\"\"}}");
    dynamodb_write_values(task, DYNAMODB_NO_VALUES);
    expect_body(task, "{}");
    dynamodb_write_table(task, DYNAMODB_USERS);
    expect_body(task, "\"TableName\":\"test-users\"");
}

static void test_texts_are_read_as_they_were_written(void **state)
{
    const struct slice texts[] = {
        SLICE(""),
        SLICE("plain"),
        SLICE("\"quotes\" and \\backslashes\\"),
        SLICE("lines\r\n\ttabs\b\f"),
        SLICE("\0 and \x01\x1f\x7f"),
        SLICE("\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80"),
        SLICE("</script>{\"S\":\"x\"}"),
    };
    struct dynamodb_task *task = *state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct dynamodb_item item = store_and_read(task, DYNAMODB_TEXT("body_text", texts[i]));
        assert_true(dynamodb_item_exists(&item));
        assert_true(slice_equal(dynamodb_item_text(&item, "body_text"), texts[i]));
    }
    assert_false(task->invalid);
}

static void test_text_that_is_not_utf8_makes_the_task_invalid(void **state)
{
    struct dynamodb_task *task = *state;
    static const char *const wrong[] = {"\xff", "a\xc3", "\xed\xa0\x80", "\xc0\x80", "\xf5\x80"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct dynamodb_key partition = {DYNAMODB_USERS, slice_of(wrong[i]), SLICE("settings"), 0};
        struct dynamodb_key sort = {DYNAMODB_USERS, SLICE("alice"), slice_of(wrong[i]), 0};
        task->invalid = false;
        store_and_read(task, DYNAMODB_TEXT("body_text", slice_of(wrong[i])));
        assert_true(task->invalid);
        task->invalid = false;
        dynamodb_write_key(task, &partition);
        assert_true(task->invalid);
        task->invalid = false;
        dynamodb_write_key(task, &sort);
        assert_true(task->invalid);
    }
}

static void test_numbers_are_whole_up_to_their_limits(void **state)
{
    static const int64_t numbers[] = {
        0, 1, -1, INT32_MAX, INT64_MAX, -INT64_MAX, INT64_MIN, (int64_t)1 << 53, 1763400000000};
    struct dynamodb_task *task = *state;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        struct dynamodb_item item = store_and_read(task, DYNAMODB_NUMBER("sent_at_ms", numbers[i]));
        assert_true(dynamodb_item_number(&item, "sent_at_ms") == numbers[i]);
    }
}

static void test_missing_attributes_read_as_nothing(void **state)
{
    struct dynamodb_task *task = *state;
    struct dynamodb_item item = store_and_read(task, DYNAMODB_TEXT("body_text", SLICE("x")));
    struct dynamodb_item none = {0};
    assert_true(dynamodb_item_has(&item, "body_text"));
    assert_false(dynamodb_item_has(&item, "body"));
    assert_null(dynamodb_item_text(&item, "body").data);
    assert_int_equal(dynamodb_item_number(&item, "body"), 0);
    assert_int_equal(dynamodb_item_number(&item, "body_text"), 0);
    assert_false(dynamodb_item_exists(&none));
    assert_null(dynamodb_item_text(&none, "body_text").data);
}

static void test_attributes_of_other_types_read_as_empty(void **state)
{
    struct dynamodb_task *task = *state;
    bool is_whole;
    struct dynamodb_item item =
        read_text(task,
                  SLICE("{\"a\":{\"BOOL\":true},\"b\":{\"L\":[{\"S\":\"x\"}]},\"c\":{\"M\":{}},"
                        "\"d\":{\"NULL\":true},\"e\":{},\"f\":{\"N\":\"7\"}}"),
                  &is_whole);
    assert_true(is_whole);
    assert_int_equal(item.count, 6);
    for (size_t i = 0; i < item.count - 1; i++)
        assert_int_equal(item.attributes[i].text.len, 0);
    assert_int_equal(dynamodb_item_number(&item, "f"), 7);
}

static void test_broken_items_are_noticed(void **state)
{
    static const char *const wrong[] = {"",
                                        "{",
                                        "[]",
                                        "{\"a\"}",
                                        "{\"a\":7}",
                                        "{\"a\":\"x\"}",
                                        "{\"a\":[]}",
                                        "{\"a\":{\"S\":\"x}}",
                                        "{\"a\":{\"S\":\"x\"}}}",
                                        "<html>"};
    struct dynamodb_task *task = *state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        bool is_whole;
        read_text(task, slice_of(wrong[i]), &is_whole);
        assert_false(is_whole);
    }
}

static void test_no_two_pairs_of_ids_are_the_same(void **state)
{
    static const struct slice pairs[][2] = {{{"a", 1}, {"b:c", 3}},  {{"a:b", 3}, {"c", 1}},
                                            {{"a:b:c", 5}, {"", 0}}, {{"", 0}, {"a:b:c", 5}},
                                            {{"x\0y", 3}, {"z", 1}}, {{"x\0w", 3}, {"z", 1}},
                                            {{"x", 1}, {"\0yz", 3}}, {{"x", 1}, {"\0wz", 3}}};
    enum { COUNT = sizeof(pairs) / sizeof(pairs[0]) };
    struct dynamodb_task *task = *state;
    struct slice keys[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        keys[i] = dynamodb_pair(task, pairs[i][0], pairs[i][1]);
        for (size_t j = 0; j < i; j++)
            assert_false(slice_equal(keys[i], keys[j]));
    }
    assert_true(slice_is(dynamodb_pair(task, SLICE("alice"), SLICE("bob")), "5:alice:bob"));
    assert_true(slice_is(dynamodb_join(task, "member#", SLICE("alice")), "member#alice"));
}

int main(void)
{
#define ITEM_TEST(name) cmocka_unit_test_setup_teardown(name, make_fixture, free_fixture)
    const struct CMUnitTest tests[] = {
        ITEM_TEST(test_keys_have_the_parts_of_their_table),
        ITEM_TEST(test_item_is_its_key_and_its_attributes),
        ITEM_TEST(test_texts_are_read_as_they_were_written),
        ITEM_TEST(test_text_that_is_not_utf8_makes_the_task_invalid),
        ITEM_TEST(test_numbers_are_whole_up_to_their_limits),
        ITEM_TEST(test_missing_attributes_read_as_nothing),
        ITEM_TEST(test_attributes_of_other_types_read_as_empty),
        ITEM_TEST(test_broken_items_are_noticed),
        ITEM_TEST(test_no_two_pairs_of_ids_are_the_same),
    };
#undef ITEM_TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
