#include "presence/presence_event.h"

#include "protocol/fields.h"
#include "text/json.h"
#include "text/time_text.h"

#include <stdlib.h>

#define TOPIC_PREFIX SLICE("presence:")

static const struct slice CHANGED = {"presence_changed", 16};
static const struct slice PRIVACY = {"privacy_changed", 15};

void presence_event_write_change(struct buffer *out, const struct presence_change *change)
{
    struct message message = {.type = MESSAGE_PRESENCE_CHANGED, .change = *change};
    json_write_key_string(out, SLICE("type"), CHANGED);
    fields_encode(out, &message);
    if (change->announcement != PRESENCE_ANNOUNCE_NOTHING)
        json_write_key_string(out, SLICE("news"),
                              slice_of(presence_announcement_name(change->announcement)));
}

void presence_event_write(struct buffer *out, const struct presence_event *event)
{
    json_write_object(out);
    if (event->kind == PRESENCE_EVENT_CHANGED) {
        presence_event_write_change(out, &event->change);
    } else {
        json_write_key_string(out, SLICE("type"), PRIVACY);
        json_write_key_string(out, SLICE("user_id"), event->change.presence.user_id);
    }
    json_write_object_end(out);
}

static bool presence_event_read_time(struct json *json, int64_t *out)
{
    struct slice text;
    *out = TIME_NONE;
    if (json_peek(json) == JSON_NULL)
        return json_null(json);
    return json_string(json, &text) && time_text_parse(text, out);
}

bool presence_event_read_field(struct json *json, struct slice key, struct slice *type,
                               struct presence_change *change)
{
    struct presence *presence = &change->presence;
    struct slice name;
    if (slice_is(key, "type"))
        return json_string(json, type);
    if (slice_is(key, "user_id")) /* a longer id fits neither topics nor tables */
        return json_string(json, &presence->user_id) && presence->user_id.len > 0 &&
               presence->user_id.len <= USER_ID_BYTES_MAX;
    if (slice_is(key, "status"))
        return json_string(json, &name) && presence_status_parse(name, &presence->status);
    if (slice_is(key, "in_call"))
        return json_bool(json, &presence->in_call);
    if (slice_is(key, "last_seen"))
        return presence_event_read_time(json, &presence->last_seen_ms);
    if (slice_is(key, "version"))
        return json_int(json, &presence->version);
    if (slice_is(key, "reason"))
        return json_string(json, &name) && presence_reason_parse(name, &presence->reason);
    if (slice_is(key, "timestamp"))
        return presence_event_read_time(json, &change->timestamp_ms);
    if (!slice_is(key, "news"))
        return json_skip(json);
    if (!json_string(json, &name))
        return false;
    change->announcement = presence_announcement_parse(name);
    return true;
}

/* The text holds the bytes of the ids, so only the slices need memory. */
bool presence_event_read_ids(struct json *json, struct id_list *out)
{
    struct slice *ids = NULL;
    size_t count = 0, cap = 0;
    bool read = json_array(json);
    while (read && json_element(json)) {
        if (count == cap) {
            cap = cap ? cap * 2 : 16;
            struct slice *grown = realloc(ids, cap * sizeof(*ids));
            read = grown != NULL;
            ids = grown ? grown : ids;
        }
        read = read && json_string(json, &ids[count]);
        count += read;
    }
    free((void *)out->ids);
    *out = (struct id_list){ids, count};
    return read && !json->error;
}

bool presence_event_parse(char *text, size_t len, struct presence_event *out)
{
    struct json json;
    struct slice key;
    struct slice type = SLICE_NONE;
    *out = (struct presence_event){.change.presence.last_seen_ms = TIME_NONE};
    json_init(&json, text, len);
    json_object(&json);
    while (json_member(&json, &key))
        if (!presence_event_read_field(&json, key, &type, &out->change))
            return false;
    if (!json_done(&json) || !out->change.presence.user_id.data)
        return false;
    out->kind = slice_equal(type, CHANGED) ? PRESENCE_EVENT_CHANGED : PRESENCE_EVENT_PRIVACY;
    if (out->kind == PRESENCE_EVENT_PRIVACY)
        return slice_equal(type, PRIVACY);
    return out->change.presence.status != PRESENCE_UNKNOWN;
}

uint64_t presence_change_hash(const struct hash_key *key, const struct presence_change *change)
{
    uint64_t parts[] = {hash_key_hash(key, change->presence.user_id),
                        (uint64_t)change->presence.version, (uint64_t)change->timestamp_ms};
    return hash_key_hash(key, (struct slice){(const char *)parts, sizeof(parts)});
}

struct slice presence_topic(char *out, struct slice user_id)
{
    memcpy(out, TOPIC_PREFIX.data, TOPIC_PREFIX.len);
    memcpy(out + TOPIC_PREFIX.len, user_id.data, user_id.len);
    return (struct slice){out, TOPIC_PREFIX.len + user_id.len};
}

struct slice presence_topic_user(struct slice topic)
{
    return slice_starts_with(topic, TOPIC_PREFIX) ? slice_after(topic, TOPIC_PREFIX.len)
                                                  : SLICE_NONE;
}
