/*
 * How jansson reads a client's message, for fuzz_native.c. It is a file of its own for the same reason as
 * fuzz_json_oracle.h: no file can include both jansson.h and text/json.h.
 *
 * Every function is about JSON members of the object in `text`, and returns false if jansson does not read the text
 * as an object. Of two members with the same key the last counts, as in our decoder.
 */
#ifndef ROLLCALL_TESTS_FUZZ_NATIVE_ORACLE_H
#define ROLLCALL_TESTS_FUZZ_NATIVE_ORACLE_H

#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>

bool fuzz_native_is_object(struct slice text);

bool fuzz_native_has(struct slice text, const char *key);

/* Whether the member is a string of these bytes; of any bytes if `bytes` is SLICE_NONE. */
bool fuzz_native_is_string(struct slice text, const char *key, struct slice bytes);

/* Whether the member has the value of `raw`. */
bool fuzz_native_is_value(struct slice text, const char *key, struct slice raw);

/* The nesting depth of the member's value; 0 if there is no member. */
size_t fuzz_native_depth(struct slice text, const char *key);

/* Whether the member is a list of these strings. */
bool fuzz_native_is_list(struct slice text, const char *key, const struct slice *items,
                         size_t count);

#endif
