/*
 * POST /v1/service/chats/{chat}/messages {"sender_id"?,"client_message_id","body"}: sends as a member, or, without sender_id,
 * a system message. DELETE /v1/service/chats/{chat}/messages/{sequence}: deletes a message and tells the members.
 */
#include "api/chat_json.h"
#include "api/service/service_routes.h"
#include "messages/message_send.h"

enum { SEQUENCE_DIGITS_MAX = 18 };

/* ---- sending ---- */

static void on_service_message_sent(void *arg, const struct message_send_result *result)
{
    struct exchange *exchange = arg;
    struct buffer json = BUFFER_INIT;
    if (!result->accepted) {
        api_error(&exchange, &result->error);
        return;
    }
    json_write_object(&json);
    fields_write_message_ack(&json, &result->ack);
    json_write_object_end(&json);
    exchange_reply_json(&exchange, 201, &json);
}

/* Returns what is wrong with the message; NULL: nothing. */
static const char *read_service_message(const struct fields_scratch *fields,
                                        struct message_send_order *order)
{
    struct slice sender = fields_find(fields, "sender_id");
    order->sender = LEDGER_APPLICATION;
    if (sender.data && !slice_is(sender, "null") &&
        (!fields_string(sender, &order->sender) || !user_id_valid(order->sender)))
        return "sender_id must be a user id, or absent for a system message";
    if (!fields_string(fields_find(fields, "client_message_id"), &order->client_message_id) ||
        order->client_message_id.len == 0 || order->client_message_id.len > LEDGER_ID_BYTES_MAX)
        return "client_message_id must be a string of 1 to 128 bytes";
    if (!fields_string(fields_find(fields, "body"), &order->body) || order->body.len == 0)
        return "body must be a string of 1 to 4096 bytes";
    return user_id_valid(order->chat) ? NULL : "this is not a chat id";
}

void service_message_post(struct exchange *exchange)
{
    struct session_context *sessions = api_context_of(exchange)->sessions;
    struct message_send_order order = {.chat = exchange->parameters[0]};
    if (!api_read_json(&exchange))
        return;
    const char *problem = read_service_message(&sessions->scratch, &order);
    if (problem)
        service_refuse(&exchange, problem);
    else if (!message_send_body_fits(sessions->messages, order.body))
        exchange_error(&exchange, 413, ERROR_MESSAGE_TOO_LARGE, "the body is too large");
    else
        message_send(sessions->messages, &order, on_service_message_sent, exchange);
}

/* ---- deleting ---- */

static bool read_path_sequence(struct slice text, uint64_t *sequence)
{
    *sequence = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        *sequence = *sequence * 10 + (uint64_t)(text.data[i] - '0');
        if (i == SEQUENCE_DIGITS_MAX)
            return false;
    }
    return *sequence > 0;
}

/* Pushes message_deleted {chat_id, sequence} to all devices of the members, also after a repeated deletion: the first one
 * may have got no further than the ledger. */
static void on_deleted_message_chat_read(void *arg, const struct ledger_chat_outcome *outcome)
{
    struct exchange *exchange = arg;
    struct buffer fields = BUFFER_INIT;
    uint64_t sequence;
    if (outcome->status != LEDGER_OK) {
        chat_json_error(&exchange, outcome->status);
        return;
    }
    read_path_sequence(exchange->parameters[1], &sequence);
    json_write_object(&fields);
    json_write_key_string(&fields, SLICE("chat_id"), exchange->parameters[0]);
    json_write_key_int(&fields, SLICE("sequence"), (int64_t)sequence);
    json_write_object_end(&fields);
    struct message message = {
        .type = MESSAGE_RELAY,
        .relay = {.name = RELAY_MESSAGE_DELETED, .fields = buffer_slice(&fields)}};
    if (!fields.failed)
        delivery_send(api_context_of(exchange)->sessions->delivery, outcome->chat.members,
                      outcome->chat.member_count, &message, NULL);
    buffer_free(&fields);
    exchange_reply_empty(&exchange);
}

static void on_message_deleted(void *arg, const struct ledger_change_outcome *outcome)
{
    struct exchange *exchange = arg;
    if (outcome->status == LEDGER_NOT_FOUND)
        exchange_error(&exchange, 404, ERROR_NOT_FOUND, "there is no such message");
    else if (outcome->status != LEDGER_OK)
        api_ledger_error(&exchange, outcome->status);
    else
        ledger_chat_get(api_context_of(exchange)->sessions->ledger, exchange->parameters[0],
                        SLICE_NONE, false, on_deleted_message_chat_read, exchange);
}

void service_message_delete(struct exchange *exchange)
{
    uint64_t sequence;
    if (read_path_sequence(exchange->parameters[1], &sequence))
        ledger_message_delete(api_context_of(exchange)->sessions->ledger, exchange->parameters[0],
                              sequence, on_message_deleted, exchange);
    else
        service_refuse(&exchange, "a sequence is a whole number from 1");
}
