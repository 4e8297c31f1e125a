#include "ledger/dynamodb/client/dynamodb_item.h"

#include "text/utf8.h"

#include <stdio.h>
#include <stdlib.h>

enum { NUMBER_TEXT_MAX = 24, PAIR_PREFIX_MAX = 24 };

/* ---- writing ---- */

static void write_typed(struct dynamodb_task *task, struct slice name, const char *type,
                        struct slice text)
{
    struct buffer *out = &task->body;
    task->invalid |= !utf8_valid(text);
    json_write_key(out, name);
    json_write_object(out);
    json_write_key_string(out, slice_of(type), text);
    json_write_object_end(out);
}

static void write_number(struct dynamodb_task *task, struct slice name, int64_t number)
{
    char text[NUMBER_TEXT_MAX];
    snprintf(text, sizeof(text), "%lld", (long long)number);
    write_typed(task, name, "N", slice_of(text));
}

static void write_value(struct dynamodb_task *task, const struct dynamodb_value *value)
{
    if (value->is_number)
        write_number(task, slice_of(value->name), value->number);
    else
        write_typed(task, slice_of(value->name), "S", value->text);
}

static void write_key_parts(struct dynamodb_task *task, const struct dynamodb_key *key)
{
    const struct dynamodb_table_description *table = &dynamodb_tables[key->table];
    write_typed(task, slice_of(table->partition), "S", key->partition);
    if (table->sort && table->sort_is_number)
        write_number(task, slice_of(table->sort), key->sort_number);
    else if (table->sort)
        write_typed(task, slice_of(table->sort), "S", key->sort);
}

void dynamodb_write_table(struct dynamodb_task *task, enum dynamodb_table table)
{
    struct buffer *out = &task->body;
    json_write_key(out, SLICE("TableName"));
    buffer_printf(out, "\"%s%s\"", task->client->table_prefix, dynamodb_tables[table].name);
}

void dynamodb_write_key(struct dynamodb_task *task, const struct dynamodb_key *key)
{
    json_write_object(&task->body);
    write_key_parts(task, key);
    json_write_object_end(&task->body);
}

void dynamodb_write_values(struct dynamodb_task *task, struct dynamodb_values values)
{
    json_write_object(&task->body);
    for (size_t i = 0; i < values.count; i++)
        write_value(task, &values.values[i]);
    json_write_object_end(&task->body);
}

void dynamodb_write_item(struct dynamodb_task *task, const struct dynamodb_key *key,
                         struct dynamodb_values attributes)
{
    json_write_object(&task->body);
    write_key_parts(task, key);
    for (size_t i = 0; i < attributes.count; i++)
        write_value(task, &attributes.values[i]);
    json_write_object_end(&task->body);
}

struct slice dynamodb_join(struct dynamodb_task *task, const char *prefix, struct slice text)
{
    struct slice head = slice_of(prefix);
    char *joined = ledger_request_alloc(task->request, head.len + text.len);
    if (!joined)
        return SLICE_NONE;
    char *end = joined;
    slice_copy_to(&end, head);
    slice_copy_to(&end, text);
    return (struct slice){joined, head.len + text.len};
}

/* An id may hold any byte, also 0, so the parts are copied by their lengths. */
struct slice dynamodb_pair(struct dynamodb_task *task, struct slice first, struct slice second)
{
    char *pair = ledger_request_alloc(task->request, PAIR_PREFIX_MAX + first.len + 1 + second.len);
    if (!pair)
        return SLICE_NONE;
    char *end = pair + snprintf(pair, PAIR_PREFIX_MAX, "%zu:", first.len);
    slice_copy_to(&end, first);
    *end++ = ':';
    slice_copy_to(&end, second);
    return (struct slice){pair, (size_t)(end - pair)};
}

/* ---- reading ---- */

static const struct dynamodb_attribute *find_attribute(const struct dynamodb_item *item,
                                                       const char *name)
{
    for (size_t i = 0; i < item->count; i++)
        if (slice_is(item->attributes[i].name, name))
            return &item->attributes[i];
    return NULL;
}

struct slice dynamodb_item_text(const struct dynamodb_item *item, const char *name)
{
    const struct dynamodb_attribute *attribute = find_attribute(item, name);
    return attribute ? attribute->text : SLICE_NONE;
}

int64_t dynamodb_item_number(const struct dynamodb_item *item, const char *name)
{
    struct slice text = dynamodb_item_text(item, name);
    char digits[NUMBER_TEXT_MAX];
    if (text.len == 0 || text.len >= sizeof(digits))
        return 0;
    memcpy(digits, text.data, text.len);
    digits[text.len] = '\0';
    return strtoll(digits, NULL, 10);
}

bool dynamodb_item_has(const struct dynamodb_item *item, const char *name)
{
    return find_attribute(item, name) != NULL;
}

/* {"S":"text"} or {"N":"47"}; others, which this program never writes, read as empty. */
static struct slice read_attribute_value(struct json *json)
{
    struct slice type, text = SLICE_NONE;
    json_object(json);
    while (json_member(json, &type)) {
        if (json_peek(json) == JSON_STRING)
            json_string(json, &text);
        else
            json_skip(json);
    }
    return text;
}

void dynamodb_read_item(struct dynamodb_task *task, struct json *json, struct dynamodb_item *item)
{
    struct ledger_request_array attributes = {0};
    struct slice name;
    json_object(json);
    while (json_member(json, &name)) {
        struct slice text = read_attribute_value(json);
        struct dynamodb_attribute *attribute =
            ledger_request_array_push(task->request, &attributes, sizeof(*attribute));
        if (attribute)
            *attribute = (struct dynamodb_attribute){name, text};
    }
    *item = (struct dynamodb_item){attributes.items, attributes.count};
}
