#include "socketio/codec/socketio_packed.h"

#include "socketio/codec/msgpack_json.h"
#include "socketio/codec/socketio_dialect.h"

/* ---- in ---- */

/* What a packet has, each as its first item; INVALID where it is not there. */
struct parts {
    struct msgpack_item type;
    struct msgpack_item name_space;
    struct msgpack_item id;
    struct msgpack_item data;
    struct slice data_bytes;
};

static void note_part(struct parts *parts, struct slice key, struct slice bytes)
{
    struct slice rest = bytes;
    struct msgpack_item value;
    msgpack_read(&rest, &value);
    if (value.type == MSGPACK_UNDEFINED)
        value.type = MSGPACK_INVALID;
    if (slice_is(key, "type"))
        parts->type = value;
    else if (slice_is(key, "nsp"))
        parts->name_space = value;
    else if (slice_is(key, "id"))
        parts->id = value;
    if (!slice_is(key, "data"))
        return;
    parts->data = value;
    parts->data_bytes = bytes;
}

/* A member that stands twice is what it is the second time. */
static bool find_parts(struct slice packed, struct parts *parts)
{
    struct msgpack_item map, key;
    *parts = (struct parts){0};
    if (!msgpack_read(&packed, &map) || map.type != MSGPACK_MAP)
        return false;
    for (uint32_t i = 0; i < map.count; i++) {
        struct slice key_bytes = packed;
        if (!msgpack_skip(&packed))
            return false;
        struct slice bytes = packed;
        if (!msgpack_skip(&packed))
            return false;
        if (msgpack_read(&key_bytes, &key) && key.type == MSGPACK_STRING)
            note_part(parts, key.bytes, bytes);
    }
    return packed.len == 0;
}

static bool is_sayable(struct slice name_space)
{
    return name_space.len > 0 && name_space.data[0] == '/' &&
           !memchr(name_space.data, ',', name_space.len);
}

static bool has_data_of_its_type(const struct parts *parts)
{
    bool may_lack =
        parts->type.natural == SOCKETIO_CONNECT || parts->type.natural == SOCKETIO_DISCONNECT;
    return parts->data.type == MSGPACK_MAP || parts->data.type == MSGPACK_ARRAY ||
           (parts->data.type == MSGPACK_INVALID && may_lack);
}

static bool check_parts(const struct parts *parts, const char **problem)
{
    *problem = "unknown packet type";
    if (parts->type.type != MSGPACK_NATURAL || parts->type.natural > SOCKETIO_CONNECT_ERROR)
        return false;
    *problem = "a namespace begins with a slash and has no comma";
    if (parts->name_space.type != MSGPACK_STRING || !is_sayable(parts->name_space.bytes))
        return false;
    *problem = "the acknowledgement id is no natural number";
    if (parts->id.type != MSGPACK_INVALID && parts->id.type != MSGPACK_NATURAL)
        return false;
    *problem = "the packet's data is not what its type has";
    return has_data_of_its_type(parts);
}

static bool write_text(const struct parts *parts, struct buffer *text, bool *lost)
{
    struct slice data = parts->data_bytes;
    buffer_append_byte(text, (char)('0' + parts->type.natural));
    if (parts->name_space.bytes.len > 1) {
        buffer_append_slice(text, parts->name_space.bytes);
        buffer_append_byte(text, ',');
    }
    if (parts->id.type == MSGPACK_NATURAL)
        buffer_append_uint(text, parts->id.natural);
    return (parts->data.type == MSGPACK_INVALID || msgpack_to_json(&data, text, lost)) &&
           !text->failed;
}

bool socketio_unpack(struct slice packed, struct buffer *text, struct socketio_packet *out,
                     const char **problem)
{
    struct parts parts;
    bool lost = false;
    *problem = "not a packet in MessagePack";
    if (!find_parts(packed, &parts) || !check_parts(&parts, problem))
        return false;
    *problem = "out of memory";
    if (!write_text(&parts, text, &lost) || !socketio_parse(text->data, text->len, out, problem))
        return false;
    out->unreadable = out->unreadable || (lost && out->type == SOCKETIO_EVENT);
    return true;
}

/* ---- out ---- */

/* Each argument by itself: with the array around them, they might be one deeper than JSON is read. */
static void pack_arguments(struct slice array, struct buffer *out)
{
    size_t opened_at = msgpack_write_open(out, MSGPACK_ARRAY);
    char *at = (char *)array.data + 1;
    char *end = (char *)array.data + array.len - 1;
    uint32_t count = 0;
    for (; at < end; count++) {
        struct json json;
        json_init(&json, at, (size_t)(end - at));
        if (!msgpack_from_json(&json, out))
            break;
        at = json.at + 1; /* beyond the comma */
    }
    msgpack_write_close(out, opened_at, count);
}

static void pack_data(struct slice data, struct buffer *out)
{
    struct json json;
    msgpack_write_string(out, SLICE("data"));
    if (data.data[0] == '[') {
        pack_arguments(data, out);
        return;
    }
    json_init(&json, (char *)data.data, data.len);
    if (!msgpack_from_json(&json, out))
        msgpack_write_nil(out);
}

static int64_t number_of(struct slice digits)
{
    int64_t number = 0;
    for (size_t i = 0; i < digits.len; i++)
        number = number * 10 + (digits.data[i] - '0');
    return number;
}

void socketio_pack(char *text, size_t len, struct buffer *out)
{
    struct socketio_packet packet;
    struct slice data;
    const char *problem;
    if (len < 2 || !socketio_parse_head(text + 1, len - 1, &packet, &data, &problem))
        return;
    size_t opened_at = msgpack_write_open(out, MSGPACK_MAP);
    msgpack_write_string(out, SLICE("type"));
    msgpack_write_int(out, packet.type);
    msgpack_write_string(out, SLICE("nsp"));
    msgpack_write_string(out, packet.name_space);
    if (packet.ack_id.data) {
        msgpack_write_string(out, SLICE("id"));
        msgpack_write_int(out, number_of(packet.ack_id));
    }
    if (data.len)
        pack_data(data, out);
    msgpack_write_close(out, opened_at, 2U + (packet.ack_id.data != NULL) + (data.len > 0));
}

const struct dialect DIALECT_TABLE_SOCKETIO_PACKED = {
    .slot = DIALECT_SLOT_SOCKETIO_PACKED,
    .text = &DIALECT_TABLE_SOCKETIO,
    .pack = socketio_pack,
    .keeps_events = true,
    .confirms_acks = true,
};
