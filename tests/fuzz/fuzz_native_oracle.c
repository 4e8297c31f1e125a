#include "fuzz_native_oracle.h"

#include <jansson.h>

static json_t *load(struct slice text)
{
    json_error_t error;
    return json_loadb(text.len ? text.data : "", text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL,
                      &error);
}

/* Returns a JSON member borrowed from *object, which the caller drops; NULL: no such member. */
static json_t *find_json_member(struct slice text, const char *key, json_t **object)
{
    *object = load(text);
    return json_object_get(*object, key);
}

static bool is_text(const json_t *value, struct slice bytes)
{
    if (!json_is_string(value))
        return false;
    struct slice text = {json_string_value(value), json_string_length(value)};
    return !bytes.data || slice_equal(text, bytes);
}

bool fuzz_native_is_object(struct slice text)
{
    json_t *value = load(text);
    bool is_object = json_is_object(value);
    json_decref(value);
    return is_object;
}

bool fuzz_native_has(struct slice text, const char *key)
{
    json_t *object;
    bool has = find_json_member(text, key, &object) != NULL;
    json_decref(object);
    return has;
}

bool fuzz_native_is_string(struct slice text, const char *key, struct slice bytes)
{
    json_t *object;
    bool is_string = is_text(find_json_member(text, key, &object), bytes);
    json_decref(object);
    return is_string;
}

bool fuzz_native_is_value(struct slice text, const char *key, struct slice raw)
{
    json_t *object;
    json_t *value = find_json_member(text, key, &object);
    json_t *expected = load(raw);
    bool same = value && expected && json_equal(value, expected);
    json_decref(expected);
    json_decref(object);
    return same;
}

static size_t larger(size_t one, size_t other)
{
    return one > other ? one : other;
}

static size_t depth_of(json_t *value)
{
    size_t deepest = 0;
    size_t at;
    const char *key;
    json_t *inner;
    if (!json_is_array(value) && !json_is_object(value))
        return 0;
    json_array_foreach(value, at, inner) deepest = larger(deepest, depth_of(inner));
    json_object_foreach(value, key, inner) deepest = larger(deepest, depth_of(inner));
    return deepest + 1;
}

size_t fuzz_native_depth(struct slice text, const char *key)
{
    json_t *object;
    size_t depth = depth_of(find_json_member(text, key, &object));
    json_decref(object);
    return depth;
}

bool fuzz_native_is_list(struct slice text, const char *key, const struct slice *items,
                         size_t count)
{
    json_t *object;
    json_t *list = find_json_member(text, key, &object);
    bool same = json_is_array(list) && json_array_size(list) == count;
    for (size_t i = 0; same && i < count; i++)
        same = is_text(json_array_get(list, i), items[i]);
    json_decref(object);
    return same;
}
