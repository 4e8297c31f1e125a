#include "ledger/dynamodb/client/dynamodb_table_state.h"

#include "text/json.h"

#include <stdarg.h>
#include <stdio.h>

enum { KEY_PARTS_MAX = 2, KEY_TEXT_MAX = 300 };

/* ---- reading ---- */

static void read_state_text(struct json *json, char *out, size_t size)
{
    struct slice text;
    if (json_string(json, &text))
        snprintf(out, size, "%.*s", SLICE_FORMAT(text));
}

/* Reads the two texts of {"AttributeName":…,"KeyType":…} and its like. */
static void read_state_pair(struct json *json, const char *second_name, char *first,
                            size_t first_size, char *second, size_t second_size)
{
    struct slice key;
    json_object(json);
    while (json_member(json, &key)) {
        if (slice_is(key, "AttributeName"))
            read_state_text(json, first, first_size);
        else if (slice_is(key, second_name))
            read_state_text(json, second, second_size);
        else
            json_skip(json);
    }
}

static void read_key_schema(struct json *json, struct dynamodb_table_state *state)
{
    json_array(json);
    while (json_element(json)) {
        char name[DYNAMODB_NAME_MAX] = "";
        char kind[8] = "";
        read_state_pair(json, "KeyType", name, sizeof(name), kind, sizeof(kind));
        struct dynamodb_key_part *part =
            strcmp(kind, "RANGE") == 0 ? &state->sort : &state->partition;
        snprintf(part->name, sizeof(part->name), "%s", name);
    }
}

struct attribute_types {
    struct dynamodb_key_part parts[KEY_PARTS_MAX];
    size_t count;
};

/* Attributes of indexes beyond the key's two are left out: we have none, and a foreign one is no harm. */
static void read_attribute_types(struct json *json, struct attribute_types *types)
{
    json_array(json);
    while (json_element(json)) {
        struct dynamodb_key_part part = {0};
        read_state_pair(json, "AttributeType", part.name, sizeof(part.name), part.type,
                        sizeof(part.type));
        if (types->count < KEY_PARTS_MAX)
            types->parts[types->count++] = part;
    }
}

static void set_key_types(struct dynamodb_table_state *state, const struct attribute_types *types)
{
    for (size_t i = 0; i < types->count; i++) {
        const struct dynamodb_key_part *part = &types->parts[i];
        if (strcmp(part->name, state->partition.name) == 0)
            memcpy(state->partition.type, part->type, sizeof(part->type));
        else if (strcmp(part->name, state->sort.name) == 0)
            memcpy(state->sort.type, part->type, sizeof(part->type));
    }
}

static void read_billing(struct json *json, struct dynamodb_table_state *state)
{
    struct slice key, mode;
    json_object(json);
    while (json_member(json, &key)) {
        if (slice_is(key, "BillingMode") && json_string(json, &mode))
            state->is_on_demand = slice_is(mode, "PAY_PER_REQUEST");
        else if (!slice_is(key, "BillingMode"))
            json_skip(json);
    }
}

static void read_table(struct json *json, struct dynamodb_table_state *state)
{
    struct attribute_types types = {0};
    struct slice key;
    json_object(json);
    while (json_member(json, &key)) {
        if (slice_is(key, "TableStatus"))
            read_state_text(json, state->status, sizeof(state->status));
        else if (slice_is(key, "KeySchema"))
            read_key_schema(json, state);
        else if (slice_is(key, "AttributeDefinitions"))
            read_attribute_types(json, &types);
        else if (slice_is(key, "BillingModeSummary"))
            read_billing(json, state);
        else if (slice_is(key, "DeletionProtectionEnabled"))
            json_bool(json, &state->is_protected);
        else
            json_skip(json);
    }
    set_key_types(state, &types);
}

bool dynamodb_table_state_read_table(struct dynamodb_table_state *state, char *answer, size_t len)
{
    struct json json;
    struct slice key;
    json_init(&json, answer, len);
    json_object(&json);
    while (json_member(&json, &key)) {
        if (slice_is(key, "Table"))
            read_table(&json, state);
        else
            json_skip(&json);
    }
    state->exists = json_done(&json) && state->status[0];
    return state->exists;
}

/* Looks for a text two objects deep: {"outer":{"inner":{"name":"text"}}}; `outer` NULL: one. */
static bool read_nested_text(struct json *json, const char *const *path, char *out, size_t size)
{
    struct slice key;
    bool found = false;
    json_object(json);
    while (json_member(json, &key)) {
        if (!slice_is(key, path[0]))
            json_skip(json);
        else if (path[1])
            found = read_nested_text(json, path + 1, out, size);
        else {
            read_state_text(json, out, size);
            found = true;
        }
    }
    return found;
}

bool dynamodb_table_state_read_recovery(struct dynamodb_table_state *state, char *answer,
                                        size_t len)
{
    static const char *const PATH[] = {"ContinuousBackupsDescription",
                                       "PointInTimeRecoveryDescription",
                                       "PointInTimeRecoveryStatus", NULL};
    struct json json;
    char status[32] = "";
    json_init(&json, answer, len);
    bool found = read_nested_text(&json, PATH, status, sizeof(status));
    state->has_recovery = strcmp(status, "ENABLED") == 0;
    state->knows_recovery = found && json_done(&json);
    return state->knows_recovery;
}

bool dynamodb_table_state_read_expiry(struct dynamodb_table_state *state, char *answer, size_t len)
{
    struct json json;
    struct slice key;
    char status[32] = "";
    json_init(&json, answer, len);
    json_object(&json);
    while (json_member(&json, &key)) {
        if (slice_is(key, "TimeToLiveDescription"))
            read_state_pair(&json, "TimeToLiveStatus", state->expires, sizeof(state->expires),
                            status, sizeof(status));
        else
            json_skip(&json);
    }
    /* ENABLING takes up to an hour, in which nothing else may be changed */
    if (strcmp(status, "ENABLED") != 0 && strcmp(status, "ENABLING") != 0)
        state->expires[0] = '\0';
    return json_done(&json) && status[0];
}

/* ---- comparing ---- */

struct comparison {
    dynamodb_difference_hook on_difference;
    void *arg;
    size_t count;
};

__attribute__((format(printf, 2, 3))) static void differ(struct comparison *comparison,
                                                         const char *format, ...)
{
    char text[DYNAMODB_DIFFERENCE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    comparison->count++;
    comparison->on_difference(comparison->arg, text);
}

static void write_key_text(char out[KEY_TEXT_MAX], const char *partition,
                           const char *partition_type, const char *sort, const char *sort_type)
{
    if (sort && sort[0])
        snprintf(out, KEY_TEXT_MAX, "(%.100s %s, %.100s %s)", partition, partition_type, sort,
                 sort_type);
    else
        snprintf(out, KEY_TEXT_MAX, "(%.100s %s)", partition, partition_type);
}

static void compare_keys(struct comparison *comparison, const struct dynamodb_table_state *state,
                         const struct dynamodb_table_description *expected)
{
    char have[KEY_TEXT_MAX];
    char want[KEY_TEXT_MAX];
    write_key_text(have, state->partition.name, state->partition.type, state->sort.name,
                   state->sort.type);
    write_key_text(want, expected->partition, "S", expected->sort,
                   expected->sort_is_number ? "N" : "S");
    if (strcmp(have, want) != 0)
        differ(comparison, "the key is %s, expected %s", have, want);
}

static void compare_expiry(struct comparison *comparison, const char *have, const char *want)
{
    if (want && !have[0])
        differ(comparison, "expired items are not removed, expected by the attribute %s", want);
    else if (want && strcmp(have, want) != 0)
        differ(comparison, "items are removed by the attribute %.100s, expected by %s", have, want);
    else if (!want && have[0])
        differ(comparison, "items are removed by the attribute %.100s, expected never", have);
}

size_t dynamodb_table_state_compare(const struct dynamodb_table_state *state,
                                    const struct dynamodb_table_description *expected,
                                    dynamodb_difference_hook on_difference, void *arg)
{
    struct comparison comparison = {.on_difference = on_difference, .arg = arg};
    if (!state->exists) {
        differ(&comparison, "it does not exist");
        return comparison.count;
    }
    if (strcmp(state->status, "ACTIVE") != 0)
        differ(&comparison, "its status is %s, expected ACTIVE", state->status);
    compare_keys(&comparison, state, expected);
    if (!state->is_on_demand)
        differ(&comparison, "its capacity is provisioned, expected on demand");
    if (!state->is_protected)
        differ(&comparison, "it is not protected from deletion");
    if (state->knows_recovery && !state->has_recovery)
        differ(&comparison, "point-in-time recovery is off");
    compare_expiry(&comparison, state->expires, expected->expires);
    return comparison.count;
}
