/*
 * Compares our JSON parser with jansson: both accept the same texts, with the same value. Also: reading by type,
 * json_skip() and json_raw() accept the same texts; the latter two change no byte; and a written string reads
 * back.
 *
 * Values are compared by writing what was read and reading it with jansson. Documented
 * differences: only we refuse nesting beyond JSON_DEPTH_MAX, only jansson has its limits (see its verdict), and
 * of a duplicate key jansson keeps the last value.
 */
#include "fuzz.h"
#include "fuzz_json_oracle.h"
#include "text/json.h"
#include "text/utf8.h"

/* Writes the number with the value that was read, if we can represent it: "%.17e" is exact for a double and
 * does not look like an integer, which jansson distinguishes. */
static void copy_number(struct json *json, struct buffer *out)
{
    struct slice text;
    struct json as_integer = *json, as_real = *json;
    int64_t integer;
    double real;
    char digits[32];
    if (!json_raw(json, &text))
        return;
    bool plain = true;
    for (size_t i = 0; i < text.len; i++)
        plain = plain && text.data[i] != '.' && text.data[i] != 'e' && text.data[i] != 'E';
    bool held = json_int(&as_integer, &integer);
    fuzz_require(!held || plain, "only plain numbers are integers");
    if (held) {
        json_write_int(out, integer);
    } else if (!plain && json_double(&as_real, &real)) {
        snprintf(digits, sizeof(digits), "%.17e", real);
        json_write_raw(out, slice_of(digits));
    } else {
        json_write_raw(out, text);
    }
}

/* Reads a value with the functions for its type and writes it again. The parser bounds the recursion. */
static void copy_value(struct json *json, struct buffer *out)
{
    struct slice text = SLICE_NONE;
    bool flag = false;
    switch (json_peek(json)) {
    case JSON_OBJECT:
        json_write_object(out);
        for (json_object(json); json_member(json, &text);) {
            json_write_key(out, text);
            copy_value(json, out);
        }
        json_write_object_end(out);
        return;
    case JSON_ARRAY:
        json_write_array(out);
        for (json_array(json); json_element(json);)
            copy_value(json, out);
        json_write_array_end(out);
        return;
    case JSON_STRING:
        json_string(json, &text);
        json_write_string(out, text);
        return;
    case JSON_NUMBER:
        copy_number(json, out);
        return;
    case JSON_TRUE:
    case JSON_FALSE:
        json_bool(json, &flag);
        json_write_bool(out, flag);
        return;
    case JSON_NULL:
        json_null(json);
        json_write_null(out);
        return;
    case JSON_INVALID:
        json_skip(json);
        return;
    }
}

/* Reads the text raw. Returns whether it is valid, and sets whether only its nesting is too deep. */
static bool check_raw(struct slice text, bool *too_deep)
{
    char *copy = fuzz_copy(text.data, text.len);
    struct json raw, skip;
    struct slice value = SLICE_NONE;
    json_init(&raw, copy, text.len);
    skip = raw;
    json_raw(&raw, &value);
    json_skip(&skip);
    bool valid = json_done(&raw);
    fuzz_require(json_done(&skip) == valid, "raw and skip accept the same");
    fuzz_require(raw.error_at == skip.error_at, "raw and skip fail at the same place");
    fuzz_require(text.len == 0 || memcmp(copy, text.data, text.len) == 0, "raw changes nothing");
    fuzz_require(!valid || fuzz_json_judge(value) != FUZZ_JSON_REFUSED, "raw is a whole value");
    *too_deep = raw.error && strcmp(raw.error, "less nesting") == 0;
    free(copy);
    return valid;
}

static void check_value(struct slice text)
{
    bool too_deep;
    bool valid = check_raw(text, &too_deep);
    enum fuzz_json_verdict verdict = fuzz_json_judge(text);
    fuzz_require(!valid || verdict != FUZZ_JSON_REFUSED, "jansson accepts what we accept");
    fuzz_require(valid || too_deep || verdict != FUZZ_JSON_ACCEPTED,
                 "we accept what jansson accepts");

    char *copy = fuzz_copy(text.data, text.len);
    struct json json;
    struct buffer out = BUFFER_INIT;
    json_init(&json, copy, text.len);
    copy_value(&json, &out);
    fuzz_require(json_done(&json) == valid, "reading by type accepts what skipping accepts");
    fuzz_require(json.error_at <= text.len, "an error lies within the input");
    if (valid && verdict == FUZZ_JSON_ACCEPTED)
        fuzz_require(fuzz_json_same(text, buffer_slice(&out)), "what was read means the same");
    buffer_free(&out);
    free(copy);
}

static void check_written(struct slice text)
{
    struct buffer out = BUFFER_INIT;
    json_write_string(&out, text);
    fuzz_require(fuzz_json_judge(buffer_slice(&out)) == FUZZ_JSON_ACCEPTED,
                 "jansson accepts what we write");
    struct json json;
    struct slice back;
    json_init(&json, out.data, out.len);
    fuzz_require(json_string(&json, &back) && json_done(&json), "what is written is read");
    fuzz_require(utf8_valid(back), "what is written is UTF-8");
    fuzz_require(!utf8_valid(text) || slice_equal(back, text), "valid text comes back as it was");
    buffer_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = {(const char *)data, size};
    check_value(text);
    check_written(text);
    return 0;
}
