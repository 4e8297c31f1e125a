#include "chats/chat_event.h"

#include "presence/presence_event.h"
#include "protocol/fields.h"
#include "text/json.h"
#include "text/time_text.h"

#include <stdlib.h>
#include <string.h>

#define TOPIC_PREFIX SLICE("chat:")

static const struct slice SUFFIXES[] = {
    [CHAT_TOPIC_PRESENCE] = {":presence", 9},
    [CHAT_TOPIC_TYPING] = {":typing", 7},
};

static const char *const KIND_NAMES[] = {
    [CHAT_EVENT_PRESENCE] = "presence_changed",
    [CHAT_EVENT_REMOVED] = "member_removed",
    [CHAT_EVENT_TYPING] = "typing_changed",
};

/* ---- topics ---- */

struct slice chat_topic_name(char *out, struct slice chat_id, enum chat_topic topic)
{
    struct slice suffix = SUFFIXES[topic];
    char *at = mempcpy(out, TOPIC_PREFIX.data, TOPIC_PREFIX.len);
    at = mempcpy(at, chat_id.data, chat_id.len);
    at = mempcpy(at, suffix.data, suffix.len);
    return (struct slice){out, (size_t)(at - out)};
}

static bool ends_with(struct slice text, struct slice suffix)
{
    return text.len >= suffix.len && slice_equal(slice_after(text, text.len - suffix.len), suffix);
}

enum chat_topic chat_topic_parse(struct slice name, struct slice *chat_id)
{
    if (!slice_starts_with(name, TOPIC_PREFIX))
        return CHAT_TOPIC_NONE;
    struct slice rest = slice_after(name, TOPIC_PREFIX.len);
    for (int topic = CHAT_TOPIC_PRESENCE; topic <= CHAT_TOPIC_TYPING; topic++)
        if (ends_with(rest, SUFFIXES[topic])) {
            *chat_id = slice_first(rest, rest.len - SUFFIXES[topic].len);
            bool is_chat = chat_id->len > 0 && chat_id->len <= CHAT_ID_BYTES_MAX;
            return is_chat ? (enum chat_topic)topic : CHAT_TOPIC_NONE;
        }
    return CHAT_TOPIC_NONE;
}

/* ---- reading ---- */

/* The ids are unescaped where they stand; only their slices need memory. */
static bool read_users(struct json *json, struct chat_event *event)
{
    struct slice *users = NULL;
    size_t count = 0, cap = 0;
    bool read = json_array(json);
    while (read && json_element(json)) {
        if (count == cap) {
            cap = cap ? cap * 2 : 16;
            struct slice *grown = realloc(users, cap * sizeof(*users));
            read = grown != NULL;
            users = grown ? grown : users;
        }
        read = read && json_string(json, &users[count]);
        count += read;
    }
    free((void *)event->except);
    event->except = users;
    event->except_count = count;
    return read && !json->error;
}

static bool read_member(struct json *json, struct slice key, struct slice *type,
                        struct chat_event *event)
{
    if (slice_is(key, "except"))
        return read_users(json, event);
    if (slice_is(key, "typing"))
        return json_bool(json, &event->typing);
    return presence_event_read_member(json, key, type, &event->change);
}

static enum chat_event_kind kind_of(struct slice type)
{
    for (int kind = CHAT_EVENT_PRESENCE; kind <= CHAT_EVENT_TYPING; kind++)
        if (slice_is(type, KIND_NAMES[kind]))
            return (enum chat_event_kind)kind;
    return CHAT_EVENT_INVALID;
}

static bool parse_text(struct chat_event *event, size_t len)
{
    struct json json;
    struct slice key, type = SLICE_NONE;
    json_init(&json, event->text, len);
    json_object(&json);
    while (json_member(&json, &key))
        if (!read_member(&json, key, &type, event))
            return false;
    event->kind = kind_of(type);
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
    if (parse_text(out, payload.len))
        return true;
    chat_event_free(out);
    return false;
}

void chat_event_free(struct chat_event *event)
{
    free((void *)event->except);
    free(event->text);
    *event = (struct chat_event){0};
}

/* ---- writing ---- */

void chat_event_write_typing(struct buffer *out, struct slice chat_id, struct slice user_id,
                             bool typing, int64_t timestamp_ms)
{
    char time[TIME_TEXT_LEN];
    struct message message = {.type = MESSAGE_TYPING_CHANGED, .typing = {chat_id, user_id, typing}};
    time_text_write(time, timestamp_ms);
    json_write_object(out);
    json_write_key_string(out, SLICE("type"), slice_of(KIND_NAMES[CHAT_EVENT_TYPING]));
    fields_encode(out, &message);
    json_write_key_string(out, SLICE("timestamp"), (struct slice){time, sizeof(time)});
    json_write_object_end(out);
}

void chat_event_write_removed(struct buffer *out, struct slice user_id)
{
    json_write_object(out);
    json_write_key_string(out, SLICE("type"), slice_of(KIND_NAMES[CHAT_EVENT_REMOVED]));
    json_write_key_string(out, SLICE("user_id"), user_id);
    json_write_object_end(out);
}
