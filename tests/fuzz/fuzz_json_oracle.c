#include "fuzz_json_oracle.h"

#include <jansson.h>

/* jansson ends at a NUL byte between tokens and ignores what follows. No valid text contains one. */
static bool contains_nul(struct slice text)
{
    return text.len && memchr(text.data, '\0', text.len);
}

static json_t *load(struct slice text, json_error_t *error)
{
    return json_loadb(text.len ? text.data : "", text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, error);
}

enum fuzz_json_verdict fuzz_json_judge(struct slice text)
{
    if (contains_nul(text))
        return FUZZ_JSON_REFUSED;
    json_error_t error;
    json_t *value = load(text, &error);
    if (value) {
        json_decref(value);
        return FUZZ_JSON_ACCEPTED;
    }
    switch (json_error_code(&error)) {
    case json_error_numeric_overflow:
    case json_error_null_byte_in_key:
        return FUZZ_JSON_BEYOND_LIMITS;
    default:
        return FUZZ_JSON_REFUSED;
    }
}

bool fuzz_json_same(struct slice a, struct slice b)
{
    json_error_t error;
    json_t *value_a = load(a, &error);
    json_t *value_b = load(b, &error);
    bool same = value_a && value_b && json_equal(value_a, value_b);
    json_decref(value_a);
    json_decref(value_b);
    return same;
}
