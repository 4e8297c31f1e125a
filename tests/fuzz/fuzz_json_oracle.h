/*
 * jansson's opinion of a text, for fuzz_json.c. It stands apart because jansson and text/json.h use
 * the same names (json_object, JSON_OBJECT, ...), so that no file can include both; none of the
 * functions that clash is called here.
 */
#ifndef ROLLCALL_TESTS_FUZZ_JSON_ORACLE_H
#define ROLLCALL_TESTS_FUZZ_JSON_ORACLE_H

#include "base/slice.h"

#include <stdbool.h>

/* Why jansson refuses a text. The limits are its own: RFC 8259 allows what lies beyond them. */
enum fuzz_json_verdict {
    FUZZ_JSON_ACCEPTED,
    FUZZ_JSON_REFUSED,
    FUZZ_JSON_BEYOND_LIMITS, /* of integers, of reals, or a key that holds NUL */
};

enum fuzz_json_verdict fuzz_json_judge(struct slice text);

/* Whether both texts are accepted and mean the same. */
bool fuzz_json_same(struct slice a, struct slice b);

#endif
