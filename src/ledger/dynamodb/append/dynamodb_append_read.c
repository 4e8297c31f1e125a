#include "ledger/dynamodb/append/dynamodb_append_read.h"

#include "ledger/dynamodb/dynamodb_message.h"
#include "ledger/dynamodb/dynamodb_outbox.h"

/* ---- repeated sends ---- */

static void complete_duplicate(struct dynamodb_append_entry *entry,
                               const struct dynamodb_item *item, bool is_in_outbox)
{
    struct ledger_request *request = entry->request;
    struct ledger_message message = dynamodb_message_read(item);
    request->outcome.append = (struct ledger_append_outcome){
        .message_id = ledger_request_copy(request, message.id),
        .sequence = message.sequence,
        .sent_at_ms = message.sent_at_ms,
        .duplicate = true,
        .body_differs = !slice_equal(message.body, request->input.text),
        .published = !is_in_outbox,
    };
    dynamodb_append_decide(entry, dynamodb_item_exists(item) ? LEDGER_OK : LEDGER_UNAVAILABLE);
}

void dynamodb_append_decide_duplicates(struct dynamodb_append_batch *batch)
{
    struct dynamodb_key keys[2 * DYNAMODB_APPEND_BATCH_MAX];
    struct dynamodb_item items[2 * DYNAMODB_APPEND_BATCH_MAX];
    struct dynamodb_append_entry *found[DYNAMODB_APPEND_BATCH_MAX], *entry;
    size_t at = 0, count = 0;
    while ((entry = dynamodb_append_batch_next(batch, &at))) {
        int64_t sequence = dynamodb_item_number(&entry->first_send, "sequence_number");
        if (!dynamodb_item_exists(&entry->first_send))
            continue;
        found[count] = entry;
        keys[2 * count] = dynamodb_message_key(batch->id, sequence);
        keys[2 * count + 1] =
            dynamodb_outbox_key(batch->task, batch->id, (uint64_t)sequence,
                                dynamodb_item_number(&entry->first_send, "sent_at_ms"));
        count++;
    }
    if (!count)
        return;
    dynamodb_get_many(batch->task, keys, 2 * count, items);
    for (size_t i = 0; i < count; i++)
        complete_duplicate(found[i], &items[2 * i], dynamodb_item_exists(&items[2 * i + 1]));
}

void dynamodb_append_refuse_new(struct dynamodb_append_batch *batch, enum ledger_status status)
{
    struct dynamodb_key keys[DYNAMODB_APPEND_BATCH_MAX];
    struct dynamodb_item items[DYNAMODB_APPEND_BATCH_MAX];
    struct dynamodb_append_entry *entry;
    size_t at = 0, count = 0;
    while ((entry = dynamodb_append_batch_next(batch, &at)))
        keys[count++] = dynamodb_append_send_key(entry);
    dynamodb_get_many(batch->task, keys, count, items);
    at = count = 0;
    while ((entry = dynamodb_append_batch_next(batch, &at)))
        entry->first_send = items[count++];
    dynamodb_append_decide_duplicates(batch);
    dynamodb_append_batch_decide_rest(batch, status);
}

void dynamodb_append_refuse_halted(struct dynamodb_append_batch *batch, bool is_sequence_taken)
{
    struct dynamodb_append_entry *entry;
    size_t at = 0;
    batch->chat->has_counter = false;
    while ((entry = dynamodb_append_batch_next(batch, &at)))
        entry->request->sequence_taken = is_sequence_taken;
    dynamodb_append_refuse_new(batch, LEDGER_HALTED);
}

/* ---- what a decision rests on ---- */

void dynamodb_append_forget_members(struct dynamodb_append_batch *batch)
{
    dynamodb_append_chat_forget_members(batch->chat);
    for (size_t i = 0; i < batch->sender_count; i++)
        batch->senders[i].is_read = false;
}

static void mark_known_senders(struct dynamodb_append_batch *batch)
{
    for (size_t i = 0; i < batch->sender_count; i++) {
        struct dynamodb_append_sender *sender = &batch->senders[i];
        if (!sender->is_read && (slice_equal(sender->user, LEDGER_APPLICATION) ||
                                 id_list_contains(&batch->chat->senders, sender->user)))
            sender->is_read = sender->is_member = sender->is_accepted = true;
    }
}

/* Reads the counter and the senders as far as they are not known. The chat was read before, so the condition on its
 * members_version covers them. */
static void read_counter_and_senders(struct dynamodb_append_batch *batch)
{
    struct dynamodb_key keys[1 + 2 * DYNAMODB_APPEND_BATCH_MAX];
    struct dynamodb_item items[1 + 2 * DYNAMODB_APPEND_BATCH_MAX];
    struct dynamodb_append_sender *asked[DYNAMODB_APPEND_BATCH_MAX];
    struct dynamodb_chat chat = dynamodb_append_chat_name(batch);
    size_t asked_count = 0, count = 0;
    bool reads_counter = !batch->chat->has_counter;
    if (reads_counter)
        keys[count++] = dynamodb_append_counter_key(batch);
    for (size_t i = 0; i < batch->sender_count; i++) {
        struct dynamodb_append_sender *sender = &batch->senders[i];
        if (sender->is_read)
            continue;
        asked[asked_count++] = sender;
        keys[count++] = dynamodb_chat_member_key(batch->task, &chat, sender->user);
        keys[count++] = dynamodb_chat_entry_key(batch->task, &chat, sender->user);
    }
    if (count == 0)
        return;
    dynamodb_get_many(batch->task, keys, count, items);
    if (reads_counter)
        dynamodb_append_chat_set_counter(batch->chat, &items[0]);
    for (size_t i = 0; i < asked_count; i++) {
        const struct dynamodb_item *member = &items[reads_counter + 2 * i];
        asked[i]->is_read = !batch->task->failed;
        asked[i]->is_member = dynamodb_item_exists(member);
        asked[i]->is_accepted = dynamodb_item_number(member + 1, "is_accepted") != 0;
    }
}

/* Who the two members of a chat of two are decides whose blocks count. */
static void read_pair(struct dynamodb_append_batch *batch)
{
    struct dynamodb_chat chat = dynamodb_append_chat_name(batch);
    const char *prefix = dynamodb_chat_members_prefix(batch->task, &chat);
    struct dynamodb_query query = {
        .table = DYNAMODB_CHATS, .partition = batch->id, .prefix = prefix};
    struct dynamodb_item item;
    struct slice users[2];
    size_t count = 0;
    if (batch->chat->member_count != 2 || batch->chat->pair.count == 2)
        return;
    while (dynamodb_query_next(batch->task, &query, &item) && count < 2)
        users[count++] = slice_after(dynamodb_item_text(&item, "part_key"), strlen(prefix));
    if (count != 2 || !id_list_copy(&batch->chat->pair, users, count))
        dynamodb_append_forget_members(batch);
}

bool dynamodb_append_read_facts(struct dynamodb_append_batch *batch)
{
    struct dynamodb_append_entry *entry;
    size_t at = 0;
    if (!batch->chat->members_version) {
        struct dynamodb_item item = dynamodb_get(batch->task, dynamodb_append_chat_key(batch));
        if (!dynamodb_item_exists(&item)) {
            dynamodb_append_batch_decide_rest(batch, LEDGER_NOT_FOUND);
            return false;
        }
        dynamodb_append_chat_set(batch->chat, &item);
    }
    mark_known_senders(batch);
    read_counter_and_senders(batch);
    read_pair(batch);
    if (batch->task->failed || !batch->chat->members_version)
        return false;
    while ((entry = dynamodb_append_batch_next(batch, &at)))
        if (!entry->sender->is_member)
            dynamodb_append_decide(entry, LEDGER_NOT_FOUND);
    if (!batch->chat->has_counter && !dynamodb_append_batch_is_decided(batch))
        dynamodb_append_refuse_halted(batch, false);
    return !dynamodb_append_batch_is_decided(batch);
}
