#include "redis/protocol/resp.h"

#include "support/exact_copy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* Writes a value as text: t"…" e"…" 12 null [a,b] >[a,b]. */
static void describe(const struct resp_value *value, struct buffer *out)
{
    switch (value->type) {
    case RESP_NULL:
        buffer_append_text(out, "null");
        return;
    case RESP_INTEGER:
        buffer_append_int(out, value->integer);
        return;
    case RESP_TEXT:
    case RESP_ERROR:
        buffer_append_byte(out, value->type == RESP_TEXT ? 't' : 'e');
        buffer_append_byte(out, '"');
        buffer_append_slice(out, value->text);
        buffer_append_byte(out, '"');
        return;
    default:
        buffer_append_text(out, value->type == RESP_PUSH ? ">[" : "[");
        for (size_t i = 0; i < value->count; i++) {
            if (i)
                buffer_append_byte(out, ',');
            describe(&value->items[i], out);
        }
        buffer_append_byte(out, ']');
    }
}

static void expect_reply(const struct resp_value *reply, const char *expected)
{
    struct buffer text = BUFFER_INIT;
    describe(reply, &text);
    buffer_append_byte(&text, '\0');
    assert_string_equal(text.data, expected);
    buffer_free(&text);
}

/* Parses every beginning in memory that moves each time, then the whole input at once. */
static void expect_parsed(struct slice input, const char *expected)
{
    struct resp_parser parser = {0};
    const struct resp_value *reply;
    size_t len;
    for (size_t known = 0; known <= input.len; known++) {
        char *copy = exact_copy(slice_first(input, known));
        enum resp_result result = resp_parse(&parser, (struct slice){copy, known}, &reply, &len);
        assert_int_equal(result, known < input.len ? RESP_INCOMPLETE : RESP_COMPLETE);
        if (result == RESP_COMPLETE) {
            assert_int_equal(len, input.len);
            expect_reply(reply, expected);
        }
        free(copy);
    }
    char *whole = exact_copy(input);
    assert_int_equal(resp_parse(&parser, (struct slice){whole, input.len}, &reply, &len),
                     RESP_COMPLETE);
    expect_reply(reply, expected);
    free(whole);
    resp_parser_free(&parser);
}

static enum resp_result parse_result(struct slice input)
{
    struct resp_parser parser = {0};
    const struct resp_value *reply;
    size_t len;
    char *copy = exact_copy(input);
    enum resp_result result = resp_parse(&parser, (struct slice){copy, input.len}, &reply, &len);
    free(copy);
    resp_parser_free(&parser);
    return result;
}

static void every_type_is_parsed_in_any_pieces(void **state)
{
    (void)state;
    expect_parsed(SLICE("+OK\r\n"), "t\"OK\"");
    expect_parsed(SLICE("+\r\n"), "t\"\"");
    expect_parsed(SLICE("-ERR no\r\n"), "e\"ERR no\"");
    expect_parsed(SLICE(":0\r\n"), "0");
    expect_parsed(SLICE(":-12\r\n"), "-12");
    expect_parsed(SLICE(":+12\r\n"), "12");
    expect_parsed(SLICE(":9223372036854775807\r\n"), "9223372036854775807");
    expect_parsed(SLICE(":-9223372036854775808\r\n"), "-9223372036854775808");
    expect_parsed(SLICE("$0\r\n\r\n"), "t\"\"");
    expect_parsed(SLICE("$7\r\na\r\nb\r\nc\r\n"), "t\"a\r\nb\r\nc\"");
    expect_parsed(SLICE("$-1\r\n"), "null");
    expect_parsed(SLICE("*-1\r\n"), "null");
    expect_parsed(SLICE("_\r\n"), "null");
    expect_parsed(SLICE("#t\r\n"), "1");
    expect_parsed(SLICE("#f\r\n"), "0");
    expect_parsed(SLICE(",3.25\r\n"), "t\"3.25\"");
    expect_parsed(SLICE("(349\r\n"), "t\"349\"");
    expect_parsed(SLICE("=7\r\ntxt:abc\r\n"), "t\"txt:abc\"");
    expect_parsed(SLICE("!8\r\nSYNTAX x\r\n"), "e\"SYNTAX x\"");
    expect_parsed(SLICE("*0\r\n"), "[]");
    expect_parsed(SLICE("~2\r\n+a\r\n+b\r\n"), "[t\"a\",t\"b\"]");
    expect_parsed(SLICE("%2\r\n+a\r\n:1\r\n+b\r\n_\r\n"), "[t\"a\",1,t\"b\",null]");
    expect_parsed(SLICE(">3\r\n+message\r\n$1\r\nc\r\n$2\r\nhi\r\n"),
                  ">[t\"message\",t\"c\",t\"hi\"]");
    expect_parsed(SLICE("*4\r\n*2\r\n:1\r\n*0\r\n$1\r\nx\r\n%1\r\n+k\r\n*1\r\n-E e\r\n:2\r\n"),
                  "[[1,[]],t\"x\",[t\"k\",[e\"E e\"]],2]");
}

static void consecutive_replies_are_parsed(void **state)
{
    (void)state;
    struct resp_parser parser = {0};
    const struct resp_value *reply;
    size_t len;
    struct slice text = SLICE("+a\r\n*1\r\n:1\r\n+b\r\n$3\r\nab");
    char *copy = exact_copy(text);
    struct slice input = {copy, text.len};
    const char *expected[] = {"t\"a\"", "[1]", "t\"b\""};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(resp_parse(&parser, input, &reply, &len), RESP_COMPLETE);
        expect_reply(reply, expected[i]);
        input = slice_after(input, len);
    }
    assert_int_equal(resp_parse(&parser, input, &reply, &len), RESP_INCOMPLETE);
    resp_parser_restart(&parser);
    assert_int_equal(resp_parse(&parser, SLICE("+c\r\n"), &reply, &len), RESP_COMPLETE);
    expect_reply(reply, "t\"c\"");
    free(copy);
    resp_parser_free(&parser);
}

static void malformed_replies_are_invalid(void **state)
{
    (void)state;
    static const char *const inputs[] = {"\r\n",
                                         "x\r\n",
                                         "OK\r\n",
                                         "+a\rb\r\n",
                                         ":\r\n",
                                         ":1x\r\n",
                                         ":-\r\n",
                                         ":- 1\r\n",
                                         "$\r\n",
                                         "$-2\r\n",
                                         "$1\r\nabc",
                                         "$1\r\na\nb",
                                         "$x\r\n",
                                         "*-2\r\n",
                                         "*x\r\n",
                                         "#x\r\n",
                                         "#\r\n",
                                         "#tt\r\n",
                                         "_x\r\n",
                                         "!-1\r\n",
                                         "=-1\r\n",
                                         "%-1\r\n",
                                         ">-1\r\n",
                                         "~-1\r\n",
                                         "$?\r\n",
                                         "*?\r\n",
                                         "|1\r\n",
                                         "*1\r\n>1\r\n",
                                         "*2\r\n+a\r\n?\r\n",
                                         ":9223372036854775808\r\n",
                                         ":99999999999999999999\r\n",
                                         ":-9223372036854775809\r\n"};
    for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++)
        assert_int_equal(parse_result(slice_of(inputs[i])), RESP_INVALID);
}

static void declared_lengths_are_bounded(void **state)
{
    (void)state;
    assert_int_equal(parse_result(SLICE("$16777216\r\n")), RESP_INCOMPLETE);
    assert_int_equal(parse_result(SLICE("$16777217\r\n")), RESP_INVALID);
    assert_int_equal(parse_result(SLICE("!9223372036854775807\r\n")), RESP_INVALID);
    assert_int_equal(parse_result(SLICE("*262143\r\n")), RESP_INCOMPLETE);
    assert_int_equal(parse_result(SLICE("*262144\r\n")), RESP_INVALID);
    assert_int_equal(parse_result(SLICE("%131072\r\n")), RESP_INVALID);
    assert_int_equal(parse_result(SLICE("%9223372036854775807\r\n")), RESP_INVALID);
    assert_int_equal(parse_result(SLICE("*2\r\n*262141\r\n")), RESP_INCOMPLETE);
    assert_int_equal(parse_result(SLICE("*2\r\n*262142\r\n")), RESP_INVALID);
}

static void nesting_is_bounded(void **state)
{
    (void)state;
    struct buffer deep = BUFFER_INIT;
    for (unsigned i = 0; i < RESP_DEPTH_MAX; i++)
        buffer_append_text(&deep, "*1\r\n");
    size_t arrays = deep.len;
    buffer_append_text(&deep, ":1\r\n");
    expect_parsed(buffer_slice(&deep), "[[[[[[[[1]]]]]]]]");
    deep.len = arrays;
    buffer_append_text(&deep, "*1\r\n:1\r\n");
    assert_int_equal(parse_result(buffer_slice(&deep)), RESP_INVALID);
    buffer_free(&deep);
}

static void line_length_is_bounded(void **state)
{
    (void)state;
    struct buffer line = BUFFER_INIT;
    buffer_append_byte(&line, '+');
    while (line.len < RESP_LINE_BYTES_MAX - 1)
        buffer_append_byte(&line, 'x');
    assert_int_equal(parse_result(buffer_slice(&line)), RESP_INCOMPLETE);
    buffer_append_text(&line, "\r");
    assert_int_equal(parse_result(buffer_slice(&line)), RESP_INCOMPLETE);
    buffer_append_text(&line, "\n");
    assert_int_equal(parse_result(buffer_slice(&line)), RESP_COMPLETE);
    line.len -= 2;
    buffer_append_text(&line, "xx");
    assert_int_equal(parse_result(buffer_slice(&line)), RESP_INVALID);
    buffer_free(&line);
}

/* Parsing from the start again after each piece would take minutes. */
static void long_reply_in_many_pieces_is_parsed_once(void **state)
{
    enum { ITEMS = 200000 };
    (void)state;
    struct resp_parser parser = {0};
    struct buffer input = BUFFER_INIT;
    const struct resp_value *reply = NULL;
    size_t len;
    resp_write_count(&input, ITEMS);
    for (int64_t i = 0; i < ITEMS; i++)
        resp_write_integer(&input, i);
    for (size_t known = 0; known < input.len; known += 64)
        assert_int_equal(resp_parse(&parser, (struct slice){input.data, known}, &reply, &len),
                         RESP_INCOMPLETE);
    assert_int_equal(resp_parse(&parser, buffer_slice(&input), &reply, &len), RESP_COMPLETE);
    assert_int_equal(reply->count, ITEMS);
    assert_true(slice_is(reply->items[ITEMS - 1].text, "199999"));
    assert_int_equal(resp_parse(&parser, SLICE(":1\r\n"), &reply, &len), RESP_COMPLETE);
    assert_true(parser.cap <= RESP_VALUES_KEPT);
    buffer_free(&input);
    resp_parser_free(&parser);
}

static void commands_may_contain_any_bytes(void **state)
{
    (void)state;
    struct buffer out = BUFFER_INIT;
    const struct slice arguments[] = {
        SLICE("SET"), SLICE("a\r\n$3\r\nDEL"), SLICE(""), {"\0{}", 3}};
    resp_write_command(&out, arguments, 4);
    assert_true(slice_equal(buffer_slice(&out),
                            SLICE("*4\r\n$3\r\nSET\r\n$10\r\na\r\n$3\r\nDEL\r\n$0\r\n\r\n$3\r\n"
                                  "\0{}\r\n")));
    buffer_clear(&out);
    resp_write_count(&out, 2);
    resp_write_argument(&out, SLICE("GET"));
    resp_write_integer(&out, INT64_MIN);
    assert_true(slice_is(buffer_slice(&out), "*2\r\n$3\r\nGET\r\n$20\r\n-9223372036854775808\r\n"));
    buffer_free(&out);
}

static void errors_are_matched_by_their_first_word(void **state)
{
    (void)state;
    struct resp_value error = {.type = RESP_ERROR, .text = SLICE("MOVED 1 a:1")};
    assert_true(resp_is_error(&error, "MOVED"));
    assert_false(resp_is_error(&error, "MOVE"));
    assert_false(resp_is_error(&error, "MOVEDX"));
    error.text = SLICE("MOVED");
    assert_true(resp_is_error(&error, "MOVED"));
    error.type = RESP_TEXT;
    assert_false(resp_is_error(&error, "MOVED"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_is_parsed_in_any_pieces),
        cmocka_unit_test(consecutive_replies_are_parsed),
        cmocka_unit_test(malformed_replies_are_invalid),
        cmocka_unit_test(declared_lengths_are_bounded),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(line_length_is_bounded),
        cmocka_unit_test(long_reply_in_many_pieces_is_parsed_once),
        cmocka_unit_test(commands_may_contain_any_bytes),
        cmocka_unit_test(errors_are_matched_by_their_first_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
