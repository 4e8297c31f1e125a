#include "ledger/dynamodb/dynamodb_append.h"

#include "ledger/dynamodb/dynamodb_message.h"
#include "ledger/dynamodb/dynamodb_operations.h"
#include "ledger/dynamodb/dynamodb_outbox.h"
#include "ledger/dynamodb/dynamodb_relation.h"

enum {
    WRITES_OF_BATCH = 4,  /* the counter, the chat, the relation of two members, the last message */
    WRITES_OF_SENDER = 2, /* the count, the acceptance */
    WRITES_OF_MESSAGE = 3, /* the message, the send, the outbox */
    REST_MAX_MS = 200,
};

/* ---- the batch ---- */

static struct dynamodb_append_sender *find_batch_sender(struct dynamodb_append_batch *batch,
                                                        struct slice user)
{
    for (size_t i = 0; i < batch->sender_count; i++)
        if (slice_equal(batch->senders[i].user, user))
            return &batch->senders[i];
    return NULL;
}

static bool has_client_message_id(const struct dynamodb_append_batch *batch,
                                  const struct dynamodb_append_sender *sender, struct slice id)
{
    for (size_t i = 0; i < batch->count; i++)
        if (batch->entries[i].sender == sender &&
            slice_equal(batch->entries[i].request->input.client_message_id, id))
            return true;
    return false;
}

bool dynamodb_append_batch_add(struct dynamodb_append_batch *batch, struct ledger_request *request)
{
    const struct ledger_request_input *input = &request->input;
    struct dynamodb_append_sender *sender = find_batch_sender(batch, input->user);
    unsigned writes = (batch->count ? batch->writes : WRITES_OF_BATCH) + WRITES_OF_MESSAGE +
                      (sender ? 0 : WRITES_OF_SENDER) - (input->skips_outbox ? 1 : 0);
    if (batch->count == DYNAMODB_APPEND_BATCH_MAX || writes > DYNAMODB_TRANSACTION_MAX)
        return false;
    if (sender && has_client_message_id(batch, sender, input->client_message_id))
        return false;
    if (!sender) {
        sender = &batch->senders[batch->sender_count++];
        *sender = (struct dynamodb_append_sender){.user = input->user};
    }
    batch->entries[batch->count++] =
        (struct dynamodb_append_entry){.request = request, .sender = sender};
    batch->writes = writes;
    return true;
}

/* Returns the next entry without an answer, from `*at` on; NULL: there is none. */
static struct dynamodb_append_entry *next_undecided(struct dynamodb_append_batch *batch, size_t *at)
{
    while (*at < batch->count && batch->entries[*at].is_decided)
        (*at)++;
    return *at < batch->count ? &batch->entries[(*at)++] : NULL;
}

static bool is_batch_decided(struct dynamodb_append_batch *batch)
{
    size_t at = 0;
    return !next_undecided(batch, &at);
}

static void decide_entry(struct dynamodb_append_entry *entry, enum ledger_status status)
{
    entry->is_decided = true;
    entry->status = status;
}

static void decide_rest(struct dynamodb_append_batch *batch, enum ledger_status status)
{
    struct dynamodb_append_entry *entry;
    size_t at = 0;
    while ((entry = next_undecided(batch, &at)))
        decide_entry(entry, status);
}

static unsigned count_undecided(struct dynamodb_append_batch *batch,
                                const struct dynamodb_append_sender *sender)
{
    const struct dynamodb_append_entry *entry;
    size_t at = 0;
    unsigned count = 0;
    while ((entry = next_undecided(batch, &at)))
        count += !sender || entry->sender == sender;
    return count;
}

/* ---- keys ---- */

static struct dynamodb_key counter_key(const struct dynamodb_append_batch *batch)
{
    return (struct dynamodb_key){DYNAMODB_CHAT_COUNTERS, batch->id, SLICE_NONE, 0};
}

static struct dynamodb_key chat_key(const struct dynamodb_append_batch *batch)
{
    return (struct dynamodb_key){DYNAMODB_CHATS, batch->id, SLICE("chat"), 0};
}

static struct dynamodb_key chat_part_key(const struct dynamodb_append_batch *batch,
                                         const char *prefix, struct slice user)
{
    return (struct dynamodb_key){DYNAMODB_CHATS, batch->id,
                                 dynamodb_join(batch->task, prefix, user), 0};
}

static struct dynamodb_key user_part_key(const struct dynamodb_append_batch *batch,
                                         struct slice user, const char *prefix, struct slice other)
{
    return (struct dynamodb_key){DYNAMODB_USERS, user, dynamodb_join(batch->task, prefix, other),
                                 0};
}

static struct dynamodb_key send_key(const struct dynamodb_append_entry *entry)
{
    return (struct dynamodb_key){DYNAMODB_SENDS, entry->sender->sends,
                                 entry->request->input.client_message_id, 0};
}

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
    decide_entry(entry, dynamodb_item_exists(item) ? LEDGER_OK : LEDGER_UNAVAILABLE);
}

/* Answers the entries whose first send was found. */
static void decide_duplicates(struct dynamodb_append_batch *batch)
{
    struct dynamodb_key keys[2 * DYNAMODB_APPEND_BATCH_MAX];
    struct dynamodb_item items[2 * DYNAMODB_APPEND_BATCH_MAX];
    struct dynamodb_append_entry *found[DYNAMODB_APPEND_BATCH_MAX], *entry;
    size_t at = 0, count = 0;
    while ((entry = next_undecided(batch, &at))) {
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

/* Answers repeated sends with their first one, and all others with `status`. */
static void refuse_new_messages(struct dynamodb_append_batch *batch, enum ledger_status status)
{
    struct dynamodb_key keys[DYNAMODB_APPEND_BATCH_MAX];
    struct dynamodb_item items[DYNAMODB_APPEND_BATCH_MAX];
    struct dynamodb_append_entry *entry;
    size_t at = 0, count = 0;
    while ((entry = next_undecided(batch, &at)))
        keys[count++] = send_key(entry);
    dynamodb_get_many(batch->task, keys, count, items);
    at = count = 0;
    while ((entry = next_undecided(batch, &at)))
        entry->first_send = items[count++];
    decide_duplicates(batch);
    decide_rest(batch, status);
}

static void refuse_in_halted_chat(struct dynamodb_append_batch *batch, bool is_sequence_taken)
{
    struct dynamodb_append_entry *entry;
    size_t at = 0;
    batch->chat->has_counter = false;
    while ((entry = next_undecided(batch, &at)))
        entry->request->sequence_taken = is_sequence_taken;
    refuse_new_messages(batch, LEDGER_HALTED);
}

/* ---- what a decision rests on ---- */

static void forget_batch_members(struct dynamodb_append_batch *batch)
{
    dynamodb_append_chat_forget_members(batch->chat);
    for (size_t i = 0; i < batch->sender_count; i++)
        batch->senders[i].is_read = false;
}

static void mark_known_senders(struct dynamodb_append_batch *batch)
{
    for (size_t i = 0; i < batch->sender_count; i++) {
        struct dynamodb_append_sender *sender = &batch->senders[i];
        if (!sender->is_read && id_list_contains(&batch->chat->senders, sender->user))
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
    size_t asked_count = 0, count = 0;
    bool reads_counter = !batch->chat->has_counter;
    if (reads_counter)
        keys[count++] = counter_key(batch);
    for (size_t i = 0; i < batch->sender_count; i++) {
        struct dynamodb_append_sender *sender = &batch->senders[i];
        if (sender->is_read)
            continue;
        asked[asked_count++] = sender;
        keys[count++] = chat_part_key(batch, "member#", sender->user);
        keys[count++] = user_part_key(batch, sender->user, "chat#", batch->id);
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
    struct dynamodb_query query = {
        .table = DYNAMODB_CHATS, .partition = batch->id, .prefix = "member#"};
    struct dynamodb_item item;
    struct slice users[2];
    size_t count = 0;
    if (batch->chat->member_count != 2 || batch->chat->pair.count == 2)
        return;
    while (dynamodb_query_next(batch->task, &query, &item) && count < 2)
        users[count++] = slice_after(dynamodb_item_text(&item, "part_key"), strlen("member#"));
    if (count != 2 || !id_list_copy(&batch->chat->pair, users, count))
        forget_batch_members(batch);
}

/* Returns whether what the transaction needs is known. Answers the senders who are no members, and all messages of a
 * chat that does not exist or has no counter. */
static bool read_append_facts(struct dynamodb_append_batch *batch)
{
    struct dynamodb_append_entry *entry;
    size_t at = 0;
    if (!batch->chat->members_version) {
        struct dynamodb_item item = dynamodb_get(batch->task, chat_key(batch));
        if (!dynamodb_item_exists(&item)) {
            decide_rest(batch, LEDGER_NOT_FOUND);
            return false;
        }
        dynamodb_append_chat_set(batch->chat, &item);
    }
    mark_known_senders(batch);
    read_counter_and_senders(batch);
    read_pair(batch);
    if (batch->task->failed || !batch->chat->members_version)
        return false;
    while ((entry = next_undecided(batch, &at)))
        if (!entry->sender->is_member)
            decide_entry(entry, LEDGER_NOT_FOUND);
    if (!batch->chat->has_counter && !is_batch_decided(batch))
        refuse_in_halted_chat(batch, false);
    return !is_batch_decided(batch);
}

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
        &transaction->base, counter_key(batch),
        "SET sequence_counter = :new, activity_ms = :activity", "sequence_counter = :old",
        DYNAMODB_VALUES(DYNAMODB_NUMBER(":old", chat->sequence),
                        DYNAMODB_NUMBER(":new", chat->sequence + count_undecided(batch, NULL)),
                        DYNAMODB_NUMBER(":activity", activity_ms)));
    transaction->chat = dynamodb_transaction_check(
        &transaction->base, chat_key(batch), "members_version = :version",
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
    unsigned count = count_undecided(batch, sender);
    if (count == 0)
        return;
    dynamodb_transaction_update(&transaction->base, chat_part_key(batch, "sent#", sender->user),
                                "ADD sent_count :count", NULL,
                                DYNAMODB_VALUES(DYNAMODB_NUMBER(":count", count)));
    if (!sender->is_accepted)
        dynamodb_transaction_update(
            &transaction->base, user_part_key(batch, sender->user, "chat#", batch->id),
            "SET is_accepted = :yes", NULL, DYNAMODB_VALUES(DYNAMODB_NUMBER(":yes", 1)));
}

static void add_message(struct append_transaction *transaction, struct dynamodb_append_batch *batch,
                        struct dynamodb_append_entry *entry, int64_t sequence)
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
        dynamodb_transaction_put(&transaction->base, send_key(entry),
                                 DYNAMODB_VALUES(DYNAMODB_NUMBER("sequence_number", sequence),
                                                 DYNAMODB_NUMBER("sent_at_ms", sent_at_ms)),
                                 "attribute_not_exists(sender_key)", DYNAMODB_NO_VALUES);
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
                         count_undecided(batch, NULL));
    while ((entry = next_undecided(batch, &at))) {
        struct ledger_request *request = entry->request;
        request->outcome.append =
            (struct ledger_append_outcome){.message_id = request->input.id,
                                           .sequence = (uint64_t)++chat->sequence,
                                           .sent_at_ms = request->wall_ms,
                                           .members_version = (uint64_t)chat->members_version};
        dynamodb_append_chat_add_sender(chat, entry->sender->user);
        decide_entry(entry, LEDGER_OK);
    }
    chat->activity_ms = activity_ms;
    chat->is_in_order = true;
}

/* Reads the counter and the messages around it as they are at one instant. Refuses the messages if the chat is halted;
 * otherwise they are written again. */
static void confirm_halted_chat(struct dynamodb_append_batch *batch)
{
    int64_t sequence = batch->chat->sequence;
    struct dynamodb_key keys[] = {counter_key(batch), dynamodb_message_key(batch->id, sequence + 1),
                                  dynamodb_message_key(batch->id, sequence)};
    struct dynamodb_item items[3];
    dynamodb_get_together(batch->task, keys, 3, items);
    if (batch->task->failed)
        return;
    dynamodb_append_chat_set_counter(batch->chat, &items[0]);
    bool is_behind = dynamodb_item_exists(&items[1]);
    bool is_ahead = sequence > 0 && !dynamodb_item_exists(&items[2]);
    if (batch->chat->has_counter && batch->chat->sequence == sequence && (is_behind || is_ahead))
        refuse_in_halted_chat(batch, is_behind);
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
    while ((entry = next_undecided(batch, &at)))
        if (is_place_refused(transaction, entry->message_place))
            return true;
    return false;
}

static void take_first_sends(struct dynamodb_append_batch *batch,
                             const struct append_transaction *transaction)
{
    struct dynamodb_append_entry *entry;
    size_t at = 0;
    while ((entry = next_undecided(batch, &at)))
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
        forget_batch_members(batch); /* who may send is decided anew */
        return;
    }
    decide_duplicates(batch);
    if (is_batch_decided(batch))
        return;
    if (is_place_refused(transaction, transaction->counter)) {
        dynamodb_append_chat_set_counter(batch->chat,
                                         &transaction->base.refusals[transaction->counter].item);
        batch->chat->lost_in_row++;
    } else if (is_message_refused)
        confirm_halted_chat(batch);
    else if (is_place_refused(transaction, transaction->relation))
        refuse_new_messages(batch, LEDGER_FORBIDDEN);
}

static void write_append_transaction(struct dynamodb_append_batch *batch)
{
    struct append_transaction transaction;
    struct dynamodb_append_entry *entry;
    size_t at = 0;
    int64_t sequence = batch->chat->sequence, activity_ms = batch->chat->activity_ms;
    while ((entry = next_undecided(batch, &at)))
        if (entry->request->wall_ms > activity_ms)
            activity_ms = entry->request->wall_ms;
    dynamodb_transaction_begin(&transaction.base, batch->task);
    add_counter_and_checks(&transaction, batch, activity_ms);
    for (size_t i = 0; i < batch->sender_count; i++)
        add_sender(&transaction, batch, &batch->senders[i]);
    at = 0;
    while ((entry = next_undecided(batch, &at)))
        add_message(&transaction, batch, entry, ++sequence);
    int64_t started_ms = batch->task->client->loop->clock.now_ms;
    enum dynamodb_outcome outcome = dynamodb_transaction_commit(&transaction.base);
    if (outcome == DYNAMODB_REFUSED)
        handle_refused_append(batch, &transaction);
    if (outcome != DYNAMODB_DONE)
        return;
    rest_after_win(batch, started_ms);
    complete_stored_messages(batch, activity_ms);
}

void dynamodb_append_batch_write(struct dynamodb_append_batch *batch, struct dynamodb_task *task,
                                 struct dynamodb_append_chat *chat)
{
    batch->task = task;
    batch->chat = chat;
    batch->id = batch->entries[0].request->input.chat;
    for (size_t i = 0; i < batch->sender_count; i++)
        batch->senders[i].sends = dynamodb_pair(task, batch->id, batch->senders[i].user);
    for (unsigned attempt = 0; attempt < DYNAMODB_APPEND_ATTEMPTS_MAX && !task->failed &&
                               !task->invalid && !is_batch_decided(batch);
         attempt++)
        if (read_append_facts(batch))
            write_append_transaction(batch);
    decide_rest(batch, LEDGER_UNAVAILABLE);
    if (task->failed)
        dynamodb_append_chat_forget(chat); /* whether the counter has moved is not known */
    for (size_t i = 0; i < batch->count; i++)
        dynamodb_operations_complete(task, batch->entries[i].request, batch->entries[i].status);
}
