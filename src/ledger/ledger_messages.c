/* The operations on messages, cursors, the outbox and dead letters: each copies its arguments into a
 * request. */
#include "ledger/ledger_messages.h"

#include "ledger/ledger_request.h"

static struct slice copy_request_text(struct ledger_request *request, struct slice text,
                                      size_t bytes_max)
{
    if (text.len == 0 || text.len > bytes_max) {
        ledger_request_refuse(request, LEDGER_INVALID);
        return SLICE_NONE;
    }
    return ledger_request_copy(request, text);
}

/* Backends store sequences as signed 64-bit integers; a larger one is beyond every chat's end. */
static uint64_t clamp_sequence(uint64_t sequence)
{
    return sequence > INT64_MAX ? INT64_MAX : sequence;
}

void ledger_message_append(struct ledger_client *client, struct slice chat, struct slice sender,
                           struct slice client_message_id, struct slice message_id,
                           struct slice body, ledger_append_done done, void *arg)
{
    struct ledger_request *request = ledger_request_make(client, LEDGER_MESSAGE_APPEND, arg);
    request->done.append = done;
    request->input.chat = ledger_request_id(request, chat);
    request->input.user = ledger_request_id(request, sender);
    request->input.client_message_id = ledger_request_id(request, client_message_id);
    request->input.id = ledger_request_id(request, message_id);
    request->input.text = copy_request_text(request, body, LEDGER_BODY_BYTES_MAX);
    request->input.skips_outbox = client->skips_outbox;
    ledger_request_submit(request);
}

static void submit_message_read(struct ledger_client *client, enum ledger_operation operation,
                                struct slice chat, struct slice reader, uint64_t sequence,
                                uint32_t limit, ledger_messages_done done, void *arg)
{
    struct ledger_request *request = ledger_request_make(client, operation, arg);
    request->done.messages = done;
    request->input.chat = ledger_request_id(request, chat);
    request->input.user = ledger_request_optional_id(request, reader);
    request->input.sequence = clamp_sequence(sequence);
    request->input.limit = ledger_request_limit(limit);
    ledger_request_submit(request);
}

void ledger_messages_after(struct ledger_client *client, struct slice chat, struct slice reader,
                           uint64_t sequence, uint32_t limit, ledger_messages_done done, void *arg)
{
    submit_message_read(client, LEDGER_MESSAGES_AFTER, chat, reader, sequence, limit, done, arg);
}

void ledger_messages_before(struct ledger_client *client, struct slice chat, struct slice reader,
                            uint64_t sequence, uint32_t limit, ledger_messages_done done, void *arg)
{
    submit_message_read(client, LEDGER_MESSAGES_BEFORE, chat, reader, sequence, limit, done, arg);
}

void ledger_cursor_put(struct ledger_client *client, struct slice chat, struct slice user,
                       struct slice device, uint64_t sequence, ledger_cursor_done done, void *arg)
{
    struct ledger_request *request = ledger_request_make(client, LEDGER_CURSOR_PUT, arg);
    request->done.cursor = done;
    request->input.chat = ledger_request_id(request, chat);
    request->input.user = ledger_request_id(request, user);
    request->input.device = ledger_request_id(request, device);
    request->input.sequence = clamp_sequence(sequence);
    ledger_request_submit(request);
}

void ledger_outbox_list(struct ledger_client *client, uint32_t limit, ledger_messages_done done,
                        void *arg)
{
    struct ledger_request *request = ledger_request_make(client, LEDGER_OUTBOX_LIST, arg);
    request->done.messages = done;
    request->input.limit = ledger_request_limit(limit);
    ledger_request_submit(request);
}

void ledger_outbox_remove(struct ledger_client *client, const struct ledger_position *positions,
                          size_t count, ledger_change_done done, void *arg)
{
    struct ledger_request *request = ledger_request_make(client, LEDGER_OUTBOX_REMOVE, arg);
    request->done.change = done;
    struct ledger_position *copies = NULL;
    if (count <= LEDGER_OUTBOX_BATCH_MAX)
        copies = ledger_request_alloc(request, count * sizeof(*copies));
    else
        ledger_request_refuse(request, LEDGER_LIMIT);
    for (size_t i = 0; copies && i < count; i++) {
        copies[i].chat = ledger_request_id(request, positions[i].chat);
        copies[i].sequence = clamp_sequence(positions[i].sequence);
        copies[i].sent_at_ms = positions[i].sent_at_ms;
    }
    request->input.positions = copies;
    request->input.position_count = count;
    ledger_request_submit(request);
}

void ledger_message_delete(struct ledger_client *client, struct slice chat, uint64_t sequence,
                           ledger_change_done done, void *arg)
{
    struct ledger_request *request = ledger_request_make(client, LEDGER_MESSAGE_DELETE, arg);
    request->done.change = done;
    request->input.chat = ledger_request_id(request, chat);
    request->input.sequence = clamp_sequence(sequence);
    ledger_request_submit(request);
}

void ledger_dead_letter_put(struct ledger_client *client, struct slice chat, uint64_t sequence,
                            struct slice reason, ledger_change_done done, void *arg)
{
    struct ledger_request *request = ledger_request_make(client, LEDGER_DEAD_LETTER_PUT, arg);
    request->done.change = done;
    request->input.chat = ledger_request_id(request, chat);
    request->input.sequence = clamp_sequence(sequence);
    request->input.text = copy_request_text(request, reason, LEDGER_DEAD_LETTER_REASON_BYTES_MAX);
    ledger_request_submit(request);
}

void ledger_dead_letters_list(struct ledger_client *client, uint32_t limit,
                              ledger_dead_letters_done done, void *arg)
{
    struct ledger_request *request = ledger_request_make(client, LEDGER_DEAD_LETTERS_LIST, arg);
    request->done.dead_letters = done;
    request->input.limit = ledger_request_limit(limit);
    ledger_request_submit(request);
}

void ledger_dead_letter_replay(struct ledger_client *client, struct slice chat, uint64_t sequence,
                               ledger_change_done done, void *arg)
{
    struct ledger_request *request = ledger_request_make(client, LEDGER_DEAD_LETTER_REPLAY, arg);
    request->done.change = done;
    request->input.chat = ledger_request_id(request, chat);
    request->input.sequence = clamp_sequence(sequence);
    ledger_request_submit(request);
}

void ledger_chat_repair(struct ledger_client *client, struct slice chat, bool apply,
                        ledger_repair_done done, void *arg)
{
    struct ledger_request *request = ledger_request_make(client, LEDGER_CHAT_REPAIR, arg);
    request->done.repair = done;
    request->input.chat = ledger_request_id(request, chat);
    request->input.apply = apply;
    ledger_request_submit(request);
}
