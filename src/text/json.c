#include "text/json.h"

#include "text/json_text.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

static bool json_fail_at(struct json *json, const char *at, const char *expected)
    __attribute__((cold, noinline));
static bool json_fail(struct json *json, const char *expected) __attribute__((cold, noinline));
static char skip_json_space(struct json *json) __attribute__((noinline));
static bool read_special_json_string(struct json *json, char *at, struct slice *out)
    __attribute__((noinline));

/* Moves to the end of the input, so that later reads fail without a check of `error`. */
static bool json_fail_at(struct json *json, const char *at, const char *expected)
{
    if (!json->error) {
        json->error = expected;
        json->error_at = (size_t)(at - json->start);
    }
    json->at = json->end;
    return false;
}

static bool json_fail(struct json *json, const char *expected)
{
    return json_fail_at(json, json->at, expected);
}

void json_init(struct json *json, char *data, size_t len)
{
    *json = (struct json){.start = data, .at = data, .end = len ? data + len : data};
}

static char skip_json_space(struct json *json)
{
    char *at = json->at;
    while (at < json->end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
        at++;
    json->at = at;
    return at < json->end ? *at : '\0';
}

/* Skips white space and returns the next byte, or 0 at the end of the input. (A byte 0 in the input
 * is refused like the end, since no token starts with it.) */
static inline char next_json_byte(struct json *json)
{
    if (json->at < json->end && (unsigned char)*json->at > ' ')
        return *json->at;
    return skip_json_space(json);
}

/* Returns the first byte of the next value; 0 if no value may come next. */
static inline char json_value_start(struct json *json)
{
    char byte = next_json_byte(json);
    return json->next == JSON_NEXT_VALUE ? byte : '\0';
}

static inline bool json_value_end(struct json *json, char *end)
{
    json->at = end;
    json->next = JSON_NEXT_MORE;
    return true;
}

enum json_type json_peek(struct json *json)
{
    switch (json_value_start(json)) {
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

/* Finds the quote that ends the string around `at`, and validates everything before it. */
static const char *find_json_string_end(struct json *json, const char *at, bool *escaped)
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
            json_fail_at(json, at, expected);
            return NULL;
        }
        at = next;
    }
}

/* Reads the rest of a string whose plain run ends at `at`. */
static bool read_special_json_string(struct json *json, char *at, struct slice *out)
{
    char *start = json->at + 1;
    bool escaped;
    const char *end = find_json_string_end(json, at, &escaped);
    if (!end)
        return false;
    json->at = start + (end - start) + 1;
    if (out)
        *out = (struct slice){start,
                              (size_t)((escaped ? json_text_unescape(start, end) : end) - start)};
    return true;
}

/* Reads the string whose opening quote is at json->at. Does not unescape if `out` is NULL. */
static inline bool read_json_string(struct json *json, struct slice *out)
{
    char *start = json->at + 1;
    char *end = start + json_text_plain_run(start, json->end);
    if (end == json->end || *end != '"')
        return read_special_json_string(json, end, out);
    json->at = end + 1;
    if (out)
        *out = (struct slice){start, (size_t)(end - start)};
    return true;
}

bool json_string(struct json *json, struct slice *out)
{
    if (json_value_start(json) != '"')
        return json_fail(json, "a string");
    return read_json_string(json, out) && json_value_end(json, json->at);
}

/* --- numbers --- */

static inline bool is_json_digit_at(const char *at, const char *end)
{
    return at < end && *at >= '0' && *at <= '9';
}

static char *skip_json_digits(char *at, const char *end)
{
    while (is_json_digit_at(at, end))
        at++;
    return at;
}

/* Returns the end of the number at `at`, or NULL if there is none. */
static char *find_json_number_end(char *at, const char *end)
{
    if (at < end && *at == '-')
        at++;
    if (!is_json_digit_at(at, end))
        return NULL;
    bool zero = *at++ == '0';
    if (zero && is_json_digit_at(at, end))
        return NULL;
    at = skip_json_digits(at, end);
    if (at < end && *at == '.') {
        if (!is_json_digit_at(++at, end))
            return NULL;
        at = skip_json_digits(at, end);
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        if (at < end && (*at == '+' || *at == '-'))
            at++;
        if (!is_json_digit_at(at, end))
            return NULL;
        at = skip_json_digits(at, end);
    }
    return at;
}

bool json_int(struct json *json, int64_t *out)
{
    static const char expected[] = "an integer of 64 bits";
    char start = json_value_start(json);
    bool negative = start == '-';
    char *at = negative ? json->at + 1 : json->at;
    if (!start || !is_json_digit_at(at, json->end))
        return json_fail(json, expected);
    const char *first = at;
    uint64_t magnitude = 0;
    for (; is_json_digit_at(at, json->end); at++) {
        /* Nineteen digits never exceed 2^64, so the check below sees the true number. */
        if (at - first == 19)
            return json_fail(json, expected);
        magnitude = magnitude * 10 + (uint64_t)(*at - '0');
    }
    if ((*first == '0' && at - first > 1) || magnitude > (uint64_t)INT64_MAX + negative)
        return json_fail(json, expected);
    if (at < json->end && (*at == '.' || *at == 'e' || *at == 'E'))
        return json_fail(json, expected);
    *out = (int64_t)(negative ? 0 - magnitude : magnitude);
    return json_value_end(json, at);
}

bool json_double(struct json *json, double *out)
{
    char *end = json_peek(json) == JSON_NUMBER ? find_json_number_end(json->at, json->end) : NULL;
    if (!end)
        return json_fail(json, "a number");
    /* strtod() needs a terminator, and there may be no space for one after the input. */
    char text[JSON_DOUBLE_TEXT_MAX + 1];
    size_t len = (size_t)(end - json->at);
    if (len > JSON_DOUBLE_TEXT_MAX)
        return json_fail(json, "a shorter number");
    memcpy(text, json->at, len);
    text[len] = '\0';
    double value = strtod(text, NULL);
    if (!isfinite(value))
        return json_fail(json, "a number in the range of a double");
    *out = value;
    return json_value_end(json, end);
}

/* --- literals --- */

static inline bool read_json_literal(struct json *json, struct slice literal, const char *expected)
{
    if ((size_t)(json->end - json->at) < literal.len ||
        memcmp(json->at, literal.data, literal.len) != 0)
        return json_fail(json, expected);
    return json_value_end(json, json->at + literal.len);
}

bool json_bool(struct json *json, bool *out)
{
    char start = json_value_start(json);
    if (start != 't' && start != 'f')
        return json_fail(json, "true or false");
    *out = start == 't';
    return read_json_literal(json, *out ? SLICE("true") : SLICE("false"), "true or false");
}

bool json_null(struct json *json)
{
    if (json_value_start(json) != 'n')
        return json_fail(json, "null");
    return read_json_literal(json, SLICE("null"), "null");
}

/* --- containers --- */

static bool enter_json_container(struct json *json, bool array)
{
    static_assert(JSON_DEPTH_MAX <= 32, "`arrays` has one bit for each level");
    if (json->depth == JSON_DEPTH_MAX) {
        json->beyond = !json->error;
        return json_fail(json, "less nesting");
    }
    uint32_t bit = (uint32_t)1 << json->depth++;
    json->arrays = array ? json->arrays | bit : json->arrays & ~bit;
    json->at++;
    json->next = JSON_NEXT_FIRST;
    return true;
}

bool json_object(struct json *json)
{
    return json_value_start(json) == '{' ? enter_json_container(json, false)
                                         : json_fail(json, "an object");
}

bool json_array(struct json *json)
{
    return json_value_start(json) == '[' ? enter_json_container(json, true)
                                         : json_fail(json, "an array");
}

static inline bool is_in_json_array(const struct json *json)
{
    return json->arrays >> (json->depth - 1) & 1;
}

/* Skips the comma before the next item, or leaves the container at `close`. */
static inline bool next_json_item(struct json *json, char close, const char *expected)
{
    char byte = next_json_byte(json);
    if (json->next == JSON_NEXT_VALUE)
        return json_fail(json, expected);
    if (byte == close) {
        json->depth--;
        json_value_end(json, json->at + 1);
        return false;
    }
    if (json->next == JSON_NEXT_MORE) {
        if (byte != ',')
            return json_fail(json, expected);
        json->at++;
    }
    json->next = JSON_NEXT_VALUE;
    return true;
}

/* If `key` is NULL, the key is only validated. */
static inline bool next_json_member(struct json *json, struct slice *key)
{
    assert(json->error || (json->depth > 0 && !is_in_json_array(json)));
    if (!next_json_item(json, '}', "',' or '}'"))
        return false;
    if (json_value_start(json) != '"')
        return json_fail(json, "a key");
    if (!read_json_string(json, key))
        return false;
    if (next_json_byte(json) != ':')
        return json_fail(json, "':'");
    json->at++;
    return true;
}

bool json_member(struct json *json, struct slice *key)
{
    return next_json_member(json, key);
}

bool json_element(struct json *json)
{
    assert(json->error || (json->depth > 0 && is_in_json_array(json)));
    return next_json_item(json, ']', "',' or ']'");
}

/* --- whole values --- */

/* Skips a scalar, or enters a container. */
static bool skip_json_scalar_or_enter(struct json *json)
{
    bool ignored;
    char *end;
    switch (json_peek(json)) {
    case JSON_OBJECT:
        return enter_json_container(json, false);
    case JSON_ARRAY:
        return enter_json_container(json, true);
    case JSON_STRING:
        return read_json_string(json, NULL) && json_value_end(json, json->at);
    case JSON_NUMBER:
        end = find_json_number_end(json->at, json->end);
        return end ? json_value_end(json, end) : json_fail(json, "a number");
    case JSON_TRUE:
    case JSON_FALSE:
        return json_bool(json, &ignored);
    case JSON_NULL:
        return json_null(json);
    case JSON_INVALID:
    default:
        return json_fail(json, "a value");
    }
}

bool json_skip(struct json *json)
{
    unsigned outside = json->depth;
    if (!skip_json_scalar_or_enter(json))
        return false;
    while (json->depth > outside) {
        bool item = is_in_json_array(json) ? json_element(json) : next_json_member(json, NULL);
        if (item)
            skip_json_scalar_or_enter(json);
        if (json->error)
            return false;
    }
    return true;
}

bool json_raw(struct json *json, struct slice *out)
{
    next_json_byte(json);
    const char *start = json->at;
    if (!json_skip(json))
        return false;
    *out = (struct slice){start, (size_t)(json->at - start)};
    return true;
}

bool json_can_be_wrapped(struct slice value)
{
    struct json json;
    json_init(&json, (char *)value.data, value.len); /* json_skip() writes nothing */
    json.depth = JSON_WRAPPING_MAX;
    return json_skip(&json);
}

bool json_done(struct json *json)
{
    next_json_byte(json);
    if (json->at != json->end || json->depth > 0 || json->next != JSON_NEXT_MORE)
        json_fail(json, "the end of the input");
    return !json->error;
}
