#include "ledger/dynamodb/client/dynamodb_write.h"

#include "ledger/dynamodb/client/dynamodb_parallel.h"

#include <assert.h>

enum { DECISION_WAIT_MS = 5 };

/* ---- transactions ---- */

static void write_request_token(struct dynamodb_task *task)
{
    uint64_t high = random_u64(task->client->random), low = random_u64(task->client->random);
    json_write_key(&task->body, SLICE("ClientRequestToken"));
    buffer_printf(&task->body, "\"%016llx%016llx\"", (unsigned long long)high,
                  (unsigned long long)low);
}

void dynamodb_transaction_begin(struct dynamodb_transaction *transaction,
                                struct dynamodb_task *task)
{
    struct buffer *out = &task->body;
    transaction->task = task;
    transaction->count = 0;
    buffer_clear(out);
    json_write_object(out);
    write_request_token(task);
    json_write_key(out, SLICE("TransactItems"));
    json_write_array(out);
}

/* Begins {"Put":{"TableName":"…" */
static struct buffer *begin_transaction_part(struct dynamodb_transaction *transaction,
                                             const char *kind, const struct dynamodb_key *key)
{
    struct buffer *out = &transaction->task->body;
    assert(transaction->count < DYNAMODB_TRANSACTION_MAX);
    json_write_object(out);
    json_write_key(out, slice_of(kind));
    json_write_object(out);
    dynamodb_write_table(transaction->task, key->table);
    return out;
}

static void write_condition(struct dynamodb_task *task, const char *condition,
                            struct dynamodb_values values)
{
    struct buffer *out = &task->body;
    if (condition)
        json_write_key_string(out, SLICE("ConditionExpression"), slice_of(condition));
    if (values.count > 0) {
        json_write_key(out, SLICE("ExpressionAttributeValues"));
        dynamodb_write_values(task, values);
    }
}

static unsigned end_transaction_part(struct dynamodb_transaction *transaction,
                                     const char *condition, struct dynamodb_values values)
{
    struct buffer *out = &transaction->task->body;
    write_condition(transaction->task, condition, values);
    if (condition)
        json_write_key_string(out, SLICE("ReturnValuesOnConditionCheckFailure"), SLICE("ALL_OLD"));
    json_write_object_end(out);
    json_write_object_end(out);
    transaction->refusals[transaction->count] = (struct dynamodb_refusal){0};
    return transaction->count++;
}

unsigned dynamodb_transaction_put(struct dynamodb_transaction *transaction, struct dynamodb_key key,
                                  struct dynamodb_values attributes, const char *condition,
                                  struct dynamodb_values values)
{
    struct buffer *out = begin_transaction_part(transaction, "Put", &key);
    json_write_key(out, SLICE("Item"));
    dynamodb_write_item(transaction->task, &key, attributes);
    return end_transaction_part(transaction, condition, values);
}

static struct buffer *begin_keyed_part(struct dynamodb_transaction *transaction, const char *kind,
                                       const struct dynamodb_key *key)
{
    struct buffer *out = begin_transaction_part(transaction, kind, key);
    json_write_key(out, SLICE("Key"));
    dynamodb_write_key(transaction->task, key);
    return out;
}

unsigned dynamodb_transaction_update(struct dynamodb_transaction *transaction,
                                     struct dynamodb_key key, const char *update,
                                     const char *condition, struct dynamodb_values values)
{
    struct buffer *out = begin_keyed_part(transaction, "Update", &key);
    json_write_key_string(out, SLICE("UpdateExpression"), slice_of(update));
    return end_transaction_part(transaction, condition, values);
}

unsigned dynamodb_transaction_delete(struct dynamodb_transaction *transaction,
                                     struct dynamodb_key key, const char *condition,
                                     struct dynamodb_values values)
{
    begin_keyed_part(transaction, "Delete", &key);
    return end_transaction_part(transaction, condition, values);
}

unsigned dynamodb_transaction_check(struct dynamodb_transaction *transaction,
                                    struct dynamodb_key key, const char *condition,
                                    struct dynamodb_values values)
{
    begin_keyed_part(transaction, "ConditionCheck", &key);
    return end_transaction_part(transaction, condition, values);
}

/* {"Code":"ConditionalCheckFailed","Item":{…},"Message":"…"} */
static void read_refusal(struct dynamodb_task *task, struct json *json,
                         struct dynamodb_refusal *refusal)
{
    struct slice name, code;
    json_object(json);
    while (json_member(json, &name)) {
        if (slice_is(name, "Item"))
            dynamodb_read_item(task, json, &refusal->item);
        else if (slice_is(name, "Code") && json_string(json, &code))
            refusal->refused = slice_is(code, "ConditionalCheckFailed");
        else if (!slice_is(name, "Code"))
            json_skip(json);
    }
}

static void read_refusals(struct dynamodb_transaction *transaction)
{
    struct dynamodb_task *task = transaction->task;
    struct dynamodb_refusal surplus;
    struct slice name;
    struct json json;
    unsigned place = 0;
    json_init(&json, (char *)task->answer.data, task->answer.len);
    json_object(&json);
    while (json_member(&json, &name)) {
        if (!slice_is(name, "CancellationReasons")) {
            json_skip(&json);
            continue;
        }
        json_array(&json);
        for (; json_element(&json); place++)
            read_refusal(task, &json,
                         place < transaction->count ? &transaction->refusals[place] : &surplus);
    }
    if (!json_done(&json) || task->request->exhausted)
        task->failed = true;
}

enum dynamodb_outcome dynamodb_transaction_commit(struct dynamodb_transaction *transaction)
{
    struct dynamodb_task *task = transaction->task;
    struct buffer *out = &task->body;
    json_write_array_end(out);
    json_write_object_end(out);
    struct ledger_metrics *metrics = task->client->metrics;
    enum dynamodb_outcome outcome = dynamodb_client_call(task, "TransactWriteItems");
    if (outcome == DYNAMODB_DONE)
        ledger_count(&metrics->commits);
    else if (outcome == DYNAMODB_FAILED)
        ledger_count(&metrics->commit_failures);
    else
        read_refusals(transaction);
    return task->failed ? DYNAMODB_FAILED : outcome;
}

bool dynamodb_decide(struct dynamodb_task *task, unsigned *decisions)
{
    int64_t wait_max_ms = (int64_t)DECISION_WAIT_MS << *decisions;
    if (*decisions == DYNAMODB_DECISIONS_MAX || task->failed || task->invalid)
        return false;
    if (*decisions > 0)
        dynamodb_client_wait(
            task, 1 + (int64_t)random_below(task->client->random, (uint64_t)wait_max_ms));
    ++*decisions;
    return true;
}

/* ---- single items ---- */

static struct buffer *begin_write(struct dynamodb_task *task, enum dynamodb_table table)
{
    buffer_clear(&task->body);
    json_write_object(&task->body);
    dynamodb_write_table(task, table);
    return &task->body;
}

enum dynamodb_outcome dynamodb_update(struct dynamodb_task *task, struct dynamodb_key key,
                                      const char *update, const char *condition,
                                      struct dynamodb_values values)
{
    struct buffer *out = begin_write(task, key.table);
    json_write_key(out, SLICE("Key"));
    dynamodb_write_key(task, &key);
    json_write_key_string(out, SLICE("UpdateExpression"), slice_of(update));
    write_condition(task, condition, values);
    json_write_object_end(out);
    return dynamodb_client_call(task, "UpdateItem");
}

enum dynamodb_outcome dynamodb_put(struct dynamodb_task *task, struct dynamodb_key key,
                                   struct dynamodb_values attributes)
{
    struct buffer *out = begin_write(task, key.table);
    json_write_key(out, SLICE("Item"));
    dynamodb_write_item(task, &key, attributes);
    json_write_object_end(out);
    return dynamodb_client_call(task, "PutItem");
}

enum dynamodb_outcome dynamodb_delete(struct dynamodb_task *task, struct dynamodb_key key)
{
    struct buffer *out = begin_write(task, key.table);
    json_write_key(out, SLICE("Key"));
    dynamodb_write_key(task, &key);
    json_write_object_end(out);
    return dynamodb_client_call(task, "DeleteItem");
}

/* ---- many items ---- */

static void write_batch_entry(struct dynamodb_task *task, const struct dynamodb_put_entry *entry)
{
    struct buffer *out = &task->body;
    json_write_object(out);
    json_write_key(out, entry->is_delete ? SLICE("DeleteRequest") : SLICE("PutRequest"));
    json_write_object(out);
    json_write_key(out, entry->is_delete ? SLICE("Key") : SLICE("Item"));
    if (entry->is_delete)
        dynamodb_write_key(task, &entry->key);
    else
        dynamodb_write_item(task, &entry->key, entry->attributes);
    json_write_object_end(out);
    json_write_object_end(out);
}

static void write_batch_entries(struct dynamodb_task *task, enum dynamodb_table table,
                                const struct dynamodb_put_entry *entries, size_t count)
{
    struct buffer *out = &task->body;
    bool begun = false;
    for (size_t i = 0; i < count; i++) {
        if (entries[i].key.table != table)
            continue;
        if (!begun) {
            if (out->len && out->data[out->len - 1] != '{')
                buffer_append_byte(out, ',');
            buffer_printf(out, "\"%s%s\":[", task->client->table_prefix,
                          dynamodb_tables[table].name);
            begun = true;
        }
        write_batch_entry(task, &entries[i]);
    }
    if (begun)
        buffer_append_byte(out, ']');
}

/* Returns what DynamoDB has not written yet, as it wrote it. */
static struct slice read_unwritten(struct dynamodb_task *task)
{
    struct json json;
    struct slice name, unwritten = SLICE_NONE;
    json_init(&json, (char *)task->answer.data, task->answer.len);
    json_object(&json);
    while (json_member(&json, &name)) {
        if (slice_is(name, "UnprocessedItems"))
            json_raw(&json, &unwritten);
        else
            json_skip(&json);
    }
    if (!json_done(&json))
        task->failed = true;
    return slice_is(unwritten, "{}") ? SLICE_NONE : unwritten;
}

static struct slice put_batch(struct dynamodb_task *task, struct slice rest,
                              const struct dynamodb_put_entry *entries, size_t count)
{
    struct buffer *out = &task->body;
    buffer_clear(out);
    json_write_object(out);
    json_write_key(out, SLICE("RequestItems"));
    if (rest.len) {
        json_write_raw(out, rest);
    } else {
        json_write_object(out);
        for (unsigned table = 0; table < DYNAMODB_TABLE_COUNT; table++)
            write_batch_entries(task, (enum dynamodb_table)table, entries, count);
        buffer_append_byte(out, '}');
    }
    json_write_object_end(out);
    return dynamodb_client_call(task, "BatchWriteItem") == DYNAMODB_DONE ? read_unwritten(task)
                                                                         : SLICE_NONE;
}

struct put_many {
    const struct dynamodb_put_entry *entries;
    size_t count;
};

static void put_part_of_many(struct dynamodb_task *task, size_t at, void *arg)
{
    const struct put_many *many = arg;
    size_t done = at * DYNAMODB_BATCH_WRITE_MAX, left = many->count - done;
    size_t some = left < DYNAMODB_BATCH_WRITE_MAX ? left : DYNAMODB_BATCH_WRITE_MAX;
    struct slice rest = SLICE_NONE;
    do {
        rest = put_batch(task, rest, &many->entries[done], some);
        if (rest.len)
            dynamodb_client_wait(task, task->client->settings.retry.initial_backoff_ms);
    } while (rest.len && !task->failed);
}

enum dynamodb_outcome dynamodb_put_many(struct dynamodb_task *task,
                                        const struct dynamodb_put_entry *entries, size_t count)
{
    struct put_many many = {entries, count};
    dynamodb_parallel(task, (count + DYNAMODB_BATCH_WRITE_MAX - 1) / DYNAMODB_BATCH_WRITE_MAX,
                      put_part_of_many, &many);
    return task->failed || task->invalid ? DYNAMODB_FAILED : DYNAMODB_DONE;
}
