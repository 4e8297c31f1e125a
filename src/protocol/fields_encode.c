#include "protocol/fields.h"
#include "text/time_text.h"

static void fields_write_time(struct buffer *out, struct slice key, int64_t wall_ms)
{
    json_write_key(out, key);
    if (wall_ms == TIME_NONE) {
        json_write_null(out);
        return;
    }
    char text[TIME_TEXT_LEN + 2];
    text[0] = text[TIME_TEXT_LEN + 1] = '"';
    time_text_write(text + 1, wall_ms);
    json_write_raw(out, (struct slice){text, sizeof(text)});
}

/* Seconds with as many decimals as milliseconds need: 5, 0.25. */
static void fields_write_seconds(struct buffer *out, struct slice key, int64_t ms)
{
    json_write_key(out, key);
    buffer_append_int(out, ms / 1000);
    int64_t thousandths = ms % 1000;
    if (thousandths == 0)
        return;
    char decimals[4] = {'.', (char)('0' + thousandths / 100), (char)('0' + thousandths / 10 % 10),
                        (char)('0' + thousandths % 10)};
    size_t len = sizeof(decimals);
    while (decimals[len - 1] == '0')
        len--;
    buffer_append(out, decimals, len);
}

void fields_write_presence_fields(struct buffer *out, const struct presence *presence)
{
    json_write_key_string(out, SLICE("user_id"), presence->user_id);
    json_write_key_string(out, SLICE("status"), slice_of(presence_status_name(presence->status)));
    json_write_key_bool(out, SLICE("in_call"), presence->in_call);
    fields_write_time(out, SLICE("last_seen"), presence->last_seen_ms);
    json_write_key_int(out, SLICE("version"), presence->version);
    if (presence->reason != PRESENCE_REASON_NONE)
        json_write_key_string(out, SLICE("reason"),
                              slice_of(presence_reason_name(presence->reason)));
    if (presence->stale)
        json_write_key_bool(out, SLICE("stale"), true);
}

void fields_write_presence(struct buffer *out, const struct presence *presence)
{
    json_write_object(out);
    fields_write_presence_fields(out, presence);
    json_write_object_end(out);
}

static void fields_encode_established(struct buffer *out, const struct message *message)
{
    const struct connection_established *fields = &message->established;
    json_write_key_string(out, SLICE("conn_id"), fields->conn_id);
    json_write_key_string(out, SLICE("server_id"), fields->server_id);
    json_write_key_string(out, SLICE("user_id"), fields->user_id);
    fields_write_seconds(out, SLICE("heartbeat_interval_seconds"), fields->heartbeat_interval_ms);
    fields_write_seconds(out, SLICE("expiry_window_seconds"), fields->expiry_window_ms);
    fields_write_time(out, SLICE("server_time"), fields->server_time_ms);
    if (fields->display_name.len)
        json_write_key_string(out, SLICE("display_name"), fields->display_name);
}

static void fields_encode_heartbeat_ack(struct buffer *out, const struct message *message)
{
    fields_write_time(out, SLICE("server_time"), message->server_time_ms);
}

static void fields_encode_error(struct buffer *out, const struct message *message)
{
    const struct message_error *error = &message->error;
    json_write_key_string(out, SLICE("code"), slice_of(error_code_name(error->code)));
    json_write_key_string(out, SLICE("message"), slice_of(error->text));
    if (error->client_message_id.data)
        json_write_key_string(out, SLICE("client_message_id"), error->client_message_id);
    if (error->retry_after_ms >= 0)
        fields_write_seconds(out, SLICE("retry_after_seconds"), error->retry_after_ms);
    if (error->grace_period_ms >= 0)
        fields_write_seconds(out, SLICE("grace_period_seconds"), error->grace_period_ms);
}

static void fields_write_presences(struct buffer *out, const struct presence *presences,
                                   size_t count)
{
    json_write_key(out, SLICE("presences"));
    json_write_array(out);
    for (size_t i = 0; i < count; i++)
        fields_write_presence(out, &presences[i]);
    json_write_array_end(out);
}

static void fields_encode_snapshot(struct buffer *out, const struct message *message)
{
    fields_write_presences(out, message->snapshot.presences, message->snapshot.count);
}

static void fields_encode_closing(struct buffer *out, const struct message *message)
{
    const struct connection_closing *closing = &message->closing;
    json_write_key_string(out, SLICE("reason"), slice_of(closing_reason_name(closing->reason)));
    json_write_key_bool(out, SLICE("reconnect_allowed"), closing->reconnect_allowed);
    if (closing->reconnect_after_ms >= 0)
        json_write_key_int(out, SLICE("reconnect_after_ms"), closing->reconnect_after_ms);
    if (closing->sync_from_count == 0)
        return;
    json_write_key(out, SLICE("sync_from_sequence"));
    json_write_object(out);
    for (size_t i = 0; i < closing->sync_from_count; i++)
        json_write_key_int(out, closing->sync_from[i].chat_id, closing->sync_from[i].sequence);
    json_write_object_end(out);
}

static void fields_encode_chat_snapshot(struct buffer *out, const struct message *message)
{
    const struct chat_snapshot *snapshot = &message->chat_snapshot;
    json_write_key_string(out, SLICE("chat_id"), snapshot->chat_id);
    fields_write_presences(out, snapshot->presences, snapshot->presence_count);
    json_write_key(out, SLICE("typing"));
    json_write_array(out);
    for (size_t i = 0; i < snapshot->typing_count; i++)
        json_write_string(out, snapshot->typing[i]);
    json_write_array_end(out);
    json_write_key_int(out, SLICE("latest_sequence"), snapshot->latest_sequence);
}

static void fields_encode_typing(struct buffer *out, const struct message *message)
{
    const struct typing_change *change = &message->typing;
    json_write_key_string(out, SLICE("chat_id"), change->chat_id);
    json_write_key_string(out, SLICE("user_id"), change->user_id);
    json_write_key_bool(out, SLICE("typing"), change->typing);
}

void fields_write_message_ack(struct buffer *out, const struct message_ack *ack)
{
    json_write_key_string(out, SLICE("chat_id"), ack->chat_id);
    json_write_key_string(out, SLICE("client_message_id"), ack->client_message_id);
    json_write_key_string(out, SLICE("message_id"), ack->message_id);
    json_write_key_int(out, SLICE("sequence"), ack->sequence);
    json_write_key_bool(out, SLICE("duplicate"), ack->duplicate);
    if (ack->body_differs)
        json_write_key_bool(out, SLICE("body_differs"), true);
}

static void fields_encode_message_ack(struct buffer *out, const struct message *message)
{
    fields_write_message_ack(out, &message->message_ack);
}

static void fields_write_chat_message(struct buffer *out, const struct chat_message *message)
{
    json_write_key_string(out, SLICE("chat_id"), message->chat_id);
    json_write_key_string(out, SLICE("message_id"), message->message_id);
    json_write_key_int(out, SLICE("sequence"), message->sequence);
    json_write_key(out, SLICE("sender_id"));
    if (message->sender_id.data)
        json_write_string(out, message->sender_id);
    else
        json_write_null(out);
    if (message->body.len)
        json_write_key_string(out, SLICE("body"), message->body);
    else
        json_write_key_bool(out, SLICE("deleted"), true);
    fields_write_time(out, SLICE("sent_at"), message->sent_at_ms);
}

static void fields_encode_chat_message(struct buffer *out, const struct message *message)
{
    fields_write_chat_message(out, &message->chat_message);
}

void fields_write_messages(struct buffer *out, const struct sync_response *page)
{
    json_write_key(out, SLICE("messages"));
    json_write_array(out);
    for (size_t i = 0; i < page->count; i++) {
        json_write_object(out);
        fields_write_chat_message(out, &page->messages[i]);
        json_write_object_end(out);
    }
    json_write_array_end(out);
    json_write_key_bool(out, SLICE("has_more"), page->has_more);
    json_write_key_int(out, SLICE("latest_sequence"), page->latest_sequence);
}

static void fields_encode_sync_response(struct buffer *out, const struct message *message)
{
    json_write_key_string(out, SLICE("chat_id"), message->sync_response.chat_id);
    fields_write_messages(out, &message->sync_response);
}

/* An event about a call has the fields that are set. */
static void fields_encode_call(struct buffer *out, const struct message *message)
{
    const struct call_fields *call = &message->call;
    json_write_key_string(out, SLICE("call_id"), call->call_id);
    if (call->from.data)
        json_write_key_string(out, SLICE("from"), call->from);
    if (call->to.data)
        json_write_key_string(out, SLICE("to"), call->to);
    if (call->reason)
        json_write_key_string(out, SLICE("reason"), slice_of(call->reason));
    if (call->data.data) {
        json_write_key(out, SLICE("data"));
        json_write_raw(out, call->data);
    }
}

static void fields_encode_change(struct buffer *out, const struct message *message)
{
    fields_write_presence_fields(out, &message->change.presence);
    fields_write_time(out, SLICE("timestamp"), message->change.timestamp_ms);
}

static void fields_encode_delivery(struct buffer *out, const struct message *message)
{
    if (message->event_name.len)
        json_write_key_string(out, SLICE("event"), message->event_name);
    json_write_key(out, SLICE("data"));
    json_write_raw(out, message->data);
}

static void fields_encode_contact(struct buffer *out, const struct message *message)
{
    bool is_request = message->type == MESSAGE_CONTACT_REQUEST;
    if (is_request)
        json_write_key_string(out, SLICE("request_id"), message->contact.request_id);
    json_write_key_string(out, is_request ? SLICE("from") : SLICE("user_id"),
                          message->contact.user_id);
}

/* Copies the JSON members of a complete object into the open one. */
static void fields_encode_relay(struct buffer *out, const struct message *message)
{
    struct slice object = message->relay.fields;
    struct slice members = {object.data + 1, object.len - 2};
    if (members.len)
        json_write_raw(out, members);
}

/* A message without an entry has no fields. */
static void (*const ENCODERS[MESSAGE_TYPE_COUNT])(struct buffer *out,
                                                  const struct message *message) = {
    [MESSAGE_CONNECTION_ESTABLISHED] = fields_encode_established,
    [MESSAGE_HEARTBEAT_ACK] = fields_encode_heartbeat_ack,
    [MESSAGE_ERROR] = fields_encode_error,
    [MESSAGE_PRESENCE_SNAPSHOT] = fields_encode_snapshot,
    [MESSAGE_PRESENCE_CHANGED] = fields_encode_change,
    [MESSAGE_CHAT_SNAPSHOT] = fields_encode_chat_snapshot,
    [MESSAGE_TYPING_CHANGED] = fields_encode_typing,
    [MESSAGE_MESSAGE_ACK] = fields_encode_message_ack,
    [MESSAGE_MESSAGE] = fields_encode_chat_message,
    [MESSAGE_SYNC_RESPONSE] = fields_encode_sync_response,
    [MESSAGE_CALL_RINGING] = fields_encode_call,
    [MESSAGE_CALL_INCOMING] = fields_encode_call,
    [MESSAGE_CALL_ACCEPTED] = fields_encode_call,
    [MESSAGE_CALL_REJECTED] = fields_encode_call,
    [MESSAGE_CALL_ENDED] = fields_encode_call,
    [MESSAGE_CALL_SIGNAL] = fields_encode_call,
    [MESSAGE_CONTACT_REQUEST] = fields_encode_contact,
    [MESSAGE_CONTACT_ACCEPTED] = fields_encode_contact,
    [MESSAGE_CONTACT_REMOVED] = fields_encode_contact,
    [MESSAGE_DELIVERY] = fields_encode_delivery,
    [MESSAGE_EVENT_ACK] = fields_encode_delivery,
    [MESSAGE_CONNECTION_CLOSING] = fields_encode_closing,
    [MESSAGE_RELAY] = fields_encode_relay,
};

void fields_encode(struct buffer *out, const struct message *message)
{
    if (ENCODERS[message->type])
        ENCODERS[message->type](out, message);
}
