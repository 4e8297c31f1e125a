/* API keys: the queue "api_keys", whose positions are the names. Few are made, so a count of them needs no item. */
#include "ledger/dynamodb/dynamodb_operations.h"

static struct dynamodb_key get_api_key_key(const struct dynamodb_task *task)
{
    return (struct dynamodb_key){DYNAMODB_QUEUES, SLICE("api_keys"), task->request->input.id, 0};
}

static struct dynamodb_query begin_api_keys(void)
{
    return (struct dynamodb_query){
        .table = DYNAMODB_QUEUES, .partition = SLICE("api_keys"), .limit = LEDGER_KEYS_MAX};
}

static bool has_space_for_api_key(struct dynamodb_task *task)
{
    struct dynamodb_query query = begin_api_keys();
    struct dynamodb_item item;
    size_t count = 0;
    while (dynamodb_query_next(task, &query, &item))
        count++;
    return count < LEDGER_KEYS_MAX;
}

/* A repeated try may find what the first one stored, which is no change. */
enum ledger_status dynamodb_keys_put(struct dynamodb_task *task)
{
    const struct ledger_request_input *input = &task->request->input;
    struct dynamodb_item found = dynamodb_get(task, get_api_key_key(task));
    if (dynamodb_item_exists(&found))
        return slice_equal(dynamodb_item_text(&found, "key_hash"), input->device) ? LEDGER_OK
                                                                                  : LEDGER_CONFLICT;
    if (!has_space_for_api_key(task))
        return LEDGER_LIMIT;
    enum dynamodb_outcome outcome = dynamodb_update(
        task, get_api_key_key(task),
        "SET key_hash = :hash, key_scope = :scope, created_at_ms = :now, last_used_ms = :never",
        "attribute_not_exists(key_hash) OR key_hash = :hash",
        DYNAMODB_VALUES(
            DYNAMODB_TEXT(":hash", input->device), DYNAMODB_TEXT(":scope", input->other),
            DYNAMODB_NUMBER(":now", task->request->wall_ms), DYNAMODB_NUMBER(":never", 0)));
    task->request->outcome.change.changed = outcome != DYNAMODB_REFUSED;
    return outcome == DYNAMODB_REFUSED ? LEDGER_CONFLICT : LEDGER_OK;
}

enum ledger_status dynamodb_keys_delete(struct dynamodb_task *task)
{
    struct dynamodb_item found = dynamodb_get(task, get_api_key_key(task));
    task->request->outcome.change.changed = dynamodb_item_exists(&found);
    if (dynamodb_item_exists(&found))
        dynamodb_delete(task, get_api_key_key(task));
    return LEDGER_OK;
}

enum ledger_status dynamodb_keys_used(struct dynamodb_task *task)
{
    enum dynamodb_outcome outcome =
        dynamodb_update(task, get_api_key_key(task), "SET last_used_ms = :now",
                        "attribute_exists(key_hash) AND last_used_ms < :now",
                        DYNAMODB_VALUES(DYNAMODB_NUMBER(":now", task->request->wall_ms)));
    task->request->outcome.change.changed = outcome != DYNAMODB_REFUSED;
    return LEDGER_OK;
}

enum ledger_status dynamodb_keys_list(struct dynamodb_task *task)
{
    struct ledger_request *request = task->request;
    struct dynamodb_query query = begin_api_keys();
    struct ledger_request_array keys = {0};
    struct dynamodb_item item;
    while (dynamodb_query_next(task, &query, &item)) {
        struct ledger_key *key = ledger_request_array_push(request, &keys, sizeof(*key));
        if (key)
            *key = (struct ledger_key){dynamodb_item_text(&item, "item_position"),
                                       dynamodb_item_text(&item, "key_hash"),
                                       dynamodb_item_text(&item, "key_scope"),
                                       dynamodb_item_number(&item, "created_at_ms"),
                                       dynamodb_item_number(&item, "last_used_ms")};
    }
    request->outcome.keys.keys = keys.items;
    request->outcome.keys.count = keys.count;
    return LEDGER_OK;
}
