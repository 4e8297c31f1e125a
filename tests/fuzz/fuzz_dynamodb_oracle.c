#include "fuzz_dynamodb_oracle.h"

#include <jansson.h>

static bool may_be(json_t *value, struct slice text)
{
    void *iter = json_object_iter(value);
    json_t *only = iter ? json_object_iter_value(iter) : NULL;
    if (json_object_size(value) != 1 || !json_is_string(only))
        return true;
    return slice_equal(text, (struct slice){json_string_value(only), json_string_length(only)});
}

bool fuzz_dynamodb_may_have(struct slice item, struct slice name, struct slice text)
{
    json_error_t error;
    json_t *object = json_loadb(item.data, item.len, JSON_ALLOW_NUL, &error);
    if (!object)
        return true; /* beyond jansson's limits */
    json_t *value = json_object_getn(object, name.data, name.len);
    bool may_have = value && may_be(value, text);
    json_decref(object);
    return may_have;
}
