#include "socketio/codec/adapter_packet.h"

#include "socketio/codec/msgpack_json.h"
#include "socketio/codec/socketio.h"
#include "text/json.h"

enum { REQUEST_DISCONNECT = 4 };

static void add_adapter_room(struct adapter_rooms *rooms, struct slice name)
{
    rooms->are_named = true;
    if (name.len > 0 && name.len <= ADAPTER_ROOM_BYTES_MAX)
        rooms->names[rooms->count++] = name;
}

/* ---- broadcasts ---- */

/* Returns false when it is no list, or too long. */
static bool read_packed_rooms(struct slice *rest, struct adapter_rooms *out)
{
    struct msgpack_item item;
    if (!msgpack_read(rest, &item) || item.type != MSGPACK_ARRAY || item.count > ADAPTER_ROOMS_MAX)
        return false;
    for (uint32_t left = item.count; left > 0; left--) {
        struct slice ahead = *rest;
        struct msgpack_item name;
        if (!msgpack_read(&ahead, &name) || !msgpack_skip(rest))
            return false;
        add_adapter_room(out, name.type == MSGPACK_STRING ? name.bytes : SLICE_NONE);
    }
    return true;
}

/* Whether a map of flags says that only the publishing server's own sockets are meant. */
static bool read_packed_flags(struct slice *rest, bool *is_local)
{
    struct msgpack_item map, key, value;
    struct slice inside = *rest;
    if (!msgpack_skip(rest))
        return false;
    if (!msgpack_read(&inside, &map) || map.type != MSGPACK_MAP)
        return true;
    for (uint32_t left = map.count; left > 0; left--) {
        struct slice ahead = inside;
        if (!msgpack_read(&ahead, &key) || !msgpack_skip(&inside))
            return false;
        ahead = inside;
        if (!msgpack_read(&ahead, &value) || !msgpack_skip(&inside))
            return false;
        if (key.type == MSGPACK_STRING && slice_is(key.bytes, "local"))
            *is_local = value.type == MSGPACK_BOOLEAN && value.boolean;
    }
    return true;
}

static bool read_packed_options(struct slice *rest, struct adapter_packet *out, bool *is_local)
{
    struct msgpack_item map, key;
    if (!msgpack_read(rest, &map) || map.type != MSGPACK_MAP)
        return false;
    for (uint32_t left = map.count; left > 0; left--) {
        bool is_read;
        if (!msgpack_read(rest, &key) || key.type != MSGPACK_STRING)
            return false;
        if (slice_is(key.bytes, "rooms"))
            is_read = !out->rooms.are_named && read_packed_rooms(rest, &out->rooms);
        else if (slice_is(key.bytes, "except"))
            is_read = !out->except.are_named && read_packed_rooms(rest, &out->except);
        else if (slice_is(key.bytes, "flags"))
            is_read = read_packed_flags(rest, is_local);
        else
            is_read = msgpack_skip(rest);
        if (!is_read)
            return false;
    }
    return true;
}

/* The packet of a broadcast; values that are absent stay as they were. */
struct packed_event {
    struct slice data; /* a whole value; SLICE_NONE: none */
    uint64_t type;
    bool is_main; /* its namespace is "/" */
};

static bool read_packed_event(struct slice *rest, struct packed_event *out)
{
    struct msgpack_item map, key, value;
    if (!msgpack_read(rest, &map) || map.type != MSGPACK_MAP)
        return false;
    for (uint32_t left = map.count; left > 0; left--) {
        if (!msgpack_read(rest, &key) || key.type != MSGPACK_STRING)
            return false;
        struct slice start = *rest, ahead = *rest;
        if (!msgpack_read(&ahead, &value) || !msgpack_skip(rest))
            return false;
        if (slice_is(key.bytes, "data"))
            out->data = (struct slice){start.data, start.len - rest->len};
        else if (slice_is(key.bytes, "type"))
            out->type = value.type == MSGPACK_NATURAL ? value.natural : UINT64_MAX;
        else if (slice_is(key.bytes, "nsp"))
            out->is_main = value.type == MSGPACK_STRING && slice_is(value.bytes, "/");
    }
    return true;
}

/* Writes a delivery's fields. */
static bool write_adapter_fields(char *text, size_t len, struct buffer *json, const char **problem)
{
    struct socketio_packet event;
    *problem = "the event's name is reserved, or not text";
    if (!socketio_parse(text, len, &event, problem) || event.unreadable || !event.event.data)
        return false;
    bool has_one = event.arguments.data && event.argument.len == event.arguments.len;
    json_write_object(json);
    json_write_key_string(json, SLICE("event"), event.event);
    json_write_key(json, SLICE("data"));
    json_write_raw(json, event.argument.data ? event.argument : SLICE("null"));
    if (!has_one) {
        json_write_key(json, SLICE("args"));
        json_write_array(json);
        if (event.arguments.data)
            json_write_raw(json, event.arguments);
        json_write_array_end(json);
    }
    json_write_object_end(json);
    *problem = "the event is nested too deeply";
    return !json->failed && json_can_be_wrapped(buffer_slice(json));
}

/* The event as its packet's text, which the parser of packets checks. */
static bool convert_adapter_event(struct slice data, struct buffer *json, const char **problem)
{
    struct buffer text = BUFFER_INIT;
    bool is_lost = false;
    *problem = "the event is not a list";
    buffer_append_byte(&text, '0' + SOCKETIO_EVENT);
    bool is_read = msgpack_to_json_with_buffers(&data, &text, &is_lost) && !text.failed &&
                   write_adapter_fields(text.data, text.len, json, problem);
    buffer_free(&text);
    return is_read;
}

bool adapter_packet_read(struct slice message, struct buffer *json, struct adapter_packet *out,
                         const char **problem)
{
    struct packed_event event = {.data = SLICE_NONE, .type = UINT64_MAX, .is_main = true};
    struct msgpack_item list;
    bool is_local = false;
    *out = (struct adapter_packet){.act = ADAPTER_IGNORE};
    *problem = "the message is too large";
    if (message.len > ADAPTER_PACKET_BYTES_MAX)
        return false;
    *problem = "the message is not a broadcast of the adapter";
    if (!msgpack_read(&message, &list) || list.type != MSGPACK_ARRAY || list.count < 3 ||
        !msgpack_skip(&message) || !read_packed_event(&message, &event) ||
        !read_packed_options(&message, out, &is_local))
        return false;
    if (is_local || !event.is_main || event.type != SOCKETIO_EVENT)
        return true;
    if (!event.data.data || !convert_adapter_event(event.data, json, problem))
        return false;
    out->act = ADAPTER_EMIT;
    out->fields = buffer_slice(json);
    return true;
}

/* ---- requests ---- */

static bool read_request_rooms(struct json *json, struct adapter_rooms *out)
{
    size_t count = 0;
    json_array(json);
    while (json_element(json)) {
        struct slice name = SLICE_NONE;
        if (count++ == ADAPTER_ROOMS_MAX)
            return false;
        bool is_read = json_peek(json) == JSON_STRING ? json_string(json, &name) : json_skip(json);
        if (!is_read)
            return false;
        add_adapter_room(out, name);
    }
    return !json->error;
}

static bool read_request_options(struct json *json, struct adapter_packet *out)
{
    struct slice key;
    json_object(json);
    while (json_member(json, &key)) {
        bool is_read;
        if (slice_is(key, "rooms"))
            is_read = !out->rooms.are_named && read_request_rooms(json, &out->rooms);
        else if (slice_is(key, "except"))
            is_read = !out->except.are_named && read_request_rooms(json, &out->except);
        else
            is_read = json_skip(json);
        if (!is_read)
            return false;
    }
    return !json->error;
}

/* Requests that are no JSON object are broadcasts with acknowledgements, in MessagePack. */
bool adapter_request_read(struct slice message, struct buffer *json, struct adapter_packet *out,
                          const char **problem)
{
    struct json reader;
    struct slice key;
    int64_t type = -1;
    bool has_options = false, is_read = true;
    *out = (struct adapter_packet){.act = ADAPTER_IGNORE};
    *problem = "the request is too large";
    if (message.len > ADAPTER_PACKET_BYTES_MAX)
        return false;
    if (message.len == 0 || message.data[0] != '{')
        return true;
    *problem = "the request is not what the adapter sends";
    buffer_append_slice(json, message); /* strings are unescaped in place */
    if (json->failed)
        return false;
    json_init(&reader, json->data, json->len);
    json_object(&reader);
    while (is_read && json_member(&reader, &key)) {
        if (slice_is(key, "type") && json_peek(&reader) == JSON_NUMBER)
            is_read = json_int(&reader, &type);
        else if (slice_is(key, "opts") && json_peek(&reader) == JSON_OBJECT)
            is_read = has_options = read_request_options(&reader, out);
        else
            is_read = json_skip(&reader);
    }
    if (!is_read || !json_done(&reader))
        return false;
    if (type == REQUEST_DISCONNECT && has_options)
        out->act = ADAPTER_DISCONNECT;
    return true;
}

/* ---- channels ---- */

void adapter_pattern_write(struct buffer *out, struct slice key, struct slice suffix)
{
    for (size_t i = 0; i < key.len; i++) {
        if (key.data[i] != '\0' && strchr("*?[]^\\", key.data[i]))
            buffer_append_byte(out, '\\');
        buffer_append_byte(out, key.data[i]);
    }
    buffer_append_slice(out, suffix);
    buffer_append_byte(out, '*');
}
