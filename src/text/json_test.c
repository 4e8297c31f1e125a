#include "text/json.h"

#include "text/json_test_input.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void errors_say_what_was_expected_and_where(void **state)
{
    (void)state;
    static const struct {
        struct slice text;
        const char *error;
        size_t error_at;
    } cases[] = {
        {SLICE(""), "a value", 0},
        {SLICE("  ?"), "a value", 2},
        {SLICE("[1 2]"), "',' or ']'", 3},
        {SLICE("[1,]"), "a value", 3},
        {SLICE("{\"a\":1 2}"), "',' or '}'", 7},
        {SLICE("{\"a\":1,}"), "a key", 7},
        {SLICE("{\"a\" 1}"), "':'", 5},
        {SLICE("[-]"), "a number", 1},
        {SLICE("[trux]"), "true or false", 1},
        {SLICE("[nope]"), "null", 1},
        {SLICE("[\"abc"), "the end of the string", 5},
        {SLICE("[\"ab\\x\"]"), "a valid escape sequence", 4},
        {SLICE("[\"ab\xff\"]"), "valid UTF-8", 4},
        {SLICE("[\"ab\n\"]"), "control characters to be escaped", 4},
        {SLICE("[] []"), "the end of the input", 3},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct json_test_input input = json_test_input(cases[i].text);
        json_skip(&input.json);
        assert_false(json_done(&input.json));
        assert_string_equal(input.json.error, cases[i].error);
        assert_int_equal(input.json.error_at, cases[i].error_at);
        free(input.data);
    }
}

static bool read_string(struct slice text, struct buffer *out)
{
    struct json_test_input input = json_test_input(text);
    struct slice value = SLICE_NONE;
    buffer_clear(out);
    json_string(&input.json, &value);
    buffer_append_slice(out, value);
    bool done = json_done(&input.json);
    free(input.data);
    return done;
}

static void strings_are_unescaped_in_place(void **state)
{
    (void)state;
    static const struct {
        struct slice text;
        struct slice value;
    } cases[] = {
        {SLICE("\"\""), SLICE("")},
        {SLICE("\"abc\""), SLICE("abc")},
        {SLICE("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), SLICE("\"\\/\b\f\n\r\t")},
        {SLICE("\"a\\nb\""), SLICE("a\nb")},
        {SLICE("\"\\u0041\\u00e9\\u20ac\\u20AC\""), SLICE("A\xc3\xa9\xe2\x82\xac\xe2\x82\xac")},
        {SLICE("\"x\\u0000y\""), SLICE("x\0y")},
        {SLICE("\"\\u007f\\u0080\\u07ff\\u0800\\uffff\""),
         SLICE("\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf")},
        {SLICE("\"\\ud7ff\\ue000\""), SLICE("\xed\x9f\xbf\xee\x80\x80")},
        {SLICE("\"<\\ud83d\\ude00>\""), SLICE("<\xf0\x9f\x98\x80>")},
        {SLICE("\"\\ud800\\udc00\\udbff\\udfff\""), SLICE("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf")},
        {SLICE("\"\xc3\xa9\\n\xf0\x9f\x98\x80\\\\u0041\""),
         SLICE("\xc3\xa9\n\xf0\x9f\x98\x80\\u0041")},
        {SLICE("\"a long run of plain text, then \\u0041, then another long one\""),
         SLICE("a long run of plain text, then A, then another long one")},
    };
    struct buffer value = BUFFER_INIT;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_true(read_string(cases[i].text, &value));
        assert_true(slice_equal(buffer_slice(&value), cases[i].value));
    }
    buffer_free(&value);
}

static void returned_slice_lies_within_the_input(void **state)
{
    (void)state;
    char text[] = "[\"plain\",\"\\u0041\\n\"]";
    struct json json;
    struct slice plain, unescaped;
    json_init(&json, text, sizeof(text) - 1);
    assert_true(json_array(&json) && json_element(&json) && json_string(&json, &plain));
    assert_true(json_element(&json) && json_string(&json, &unescaped));
    assert_false(json_element(&json));
    assert_true(json_done(&json));
    assert_ptr_equal(plain.data, text + 2);
    assert_ptr_equal(unescaped.data, text + 10);
    assert_true(slice_is(unescaped, "A\n"));
}

static bool read_int(const char *text, int64_t *value)
{
    struct json_test_input input = json_test_input(slice_of(text));
    json_int(&input.json, value);
    bool done = json_done(&input.json);
    free(input.data);
    return done;
}

static void extreme_integers_are_exact(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t value;
    } cases[] = {
        {"0", 0},
        {"-0", 0},
        {" 7 ", 7},
        {"-1", -1},
        {"9007199254740993", 9007199254740993},
        {"999999999999999999", 999999999999999999},
        {"9223372036854775807", INT64_MAX},
        {"-9223372036854775808", INT64_MIN},
        {"-9223372036854775807", -INT64_MAX},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t value;
        assert_true(read_int(cases[i].text, &value));
        assert_true(value == cases[i].value);
    }
}

static void int_refuses_other_numbers(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "9223372036854775808",
        "-9223372036854775809",
        "9999999999999999999",
        "10000000000000000000",
        "18446744073709551617",
        "100000000000000000000000000000",
        "1.0",
        "1e3",
        "1E3",
        "0.5",
        "01",
        "-01",
        "00",
        "-",
        "",
        "+1",
        "\"1\"",
        "true",
        "null",
        "1a",
        "[1]",
        "0000000000000000000000000",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        int64_t value;
        if (read_int(texts[i], &value))
            fail_msg("accepted %s", texts[i]);
    }
}

static bool read_double(struct slice text, double *value)
{
    struct json_test_input input = json_test_input(text);
    json_double(&input.json, value);
    bool done = json_done(&input.json);
    free(input.data);
    return done;
}

static void double_is_the_nearest_value(void **state)
{
    (void)state;
    double value;
    assert_true(read_double(SLICE("0.1"), &value) && value == 0.1);
    assert_true(read_double(SLICE("-0"), &value) && value == 0 && signbit(value));
    assert_true(read_double(SLICE("1e3"), &value) && value == 1000);
    assert_true(read_double(SLICE("12"), &value) && value == 12);
    assert_true(read_double(SLICE("1.7976931348623157e308"), &value) && isfinite(value));
    assert_true(read_double(SLICE("1e-400"), &value) && value == 0);
    assert_false(read_double(SLICE("1e400"), &value));
    assert_false(read_double(SLICE("-1e400"), &value));
    assert_false(read_double(SLICE("1.e3"), &value));
    assert_false(read_double(SLICE("nan"), &value));
    assert_false(read_double(SLICE("\"1\""), &value));
    char digits[JSON_DOUBLE_TEXT_MAX + 1];
    memset(digits, '1', sizeof(digits));
    assert_true(read_double((struct slice){digits, JSON_DOUBLE_TEXT_MAX}, &value));
    assert_false(read_double((struct slice){digits, JSON_DOUBLE_TEXT_MAX + 1}, &value));
}

static void peek_returns_the_next_type(void **state)
{
    (void)state;
    static const enum json_type types[] = {JSON_OBJECT, JSON_ARRAY, JSON_STRING, JSON_NUMBER,
                                           JSON_NUMBER, JSON_TRUE,  JSON_FALSE,  JSON_NULL};
    struct json_test_input input =
        json_test_input(SLICE("[ {} , [], \"\",-1,0, true,false,null,?]"));
    assert_int_equal(json_peek(&input.json), JSON_ARRAY);
    assert_true(json_array(&input.json));
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        assert_int_equal(json_peek(&input.json), JSON_INVALID);
        assert_true(json_element(&input.json));
        assert_int_equal(json_peek(&input.json), types[i]);
        assert_int_equal(json_peek(&input.json), types[i]);
        assert_true(json_skip(&input.json));
    }
    assert_true(json_element(&input.json));
    assert_int_equal(json_peek(&input.json), JSON_INVALID);
    assert_null(input.json.error);
    assert_false(json_skip(&input.json));
    assert_int_equal(json_peek(&input.json), JSON_INVALID);
    free(input.data);
}

static void json_members_come_in_order_with_duplicates(void **state)
{
    (void)state;
    struct json_test_input input =
        json_test_input(SLICE("{\"type\":\"a\",\"\\u0069d\":7,\"on\":true,\"id\":null,"
                              "\"rest\":{\"x\":[1,{\"y\":2}]},\"off\":false}"));
    struct slice key, text = SLICE_NONE;
    int64_t number = 0;
    bool flag = false;
    struct json *json = &input.json;
    assert_true(json_object(json));
    assert_true(json_member(json, &key) && slice_is(key, "type") && json_string(json, &text));
    assert_true(slice_is(text, "a"));
    assert_true(json_member(json, &key) && slice_is(key, "id") && json_int(json, &number));
    assert_int_equal(number, 7);
    assert_true(json_member(json, &key) && slice_is(key, "on") && json_bool(json, &flag) && flag);
    assert_true(json_member(json, &key) && slice_is(key, "id") && json_null(json));
    assert_true(json_member(json, &key) && slice_is(key, "rest") && json_skip(json));
    assert_true(json_member(json, &key) && slice_is(key, "off") && json_bool(json, &flag));
    assert_false(flag);
    assert_false(json_member(json, &key));
    assert_true(json_done(json));
    free(input.data);
}

static void every_read_refuses_other_types(void **state)
{
    (void)state;
    static const struct slice texts[] = {
        [JSON_OBJECT] = SLICE("{}"), [JSON_ARRAY] = SLICE("[]"),  [JSON_STRING] = SLICE("\"\""),
        [JSON_NUMBER] = SLICE("1"),  [JSON_TRUE] = SLICE("true"), [JSON_FALSE] = SLICE("false"),
        [JSON_NULL] = SLICE("null"),
    };
    struct slice text;
    int64_t integer;
    double number;
    bool flag;
    for (enum json_type type = JSON_OBJECT; type <= JSON_NULL; type++) {
        for (enum json_type asked = JSON_OBJECT; asked <= JSON_NULL; asked++) {
            struct json_test_input input = json_test_input(texts[type]);
            struct json twin = input.json;
            bool read = asked == JSON_OBJECT   ? json_object(&input.json)
                        : asked == JSON_ARRAY  ? json_array(&input.json)
                        : asked == JSON_STRING ? json_string(&input.json, &text)
                        : asked == JSON_NUMBER ? json_int(&input.json, &integer)
                        : asked == JSON_NULL   ? json_null(&input.json)
                                               : json_bool(&input.json, &flag);
            bool both_bool = (asked == JSON_TRUE || asked == JSON_FALSE) &&
                             (type == JSON_TRUE || type == JSON_FALSE);
            assert_int_equal(read, asked == type || both_bool);
            assert_int_equal(read, input.json.error == NULL);
            assert_int_equal(json_double(&twin, &number), type == JSON_NUMBER);
            free(input.data);
        }
    }
}

static void errors_are_sticky(void **state)
{
    (void)state;
    struct json_test_input input = json_test_input(SLICE("[1,true,\"x\",{},[],null]"));
    struct json *json = &input.json;
    struct slice text;
    int64_t integer;
    double number;
    bool flag;
    assert_true(json_array(json) && json_element(json));
    assert_false(json_string(json, &text));
    const char *error = json->error;
    assert_string_equal(error, "a string");
    assert_int_equal(json->error_at, 1);
    assert_false(json_int(json, &integer));
    assert_false(json_element(json));
    assert_false(json_member(json, &text));
    assert_false(json_bool(json, &flag));
    assert_false(json_double(json, &number));
    assert_false(json_null(json));
    assert_false(json_skip(json));
    assert_false(json_raw(json, &text));
    assert_false(json_object(json));
    assert_false(json_array(json));
    assert_int_equal(json_peek(json), JSON_INVALID);
    assert_false(json_done(json));
    assert_ptr_equal(json->error, error);
    assert_int_equal(json->error_at, 1);
    free(input.data);
}

/* A forgetful caller must not make the parser accept ungrammatical input. */
static void reading_a_value_twice_or_not_at_all_is_an_error(void **state)
{
    (void)state;
    struct slice key;
    int64_t number;
    struct json_test_input unread = json_test_input(SLICE("[,]"));
    assert_true(json_array(&unread.json));
    assert_true(json_element(&unread.json));
    assert_false(json_element(&unread.json));
    assert_non_null(unread.json.error);
    free(unread.data);

    struct json_test_input unread_member = json_test_input(SLICE("{\"a\":}"));
    assert_true(json_object(&unread_member.json));
    assert_true(json_member(&unread_member.json, &key));
    assert_false(json_member(&unread_member.json, &key));
    assert_non_null(unread_member.json.error);
    free(unread_member.data);

    struct json_test_input twice = json_test_input(SLICE("1 2"));
    assert_true(json_int(&twice.json, &number));
    assert_false(json_int(&twice.json, &number));
    free(twice.data);

    struct json_test_input first = json_test_input(SLICE("[1]"));
    assert_true(json_array(&first.json));
    assert_false(json_int(&first.json, &number));
    free(first.data);

    struct json_test_input left_early = json_test_input(SLICE("[1"));
    assert_true(json_array(&left_early.json) && json_element(&left_early.json));
    assert_true(json_int(&left_early.json, &number));
    assert_false(json_done(&left_early.json));
    free(left_early.data);

    struct json_test_input nothing_read = json_test_input(SLICE("  "));
    assert_false(json_done(&nothing_read.json));
    free(nothing_read.data);
}

static void raw_returns_the_bytes_unchanged(void **state)
{
    (void)state;
    static const struct slice text =
        SLICE("{ \"a\" : [ \"\\u0041\" , {\"\\n\":1} ] , \"b\": \"\\t\" }");
    struct json_test_input input = json_test_input(text);
    struct slice key, raw = SLICE_NONE;
    assert_true(json_object(&input.json));
    assert_true(json_member(&input.json, &key) && json_raw(&input.json, &raw));
    assert_true(slice_is(raw, "[ \"\\u0041\" , {\"\\n\":1} ]"));
    assert_true(json_member(&input.json, &key) && json_raw(&input.json, &raw));
    assert_true(slice_is(raw, "\"\\t\""));
    assert_false(json_member(&input.json, &key));
    assert_true(json_done(&input.json));
    assert_memory_equal(input.data, text.data, text.len);
    free(input.data);

    struct json_test_input broken = json_test_input(SLICE("[1,]"));
    assert_false(json_raw(&broken.json, &raw));
    free(broken.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_say_what_was_expected_and_where),
        cmocka_unit_test(strings_are_unescaped_in_place),
        cmocka_unit_test(returned_slice_lies_within_the_input),
        cmocka_unit_test(extreme_integers_are_exact),
        cmocka_unit_test(int_refuses_other_numbers),
        cmocka_unit_test(double_is_the_nearest_value),
        cmocka_unit_test(peek_returns_the_next_type),
        cmocka_unit_test(json_members_come_in_order_with_duplicates),
        cmocka_unit_test(every_read_refuses_other_types),
        cmocka_unit_test(errors_are_sticky),
        cmocka_unit_test(reading_a_value_twice_or_not_at_all_is_an_error),
        cmocka_unit_test(raw_returns_the_bytes_unchanged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
