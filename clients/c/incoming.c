/* Messages from the server: parsed once into a flat struct, then handled by type. */
#include "client.h"

#include "text/json.h"

#include <stdlib.h>
#include <string.h>

/* The JSON members that this library uses, of all messages. */
struct fields {
    struct slice type;
    struct slice id;
    struct slice chat_id;
    struct slice message_id;
    struct slice client_message_id;
    struct slice sender_id;
    struct slice user_id;
    struct slice call_id;
    struct slice server_time;
    struct slice status;
    struct slice body;
    struct slice code;
    struct slice text;
    struct slice presences; /* raw */
    struct slice messages;  /* raw */
    int64_t sequence;
    int64_t version;
    int64_t reconnect_after_ms;
    double heartbeat_s;
    double expiry_s;
    double retry_after_s;
    bool duplicate;
    bool has_more;
    bool reconnect_allowed;
};

enum kind { KIND_TEXT, KIND_RAW, KIND_INT, KIND_DOUBLE, KIND_BOOL };

static const struct {
    const char *name;
    enum kind kind;
    size_t offset;
} JSON_MEMBERS[] = {
    {"type", KIND_TEXT, offsetof(struct fields, type)},
    {"id", KIND_TEXT, offsetof(struct fields, id)},
    {"chat_id", KIND_TEXT, offsetof(struct fields, chat_id)},
    {"message_id", KIND_TEXT, offsetof(struct fields, message_id)},
    {"client_message_id", KIND_TEXT, offsetof(struct fields, client_message_id)},
    {"sender_id", KIND_TEXT, offsetof(struct fields, sender_id)},
    {"user_id", KIND_TEXT, offsetof(struct fields, user_id)},
    {"call_id", KIND_TEXT, offsetof(struct fields, call_id)},
    {"server_time", KIND_TEXT, offsetof(struct fields, server_time)},
    {"status", KIND_TEXT, offsetof(struct fields, status)},
    {"body", KIND_TEXT, offsetof(struct fields, body)},
    {"code", KIND_TEXT, offsetof(struct fields, code)},
    {"message", KIND_TEXT, offsetof(struct fields, text)},
    {"presences", KIND_RAW, offsetof(struct fields, presences)},
    {"messages", KIND_RAW, offsetof(struct fields, messages)},
    {"sequence", KIND_INT, offsetof(struct fields, sequence)},
    {"version", KIND_INT, offsetof(struct fields, version)},
    {"reconnect_after_ms", KIND_INT, offsetof(struct fields, reconnect_after_ms)},
    {"heartbeat_interval_seconds", KIND_DOUBLE, offsetof(struct fields, heartbeat_s)},
    {"expiry_window_seconds", KIND_DOUBLE, offsetof(struct fields, expiry_s)},
    {"retry_after_seconds", KIND_DOUBLE, offsetof(struct fields, retry_after_s)},
    {"duplicate", KIND_BOOL, offsetof(struct fields, duplicate)},
    {"has_more", KIND_BOOL, offsetof(struct fields, has_more)},
    {"reconnect_allowed", KIND_BOOL, offsetof(struct fields, reconnect_allowed)},
};

static bool fields_read_value(struct json *json, enum kind kind, void *out)
{
    enum json_type type = json_peek(json);
    bool fits = kind == KIND_RAW || (kind == KIND_TEXT && type == JSON_STRING) ||
                (kind == KIND_BOOL && (type == JSON_TRUE || type == JSON_FALSE)) ||
                ((kind == KIND_INT || kind == KIND_DOUBLE) && type == JSON_NUMBER);
    if (!fits)
        return json_skip(json);
    switch (kind) {
    case KIND_TEXT:
        return json_string(json, out);
    case KIND_RAW:
        return json_raw(json, out);
    case KIND_INT:
        return json_int(json, out);
    case KIND_DOUBLE:
        return json_double(json, out);
    case KIND_BOOL:
        return json_bool(json, out);
    }
    return false;
}

static bool fields_read(struct json *json, struct fields *fields)
{
    struct slice key;
    *fields = (struct fields){.reconnect_after_ms = -1, .reconnect_allowed = true};
    json_object(json);
    while (json_member(json, &key)) {
        size_t i = 0;
        while (i < sizeof(JSON_MEMBERS) / sizeof(JSON_MEMBERS[0]) &&
               !slice_is(key, JSON_MEMBERS[i].name))
            i++;
        if (i == sizeof(JSON_MEMBERS) / sizeof(JSON_MEMBERS[0]))
            json_skip(json);
        else if (!fields_read_value(json, JSON_MEMBERS[i].kind,
                                    (char *)fields + JSON_MEMBERS[i].offset))
            return false;
    }
    if (!fields->call_id.data && slice_starts_with(fields->id, SLICE(CLIENT_CALL_ID)))
        fields->call_id = slice_after(fields->id, sizeof(CLIENT_CALL_ID) - 1);
    return json->error == NULL;
}

/* Handles one object from the server. Returns false when out of memory. */
typedef bool incoming_handler(struct rollcall *client, const struct fields *fields,
                              struct rollcall_event *event);

/* Appends a terminated copy of the text and returns it. */
static const char *incoming_terminate(struct buffer *texts, struct slice text)
{
    size_t at = texts->len;
    buffer_append_slice(texts, text);
    buffer_append_byte(texts, '\0');
    return texts->failed ? "" : texts->data + at;
}

/* The event points into `texts` and `json`. Returns false when out of memory. */
static bool incoming_make_event(struct rollcall_event *event, struct buffer *texts,
                                const struct fields *fields, const char *json, size_t len)
{
    size_t bytes = fields->type.len + fields->chat_id.len + fields->message_id.len +
                   fields->client_message_id.len + fields->sender_id.len + fields->user_id.len +
                   fields->call_id.len + fields->id.len + fields->status.len + fields->body.len +
                   fields->code.len + fields->text.len + 16;
    /* Reserve all at once, because the buffer must not move while the event points into it. */
    if (!buffer_reserve(texts, bytes))
        return false;
    *event = (struct rollcall_event){
        .type = ROLLCALL_EVENT_OTHER,
        .name = incoming_terminate(texts, fields->type),
        .chat_id = incoming_terminate(texts, fields->chat_id),
        .message_id = incoming_terminate(texts, fields->message_id),
        .client_message_id = incoming_terminate(texts, fields->client_message_id),
        .user_id =
            incoming_terminate(texts, fields->sender_id.data ? fields->sender_id : fields->user_id),
        .call_id = incoming_terminate(texts, fields->call_id),
        .id = incoming_terminate(texts, fields->id),
        .status = incoming_terminate(texts, fields->status),
        .body = incoming_terminate(texts, fields->body),
        .body_len = fields->body.len,
        .code = incoming_terminate(texts, fields->code),
        .text = incoming_terminate(texts, fields->text),
        .sequence = fields->sequence,
        .version = fields->version,
        .duplicate = fields->duplicate,
        .json = json,
        .json_len = len,
    };
    return true;
}

/* Parsing unescapes in place, so the JSON for the application is copied first. Unknown content is skipped: a newer
 * server may send more. Returns false when out of memory. */
static bool incoming_handle_object(struct rollcall *client, char *data, size_t len,
                                   incoming_handler *handle)
{
    struct json json;
    struct fields fields;
    struct rollcall_event event;
    struct buffer texts = BUFFER_INIT;
    char *kept = malloc(len + 1);
    if (!kept)
        return false;
    memcpy(kept, data, len);
    kept[len] = '\0';
    json_init(&json, data, len);
    bool handled = true;
    if (fields_read(&json, &fields))
        handled = incoming_make_event(&event, &texts, &fields, kept, len) &&
                  handle(client, &fields, &event);
    buffer_free(&texts);
    free(kept);
    return handled;
}

/* Returns false when out of memory; the rest is then not processed. */
static bool incoming_handle_items(struct rollcall *client, struct slice raw,
                                  incoming_handler *handle)
{
    struct json json;
    struct slice item;
    if (!raw.data)
        return true;
    json_init(&json, (char *)raw.data, raw.len);
    json_array(&json);
    while (json_element(&json) && json_raw(&json, &item))
        if (!incoming_handle_object(client, (char *)item.data, item.len, handle))
            return false;
    return true;
}

/* ---- by type ---- */

static bool on_connection_established(struct rollcall *client, const struct fields *fields,
                                      struct rollcall_event *event)
{
    return client_established(client, event->user_id, fields->heartbeat_s, fields->expiry_s,
                              fields->server_time);
}

static bool on_message(struct rollcall *client, const struct fields *fields,
                       struct rollcall_event *event)
{
    (void)fields;
    event->type = ROLLCALL_EVENT_MESSAGE;
    chats_message(client, event);
    return true;
}

/* A repeated acknowledgement is ignored. */
static bool on_message_ack(struct rollcall *client, const struct fields *fields,
                           struct rollcall_event *event)
{
    struct outgoing *sent = outbox_detach(client, event->client_message_id);
    if (!sent)
        return true;
    event->type = ROLLCALL_EVENT_SENT;
    client_emit(client, event);
    chats_own(client, event, fields->duplicate ? NULL : sent->body);
    outgoing_free(&sent);
    return true;
}

static bool on_sync_response(struct rollcall *client, const struct fields *fields,
                             struct rollcall_event *event)
{
    (void)event;
    if (!incoming_handle_items(client, fields->messages, on_message))
        return false;
    chats_page(client, fields->chat_id, fields->has_more);
    return true;
}

static bool on_presence(struct rollcall *client, const struct fields *fields,
                        struct rollcall_event *event)
{
    (void)fields;
    event->type = ROLLCALL_EVENT_PRESENCE;
    client_emit(client, event);
    return true;
}

static bool on_presence_snapshot(struct rollcall *client, const struct fields *fields,
                                 struct rollcall_event *event)
{
    (void)event;
    commands_answered(client, fields->id, true, 0);
    return incoming_handle_items(client, fields->presences, on_presence);
}

static bool on_chat_snapshot(struct rollcall *client, const struct fields *fields,
                             struct rollcall_event *event)
{
    chats_opened(client, fields->chat_id);
    if (!incoming_handle_items(client, fields->presences, on_presence))
        return false;
    client_emit(client, event);
    return true;
}

static bool on_chat_closed(struct rollcall *client, const struct fields *fields,
                           struct rollcall_event *event)
{
    chats_closed(client, fields->chat_id);
    client_emit(client, event);
    return true;
}

static bool on_connection_closing(struct rollcall *client, const struct fields *fields,
                                  struct rollcall_event *event)
{
    client_note_closing(client, fields->reconnect_allowed, fields->reconnect_after_ms);
    client_emit(client, event);
    return true;
}

static bool on_sync_required(struct rollcall *client, const struct fields *fields,
                             struct rollcall_event *event)
{
    (void)fields;
    chats_sync_followed(client);
    client_emit(client, event);
    return true;
}

static void on_message_refused(struct rollcall *client, struct rollcall_event *event)
{
    struct outgoing *refused = outbox_detach(client, event->client_message_id);
    if (!refused)
        return;
    event->type = ROLLCALL_EVENT_REFUSED;
    event->chat_id = refused->chat_id;
    client_emit(client, event);
    outgoing_free(&refused);
}

/* The library repeats its own commands after a temporary error, so the application gets no event. */
static bool on_error(struct rollcall *client, const struct fields *fields,
                     struct rollcall_event *event)
{
    bool limited = slice_is(fields->code, "RATE_LIMITED");
    bool temporary = limited || slice_is(fields->code, "SERVER_BUSY") ||
                     slice_is(fields->code, "SERVICE_UNAVAILABLE");
    int64_t after_ms = client_milliseconds(fields->retry_after_s);
    event->type = ROLLCALL_EVENT_ERROR;
    event->wait_ms = after_ms;
    if (token_answered(client, fields->id, false, after_ms)) {
        if (!temporary || !client->options.fresh_token)
            client_emit(client, event);
        return true;
    }
    if (fields->client_message_id.data) {
        if (temporary)
            outbox_refused(client, event->client_message_id, limited, after_ms);
        else
            on_message_refused(client, event);
        return true;
    }
    char chat_id[ROLLCALL_ID_BYTES_MAX + 1];
    bool of_chat = chats_refused(client, fields->id, !temporary, after_ms, chat_id);
    if (of_chat)
        event->chat_id = chat_id;
    bool ours = of_chat || commands_answered(client, fields->id, !temporary, after_ms);
    if (!ours || !temporary)
        client_emit(client, event);
    return true;
}

static bool on_ok(struct rollcall *client, const struct fields *fields,
                  struct rollcall_event *event)
{
    if (!token_answered(client, fields->id, true, 0))
        client_emit(client, event);
    return true;
}

static bool on_heartbeat_ack(struct rollcall *client, const struct fields *fields,
                             struct rollcall_event *event)
{
    (void)client, (void)fields, (void)event;
    return true;
}

static const struct {
    const char *type;
    incoming_handler *handle;
} TYPES[] = {
    {"heartbeat_ack", on_heartbeat_ack},
    {"ok", on_ok},
    {"message", on_message},
    {"message_ack", on_message_ack},
    {"sync_response", on_sync_response},
    {"sync_required", on_sync_required},
    {"presence_changed", on_presence},
    {"presence_snapshot", on_presence_snapshot},
    {"chat_snapshot", on_chat_snapshot},
    {"chat_closed", on_chat_closed},
    {"error", on_error},
    {"connection_established", on_connection_established},
    {"connection_closing", on_connection_closing},
};

static bool incoming_dispatch(struct rollcall *client, const struct fields *fields,
                              struct rollcall_event *event)
{
    if (fields->type.len == 0)
        return true;
    for (size_t i = 0; i < sizeof(TYPES) / sizeof(TYPES[0]); i++)
        if (slice_is(fields->type, TYPES[i].type))
            return TYPES[i].handle(client, fields, event);
    client_emit(client, event);
    return true;
}

bool incoming_message(struct rollcall *client, char *data, size_t len)
{
    return incoming_handle_object(client, data, len, incoming_dispatch);
}
