/*
 * How jansson reads an item of DynamoDB, for fuzz_dynamodb_answer.c. It is a file of its own for the same reason as
 * fuzz_json_oracle.h: no file can include both jansson.h and text/json.h.
 */
#ifndef ROLLCALL_TESTS_FUZZ_DYNAMODB_ORACLE_H
#define ROLLCALL_TESTS_FUZZ_DYNAMODB_ORACLE_H

#include "base/slice.h"

#include <stdbool.h>

/* Returns false if an attribute of this name is a single text, {"S":"text"}, and not this one, or if there is none. The last
 * one of a name counts. */
bool fuzz_dynamodb_may_have(struct slice item, struct slice name, struct slice text);

#endif
