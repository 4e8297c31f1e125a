/* GET and POST /v1/chats/{id}/messages */
#include "api/api_routes.h"
#include "messages/message_history.h"
#include "messages/message_send.h"

/* ---- sending ---- */

static void on_rest_message_sent(void *arg, const struct message_send_result *result)
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

static void refuse_message(struct exchange *exchange, struct slice client_message_id,
                           enum error_code code, const char *text, int64_t retry_after_ms)
{
    struct message_error error = {.code = code,
                                  .text = text,
                                  .client_message_id = client_message_id,
                                  .retry_after_ms = retry_after_ms,
                                  .grace_period_ms = -1};
    api_error(&exchange, &error);
}

static bool is_ledger_id(struct slice id)
{
    return id.len > 0 && id.len <= LEDGER_ID_BYTES_MAX;
}

void rest_message_post(struct exchange *exchange)
{
    struct session_context *sessions = api_context_of(exchange)->sessions;
    struct slice client_message_id = SLICE_NONE, body = SLICE_NONE;
    int64_t retry_after_ms;
    if (!api_read_json(&exchange))
        return;
    if (!fields_string(fields_find(&sessions->scratch, "client_message_id"), &client_message_id) ||
        !is_ledger_id(client_message_id)) {
        refuse_message(exchange, SLICE_NONE, ERROR_INVALID_MESSAGE,
                       "client_message_id must be a string of 1 to 128 bytes", -1);
        return;
    }
    if (!fields_string(fields_find(&sessions->scratch, "body"), &body) || body.len == 0) {
        refuse_message(exchange, client_message_id, ERROR_INVALID_MESSAGE,
                       "body must be a string of 1 to 4096 bytes", -1);
        return;
    }
    if (!is_ledger_id(exchange->parameters[0])) {
        refuse_message(exchange, client_message_id, ERROR_INVALID_MESSAGE, "this is not a chat id",
                       -1);
        return;
    }
    if (!message_send_body_fits(sessions->messages, body)) {
        refuse_message(exchange, client_message_id, ERROR_MESSAGE_TOO_LARGE,
                       "the body is too large", -1);
        return;
    }
    if (!budget_take(&sessions->budgets, BUDGET_MESSAGES, exchange_user(exchange), BUDGET_ONE,
                     &retry_after_ms)) {
        refuse_message(exchange, client_message_id, ERROR_RATE_LIMITED,
                       budget_refusal_text(BUDGET_MESSAGES), retry_after_ms);
        return;
    }
    struct message_send_order order = {
        .chat = exchange->parameters[0],
        .sender = exchange_user(exchange),
        .client_message_id = client_message_id,
        .body = body,
    };
    message_send(sessions->messages, &order, on_rest_message_sent, exchange);
}

/* ---- reading ---- */

static void on_message_page_read(void *arg, enum ledger_status status,
                                 const struct sync_response *page)
{
    struct exchange *exchange = arg;
    struct buffer json = BUFFER_INIT;
    if (status != LEDGER_OK) {
        api_ledger_error(&exchange, status);
        return;
    }
    json_write_object(&json);
    fields_write_messages(&json, page);
    json_write_object_end(&json);
    exchange_reply_json(&exchange, 200, &json);
}

/* Reads a whole number from 0. Returns false when it is invalid; *given is whether it is present. */
static bool read_query_number(const struct exchange *exchange, struct slice name, uint64_t *out,
                              bool *given)
{
    char text[24];
    struct slice value;
    *given = http1_query_find(exchange->head.target.query, name).data != NULL;
    if (!*given)
        return true;
    if (!exchange_query(exchange, name, text, sizeof(text), &value) || value.len == 0 ||
        value.len > 18)
        return false;
    *out = 0;
    for (size_t i = 0; i < value.len; i++) {
        if (value.data[i] < '0' || value.data[i] > '9')
            return false;
        *out = *out * 10 + (uint64_t)(value.data[i] - '0');
    }
    return true;
}

void rest_messages_get(struct exchange *exchange)
{
    uint64_t after = 0, before = 0, limit = 0;
    bool has_after, has_before, has_limit;
    if (!read_query_number(exchange, SLICE("after_sequence"), &after, &has_after) ||
        !read_query_number(exchange, SLICE("before_sequence"), &before, &has_before) ||
        !read_query_number(exchange, SLICE("limit"), &limit, &has_limit) ||
        (has_after && has_before) || !is_ledger_id(exchange->parameters[0])) {
        exchange_error(&exchange, 400, ERROR_INVALID_MESSAGE,
                       "after_sequence or before_sequence, and limit, are whole numbers, 0 or "
                       "more");
        return;
    }
    struct message_history_query query = {
        .chat = exchange->parameters[0],
        .reader = exchange_user(exchange),
        .sequence = has_before ? before : after,
        .limit = (int64_t)limit,
        .backwards = has_before,
    };
    message_history_read(api_context_of(exchange)->sessions->messages, &query, on_message_page_read,
                         exchange);
}
