#include "text/json.h"

#include "text/json_text.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* Reading stops for good: nothing is left to read, so no later call needs to look at `error`. */
__attribute__((cold, noinline)) static bool fail_at(struct json *json, const char *at,
                                                    const char *expected)
{
    if (!json->error) {
        json->error = expected;
        json->error_at = (size_t)(at - json->start);
    }
    json->at = json->end;
    return false;
}

__attribute__((cold, noinline)) static bool fail(struct json *json, const char *expected)
{
    return fail_at(json, json->at, expected);
}

void json_init(struct json *json, char *data, size_t len)
{
    *json = (struct json){.start = data, .at = data, .end = len ? data + len : data};
}

__attribute__((noinline)) static char skip_space(struct json *json)
{
    char *at = json->at;
    while (at < json->end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
        at++;
    json->at = at;
    return at < json->end ? *at : '\0';
}

/* Steps to the next byte that is no white space: that byte, or 0 at the end of the input. (A byte 0
 * in the input is refused like the end, as nothing may start with it.) */
static inline char next_byte(struct json *json)
{
    if (json->at < json->end && (unsigned char)*json->at > ' ')
        return *json->at;
    return skip_space(json);
}

/* The first byte of the value that is due; 0 (no value starts with that) when none is. */
static inline char value_start(struct json *json)
{
    char byte = next_byte(json);
    return json->next == JSON_NEXT_VALUE ? byte : '\0';
}

static inline bool value_end(struct json *json, char *end)
{
    json->at = end;
    json->next = JSON_NEXT_MORE;
    return true;
}

enum json_type json_peek(struct json *json)
{
    switch (value_start(json)) {
    case '{':
        return JSON_OBJECT;
    case '[':
        return JSON_ARRAY;
    case '"':
        return JSON_STRING;
    case 't':
        return JSON_TRUE;
    case 'f':
        return JSON_FALSE;
    case 'n':
        return JSON_NULL;
    case '-':
    case '0' ... '9':
        return JSON_NUMBER;
    default:
        return JSON_INVALID;
    }
}

/* --- strings --- */

/* Finds the quote that ends a string from somewhere inside it, and checks all before it. */
static const char *string_end(struct json *json, const char *at, bool *escaped)
{
    const char *expected = "the end of the string";
    *escaped = false;
    for (;;) {
        at += json_text_plain_run(at, json->end);
        if (at < json->end && *at == '"')
            return at;
        const char *next =
            at < json->end ? json_text_special(at, json->end, escaped, &expected) : NULL;
        if (!next) {
            json->beyond = !json->error && json_text_is_surrogate(at, json->end);
            fail_at(json, at, expected);
            return NULL;
        }
        at = next;
    }
}

/* Goes on with a string whose plain part ends at `at`. */
__attribute__((noinline)) static bool read_special(struct json *json, char *at, struct slice *out)
{
    char *start = json->at + 1;
    bool escaped;
    const char *end = string_end(json, at, &escaped);
    if (!end)
        return false;
    json->at = start + (end - start) + 1;
    if (out)
        *out = (struct slice){start,
                              (size_t)((escaped ? json_text_unescape(start, end) : end) - start)};
    return true;
}

/* Reads the string whose opening quote is at json->at. Leaves its bytes alone when `out` is NULL.
 */
static inline bool read_string(struct json *json, struct slice *out)
{
    char *start = json->at + 1;
    char *end = start + json_text_plain_run(start, json->end);
    if (end == json->end || *end != '"')
        return read_special(json, end, out);
    json->at = end + 1;
    if (out)
        *out = (struct slice){start, (size_t)(end - start)};
    return true;
}

bool json_string(struct json *json, struct slice *out)
{
    if (value_start(json) != '"')
        return fail(json, "a string");
    return read_string(json, out) && value_end(json, json->at);
}

/* --- numbers --- */

static inline bool is_digit(const char *at, const char *end)
{
    return at < end && *at >= '0' && *at <= '9';
}

static char *skip_digits(char *at, const char *end)
{
    while (is_digit(at, end))
        at++;
    return at;
}

/* The end of the number that starts at `at`, NULL when it is none. */
static char *number_end(char *at, const char *end)
{
    if (at < end && *at == '-')
        at++;
    if (!is_digit(at, end))
        return NULL;
    bool zero = *at++ == '0';
    if (zero && is_digit(at, end))
        return NULL;
    at = skip_digits(at, end);
    if (at < end && *at == '.') {
        if (!is_digit(++at, end))
            return NULL;
        at = skip_digits(at, end);
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        if (at < end && (*at == '+' || *at == '-'))
            at++;
        if (!is_digit(at, end))
            return NULL;
        at = skip_digits(at, end);
    }
    return at;
}

bool json_int(struct json *json, int64_t *out)
{
    static const char expected[] = "an integer of 64 bits";
    char start = value_start(json);
    bool negative = start == '-';
    char *at = negative ? json->at + 1 : json->at;
    if (!start || !is_digit(at, json->end))
        return fail(json, expected);
    const char *first = at;
    uint64_t magnitude = 0;
    for (; is_digit(at, json->end); at++) {
        /* Nineteen digits never pass 2^64, so the bound below sees the true number. */
        if (at - first == 19)
            return fail(json, expected);
        magnitude = magnitude * 10 + (uint64_t)(*at - '0');
    }
    if ((*first == '0' && at - first > 1) || magnitude > (uint64_t)INT64_MAX + negative)
        return fail(json, expected);
    if (at < json->end && (*at == '.' || *at == 'e' || *at == 'E'))
        return fail(json, expected);
    *out = (int64_t)(negative ? 0 - magnitude : magnitude);
    return value_end(json, at);
}

bool json_double(struct json *json, double *out)
{
    char *end = json_peek(json) == JSON_NUMBER ? number_end(json->at, json->end) : NULL;
    if (!end)
        return fail(json, "a number");
    /* strtod() wants a terminator, for which there may be no room after the input. */
    char text[JSON_DOUBLE_TEXT_MAX + 1];
    size_t len = (size_t)(end - json->at);
    if (len > JSON_DOUBLE_TEXT_MAX)
        return fail(json, "a shorter number");
    memcpy(text, json->at, len);
    text[len] = '\0';
    double value = strtod(text, NULL);
    if (!isfinite(value))
        return fail(json, "a number in the range of a double");
    *out = value;
    return value_end(json, end);
}

/* --- words --- */

static inline bool read_word(struct json *json, struct slice word, const char *expected)
{
    if ((size_t)(json->end - json->at) < word.len || memcmp(json->at, word.data, word.len) != 0)
        return fail(json, expected);
    return value_end(json, json->at + word.len);
}

bool json_bool(struct json *json, bool *out)
{
    char start = value_start(json);
    if (start != 't' && start != 'f')
        return fail(json, "true or false");
    *out = start == 't';
    return read_word(json, *out ? SLICE("true") : SLICE("false"), "true or false");
}

bool json_null(struct json *json)
{
    if (value_start(json) != 'n')
        return fail(json, "null");
    return read_word(json, SLICE("null"), "null");
}

/* --- containers --- */

static bool enter(struct json *json, bool array)
{
    static_assert(JSON_DEPTH_MAX <= 32, "one bit of `arrays` for each level");
    if (json->depth == JSON_DEPTH_MAX) {
        json->beyond = !json->error;
        return fail(json, "less nesting");
    }
    uint32_t bit = (uint32_t)1 << json->depth++;
    json->arrays = array ? json->arrays | bit : json->arrays & ~bit;
    json->at++;
    json->next = JSON_NEXT_FIRST;
    return true;
}

bool json_object(struct json *json)
{
    return value_start(json) == '{' ? enter(json, false) : fail(json, "an object");
}

bool json_array(struct json *json)
{
    return value_start(json) == '[' ? enter(json, true) : fail(json, "an array");
}

static inline bool in_array(const struct json *json)
{
    return json->arrays >> (json->depth - 1) & 1;
}

/* Steps over the comma before the next item, or out of the container when `close` stands there. */
static inline bool next_item(struct json *json, char close, const char *expected)
{
    char byte = next_byte(json);
    if (json->next == JSON_NEXT_VALUE)
        return fail(json, expected);
    if (byte == close) {
        json->depth--;
        value_end(json, json->at + 1);
        return false;
    }
    if (json->next == JSON_NEXT_MORE) {
        if (byte != ',')
            return fail(json, expected);
        json->at++;
    }
    json->next = JSON_NEXT_VALUE;
    return true;
}

/* With `key` NULL the key is checked only. */
static inline bool next_member(struct json *json, struct slice *key)
{
    assert(json->error || (json->depth > 0 && !in_array(json)));
    if (!next_item(json, '}', "',' or '}'"))
        return false;
    if (value_start(json) != '"')
        return fail(json, "a key");
    if (!read_string(json, key))
        return false;
    if (next_byte(json) != ':')
        return fail(json, "':'");
    json->at++;
    return true;
}

bool json_member(struct json *json, struct slice *key)
{
    return next_member(json, key);
}

bool json_element(struct json *json)
{
    assert(json->error || (json->depth > 0 && in_array(json)));
    return next_item(json, ']', "',' or ']'");
}

/* --- whole values --- */

/* Steps over a scalar, or into a container. */
static bool skip_start(struct json *json)
{
    bool ignored;
    char *end;
    switch (json_peek(json)) {
    case JSON_OBJECT:
        return enter(json, false);
    case JSON_ARRAY:
        return enter(json, true);
    case JSON_STRING:
        return read_string(json, NULL) && value_end(json, json->at);
    case JSON_NUMBER:
        end = number_end(json->at, json->end);
        return end ? value_end(json, end) : fail(json, "a number");
    case JSON_TRUE:
    case JSON_FALSE:
        return json_bool(json, &ignored);
    case JSON_NULL:
        return json_null(json);
    case JSON_INVALID:
    default:
        return fail(json, "a value");
    }
}

bool json_skip(struct json *json)
{
    unsigned outside = json->depth;
    if (!skip_start(json))
        return false;
    while (json->depth > outside) {
        bool item = in_array(json) ? json_element(json) : next_member(json, NULL);
        if (item)
            skip_start(json);
        if (json->error)
            return false;
    }
    return true;
}

bool json_raw(struct json *json, struct slice *out)
{
    next_byte(json);
    const char *start = json->at;
    if (!json_skip(json))
        return false;
    *out = (struct slice){start, (size_t)(json->at - start)};
    return true;
}

bool json_can_be_wrapped(struct slice value)
{
    struct json json;
    json_init(&json, (char *)value.data, value.len); /* skipping changes nothing */
    json.depth = JSON_WRAPPING_MAX;
    return json_skip(&json);
}

bool json_done(struct json *json)
{
    next_byte(json);
    if (json->at != json->end || json->depth > 0 || json->next != JSON_NEXT_MORE)
        fail(json, "the end of the input");
    return !json->error;
}
