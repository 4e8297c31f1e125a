#include "chats/chat_event.h"

#include "presence/presence_event.h"
#include "text/json.h"

#include <stdlib.h>
#include <string.h>

static const char *const KIND_NAMES[] = {
    [CHAT_EVENT_PRESENCE] = "presence_changed",
    [CHAT_EVENT_REMOVED] = "member_removed",
    [CHAT_EVENT_CHANGED] = "chat_changed",
    [CHAT_EVENT_RECEIPT] = "receipt",
};

static bool chat_event_parse_text(struct chat_event *event, size_t len)
{
    struct json json;
    struct slice key, type = SLICE_NONE;
    json_init(&json, event->text, len);
    json_object(&json);
    while (json_member(&json, &key)) {
        bool read;
        if (slice_is(key, "except"))
            read = presence_event_read_ids(&json, &event->except);
        else if (slice_is(key, "sequence"))
            read = json_int(&json, &event->sequence);
        else
            read = presence_event_read_field(&json, key, &type, &event->change);
        if (!read)
            return false;
    }
    for (int kind = CHAT_EVENT_PRESENCE; kind <= CHAT_EVENT_RECEIPT; kind++)
        if (slice_is(type, KIND_NAMES[kind]))
            event->kind = (enum chat_event_kind)kind;
    return json_done(&json) && event->kind != CHAT_EVENT_INVALID &&
           event->change.presence.user_id.data;
}

bool chat_event_parse(struct slice payload, struct chat_event *out)
{
    *out = (struct chat_event){.change.presence.last_seen_ms = TIME_NONE};
    if (payload.len == 0 || payload.len > CHAT_EVENT_BYTES_MAX)
        return false;
    out->text = malloc(payload.len);
    if (!out->text)
        return false;
    memcpy(out->text, payload.data, payload.len);
    if (chat_event_parse_text(out, payload.len))
        return true;
    chat_event_free(out);
    return false;
}

void chat_event_free(struct chat_event *event)
{
    free((void *)event->except.ids);
    free(event->text);
    *event = (struct chat_event){0};
}

static void begin_chat_event(struct buffer *out, enum chat_event_kind kind, struct slice user_id)
{
    json_write_object(out);
    json_write_key_string(out, SLICE("type"), slice_of(KIND_NAMES[kind]));
    json_write_key_string(out, SLICE("user_id"), user_id);
}

void chat_event_write_removed(struct buffer *out, struct slice user_id)
{
    begin_chat_event(out, CHAT_EVENT_REMOVED, user_id);
    json_write_object_end(out);
}

void chat_event_write_changed(struct buffer *out, struct slice user_id)
{
    begin_chat_event(out, CHAT_EVENT_CHANGED, user_id);
    json_write_object_end(out);
}

void chat_event_write_receipt(struct buffer *out, struct slice user_id, int64_t sequence,
                              const struct id_list *except)
{
    begin_chat_event(out, CHAT_EVENT_RECEIPT, user_id);
    json_write_key_int(out, SLICE("sequence"), sequence);
    json_write_key(out, SLICE("except"));
    json_write_array(out);
    for (size_t i = 0; i < except->count; i++)
        json_write_string(out, except->ids[i]);
    json_write_array_end(out);
    json_write_object_end(out);
}
