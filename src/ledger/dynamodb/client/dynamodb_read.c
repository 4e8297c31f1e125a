#include "ledger/dynamodb/client/dynamodb_read.h"

#include "ledger/dynamodb/client/dynamodb_parallel.h"

/* Begins the body of a call. */
static struct buffer *begin_read(struct dynamodb_task *task)
{
    buffer_clear(&task->body);
    json_write_object(&task->body);
    return &task->body;
}

static struct json begin_answer(struct dynamodb_task *task)
{
    struct json json;
    json_init(&json, (char *)task->answer.data, task->answer.len);
    return json;
}

/* An answer that cannot be read is a failure. */
static void end_answer(struct dynamodb_task *task, struct json *json)
{
    if (!json_done(json) || task->request->exhausted)
        task->failed = true;
}

/* ---- single items ---- */

struct dynamodb_item dynamodb_get(struct dynamodb_task *task, struct dynamodb_key key)
{
    struct dynamodb_item item = {0};
    struct buffer *out = begin_read(task);
    dynamodb_write_table(task, key.table);
    json_write_key_bool(out, SLICE("ConsistentRead"), true);
    json_write_key(out, SLICE("Key"));
    dynamodb_write_key(task, &key);
    json_write_object_end(out);
    if (dynamodb_client_call(task, "GetItem") != DYNAMODB_DONE)
        return item;
    struct json json = begin_answer(task);
    struct slice name;
    json_object(&json);
    while (json_member(&json, &name)) {
        if (slice_is(name, "Item"))
            dynamodb_read_item(task, &json, &item);
        else
            json_skip(&json);
    }
    end_answer(task, &json);
    return task->failed ? (struct dynamodb_item){0} : item;
}

/* ---- many items ---- */

static bool has_key(const struct dynamodb_item *item, const struct dynamodb_key *key)
{
    const struct dynamodb_table_description *table = &dynamodb_tables[key->table];
    if (!slice_equal(dynamodb_item_text(item, table->partition), key->partition))
        return false;
    if (!table->sort)
        return true;
    if (table->sort_is_number)
        return dynamodb_item_number(item, table->sort) == key->sort_number;
    return slice_equal(dynamodb_item_text(item, table->sort), key->sort);
}

/* Gives an item of this table to the keys that ask for it. */
static void place_item(const struct dynamodb_item *item, enum dynamodb_table table,
                       const struct dynamodb_key *keys, size_t count, struct dynamodb_item *items)
{
    for (size_t i = 0; i < count; i++)
        if (keys[i].table == table && has_key(item, &keys[i]))
            items[i] = *item;
}

static enum dynamodb_table find_table(const struct dynamodb_task *task, struct slice name)
{
    struct slice suffix = slice_after(name, strlen(task->client->table_prefix));
    for (unsigned i = 0; i < DYNAMODB_TABLE_COUNT; i++)
        if (slice_is(suffix, dynamodb_tables[i].name))
            return (enum dynamodb_table)i;
    return DYNAMODB_TABLE_COUNT;
}

static void read_batch_responses(struct dynamodb_task *task, struct json *json,
                                 const struct dynamodb_key *keys, size_t count,
                                 struct dynamodb_item *items)
{
    struct slice name;
    json_object(json);
    while (json_member(json, &name)) {
        enum dynamodb_table table = find_table(task, name);
        json_array(json);
        while (json_element(json)) {
            struct dynamodb_item item;
            dynamodb_read_item(task, json, &item);
            place_item(&item, table, keys, count, items);
        }
    }
}

/* The keys of one table; a call names each table once. */
static void write_batch_table(struct dynamodb_task *task, enum dynamodb_table table,
                              const struct dynamodb_key *keys, size_t count)
{
    struct buffer *out = &task->body;
    bool begun = false;
    for (size_t i = 0; i < count; i++) {
        if (keys[i].table != table)
            continue;
        if (!begun) {
            if (out->data[out->len - 1] != '{')
                buffer_append_byte(out, ',');
            buffer_printf(out, "\"%s%s\":{\"ConsistentRead\":true,\"Keys\":[",
                          task->client->table_prefix, dynamodb_tables[table].name);
            begun = true;
        }
        dynamodb_write_key(task, &keys[i]);
    }
    if (begun)
        buffer_append_text(out, "]}");
}

/* Asks for the rest, as the last answer wrote it (`rest`, empty: for all keys). Returns what is still missing. */
static struct slice get_batch(struct dynamodb_task *task, struct slice rest,
                              const struct dynamodb_key *keys, size_t count,
                              struct dynamodb_item *items)
{
    struct buffer *out = begin_read(task);
    struct slice unread = SLICE_NONE, name;
    json_write_key(out, SLICE("RequestItems"));
    if (rest.len) {
        json_write_raw(out, rest);
    } else {
        json_write_object(out);
        for (unsigned table = 0; table < DYNAMODB_TABLE_COUNT && out->len; table++)
            write_batch_table(task, (enum dynamodb_table)table, keys, count);
        buffer_append_byte(out, '}');
    }
    json_write_object_end(out);
    if (dynamodb_client_call(task, "BatchGetItem") != DYNAMODB_DONE)
        return SLICE_NONE;
    struct json json = begin_answer(task);
    json_object(&json);
    while (json_member(&json, &name)) {
        if (slice_is(name, "Responses"))
            read_batch_responses(task, &json, keys, count, items);
        else if (slice_is(name, "UnprocessedKeys"))
            json_raw(&json, &unread);
        else
            json_skip(&json);
    }
    end_answer(task, &json);
    return slice_is(unread, "{}") ? SLICE_NONE : unread;
}

struct get_many {
    const struct dynamodb_key *keys;
    size_t count;
    struct dynamodb_item *items;
};

static void get_part_of_many(struct dynamodb_task *task, size_t at, void *arg)
{
    const struct get_many *many = arg;
    size_t done = at * DYNAMODB_BATCH_GET_MAX, left = many->count - done;
    size_t some = left < DYNAMODB_BATCH_GET_MAX ? left : DYNAMODB_BATCH_GET_MAX;
    struct slice rest = SLICE_NONE;
    do {
        rest = get_batch(task, rest, &many->keys[done], some, &many->items[done]);
        if (rest.len)
            dynamodb_client_wait(task, task->client->settings.retry.initial_backoff_ms);
    } while (rest.len && !task->failed);
}

void dynamodb_get_many(struct dynamodb_task *task, const struct dynamodb_key *keys, size_t count,
                       struct dynamodb_item *items)
{
    struct get_many many = {keys, count, items};
    memset(items, 0, count * sizeof(*items));
    dynamodb_parallel(task, (count + DYNAMODB_BATCH_GET_MAX - 1) / DYNAMODB_BATCH_GET_MAX,
                      get_part_of_many, &many);
}

/* {"Responses":[{"Item":{…}},{}]}, in the order of the keys */
static void read_transact_responses(struct dynamodb_task *task, struct json *json, size_t count,
                                    struct dynamodb_item *items)
{
    struct slice name;
    size_t at = 0;
    json_array(json);
    while (json_element(json)) {
        json_object(json);
        while (json_member(json, &name)) {
            if (slice_is(name, "Item") && at < count)
                dynamodb_read_item(task, json, &items[at]);
            else
                json_skip(json);
        }
        at++;
    }
}

static void write_transact_get(struct dynamodb_task *task, const struct dynamodb_key *key)
{
    struct buffer *out = &task->body;
    json_write_object(out);
    json_write_key(out, SLICE("Get"));
    json_write_object(out);
    dynamodb_write_table(task, key->table);
    json_write_key(out, SLICE("Key"));
    dynamodb_write_key(task, key);
    json_write_object_end(out);
    json_write_object_end(out);
}

void dynamodb_get_together(struct dynamodb_task *task, const struct dynamodb_key *keys,
                           size_t count, struct dynamodb_item *items)
{
    struct buffer *out = begin_read(task);
    memset(items, 0, count * sizeof(*items));
    json_write_key(out, SLICE("TransactItems"));
    json_write_array(out);
    for (size_t i = 0; i < count; i++)
        write_transact_get(task, &keys[i]);
    json_write_array_end(out);
    json_write_object_end(out);
    if (dynamodb_client_call(task, "TransactGetItems") != DYNAMODB_DONE)
        return;
    struct json json = begin_answer(task);
    struct slice name;
    json_object(&json);
    while (json_member(&json, &name)) {
        if (slice_is(name, "Responses"))
            read_transact_responses(task, &json, count, items);
        else
            json_skip(&json);
    }
    end_answer(task, &json);
}

/* ---- queries ---- */

static void write_query_names(struct dynamodb_task *task, const struct dynamodb_query *query)
{
    const struct dynamodb_table_description *table = &dynamodb_tables[query->table];
    struct buffer *out = &task->body;
    json_write_key_string(out, SLICE("KeyConditionExpression"),
                          query->prefix ? SLICE("#p = :p AND begins_with(#s, :s)")
                                        : SLICE("#p = :p"));
    json_write_key(out, SLICE("ExpressionAttributeNames"));
    json_write_object(out);
    json_write_key_string(out, SLICE("#p"), slice_of(table->partition));
    if (query->prefix)
        json_write_key_string(out, SLICE("#s"), slice_of(table->sort));
    json_write_object_end(out);
    json_write_key(out, SLICE("ExpressionAttributeValues"));
    struct dynamodb_value values[] = {DYNAMODB_TEXT(":p", query->partition),
                                      DYNAMODB_TEXT(":s", slice_of(query->prefix))};
    dynamodb_write_values(task, (struct dynamodb_values){values, query->prefix ? 2 : 1});
}

/* A page begins behind the last key of the page before, or where the caller wants to begin. */
static void write_query_start(struct dynamodb_task *task, const struct dynamodb_query *query)
{
    const struct dynamodb_table_description *table = &dynamodb_tables[query->table];
    struct dynamodb_key key = {query->table, query->partition, query->after, query->after_number};
    bool has_start = query->after.data || query->has_after_number;
    if (dynamodb_item_exists(&query->last_key)) {
        has_start = true;
        key.sort = dynamodb_item_text(&query->last_key, table->sort);
        key.sort_number = dynamodb_item_number(&query->last_key, table->sort);
    }
    if (!has_start)
        return;
    json_write_key(&task->body, SLICE("ExclusiveStartKey"));
    dynamodb_write_key(task, &key);
}

static void read_query_page(struct dynamodb_task *task, struct dynamodb_query *query)
{
    struct json json = begin_answer(task);
    struct ledger_request_array page = {0};
    struct slice name;
    query->last_key = (struct dynamodb_item){0};
    json_object(&json);
    while (json_member(&json, &name)) {
        if (slice_is(name, "LastEvaluatedKey")) {
            dynamodb_read_item(task, &json, &query->last_key);
        } else if (slice_is(name, "Items")) {
            json_array(&json);
            while (json_element(&json)) {
                struct dynamodb_item item, *kept;
                dynamodb_read_item(task, &json, &item);
                kept = ledger_request_array_push(task->request, &page, sizeof(*kept));
                if (kept)
                    *kept = item;
            }
        } else {
            json_skip(&json);
        }
    }
    end_answer(task, &json);
    query->page = page.items;
    query->page_count = page.count;
    query->at = 0;
}

static void fetch_query_page(struct dynamodb_task *task, struct dynamodb_query *query)
{
    struct buffer *out = begin_read(task);
    dynamodb_write_table(task, query->table);
    json_write_key_bool(out, SLICE("ConsistentRead"), true);
    write_query_names(task, query);
    write_query_start(task, query);
    if (query->descending)
        json_write_key_bool(out, SLICE("ScanIndexForward"), false);
    if (query->attributes)
        json_write_key_string(out, SLICE("ProjectionExpression"), slice_of(query->attributes));
    if (query->limit)
        json_write_key_int(out, SLICE("Limit"), query->limit - query->returned);
    json_write_object_end(out);
    query->begun = true;
    query->page_count = query->at = 0;
    if (dynamodb_client_call(task, "Query") == DYNAMODB_DONE)
        read_query_page(task, query);
}

bool dynamodb_query_next(struct dynamodb_task *task, struct dynamodb_query *query,
                         struct dynamodb_item *item)
{
    if (query->limit && query->returned == query->limit)
        return false;
    while (query->at == query->page_count && !task->failed && !task->invalid &&
           (!query->begun || dynamodb_item_exists(&query->last_key)))
        fetch_query_page(task, query);
    if (query->at == query->page_count || task->failed || task->invalid)
        return false;
    *item = query->page[query->at++];
    query->returned++;
    return true;
}
