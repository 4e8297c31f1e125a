#include "text/json.h"

#include "base/random.h"
#include "text/utf8.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define assert_holds(buffer, text) assert_true(slice_is(buffer_slice(buffer), (text)))

static void commas_separate_items_only(void **state)
{
    (void)state;
    struct buffer out = BUFFER_INIT;
    json_write_object(&out);
    json_write_key_string(&out, SLICE("ends like an opening {["), SLICE("[{:"));
    json_write_key_int(&out, SLICE("b"), -7);
    json_write_key_bool(&out, SLICE("c"), true);
    json_write_key(&out, SLICE("d"));
    json_write_array(&out);
    json_write_null(&out);
    json_write_bool(&out, false);
    json_write_int(&out, 1);
    json_write_int(&out, 2);
    json_write_string(&out, SLICE(""));
    json_write_raw(&out, SLICE("{\"raw\":0}"));
    json_write_raw(&out, SLICE("1.5"));
    json_write_array(&out);
    json_write_array_end(&out);
    json_write_object(&out);
    json_write_object_end(&out);
    json_write_array_end(&out);
    json_write_key(&out, SLICE("e"));
    json_write_object(&out);
    json_write_object_end(&out);
    json_write_object_end(&out);
    assert_false(out.failed);
    assert_holds(&out,
                 "{\"ends like an opening {[\":\"[{:\",\"b\":-7,\"c\":true,\"d\":[null,false,1,2,"
                 "\"\",{\"raw\":0},1.5,[],{}],\"e\":{}}");
    buffer_free(&out);
}

static void strings_are_escaped_where_required(void **state)
{
    (void)state;
    static const struct {
        struct slice value;
        const char *text;
    } cases[] = {
        {SLICE_NONE, "\"\""},
        {SLICE("a/b\x7f"), "\"a/b\x7f\""},
        {SLICE("\"\\"), "\"\\\"\\\\\""},
        {SLICE("\b\f\n\r\t"), "\"\\b\\f\\n\\r\\t\""},
        {SLICE("\0\x01\x0b\x0e\x1f"), "\"\\u0000\\u0001\\u000b\\u000e\\u001f\""},
        {SLICE("\xc3\xa9\xf0\x9f\x98\x80"), "\"\xc3\xa9\xf0\x9f\x98\x80\""},
        {SLICE("a\xff"
               "b"),
         "\"a\xef\xbf\xbd"
         "b\""},
        {SLICE("\xe2\x82"), "\"\xef\xbf\xbd\xef\xbf\xbd\""},
        {SLICE("\xed\xa0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
    };
    struct buffer out = BUFFER_INIT;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        buffer_clear(&out);
        json_write_string(&out, cases[i].value);
        assert_holds(&out, cases[i].text);
        buffer_clear(&out);
        json_write_key(&out, cases[i].value);
        assert_true(slice_starts_with(buffer_slice(&out), slice_of(cases[i].text)));
        assert_int_equal(out.data[out.len - 1], ':');
    }
    buffer_free(&out);
}

static struct slice random_text(struct random *random, char *text, size_t max)
{
    static const char *const pieces[] = {
        "a",         "\"",   "\\", "\n",           "\x01", "\xc3\xa9", "\xf0\x9f\x98\x80",
        "plain run", "\xff", "/",  "\xed\xa0\x80", "\x7f"};
    size_t len = 0;
    for (uint64_t i = 0, count = random_below(random, 12); i < count; i++) {
        const char *piece = pieces[random_below(random, sizeof(pieces) / sizeof(pieces[0]))];
        if (len + strlen(piece) > max)
            break;
        memcpy(text + len, piece, strlen(piece));
        len += strlen(piece);
    }
    return (struct slice){text, len};
}

/* Any bytes read back as valid UTF-8, and unchanged if they were valid. */
static void strings_survive_a_round_trip(void **state)
{
    (void)state;
    struct random random;
    random_init_seeded(&random, 61);
    struct buffer out = BUFFER_INIT;
    unsigned valid = 0;
    for (int round = 0; round < 20000; round++) {
        char bytes[64];
        struct slice value = random_text(&random, bytes, sizeof(bytes));
        buffer_clear(&out);
        json_write_string(&out, value);
        struct json json;
        struct slice back;
        json_init(&json, out.data, out.len);
        assert_true(json_string(&json, &back) && json_done(&json));
        assert_true(utf8_valid(back));
        if (utf8_valid(value)) {
            valid++;
            assert_true(slice_equal(back, value));
        }
    }
    assert_in_range(valid, 4000, 16000);
    buffer_free(&out);
}

static void exceeded_bound_is_reported_at_the_end(void **state)
{
    (void)state;
    for (size_t max = 1; max < 40; max++) {
        struct buffer out = BUFFER_BOUNDED(max);
        json_write_object(&out);
        json_write_key_string(&out, SLICE("key"), SLICE("some \n text"));
        json_write_key_int(&out, SLICE("n"), 12345);
        json_write_object_end(&out);
        assert_int_equal(out.failed, max < strlen("{\"key\":\"some \\n text\",\"n\":12345}"));
        assert_true(out.len <= max);
        buffer_free(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commas_separate_items_only),
        cmocka_unit_test(strings_are_escaped_where_required),
        cmocka_unit_test(strings_survive_a_round_trip),
        cmocka_unit_test(exceeded_bound_is_reported_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
