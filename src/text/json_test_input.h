/* Input for tests of the JSON parser in an exact allocation, so that the address sanitizer detects
 * every over-read. */
#ifndef ROLLCALL_TEXT_JSON_TEST_INPUT_H
#define ROLLCALL_TEXT_JSON_TEST_INPUT_H

#include "text/json.h"

#include <stdlib.h>

struct json_test_input {
    struct json json;
    char *data;
};

static inline struct json_test_input json_test_input(struct slice text)
{
    struct json_test_input input = {.data = text.len ? malloc(text.len) : NULL};
    if (text.len)
        memcpy(input.data, text.data, text.len);
    json_init(&input.json, input.data, text.len);
    return input;
}

#endif
