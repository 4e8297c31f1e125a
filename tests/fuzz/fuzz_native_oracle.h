/*
 * jansson's reading of a client's message, for fuzz_native.c. Apart for the same reason as
 * fuzz_json_oracle.h: no file can include jansson.h and text/json.h both.
 *
 * Every question is about members of the object in `text`; all are answered with false where jansson
 * does not take the text for an object. Of a key that stands twice the last counts, as with us.
 */
#ifndef ROLLCALL_TESTS_FUZZ_NATIVE_ORACLE_H
#define ROLLCALL_TESTS_FUZZ_NATIVE_ORACLE_H

#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>

bool fuzz_native_is_object(struct slice text);

bool fuzz_native_has(struct slice text, const char *key);

/* The member is a string of these bytes; of any bytes if `bytes` is SLICE_NONE. */
bool fuzz_native_is_string(struct slice text, const char *key, struct slice bytes);

/* The member is the value that `raw` means. */
bool fuzz_native_is_value(struct slice text, const char *key, struct slice raw);

/* How many containers the member's innermost value stands in; 0 where there is no member. */
size_t fuzz_native_depth(struct slice text, const char *key);

/* The member is a list of these strings. */
bool fuzz_native_is_list(struct slice text, const char *key, const struct slice *items,
                         size_t count);

#endif
