#include "typing/typing_event.h"

#include "presence/presence_event.h"
#include "protocol/fields.h"
#include "text/json.h"
#include "text/time_text.h"

static const struct slice TYPING_CHANGED = {"typing_changed", 14};

void typing_event_write(struct buffer *out, struct slice chat_id, struct slice user_id, bool typing,
                        int64_t timestamp_ms)
{
    char time[TIME_TEXT_LEN];
    struct message message = {.type = MESSAGE_TYPING_CHANGED, .typing = {chat_id, user_id, typing}};
    time_text_write(time, timestamp_ms);
    json_write_object(out);
    json_write_key_string(out, SLICE("type"), TYPING_CHANGED);
    fields_encode(out, &message);
    json_write_key_string(out, SLICE("timestamp"), (struct slice){time, sizeof(time)});
    json_write_object_end(out);
}

bool typing_event_parse(char *text, size_t len, struct typing_event *out)
{
    struct json json;
    struct slice key, type = SLICE_NONE;
    struct presence_change change = {.presence.last_seen_ms = TIME_NONE};
    bool typing = false;
    json_init(&json, text, len);
    json_object(&json);
    while (json_member(&json, &key)) {
        bool read = slice_is(key, "typing") ? json_bool(&json, &typing)
                                            : presence_event_read_field(&json, key, &type, &change);
        if (!read)
            return false;
    }
    *out = (struct typing_event){change.presence.user_id, typing, change.timestamp_ms};
    return json_done(&json) && slice_equal(type, TYPING_CHANGED) && change.presence.user_id.data;
}
