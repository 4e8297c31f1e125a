/* MessagePack becomes JSON and JSON becomes MessagePack; what JSON cannot express is reported. */
#include "socketio/codec/msgpack_json.h"

#include "support/exact_copy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BYTES(literal) SLICE(literal)

enum { DEEP = 50000 };

static bool to_json(struct slice packed, struct buffer *json, bool *lost)
{
    char *copy = exact_copy(packed);
    struct slice rest = {copy, packed.len};
    *lost = false;
    *json = BUFFER_INIT;
    bool read = msgpack_to_json(&rest, json, lost);
    assert_true(!read || rest.len == 0);
    free(copy);
    return read;
}

static void expect_json(struct slice packed, const char *expected, bool expected_lost)
{
    struct buffer json;
    bool lost;
    assert_true(to_json(packed, &json, &lost));
    if (!slice_is(buffer_slice(&json), expected))
        fail_msg("%.*s is not %s", SLICE_FORMAT(buffer_slice(&json)), expected);
    assert_int_equal(lost, expected_lost);
    assert_true(json.len <= MSGPACK_JSON_GROWTH_MAX * packed.len);
    buffer_free(&json);
}

static void every_value_that_json_has_becomes_json(void **unused)
{
    (void)unused;
    static const struct {
        struct slice packed;
        const char *json;
    } rows[] = {
        {BYTES("\x80"), "{}"},
        {BYTES("\x90"), "[]"},
        {BYTES("\x94\xc0\xc2\xc3\x07"), "[null,false,true,7]"},
        {BYTES("\x92\xff\xd3\x80\x00\x00\x00\x00\x00\x00\x00"), "[-1,-9223372036854775808]"},
        {BYTES("\x91\xcf\xff\xff\xff\xff\xff\xff\xff\xff"), "[18446744073709551615]"},
        {BYTES("\x91\xcb\x3f\xb9\x99\x99\x99\x99\x99\x9a"), "[0.1]"},
        {BYTES("\x91\xcb\x3f\xd3\x33\x33\x33\x33\x33\x34"), "[0.30000000000000004]"},
        {BYTES("\x91\xca\x3f\x80\x00\x00"), "[1]"},
        {BYTES("\x91\xcb\x7f\xef\xff\xff\xff\xff\xff\xff"), "[1.7976931348623157e+308]"},
        {BYTES("\x92\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00\xca\x7f\x80\x00\x00"), "[null,null]"},
        {BYTES("\x82\xa1"
               "a\x81\xa1"
               "b\x91\x01\xa1"
               "c\x80"),
         "{\"a\":{\"b\":[1]},\"c\":{}}"},
        {BYTES("\x91\xa5\"\\\n\x00\x7f"), "[\"\\\"\\\\\\n\\u0000\x7f\"]"},
        {BYTES("\x91\xa5\xc3\xa4\xe2\x82\xac"), "[\"\xc3\xa4\xe2\x82\xac\"]"},
        {BYTES("\x91\xa2\xff!"), "[\"\xef\xbf\xbd!\"]"},
        {BYTES("\x93\x01\xd4\x00\x00\x02"), "[1,null,2]"},
        {BYTES("\x82\xa1"
               "a\xd4\x00\x00\xa1"
               "b\x01"),
         "{\"b\":1}"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        expect_json(rows[i].packed, rows[i].json, false);
}

static void a_value_that_json_lacks_becomes_null_and_is_reported(void **unused)
{
    (void)unused;
    expect_json(BYTES("\x92\xc4\x02xy\x01"), "[null,1]", true);
    expect_json(BYTES("\x92\xc7\x02\x00xy\x01"), "[null,1]", true);
    expect_json(BYTES("\x91\xd7\x00\x00\x00\x00\x00\x00\x00\x00\x00"), "[null]", true);
    expect_json(BYTES("\x82\x01\x02\xa1x\x03"), "{\"x\":3}", true);
    expect_json(BYTES("\x82\x92\x01\x02\x90\xa1x\x03"), "{\"x\":3}", true);
}

static void values_nested_too_deeply_are_skipped_and_reported(void **unused)
{
    (void)unused;
    char *deep = malloc(DEEP);
    struct buffer json;
    bool lost;
    memset(deep, 0x91, DEEP);
    deep[JSON_DEPTH_MAX - 1] = (char)0x90;
    assert_true(to_json((struct slice){deep, JSON_DEPTH_MAX}, &json, &lost));
    assert_false(lost);
    assert_int_equal(json.len, 2 * JSON_DEPTH_MAX);
    buffer_free(&json);
    deep[JSON_DEPTH_MAX - 1] = (char)0x91;
    deep[DEEP - 1] = (char)0x90;
    assert_true(to_json((struct slice){deep, DEEP}, &json, &lost));
    assert_true(lost);
    assert_int_equal(json.len, 2 * JSON_DEPTH_MAX + strlen("null"));
    buffer_free(&json);
    assert_false(to_json((struct slice){deep, DEEP - 1}, &json, &lost));
    buffer_free(&json);
    free(deep);
}

static void a_truncated_value_or_a_scalar_is_refused(void **unused)
{
    (void)unused;
    static const struct slice rows[] = {
        BYTES(""),
        BYTES("\x01"),
        BYTES("\xc0"),
        BYTES("\xa1x"),
        BYTES("\xc1"),
        BYTES("\x91"),
        BYTES("\x81\xa1x"),
        BYTES("\x91\xc1"),
        BYTES("\x92\x01"),
        BYTES("\x81\x01\xa2x"),
        BYTES("\x82\xa1x\x01"),
        BYTES("\x91\xa2x"),
        BYTES("\x91\x91"),
        BYTES("\x81\xa1x\x92\x01"),
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct buffer json;
        bool lost;
        assert_false(to_json(rows[i], &json, &lost));
        buffer_free(&json);
    }
}

static bool from_json(const char *text, struct buffer *out)
{
    struct json json;
    char *copy = exact_copy(slice_of(text));
    *out = BUFFER_INIT;
    buffer_append_text(out, "head");
    json_init(&json, copy, strlen(text));
    bool read = msgpack_from_json(&json, out);
    free(copy);
    return read;
}

static void expect_packed(const char *text, struct slice packed)
{
    struct buffer out;
    if (!from_json(text, &out))
        fail_msg("%s is JSON", text);
    if (!slice_equal(slice_after(buffer_slice(&out), 4), packed))
        fail_msg("%s is packed otherwise", text);
    buffer_free(&out);
}

static void json_becomes_messagepack(void **unused)
{
    (void)unused;
    expect_packed("null", BYTES("\xc0"));
    expect_packed("[true,false]", BYTES("\x92\xc3\xc2"));
    expect_packed("{\"a\\u0062\":[ ],\"c\":{}}", BYTES("\x82\xa2"
                                                       "ab\x90\xa1"
                                                       "c\x80"));
    expect_packed("\"\\ud83d\\ude00\\n\"", BYTES("\xa5\xf0\x9f\x98\x80\n"));
    expect_packed("-1", BYTES("\xff"));
    expect_packed("9223372036854775807", BYTES("\xcf\x7f\xff\xff\xff\xff\xff\xff\xff"));
    expect_packed("1.5", BYTES("\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00"));
    expect_packed("1e3", BYTES("\xcb\x40\x8f\x40\x00\x00\x00\x00\x00"));
    expect_packed("9223372036854775808", BYTES("\xcb\x43\xe0\x00\x00\x00\x00\x00\x00"));
    expect_packed("[1e999,2]", BYTES("\x92\xc0\x02"));
}

static void malformed_json_writes_nothing(void **unused)
{
    (void)unused;
    static const char *const rows[] = {"",        "[",  "[1,{\"a\":[2,", "{\"a\"}", "tru",
                                       "[1,nul]", "\"x"};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct buffer out;
        assert_false(from_json(rows[i], &out));
        assert_true(slice_is(buffer_slice(&out), "head"));
        buffer_free(&out);
    }
}

static void json_survives_packing_and_unpacking(void **unused)
{
    (void)unused;
    static const char *const rows[] = {
        "{\"a\":[1,-2,300,-70000,5000000000,0.5,1e+30],\"b\":{\"c\":null,\"d\":[true,false,\"\"]}}",
        "[[[[[]]]],{},\"\xc3\xa4\",\"long enough to need more than thirty-one bytes\"]",
        "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]",
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct buffer packed;
        assert_true(from_json(rows[i], &packed));
        expect_json(slice_after(buffer_slice(&packed), 4), rows[i], false);
        buffer_free(&packed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_that_json_has_becomes_json),
        cmocka_unit_test(a_value_that_json_lacks_becomes_null_and_is_reported),
        cmocka_unit_test(values_nested_too_deeply_are_skipped_and_reported),
        cmocka_unit_test(a_truncated_value_or_a_scalar_is_refused),
        cmocka_unit_test(json_becomes_messagepack),
        cmocka_unit_test(malformed_json_writes_nothing),
        cmocka_unit_test(json_survives_packing_and_unpacking),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
