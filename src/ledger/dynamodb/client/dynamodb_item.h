/*
 * Items as DynamoDB writes them: {"chat_id":{"S":"c1"},"sequence_counter":{"N":"47"}}. Attributes are texts and numbers.
 *
 * An item that was read lies in the memory of the task's request, and so do its texts: an outcome may point to them.
 */
#ifndef ROLLCALL_LEDGER_DYNAMODB_CLIENT_DYNAMODB_ITEM_H
#define ROLLCALL_LEDGER_DYNAMODB_CLIENT_DYNAMODB_ITEM_H

#include "ledger/dynamodb/client/dynamodb_client.h"
#include "ledger/dynamodb/dynamodb_tables.h"
#include "text/json.h"

/* ---- writing ---- */

struct dynamodb_key {
    enum dynamodb_table table;
    struct slice partition;
    struct slice sort;   /* SLICE_NONE in a table without a second part */
    int64_t sort_number; /* in a table whose second part is a number */
};

/* An attribute with its name ("body_text"), or a value with its place in an expression (":body"). */
struct dynamodb_value {
    const char *name;
    bool is_number;
    struct slice text;
    int64_t number;
};

#define DYNAMODB_TEXT(value_name, value_text)                                                      \
    ((struct dynamodb_value){.name = (value_name), .text = (value_text)})
#define DYNAMODB_NUMBER(value_name, value_number)                                                  \
    ((struct dynamodb_value){                                                                      \
        .name = (value_name), .is_number = true, .number = (int64_t)(value_number)})

struct dynamodb_values {
    const struct dynamodb_value *values;
    size_t count;
};

/* DYNAMODB_VALUES(DYNAMODB_TEXT(":id", id), DYNAMODB_NUMBER(":now", now_ms)) */
#define DYNAMODB_VALUES(...)                                                                       \
    ((struct dynamodb_values){(const struct dynamodb_value[]){__VA_ARGS__},                        \
                              sizeof((const struct dynamodb_value[]){__VA_ARGS__}) /               \
                                  sizeof(struct dynamodb_value)})
#define DYNAMODB_NO_VALUES ((struct dynamodb_values){NULL, 0})

/* Append to task->body. A text that is not UTF-8 makes the task invalid. */
void dynamodb_write_table(struct dynamodb_task *task, enum dynamodb_table table);
void dynamodb_write_key(struct dynamodb_task *task, const struct dynamodb_key *key);

/* As an object. */
void dynamodb_write_values(struct dynamodb_task *task, struct dynamodb_values values);

/* As an object: the key and the attributes. */
void dynamodb_write_item(struct dynamodb_task *task, const struct dynamodb_key *key,
                         struct dynamodb_values attributes);

/* Returns the texts one after the other, in the request's memory: part_key "member#" + user. */
struct slice dynamodb_join(struct dynamodb_task *task, const char *prefix, struct slice text);

/* Returns a key of two ids of which no two pairs have the same: "5:alice:bob". */
struct slice dynamodb_pair(struct dynamodb_task *task, struct slice first, struct slice second);

/* ---- reading ---- */

struct dynamodb_attribute {
    struct slice name;
    struct slice text; /* a number as DynamoDB writes it */
};

struct dynamodb_item {
    const struct dynamodb_attribute *attributes; /* NULL: there is no such item */
    size_t count;
};

static inline bool dynamodb_item_exists(const struct dynamodb_item *item)
{
    return item->attributes != NULL;
}

/* Returns SLICE_NONE without such an attribute. */
struct slice dynamodb_item_text(const struct dynamodb_item *item, const char *name);

/* Returns 0 without such an attribute. */
int64_t dynamodb_item_number(const struct dynamodb_item *item, const char *name);

bool dynamodb_item_has(const struct dynamodb_item *item, const char *name);

/* Reads an object of attributes. */
void dynamodb_read_item(struct dynamodb_task *task, struct json *json, struct dynamodb_item *item);

#endif
