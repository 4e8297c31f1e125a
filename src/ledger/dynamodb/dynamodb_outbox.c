/* The outbox of stored messages that are not published yet, and dead letters. */
#include "ledger/dynamodb/dynamodb_outbox.h"

#include "ledger/dynamodb/client/dynamodb_parallel.h"
#include "ledger/dynamodb/dynamodb_message.h"
#include "ledger/dynamodb/dynamodb_operations.h"

#include <stdio.h>
#include <stdlib.h>

enum { QUEUE_NAME_MAX = 16, POSITION_PREFIX_MAX = 48 };

static const struct slice DEAD_LETTERS = {"dead_letters", sizeof("dead_letters") - 1};

/* ---- keys ---- */

static struct slice name_outbox_shard(struct dynamodb_task *task, unsigned shard)
{
    char name[QUEUE_NAME_MAX];
    snprintf(name, sizeof(name), "outbox#%02u", shard);
    return ledger_request_copy(task->request, slice_of(name));
}

/* FNV-1a: the same in every process. */
static unsigned choose_outbox_shard(struct slice chat)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < chat.len; i++)
        hash = (hash ^ (unsigned char)chat.data[i]) * 16777619u;
    return hash % DYNAMODB_OUTBOX_SHARDS;
}

/* Orders by time; within a millisecond the messages of a chat by their sequence. */
static struct slice write_outbox_position(struct dynamodb_task *task, struct slice chat,
                                          uint64_t sequence, int64_t sent_at_ms)
{
    char prefix[POSITION_PREFIX_MAX];
    snprintf(prefix, sizeof(prefix), "%015lld#%019llu#", (long long)sent_at_ms,
             (unsigned long long)sequence);
    return dynamodb_join(task, prefix, chat);
}

struct dynamodb_key dynamodb_outbox_key(struct dynamodb_task *task, struct slice chat,
                                        uint64_t sequence, int64_t sent_at_ms)
{
    return (struct dynamodb_key){DYNAMODB_QUEUES,
                                 name_outbox_shard(task, choose_outbox_shard(chat)),
                                 write_outbox_position(task, chat, sequence, sent_at_ms), 0};
}

static struct dynamodb_key dead_letter_key(struct dynamodb_task *task,
                                           const struct ledger_message *message)
{
    return (struct dynamodb_key){
        DYNAMODB_QUEUES, DEAD_LETTERS,
        write_outbox_position(task, message->chat, message->sequence, message->sent_at_ms), 0};
}

static struct dynamodb_key letter_count_key(void)
{
    return (struct dynamodb_key){DYNAMODB_QUEUES, SLICE("counts"), DEAD_LETTERS, 0};
}

/* ---- listing ---- */

static int compare_positions(const void *a, const void *b)
{
    return id_list_compare(dynamodb_item_text(a, "item_position"),
                           dynamodb_item_text(b, "item_position"));
}

/* The first items of all shards. */
struct outbox_items {
    uint32_t shard_max; /* items of one shard */
    struct ledger_request_array all;
};

static void read_outbox_shard(struct dynamodb_task *task, size_t shard, void *arg)
{
    struct outbox_items *items = arg;
    struct dynamodb_query query = {.table = DYNAMODB_QUEUES,
                                   .partition = name_outbox_shard(task, (unsigned)shard),
                                   .limit = items->shard_max};
    struct dynamodb_item item, *kept;
    while (dynamodb_query_next(task, &query, &item))
        if ((kept = ledger_request_array_push(task->request, &items->all, sizeof(*kept))))
            *kept = item;
}

/* Reads the messages that the items refer to. */
static void read_outbox_messages(struct dynamodb_task *task, const struct dynamodb_item *items,
                                 size_t count)
{
    struct ledger_messages_outcome *outcome = &task->request->outcome.messages;
    struct ledger_message *messages =
        ledger_request_alloc(task->request, count * sizeof(*messages));
    struct dynamodb_key *keys = ledger_request_alloc(task->request, count * sizeof(*keys));
    struct dynamodb_item *found = ledger_request_alloc(task->request, count * sizeof(*found));
    if (!messages || !keys || !found)
        return;
    for (size_t i = 0; i < count; i++)
        keys[i] = dynamodb_message_key(dynamodb_item_text(&items[i], "chat_id"),
                                       dynamodb_item_number(&items[i], "sequence_number"));
    dynamodb_get_many(task, keys, count, found);
    outcome->messages = messages;
    for (size_t i = 0; i < count; i++)
        if (dynamodb_item_exists(&found[i]))
            messages[outcome->count++] = dynamodb_message_read(&found[i]);
}

enum ledger_status dynamodb_outbox_list(struct dynamodb_task *task)
{
    uint32_t limit = task->request->input.limit;
    struct outbox_items items = {.shard_max = limit + 1};
    dynamodb_parallel(task, DYNAMODB_OUTBOX_SHARDS, read_outbox_shard, &items);
    size_t count = items.all.count < limit ? items.all.count : limit;
    task->request->outcome.messages.has_more = items.all.count > limit;
    if (count == 0)
        return LEDGER_OK;
    qsort(items.all.items, items.all.count, sizeof(struct dynamodb_item), compare_positions);
    read_outbox_messages(task, items.all.items, count);
    return LEDGER_OK;
}

static int compare_removals(const void *a, const void *b)
{
    return id_list_compare(((const struct dynamodb_put_entry *)a)->key.sort,
                           ((const struct dynamodb_put_entry *)b)->key.sort);
}

/* A call may name an item once only, and a message that was replayed is perhaps removed twice. */
static size_t drop_repeated_removals(struct dynamodb_put_entry *entries, size_t count)
{
    size_t kept = 0;
    qsort(entries, count, sizeof(*entries), compare_removals);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || compare_removals(&entries[kept - 1], &entries[i]) != 0)
            entries[kept++] = entries[i];
    return kept;
}

enum ledger_status dynamodb_outbox_remove(struct dynamodb_task *task)
{
    const struct ledger_request_input *input = &task->request->input;
    size_t count = input->position_count;
    struct dynamodb_put_entry *entries =
        ledger_request_alloc(task->request, count * sizeof(*entries) + 1);
    if (!entries || count == 0)
        return LEDGER_OK;
    for (size_t i = 0; i < count; i++) {
        const struct ledger_position *position = &input->positions[i];
        entries[i] = (struct dynamodb_put_entry){
            .key =
                dynamodb_outbox_key(task, position->chat, position->sequence, position->sent_at_ms),
            .is_delete = true};
    }
    dynamodb_put_many(task, entries, drop_repeated_removals(entries, count));
    return LEDGER_OK;
}

/* ---- dead letters ---- */

/* Reads the message that the request names. */
static bool find_named_message(struct dynamodb_task *task, struct ledger_message *message)
{
    const struct ledger_request_input *input = &task->request->input;
    struct dynamodb_item item =
        dynamodb_get(task, dynamodb_message_key(input->chat, (int64_t)input->sequence));
    *message = dynamodb_message_read(&item);
    return dynamodb_item_exists(&item);
}

/* Counts one letter more, or makes space for it: of too many, the oldest goes. */
static void count_dead_letter(struct dynamodb_transaction *transaction,
                              const struct dynamodb_item *oldest)
{
    if (dynamodb_item_exists(oldest))
        dynamodb_transaction_delete(
            transaction,
            (struct dynamodb_key){DYNAMODB_QUEUES, DEAD_LETTERS,
                                  dynamodb_item_text(oldest, "item_position"), 0},
            "attribute_exists(queue_name)", DYNAMODB_NO_VALUES);
    else
        dynamodb_transaction_update(
            transaction, letter_count_key(), "ADD letter_count :one",
            "attribute_not_exists(letter_count) OR letter_count < :max",
            DYNAMODB_VALUES(DYNAMODB_NUMBER(":one", 1),
                            DYNAMODB_NUMBER(":max", LEDGER_DEAD_LETTERS_MAX)));
}

/* Returns the oldest dead letter if there are as many as are kept. */
static struct dynamodb_item find_surplus_letter(struct dynamodb_task *task)
{
    struct dynamodb_item item = dynamodb_get(task, letter_count_key());
    struct dynamodb_query query = {.table = DYNAMODB_QUEUES, .partition = DEAD_LETTERS, .limit = 1};
    if (dynamodb_item_number(&item, "letter_count") < LEDGER_DEAD_LETTERS_MAX ||
        !dynamodb_query_next(task, &query, &item))
        return (struct dynamodb_item){0};
    return item;
}

/* Returns false when the transaction must be decided again. */
static bool try_dead_letter_put(struct dynamodb_task *task, const struct ledger_message *message)
{
    struct dynamodb_transaction transaction;
    struct dynamodb_item oldest = find_surplus_letter(task);
    dynamodb_transaction_begin(&transaction, task);
    unsigned letter = dynamodb_transaction_put(
        &transaction, dead_letter_key(task, message),
        DYNAMODB_VALUES(DYNAMODB_TEXT("chat_id", message->chat),
                        DYNAMODB_NUMBER("sequence_number", message->sequence),
                        DYNAMODB_TEXT("reason_text", task->request->input.text),
                        DYNAMODB_NUMBER("created_at_ms", task->request->wall_ms)),
        "attribute_not_exists(queue_name)", DYNAMODB_NO_VALUES);
    dynamodb_transaction_delete(
        &transaction,
        dynamodb_outbox_key(task, message->chat, message->sequence, message->sent_at_ms), NULL,
        DYNAMODB_NO_VALUES);
    count_dead_letter(&transaction, &oldest);
    enum dynamodb_outcome outcome = dynamodb_transaction_commit(&transaction);
    task->request->outcome.change.changed = outcome == DYNAMODB_DONE;
    return outcome != DYNAMODB_REFUSED || dynamodb_transaction_refused(&transaction, letter);
}

enum ledger_status dynamodb_outbox_dead_letter_put(struct dynamodb_task *task)
{
    struct ledger_message message;
    if (!find_named_message(task, &message))
        return LEDGER_NOT_FOUND;
    for (unsigned tries = 0; tries < DYNAMODB_DECISIONS_MAX; tries++)
        if (try_dead_letter_put(task, &message))
            return LEDGER_OK;
    return LEDGER_UNAVAILABLE;
}

enum ledger_status dynamodb_outbox_dead_letters_list(struct dynamodb_task *task)
{
    struct ledger_dead_letters_outcome *outcome = &task->request->outcome.dead_letters;
    struct ledger_request_array letters = {0};
    struct dynamodb_query query = {
        .table = DYNAMODB_QUEUES, .partition = DEAD_LETTERS, .limit = task->request->input.limit};
    struct dynamodb_item item;
    while (dynamodb_query_next(task, &query, &item)) {
        struct ledger_dead_letter *letter =
            ledger_request_array_push(task->request, &letters, sizeof(*letter));
        if (letter)
            *letter = (struct ledger_dead_letter){
                .chat = dynamodb_item_text(&item, "chat_id"),
                .reason = dynamodb_item_text(&item, "reason_text"),
                .sequence = (uint64_t)dynamodb_item_number(&item, "sequence_number"),
                .created_at_ms = dynamodb_item_number(&item, "created_at_ms")};
    }
    outcome->letters = letters.items;
    outcome->count = letters.count;
    return LEDGER_OK;
}

enum ledger_status dynamodb_outbox_dead_letter_replay(struct dynamodb_task *task)
{
    struct dynamodb_transaction transaction;
    struct ledger_message message;
    if (!find_named_message(task, &message))
        return LEDGER_NOT_FOUND;
    dynamodb_transaction_begin(&transaction, task);
    dynamodb_transaction_delete(&transaction, dead_letter_key(task, &message),
                                "attribute_exists(queue_name)", DYNAMODB_NO_VALUES);
    dynamodb_transaction_put(
        &transaction, dynamodb_outbox_key(task, message.chat, message.sequence, message.sent_at_ms),
        DYNAMODB_VALUES(DYNAMODB_TEXT("chat_id", message.chat),
                        DYNAMODB_NUMBER("sequence_number", message.sequence)),
        NULL, DYNAMODB_NO_VALUES);
    dynamodb_transaction_update(&transaction, letter_count_key(), "ADD letter_count :less", NULL,
                                DYNAMODB_VALUES(DYNAMODB_NUMBER(":less", -1)));
    if (dynamodb_transaction_commit(&transaction) == DYNAMODB_REFUSED)
        return LEDGER_NOT_FOUND;
    task->request->outcome.change.changed = true;
    return LEDGER_OK;
}
