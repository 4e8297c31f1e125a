#include "ledger/dynamodb/append/dynamodb_append.h"

#include "ledger/dynamodb/append/dynamodb_append_read.h"
#include "ledger/dynamodb/client/dynamodb_write.h"
#include "ledger/dynamodb/dynamodb_events.h"
#include "ledger/dynamodb/dynamodb_message.h"
#include "ledger/dynamodb/dynamodb_operations.h"
#include "ledger/dynamodb/dynamodb_outbox.h"
#include "ledger/dynamodb/dynamodb_relation.h"

enum { REST_MAX_MS = 200 };

/* ---- the transaction ---- */

/* A transaction of a batch, with the places of its writes; NO_PLACE: it has none. */
enum { NO_PLACE = DYNAMODB_TRANSACTION_MAX };

struct append_transaction {
    struct dynamodb_transaction base;
    unsigned counter;
    unsigned chat;
    unsigned relation; /* of the members of a chat of two */
    unsigned last_message;
};

static bool is_place_refused(const struct append_transaction *transaction, unsigned place)
{
    return place != NO_PLACE && dynamodb_transaction_refused(&transaction->base, place);
}

static void add_counter_and_checks(struct append_transaction *transaction,
                                   struct dynamodb_append_batch *batch, int64_t activity_ms)
{
    const struct dynamodb_append_chat *chat = batch->chat;
    const struct slice *pair = chat->pair.ids;
    transaction->counter = dynamodb_transaction_update(
        &transaction->base, dynamodb_append_counter_key(batch),
        "SET sequence_counter = :new, activity_ms = :activity", "sequence_counter = :old",
        DYNAMODB_VALUES(
            DYNAMODB_NUMBER(":old", chat->sequence),
            DYNAMODB_NUMBER(":new", chat->sequence + dynamodb_append_batch_count(batch, NULL)),
            DYNAMODB_NUMBER(":activity", activity_ms)));
    transaction->chat = dynamodb_transaction_check(
        &transaction->base, dynamodb_append_chat_key(batch), "members_version = :version",
        DYNAMODB_VALUES(DYNAMODB_NUMBER(":version", chat->members_version)));
    transaction->relation =
        chat->pair.count == 2
            ? dynamodb_transaction_check(&transaction->base,
                                         dynamodb_relation_key(batch->task, pair[0], pair[1]),
                                         "attribute_not_exists(user_id) OR "
                                         "(lesser_blocks = :no AND greater_blocks = :no)",
                                         DYNAMODB_VALUES(DYNAMODB_NUMBER(":no", 0)))
            : NO_PLACE;
    transaction->last_message =
        chat->is_in_order || chat->sequence == 0
            ? NO_PLACE
            : dynamodb_transaction_check(&transaction->base,
                                         dynamodb_message_key(batch->id, chat->sequence),
                                         "attribute_exists(chat_id)", DYNAMODB_NO_VALUES);
}

static void add_sender(struct append_transaction *transaction, struct dynamodb_append_batch *batch,
                       const struct dynamodb_append_sender *sender)
{
    struct dynamodb_chat chat = dynamodb_append_chat_name(batch);
    unsigned count = dynamodb_append_batch_count(batch, sender);
    if (count == 0)
        return;
    dynamodb_transaction_update(
        &transaction->base, dynamodb_append_chat_part_key(batch, "sent#", sender->user),
        "ADD sent_count :count", NULL, DYNAMODB_VALUES(DYNAMODB_NUMBER(":count", count)));
    if (!sender->is_accepted)
        dynamodb_transaction_update(
            &transaction->base, dynamodb_chat_entry_key(batch->task, &chat, sender->user),
            "SET is_accepted = :yes", NULL, DYNAMODB_VALUES(DYNAMODB_NUMBER(":yes", 1)));
}

/* The chat's activity never goes back, so events stand in the order of the messages, whatever the senders' clocks show. */
static void add_message_events(struct append_transaction *transaction,
                               struct ledger_request *request, int64_t activity_ms,
                               int64_t sequence)
{
    if (request->input.queue_count == 0)
        return;
    request->outcome.append = (struct ledger_append_outcome){.message_id = request->input.id,
                                                             .sequence = (uint64_t)sequence,
                                                             .sent_at_ms = request->wall_ms};
    dynamodb_events_add(&transaction->base, request,
                        (struct dynamodb_event_order){activity_ms, (uint64_t)sequence});
    ledger_request_fail(request, LEDGER_OK); /* clears the outcome */
}

static void add_message(struct append_transaction *transaction, struct dynamodb_append_batch *batch,
                        struct dynamodb_append_entry *entry, int64_t activity_ms, int64_t sequence)
{
    const struct ledger_request_input *input = &entry->request->input;
    int64_t sent_at_ms = entry->request->wall_ms;
    entry->message_place = dynamodb_transaction_put(
        &transaction->base, dynamodb_message_key(batch->id, sequence),
        DYNAMODB_VALUES(
            DYNAMODB_TEXT("message_id", input->id), DYNAMODB_TEXT("sender_id", input->user),
            DYNAMODB_TEXT("client_message_id", input->client_message_id),
            DYNAMODB_TEXT("body_text", input->text), DYNAMODB_NUMBER("sent_at_ms", sent_at_ms)),
        "attribute_not_exists(chat_id)", DYNAMODB_NO_VALUES);
    entry->send_place =
        dynamodb_transaction_put(&transaction->base, dynamodb_append_send_key(entry),
                                 DYNAMODB_VALUES(DYNAMODB_NUMBER("sequence_number", sequence),
                                                 DYNAMODB_NUMBER("sent_at_ms", sent_at_ms)),
                                 "attribute_not_exists(sender_key)", DYNAMODB_NO_VALUES);
    add_message_events(transaction, entry->request, activity_ms, sequence);
    if (input->skips_outbox)
        return;
    dynamodb_transaction_put(
        &transaction->base,
        dynamodb_outbox_key(batch->task, batch->id, (uint64_t)sequence, sent_at_ms),
        DYNAMODB_VALUES(DYNAMODB_TEXT("chat_id", batch->id),
                        DYNAMODB_NUMBER("sequence_number", sequence)),
        NULL, DYNAMODB_NO_VALUES);
}

/* ---- after the transaction ---- */

static void complete_stored_messages(struct dynamodb_append_batch *batch, int64_t activity_ms)
{
    struct dynamodb_append_chat *chat = batch->chat;
    struct dynamodb_append_entry *entry;
    size_t at = 0;
    ledger_histogram_add(&batch->task->client->metrics->group_requests,
                         dynamodb_append_batch_count(batch, NULL));
    while ((entry = dynamodb_append_batch_next(batch, &at))) {
        struct ledger_request *request = entry->request;
        request->outcome.append =
            (struct ledger_append_outcome){.message_id = request->input.id,
                                           .sequence = (uint64_t)++chat->sequence,
                                           .sent_at_ms = request->wall_ms,
                                           .members_version = (uint64_t)chat->members_version};
        dynamodb_append_chat_add_sender(chat, entry->sender->user);
        dynamodb_append_decide(entry, LEDGER_OK);
    }
    chat->activity_ms = activity_ms;
    chat->is_in_order = true;
}

/* Reads the counter and the messages around it as they are at one instant. Refuses the messages if the chat is halted;
 * otherwise they are written again. */
static void confirm_halted_chat(struct dynamodb_append_batch *batch)
{
    int64_t sequence = batch->chat->sequence;
    struct dynamodb_key keys[] = {dynamodb_append_counter_key(batch),
                                  dynamodb_message_key(batch->id, sequence + 1),
                                  dynamodb_message_key(batch->id, sequence)};
    struct dynamodb_item items[3];
    dynamodb_get_together(batch->task, keys, 3, items);
    if (batch->task->failed)
        return;
    dynamodb_append_chat_set_counter(batch->chat, &items[0]);
    bool is_behind = dynamodb_item_exists(&items[1]);
    bool is_ahead = sequence > 0 && !dynamodb_item_exists(&items[2]);
    if (batch->chat->has_counter && batch->chat->sequence == sequence && (is_behind || is_ahead))
        dynamodb_append_refuse_halted(batch, is_behind);
}

/* Who had to try several times, because others write to the chat too, lets them go first when it has won: for about as long
 * as their transactions take. Without it the fastest process would win for ever. */
static void rest_after_win(struct dynamodb_append_batch *batch, int64_t started_ms)
{
    struct dynamodb_append_chat *chat = batch->chat;
    int64_t now_ms = batch->task->client->loop->clock.now_ms;
    unsigned lost = chat->lost_in_row + batch->task->conflicts;
    int64_t rest_ms = 2 * (int64_t)lost * (now_ms - started_ms + 1);
    if (rest_ms > REST_MAX_MS)
        rest_ms = REST_MAX_MS;
    chat->rests_until_ms =
        now_ms + (int64_t)random_below(batch->task->client->random, (uint64_t)rest_ms + 1);
    chat->lost_in_row = 0;
}

static bool is_any_message_refused(struct dynamodb_append_batch *batch,
                                   const struct append_transaction *transaction)
{
    const struct dynamodb_append_entry *entry;
    size_t at = 0;
    while ((entry = dynamodb_append_batch_next(batch, &at)))
        if (is_place_refused(transaction, entry->message_place))
            return true;
    return false;
}

static void take_first_sends(struct dynamodb_append_batch *batch,
                             const struct append_transaction *transaction)
{
    struct dynamodb_append_entry *entry;
    size_t at = 0;
    while ((entry = dynamodb_append_batch_next(batch, &at)))
        if (is_place_refused(transaction, entry->send_place))
            entry->first_send = transaction->base.refusals[entry->send_place].item;
}

static void handle_refused_append(struct dynamodb_append_batch *batch,
                                  const struct append_transaction *transaction)
{
    bool is_message_refused = is_any_message_refused(batch, transaction) ||
                              is_place_refused(transaction, transaction->last_message);
    take_first_sends(batch, transaction);
    if (is_place_refused(transaction, transaction->chat)) {
        dynamodb_append_forget_members(batch); /* who may send is decided anew */
        return;
    }
    dynamodb_append_decide_duplicates(batch);
    if (dynamodb_append_batch_is_decided(batch))
        return;
    if (is_place_refused(transaction, transaction->counter)) {
        dynamodb_append_chat_set_counter(batch->chat,
                                         &transaction->base.refusals[transaction->counter].item);
        batch->chat->lost_in_row++;
    } else if (is_message_refused)
        confirm_halted_chat(batch);
    else if (is_place_refused(transaction, transaction->relation))
        dynamodb_append_refuse_new(batch, LEDGER_FORBIDDEN);
}

static void write_append_transaction(struct dynamodb_append_batch *batch)
{
    struct append_transaction transaction;
    struct dynamodb_append_entry *entry;
    size_t at = 0;
    int64_t sequence = batch->chat->sequence, activity_ms = batch->chat->activity_ms;
    while ((entry = dynamodb_append_batch_next(batch, &at)))
        if (entry->request->wall_ms > activity_ms)
            activity_ms = entry->request->wall_ms;
    dynamodb_transaction_begin(&transaction.base, batch->task);
    add_counter_and_checks(&transaction, batch, activity_ms);
    for (size_t i = 0; i < batch->sender_count; i++)
        add_sender(&transaction, batch, &batch->senders[i]);
    at = 0;
    while ((entry = dynamodb_append_batch_next(batch, &at)))
        add_message(&transaction, batch, entry, activity_ms, ++sequence);
    int64_t started_ms = batch->task->client->loop->clock.now_ms;
    enum dynamodb_outcome outcome = dynamodb_transaction_commit(&transaction.base);
    if (outcome == DYNAMODB_REFUSED)
        handle_refused_append(batch, &transaction);
    if (outcome != DYNAMODB_DONE)
        return;
    rest_after_win(batch, started_ms);
    complete_stored_messages(batch, activity_ms);
}

void dynamodb_append_write(struct dynamodb_append_batch *batch, struct dynamodb_task *task,
                           struct dynamodb_append_chat *chat)
{
    batch->task = task;
    batch->chat = chat;
    batch->id = batch->entries[0].request->input.chat;
    for (size_t i = 0; i < batch->sender_count; i++)
        batch->senders[i].sends = dynamodb_pair(task, batch->id, batch->senders[i].user);
    for (unsigned attempt = 0; attempt < DYNAMODB_APPEND_ATTEMPTS_MAX && !task->failed &&
                               !task->invalid && !dynamodb_append_batch_is_decided(batch);
         attempt++)
        if (dynamodb_append_read_facts(batch))
            write_append_transaction(batch);
    dynamodb_append_batch_decide_rest(batch, LEDGER_UNAVAILABLE);
    if (task->failed)
        dynamodb_append_chat_forget(chat); /* whether the counter has moved is not known */
    for (size_t i = 0; i < batch->count; i++)
        dynamodb_operations_complete(task, batch->entries[i].request, batch->entries[i].status);
}
