/* Tests which input the parser accepts and refuses; json_test.c tests what it returns. */
#include "text/json.h"

#include "base/random.h"
#include "text/json_test_input.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static bool is_valid(struct slice text)
{
    struct json_test_input input = json_test_input(text);
    bool skipped = json_skip(&input.json);
    bool valid = json_done(&input.json);
    assert_true(skipped || !valid);
    assert_int_equal(valid, input.json.error == NULL);
    if (text.len)
        assert_memory_equal(input.data, text.data, text.len);
    free(input.data);
    return valid;
}

static const char *const valid_texts[] = {
    "0",
    "-0",
    "7",
    "-12",
    "0.5",
    "-0.0e-0",
    "1e5",
    "1E+5",
    "10.25e-3",
    "123456789012345678901234567890",
    "true",
    "false",
    "null",
    "\"\"",
    "\"plain\"",
    "\"\x7f\"",
    "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
    "\"\\u0000\\uffff\\uABcd\"",
    "\"\\ud800\\udc00\\uDBFF\\uDFFF\"",
    "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"",
    "\"12345678\xc3\xa9x2345678\\n12345678\"",
    "[]",
    "{}",
    "[[],{}]",
    " [ 1 , 2 ] ",
    "\t\r\n{ \"a\" : 1 , \"a\" : [ ] }\n",
    "{\"\":0}",
    "[null,true,false,\"x\",-1.5e2,{\"k\":[{}]}]",
    "{\"\\u0061\":1}",
    "\"\xef\xbb\xbf\"",
};

static const char *const invalid_nothing[] = {
    "", " ", "\xef\xbb\xbf[]", "\xa0[]", "\f1",
};

static const char *const invalid_numbers[] = {
    "-",    "+1",   "01", "-01", "00",  ".5",  "1.",       "1.e5",      "1e",    "1e+",   "1e-",
    "1ee5", "0x10", "1a", "--1", "1 2", "NaN", "Infinity", "-Infinity", "1.2.3", "1_000", "-.5",
};

static const char *const invalid_literals[] = {
    "t", "tru", "truE", "True", "truee", "fals", "falsy", "nul", "nulll", "undefined", "true false",
};

static const char *const invalid_strings[] = {
    "\"",
    "\"abc",
    "\"abcdefghijk",
    "'a'",
    "\"a\nb\"",
    "\"a\tb\"",
    "\"12345678\x1f\"",
    "\"\\",
    "\"\\\"",
    "\"\\x41\"",
    "\"\\a\"",
    "\"\\'\"",
    "\"\\N\"",
    "\"\\u\"",
    "\"\\u12\"",
    "\"\\u123",
    "\"\\u12g4\"",
    "\"\\u 123\"",
    "\"\\U0041\"",
    "\"\\u+041\"",
    "\"\\ud800\"",
    "\"\\udc00\"",
    "\"\\udc00\\ud800\"",
    "\"\\udc00\\udc00\"",
    "\"\\ud800x\"",
    "\"\\ud800\\n\"",
    "\"\\ud800\\ud800\"",
    "\"\\ud800\\u0041\"",
    "\"\\ud800\\udc0",
    "\"\\ud800\\ue000\"",
    "\"\\ud800\\udbff\"",
    "\"\x80\"",
    "\"\xc0\x80\"",
    "\"\xc1\xbf\"",
    "\"\xc3\"",
    "\"\xc3",
    "\"\xe2\x82\"",
    "\"\xe2\x82",
    "\"\xe0\x9f\xbf\"",
    "\"\xed\xa0\x80\"",
    "\"\xf0\x8f\xbf\xbf\"",
    "\"\xf4\x90\x80\x80\"",
    "\"\xf5\x80\x80\x80\"",
    "\"\xf0\x9f\x98\"",
    "\"\xff\"",
    "\"12345678\xfe\"",
    "\xc3\xa9",
};

static const char *const invalid_arrays[] = {
    "[",     "]",   "[1",    "[1,", "[1,]", "[,1]",      "[,]",   "[1,,2]",
    "[1 2]", "[1}", "[1:2]", "[]]", "[[]",  "[\"a\":1]", "[1;2]",
};

static const char *const invalid_objects[] = {
    "{",
    "}",
    "{]",
    "{\"a\"",
    "{\"a\":",
    "{\"a\":}",
    "{\"a\"}",
    "{\"a\" 1}",
    "{\"a\":1",
    "{\"a\":1,",
    "{\"a\":1,}",
    "{,\"a\":1}",
    "{\"a\":1 \"b\":2}",
    "{\"a\":1,,\"b\":2}",
    "{a:1}",
    "{1:1}",
    "{null:1}",
    "{\"a\":1]",
    "{\"a\"::1}",
    "{\"a\":1}}",
    "{\"a\":1} x",
    "{'a':1}",
    "{\"a\nb\":1}",
    "{\"\\ud800\":1}",
    "/* */1",
    "1//",
};

static const struct slice invalid_with_nul[] = {
    SLICE("\0"),
    SLICE("\"a\0b\""),
    SLICE("\"\\\0\""),
    SLICE("[1]\0"),
};

static void grammatical_input_is_accepted(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(valid_texts) / sizeof(valid_texts[0]); i++) {
        if (!is_valid(slice_of(valid_texts[i])))
            fail_msg("refused %s", valid_texts[i]);
    }
    assert_true(is_valid(SLICE("\"\\u0000\"")));
}

static void assert_all_refused(const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (is_valid(slice_of(texts[i])))
            fail_msg("accepted %s", texts[i]);
    }
}

#define ASSERT_ALL_REFUSED(texts) assert_all_refused(texts, sizeof(texts) / sizeof(texts[0]))

static void ungrammatical_input_is_refused(void **state)
{
    (void)state;
    ASSERT_ALL_REFUSED(invalid_nothing);
    ASSERT_ALL_REFUSED(invalid_numbers);
    ASSERT_ALL_REFUSED(invalid_literals);
    ASSERT_ALL_REFUSED(invalid_strings);
    ASSERT_ALL_REFUSED(invalid_arrays);
    ASSERT_ALL_REFUSED(invalid_objects);
    for (size_t i = 0; i < sizeof(invalid_with_nul) / sizeof(invalid_with_nul[0]); i++)
        assert_false(is_valid(invalid_with_nul[i]));
}

/* A prefix of a number may be a number, but no prefix of a container is a container. */
static void prefix_of_a_container_is_refused(void **state)
{
    (void)state;
    static const struct slice text =
        SLICE("{\"a\\u00e9\":[1.5e3,true,null,\"\xc3\xa9\"],\"b\":{}}");
    for (size_t len = 0; len < text.len; len++)
        assert_false(is_valid(slice_first(text, len)));
    assert_true(is_valid(text));
}

static void nesting(char *text, unsigned depth, const char *open, const char *close)
{
    text[0] = '\0';
    for (unsigned i = 0; i < depth; i++)
        strcat(text, open);
    strcat(text, "0");
    for (unsigned i = 0; i < depth; i++)
        strcat(text, close);
}

static void lone_surrogate_differs_from_an_invalid_escape(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool beyond;
    } cases[] = {
        {"\"\\ud83d\"", true},       {"\"\\ude00\"", true}, {"[\"\\ud83d\\u0041\"]", true},
        {"\"\\ud83\"", false},       {"\"\\x\"", false},    {"\"\\ud83d\\ude00", false},
        {"\"\xed\xa0\xbd\"", false}, {"[1,]", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct json_test_input input = json_test_input(slice_of(cases[i].text));
        assert_false(json_skip(&input.json));
        if (input.json.beyond != cases[i].beyond)
            fail_msg("%s", cases[i].text);
        free(input.data);
    }
}

static void wrappable_value_leaves_levels_for_its_wrapping(void **state)
{
    (void)state;
    char text[JSON_DEPTH_MAX * 8 + 2];
    nesting(text, JSON_DEPTH_MAX - JSON_WRAPPING_MAX, "{\"a\":", "}");
    assert_true(json_can_be_wrapped(slice_of(text)));
    nesting(text, JSON_DEPTH_MAX - JSON_WRAPPING_MAX + 1, "[", "]");
    assert_false(json_can_be_wrapped(slice_of(text)));
    assert_true(json_can_be_wrapped(SLICE("1")));
}

static void nesting_is_bounded(void **state)
{
    (void)state;
    char text[(JSON_DEPTH_MAX + 1) * 8 + 2];
    nesting(text, JSON_DEPTH_MAX, "[", "]");
    assert_true(is_valid(slice_of(text)));
    nesting(text, JSON_DEPTH_MAX, "{\"a\":", "}");
    assert_true(is_valid(slice_of(text)));
    nesting(text, JSON_DEPTH_MAX / 2, "[{\"a\":", "}]");
    assert_true(is_valid(slice_of(text)));
    nesting(text, JSON_DEPTH_MAX + 1, "[", "]");
    struct json_test_input input = json_test_input(slice_of(text));
    assert_false(json_skip(&input.json));
    assert_string_equal(input.json.error, "less nesting");
    assert_true(input.json.beyond);
    assert_int_equal(input.json.error_at, JSON_DEPTH_MAX);
    free(input.data);

    struct json_test_input entered = json_test_input(slice_of(text));
    for (int i = 0; i < JSON_DEPTH_MAX; i++) {
        assert_true(json_array(&entered.json));
        assert_true(json_element(&entered.json));
    }
    assert_false(json_array(&entered.json));
    free(entered.data);
}

/* The eight-bytes-at-once path must stop exactly where the byte-by-byte path does. */
static void only_plain_bytes_are_accepted_unescaped_at_every_offset(void **state)
{
    (void)state;
    for (size_t place = 1; place <= 17; place++) {
        for (int byte = 0; byte < 256; byte++) {
            char text[20];
            memset(text, 'x', sizeof(text));
            text[0] = '"';
            text[place] = (char)byte;
            text[sizeof(text) - 1] = '"';
            bool plain = byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
            assert_int_equal(is_valid((struct slice){text, sizeof(text)}), plain);
        }
    }
}

/* --- properties --- */

/* Appends a random value in a random spelling. */
static void random_value(struct random *random, struct buffer *text, unsigned depth)
{
    static const char *const scalars[] = {"0",
                                          "-1.5e-7",
                                          "true",
                                          "false",
                                          "null",
                                          "\"\\ud83d\\ude00\"",
                                          "\"\xc3\xa9\\n\"",
                                          "\"\"",
                                          "12345678901234567890",
                                          "\"a\\/b\""};
    static const char *const spaces[] = {"", "", "", " ", "\n\t", "  \r"};
    buffer_append_text(text, spaces[random_below(random, 6)]);
    uint64_t kind = depth ? random_below(random, 4) : 3;
    if (kind == 3) {
        buffer_append_text(text, scalars[random_below(random, 10)]);
    } else {
        bool array = kind == 0;
        buffer_append_byte(text, array ? '[' : '{');
        for (uint64_t i = 0, count = random_below(random, 4); i < count; i++) {
            buffer_append_text(text, i ? "," : "");
            if (!array)
                buffer_append_text(text, "\"k\\u0020\" :");
            random_value(random, text, depth - 1);
        }
        buffer_append_text(text, spaces[random_below(random, 6)]);
        buffer_append_byte(text, array ? ']' : '}');
    }
    buffer_append_text(text, spaces[random_below(random, 6)]);
}

static void random_values_are_accepted_and_prefixes_do_not_crash(void **state)
{
    (void)state;
    struct random random;
    random_init_seeded(&random, 51);
    struct buffer text = BUFFER_INIT;
    for (int round = 0; round < 3000; round++) {
        buffer_clear(&text);
        random_value(&random, &text, 5);
        assert_true(is_valid(buffer_slice(&text)));
        is_valid(slice_first(buffer_slice(&text), random_below(&random, text.len)));
        text.data[random_below(&random, text.len)] = (char)random_u64(&random);
        is_valid(buffer_slice(&text));
    }
    buffer_free(&text);
}

/* Reads a value with the typed functions and writes it again. */
static void copy_value(struct json *json, struct buffer *out)
{
    struct slice text = SLICE_NONE;
    bool flag = false;
    switch (json_peek(json)) {
    case JSON_OBJECT:
        json_object(json);
        json_write_object(out);
        while (json_member(json, &text)) {
            json_write_key(out, text);
            copy_value(json, out);
        }
        json_write_object_end(out);
        break;
    case JSON_ARRAY:
        json_array(json);
        json_write_array(out);
        while (json_element(json))
            copy_value(json, out);
        json_write_array_end(out);
        break;
    case JSON_STRING:
        json_string(json, &text);
        json_write_string(out, text);
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        json_bool(json, &flag);
        json_write_bool(out, flag);
        break;
    case JSON_NULL:
        json_null(json);
        json_write_null(out);
        break;
    case JSON_NUMBER:
    case JSON_INVALID:
        json_raw(json, &text);
        json_write_raw(out, text);
        break;
    }
}

/* A copy by the writer is valid, and a copy of that copy is the same text. */
static void second_copy_equals_the_first(void **state)
{
    (void)state;
    struct random random;
    random_init_seeded(&random, 52);
    struct buffer text = BUFFER_INIT, copy = BUFFER_INIT, again = BUFFER_INIT;
    for (int round = 0; round < 3000; round++) {
        buffer_clear(&text);
        buffer_clear(&copy);
        buffer_clear(&again);
        random_value(&random, &text, 5);
        struct json json;
        json_init(&json, text.data, text.len);
        copy_value(&json, &copy);
        assert_true(json_done(&json));
        struct json_test_input second = json_test_input(buffer_slice(&copy));
        copy_value(&second.json, &again);
        assert_true(json_done(&second.json));
        free(second.data);
        assert_true(slice_equal(buffer_slice(&copy), buffer_slice(&again)));
    }
    buffer_free(&text);
    buffer_free(&copy);
    buffer_free(&again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grammatical_input_is_accepted),
        cmocka_unit_test(ungrammatical_input_is_refused),
        cmocka_unit_test(prefix_of_a_container_is_refused),
        cmocka_unit_test(lone_surrogate_differs_from_an_invalid_escape),
        cmocka_unit_test(wrappable_value_leaves_levels_for_its_wrapping),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(only_plain_bytes_are_accepted_unescaped_at_every_offset),
        cmocka_unit_test(random_values_are_accepted_and_prefixes_do_not_crash),
        cmocka_unit_test(second_copy_equals_the_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
