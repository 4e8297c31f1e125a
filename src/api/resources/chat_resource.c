/* GET /v1/chats; GET, PATCH /v1/chats/{id}; POST /v1/chats/{id}/read */
#include "api/api_routes.h"
#include "api/chat_events.h"
#include "api/chat_json.h"
#include "api/page_query.h"
#include "messages/message_cursor.h"
#include "text/base64url.h"

#include <stdio.h>
#include <string.h>

enum { CHATS_PAGE = 100 }; /* by default; LEDGER_PAGE_MAX at most */

/* ---- one chat ---- */

static void on_chat_read(void *arg, const struct ledger_chat_outcome *outcome)
{
    chat_json_reply(arg, outcome);
}

void rest_chat_get(struct exchange *exchange)
{
    ledger_chat_get(api_context_of(exchange)->sessions->ledger, exchange->parameters[0],
                    exchange_user(exchange), true, on_chat_read, exchange);
}

static void on_chat_changed(void *arg, const struct ledger_chat_outcome *outcome)
{
    struct exchange *exchange = arg;
    if (outcome->status == LEDGER_OK)
        chat_publish_changed(api_context_of(exchange)->sessions->chats, exchange->parameters[0],
                             exchange_user(exchange));
    chat_json_reply(exchange, outcome);
}

void rest_chat_patch(struct exchange *exchange)
{
    struct session_context *sessions = api_context_of(exchange)->sessions;
    if (!api_read_json(&exchange))
        return;
    struct slice can_add = fields_find(&sessions->scratch, "members_can_add");
    if (slice_is(can_add, "true") || slice_is(can_add, "false"))
        ledger_chat_change(sessions->ledger, exchange->parameters[0], exchange_user(exchange),
                           slice_is(can_add, "true"), on_chat_changed, exchange);
    else
        exchange_error(&exchange, 400, ERROR_INVALID_MESSAGE,
                       "members_can_add must be true or false");
}

/* ---- reading ---- */

static void on_chat_read_mark_stored(void *arg, const struct ledger_cursor_outcome *outcome)
{
    struct exchange *exchange = arg;
    struct buffer json = BUFFER_INIT;
    if (outcome->status != LEDGER_OK) {
        chat_json_error(&exchange, outcome->status);
        return;
    }
    message_cursor_announce(api_context_of(exchange)->sessions->messages, exchange->parameters[0],
                            exchange_user(exchange), outcome);
    json_write_object(&json);
    json_write_key_string(&json, SLICE("chat_id"), exchange->parameters[0]);
    json_write_key_int(&json, SLICE("sequence"), (int64_t)outcome->read_sequence);
    json_write_object_end(&json);
    exchange_reply_json(&exchange, 200, &json);
}

void rest_chat_read_post(struct exchange *exchange)
{
    struct session_context *sessions = api_context_of(exchange)->sessions;
    struct json json;
    int64_t sequence = -1;
    if (!api_read_json(&exchange))
        return;
    struct slice raw = fields_find(&sessions->scratch, "sequence");
    json_init(&json, (char *)raw.data, raw.len);
    if (raw.data && json_int(&json, &sequence) && sequence >= 0)
        ledger_cursor_put(sessions->ledger, exchange->parameters[0], exchange_user(exchange),
                          SLICE(MESSAGE_CURSOR_REST_DEVICE), (uint64_t)sequence,
                          on_chat_read_mark_stored, exchange);
    else
        exchange_error(&exchange, 400, ERROR_INVALID_MESSAGE,
                       "sequence must be a whole number, 0 or more");
}

/* ---- the list ---- */

/* A cursor is the last chat's activity, a space and its id, in base64url. */
static void write_chats_cursor(struct buffer *out, const struct ledger_chat *last)
{
    char text[32 + LEDGER_ID_BYTES_MAX];
    struct buffer encoded = BUFFER_INIT;
    int len = snprintf(text, sizeof(text), "%lld %.*s", (long long)last->activity_ms,
                       SLICE_FORMAT(last->id));
    base64url_encode(&encoded, text, (size_t)len);
    out->failed |= encoded.failed;
    json_write_string(out, buffer_slice(&encoded));
    buffer_free(&encoded);
}

/* Returns false when it is no cursor. The id points into `text`, which has EXCHANGE_PARAMETER_BYTES_MAX bytes. */
static bool parse_chats_cursor(struct slice encoded, char *text, struct ledger_chats_cursor *out)
{
    size_t len;
    struct slice activity;
    if (base64url_decoded_max(encoded.len) > EXCHANGE_PARAMETER_BYTES_MAX ||
        !base64url_decode(encoded, (unsigned char *)text, &len))
        return false;
    out->chat = slice_split((struct slice){text, len}, ' ', &activity);
    out->activity_ms = 0;
    for (size_t i = 0; i < activity.len && i < 18; i++) {
        if (activity.data[i] < '0' || activity.data[i] > '9')
            return false;
        out->activity_ms = out->activity_ms * 10 + (activity.data[i] - '0');
    }
    return activity.len > 0 && activity.len <= 18 && user_id_valid(out->chat);
}

static void on_chats_listed(void *arg, const struct ledger_chats_outcome *outcome)
{
    struct exchange *exchange = arg;
    struct buffer json = BUFFER_INIT;
    if (outcome->status != LEDGER_OK) {
        chat_json_error(&exchange, outcome->status);
        return;
    }
    json_write_object(&json);
    json_write_key(&json, SLICE("chats"));
    json_write_array(&json);
    for (size_t i = 0; i < outcome->count; i++)
        chat_json_write(&json, &outcome->chats[i], outcome->chats[i].kind == LEDGER_CHAT_DIRECT);
    json_write_array_end(&json);
    json_write_key_bool(&json, SLICE("has_more"), outcome->has_more);
    json_write_key(&json, SLICE("next_cursor"));
    if (outcome->has_more && outcome->count)
        write_chats_cursor(&json, &outcome->chats[outcome->count - 1]);
    else
        json_write_null(&json);
    json_write_object_end(&json);
    exchange_reply_json(&exchange, 200, &json);
}

/* `after`, a chat's id, is how clients paged before there were cursors. */
void rest_chats_get(struct exchange *exchange)
{
    char encoded_bytes[EXCHANGE_PARAMETER_BYTES_MAX], text[EXCHANGE_PARAMETER_BYTES_MAX];
    struct slice name = SLICE("cursor"), encoded;
    struct page_query page;
    if (!page_query_read(&exchange, CHATS_PAGE, &page))
        return;
    struct ledger_chats_cursor after = {page.after, LEDGER_ACTIVITY_NOW};
    if (http1_query_find(exchange->head.target.query, name).data &&
        (!exchange_query(exchange, name, encoded_bytes, sizeof(encoded_bytes), &encoded) ||
         !parse_chats_cursor(encoded, text, &after)))
        exchange_error(&exchange, 400, ERROR_INVALID_MESSAGE,
                       "cursor must be the next_cursor of another page");
    else
        ledger_chats_list(api_context_of(exchange)->sessions->ledger, exchange_user(exchange),
                          &after, page.limit, true, on_chats_listed, exchange);
}
