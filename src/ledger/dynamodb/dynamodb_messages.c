/* Messages: read in both directions, repair the counter. dynamodb_appends.h stores them. */
#include "ledger/dynamodb/chats/dynamodb_chats.h"
#include "ledger/dynamodb/dynamodb_message.h"
#include "ledger/dynamodb/dynamodb_outbox.h"

/* ---- reading ---- */

/* Returns whether the chat exists and the reader, if there is one, is a member. */
static bool may_read_chat(struct dynamodb_task *task)
{
    const struct ledger_request_input *input = &task->request->input;
    struct dynamodb_chat chat = dynamodb_chat_read(task, input->chat, input->user);
    return dynamodb_item_exists(input->user.data ? &chat.member : &chat.item);
}

static int64_t read_latest_sequence(struct dynamodb_task *task, struct slice chat)
{
    struct dynamodb_query query = {
        .table = DYNAMODB_MESSAGES, .partition = chat, .descending = true, .limit = 1};
    struct dynamodb_item item;
    return dynamodb_query_next(task, &query, &item) ? dynamodb_item_number(&item, "sequence") : 0;
}

/* Reads one message more than the limit, to find out whether there is a next page. */
static void read_page_of_messages(struct dynamodb_task *task, bool descending)
{
    const struct ledger_request_input *input = &task->request->input;
    struct ledger_messages_outcome *outcome = &task->request->outcome.messages;
    struct ledger_request_array messages = {0};
    struct dynamodb_query query = {.table = DYNAMODB_MESSAGES,
                                   .partition = input->chat,
                                   .descending = descending,
                                   .has_after_number = true,
                                   .after_number = (int64_t)input->sequence,
                                   .limit = input->limit + 1};
    struct dynamodb_item item;
    while (dynamodb_query_next(task, &query, &item)) {
        outcome->has_more = messages.count == input->limit;
        if (outcome->has_more)
            break;
        struct ledger_message *message =
            ledger_request_array_push(task->request, &messages, sizeof(*message));
        if (message)
            *message = dynamodb_message_read(&item);
    }
    outcome->messages = messages.items;
    outcome->count = messages.count;
}

/* The latest sequence is read first; a page that reaches the end of the chat knows it better. */
enum ledger_status dynamodb_messages_after(struct dynamodb_task *task)
{
    const struct ledger_request_input *input = &task->request->input;
    struct ledger_messages_outcome *outcome = &task->request->outcome.messages;
    if (!may_read_chat(task))
        return LEDGER_NOT_FOUND;
    outcome->latest_sequence = (uint64_t)read_latest_sequence(task, input->chat);
    if (input->sequence >= outcome->latest_sequence)
        return LEDGER_OK;
    read_page_of_messages(task, false);
    if (outcome->count && (!outcome->has_more || outcome->messages[outcome->count - 1].sequence >
                                                     outcome->latest_sequence))
        outcome->latest_sequence = outcome->messages[outcome->count - 1].sequence;
    return LEDGER_OK;
}

enum ledger_status dynamodb_messages_before(struct dynamodb_task *task)
{
    struct ledger_messages_outcome *outcome = &task->request->outcome.messages;
    if (!may_read_chat(task))
        return LEDGER_NOT_FOUND;
    outcome->latest_sequence = (uint64_t)read_latest_sequence(task, task->request->input.chat);
    read_page_of_messages(task, true);
    struct ledger_message *messages = (struct ledger_message *)outcome->messages;
    if (outcome->count && messages[0].sequence > outcome->latest_sequence)
        outcome->latest_sequence = messages[0].sequence;
    for (size_t i = 0; i < outcome->count / 2; i++) {
        struct ledger_message kept = messages[i];
        messages[i] = messages[outcome->count - 1 - i];
        messages[outcome->count - 1 - i] = kept;
    }
    return LEDGER_OK;
}

/* ---- repairing ---- */

/* A chat's counter and the messages around the highest sequence, as they were at one instant. */
struct counter_snapshot {
    struct dynamodb_item counter;
    struct dynamodb_item highest_message;
    int64_t highest;
    bool is_stale; /* another message was stored meanwhile */
};

static struct counter_snapshot read_counter_snapshot(struct dynamodb_task *task, struct slice chat)
{
    int64_t highest = read_latest_sequence(task, chat);
    struct dynamodb_key keys[] = {{DYNAMODB_CHAT_COUNTERS, chat, SLICE_NONE, 0},
                                  dynamodb_message_key(chat, highest + 1),
                                  dynamodb_message_key(chat, highest)};
    struct dynamodb_item items[3];
    dynamodb_get_together(task, keys, 3, items);
    return (struct counter_snapshot){items[0], items[2], highest, dynamodb_item_exists(&items[1])};
}

/* Sets the counter if all is as the snapshot says. Returns whether it was. A lost counter comes back with the activity
 * of the last message. */
static bool set_counter(struct dynamodb_task *task, struct slice chat,
                        const struct counter_snapshot *snapshot)
{
    struct dynamodb_transaction transaction;
    struct dynamodb_key key = {DYNAMODB_CHAT_COUNTERS, chat, SLICE_NONE, 0};
    dynamodb_transaction_begin(&transaction, task);
    if (dynamodb_item_has(&snapshot->counter, "sequence_counter"))
        dynamodb_transaction_update(
            &transaction, key, "SET sequence_counter = :new", "sequence_counter = :old",
            DYNAMODB_VALUES(DYNAMODB_NUMBER(":new", snapshot->highest),
                            DYNAMODB_NUMBER(":old", dynamodb_item_number(&snapshot->counter,
                                                                         "sequence_counter"))));
    else
        dynamodb_transaction_put(
            &transaction, key,
            DYNAMODB_VALUES(
                DYNAMODB_NUMBER("sequence_counter", snapshot->highest),
                DYNAMODB_NUMBER("activity_ms",
                                dynamodb_item_number(&snapshot->highest_message, "sent_at_ms"))),
            "attribute_not_exists(sequence_counter)", DYNAMODB_NO_VALUES);
    dynamodb_transaction_check(&transaction, dynamodb_message_key(chat, snapshot->highest + 1),
                               "attribute_not_exists(chat_id)", DYNAMODB_NO_VALUES);
    return dynamodb_transaction_commit(&transaction) == DYNAMODB_DONE;
}

static bool try_repair(struct dynamodb_task *task, struct slice chat)
{
    struct counter_snapshot snapshot = read_counter_snapshot(task, chat);
    struct ledger_repair_outcome *outcome = &task->request->outcome.repair;
    if (snapshot.is_stale)
        return false;
    outcome->counter_missing = !dynamodb_item_has(&snapshot.counter, "sequence_counter");
    outcome->counter = (uint64_t)dynamodb_item_number(&snapshot.counter, "sequence_counter");
    outcome->highest_sequence = (uint64_t)snapshot.highest;
    outcome->needed = outcome->counter_missing || outcome->counter != outcome->highest_sequence;
    return !outcome->needed || !task->request->input.apply || set_counter(task, chat, &snapshot);
}

enum ledger_status dynamodb_messages_repair(struct dynamodb_task *task)
{
    struct slice chat = task->request->input.chat;
    struct dynamodb_item item =
        dynamodb_get(task, (struct dynamodb_key){DYNAMODB_CHATS, chat, SLICE("chat"), 0});
    if (!dynamodb_item_exists(&item))
        return LEDGER_NOT_FOUND;
    for (unsigned tries = 0; tries < DYNAMODB_DECISIONS_MAX && !task->failed; tries++)
        if (try_repair(task, chat))
            return LEDGER_OK;
    return LEDGER_UNAVAILABLE;
}

/* ---- deleting ---- */

/* First from the outbox: what is not published any more cannot be published after its deletion. */
enum ledger_status dynamodb_messages_delete(struct dynamodb_task *task)
{
    const struct ledger_request_input *input = &task->request->input;
    struct dynamodb_key key = dynamodb_message_key(input->chat, (int64_t)input->sequence);
    struct dynamodb_item item = dynamodb_get(task, key);
    struct ledger_message message = dynamodb_message_read(&item);
    if (!dynamodb_item_exists(&item))
        return LEDGER_NOT_FOUND;
    if (message.body.len == 0)
        return LEDGER_OK;
    dynamodb_delete(task,
                    dynamodb_outbox_key(task, input->chat, input->sequence, message.sent_at_ms));
    dynamodb_update(task, key, "SET body_text = :none", "attribute_exists(message_id)",
                    DYNAMODB_VALUES(DYNAMODB_TEXT(":none", SLICE(""))));
    task->request->outcome.change.changed = true;
    return LEDGER_OK;
}
