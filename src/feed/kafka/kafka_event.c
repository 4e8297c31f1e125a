#include "feed/kafka/kafka_event.h"

#include "ledger/ledger_messages.h"
#include "text/json.h"

static const struct slice TYPE = SLICE("message_persisted");

void kafka_event_encode(struct buffer *out, const struct feed_event *event)
{
    char except[ULID_TEXT_LEN];
    json_write_object(out);
    json_write_key_int(out, SLICE("version"), KAFKA_EVENT_VERSION);
    json_write_key_string(out, SLICE("type"), TYPE);
    json_write_key_string(out, SLICE("chat_id"), event->chat);
    json_write_key_string(out, SLICE("message_id"), event->message_id);
    json_write_key_int(out, SLICE("sequence"), (int64_t)event->sequence);
    json_write_key_string(out, SLICE("sender_id"), event->sender);
    json_write_key_string(out, SLICE("body"), event->body);
    json_write_key_int(out, SLICE("sent_at_ms"), event->sent_at_ms);
    if (event->members_version)
        json_write_key_int(out, SLICE("members_version"), (int64_t)event->members_version);
    if (event->has_except) {
        ulid_write(except, &event->except);
        json_write_key_string(out, SLICE("except"), (struct slice){except, sizeof(except)});
    }
    json_write_object_end(out);
}

/* What an event is read into. */
struct event_reading {
    struct json json;
    struct feed_event *event;
    struct slice type;
    int64_t version;
    int64_t sequence;
    int64_t members_version;
    struct slice except;
};

static void read_event_member(struct event_reading *reading, struct slice key)
{
    struct json *json = &reading->json;
    struct feed_event *event = reading->event;
    if (slice_is(key, "version"))
        json_int(json, &reading->version);
    else if (slice_is(key, "type"))
        json_string(json, &reading->type);
    else if (slice_is(key, "chat_id"))
        json_string(json, &event->chat);
    else if (slice_is(key, "message_id"))
        json_string(json, &event->message_id);
    else if (slice_is(key, "sequence"))
        json_int(json, &reading->sequence);
    else if (slice_is(key, "sender_id"))
        json_string(json, &event->sender);
    else if (slice_is(key, "body"))
        json_string(json, &event->body);
    else if (slice_is(key, "sent_at_ms"))
        json_int(json, &event->sent_at_ms);
    else if (slice_is(key, "members_version"))
        json_int(json, &reading->members_version);
    else if (slice_is(key, "except"))
        json_string(json, &reading->except);
    else
        json_skip(json);
}

static bool is_event_id(struct slice id)
{
    return id.len > 0 && id.len <= LEDGER_ID_BYTES_MAX;
}

const char *kafka_event_decode(char *data, size_t len, struct feed_event *event)
{
    struct event_reading reading = {.event = event};
    struct slice key;
    *event = (struct feed_event){0};
    json_init(&reading.json, data, len);
    json_object(&reading.json);
    while (json_member(&reading.json, &key))
        read_event_member(&reading, key);
    if (!json_done(&reading.json))
        return "the event is not a JSON object with the members of MessagePersisted";
    if (reading.version != KAFKA_EVENT_VERSION)
        return "the event has a version that is not known here";
    if (!slice_equal(reading.type, TYPE))
        return "the event is not a message_persisted";
    if (!is_event_id(event->chat) || !is_event_id(event->message_id) || !is_event_id(event->sender))
        return "the event lacks a chat_id, message_id or sender_id, or one is too long";
    if (event->body.len == 0 || event->body.len > LEDGER_BODY_BYTES_MAX)
        return "the event has no body, or a too long one";
    if (reading.sequence <= 0 || reading.members_version < 0 || event->sent_at_ms < 0)
        return "the event has an impossible number";
    event->has_except = reading.except.len > 0;
    if (event->has_except && !ulid_parse(reading.except, &event->except))
        return "the event names a connection that cannot exist";
    event->sequence = (uint64_t)reading.sequence;
    event->members_version = (uint64_t)reading.members_version;
    return NULL;
}
