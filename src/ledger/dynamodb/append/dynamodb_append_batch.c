#include "ledger/dynamodb/append/dynamodb_append_batch.h"

#include "ledger/dynamodb/dynamodb_events.h"

enum {
    WRITES_OF_BATCH = 4,  /* the counter, the chat, the relation of two members, the last message */
    WRITES_OF_SENDER = 2, /* the count, the acceptance */
    WRITES_OF_MESSAGE = 3, /* the message, the send, the outbox */
};

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
                      dynamodb_events_of_message(request) + (sender ? 0 : WRITES_OF_SENDER) -
                      (input->skips_outbox ? 1 : 0);
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

struct dynamodb_append_entry *dynamodb_append_batch_next(struct dynamodb_append_batch *batch,
                                                         size_t *at)
{
    while (*at < batch->count && batch->entries[*at].is_decided)
        (*at)++;
    return *at < batch->count ? &batch->entries[(*at)++] : NULL;
}

bool dynamodb_append_batch_is_decided(struct dynamodb_append_batch *batch)
{
    size_t at = 0;
    return !dynamodb_append_batch_next(batch, &at);
}

void dynamodb_append_batch_decide_rest(struct dynamodb_append_batch *batch,
                                       enum ledger_status status)
{
    struct dynamodb_append_entry *entry;
    size_t at = 0;
    while ((entry = dynamodb_append_batch_next(batch, &at)))
        dynamodb_append_decide(entry, status);
}

unsigned dynamodb_append_batch_count(struct dynamodb_append_batch *batch,
                                     const struct dynamodb_append_sender *sender)
{
    const struct dynamodb_append_entry *entry;
    size_t at = 0;
    unsigned count = 0;
    while ((entry = dynamodb_append_batch_next(batch, &at)))
        count += !sender || entry->sender == sender;
    return count;
}

/* ---- keys ---- */

struct dynamodb_key dynamodb_append_counter_key(const struct dynamodb_append_batch *batch)
{
    return (struct dynamodb_key){DYNAMODB_CHAT_COUNTERS, batch->id, SLICE_NONE, 0};
}

struct dynamodb_key dynamodb_append_chat_key(const struct dynamodb_append_batch *batch)
{
    return (struct dynamodb_key){DYNAMODB_CHATS, batch->id, SLICE("chat"), 0};
}

struct dynamodb_key dynamodb_append_chat_part_key(const struct dynamodb_append_batch *batch,
                                                  const char *prefix, struct slice user)
{
    return (struct dynamodb_key){DYNAMODB_CHATS, batch->id,
                                 dynamodb_join(batch->task, prefix, user), 0};
}

struct dynamodb_chat dynamodb_append_chat_name(const struct dynamodb_append_batch *batch)
{
    return (struct dynamodb_chat){.id = batch->id, .draft = slice_of(batch->chat->draft)};
}

struct dynamodb_key dynamodb_append_send_key(const struct dynamodb_append_entry *entry)
{
    return (struct dynamodb_key){DYNAMODB_SENDS, entry->sender->sends,
                                 entry->request->input.client_message_id, 0};
}
