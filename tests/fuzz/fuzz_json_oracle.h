/*
 * How jansson reads a text, for fuzz_json.c. It is a file of its own, because jansson and text/json.h use the
 * same names (json_object, JSON_OBJECT, ...) and no file can include both; this file calls none of the
 * functions that clash.
 */
#ifndef ROLLCALL_TESTS_FUZZ_JSON_ORACLE_H
#define ROLLCALL_TESTS_FUZZ_JSON_ORACLE_H

#include "base/slice.h"

#include <stdbool.h>

/* Whether and why jansson refuses a text. RFC 8259 does not have its limits. */
enum fuzz_json_verdict {
    FUZZ_JSON_ACCEPTED,
    FUZZ_JSON_REFUSED,
    FUZZ_JSON_BEYOND_LIMITS, /* of integers or reals, or a key that contains NUL */
};

enum fuzz_json_verdict fuzz_json_judge(struct slice text);

/* Returns whether both texts are accepted and have the same value. */
bool fuzz_json_same(struct slice a, struct slice b);

#endif
