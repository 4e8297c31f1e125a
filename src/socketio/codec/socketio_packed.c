#include "socketio/codec/socketio_packed.h"

#include "socketio/codec/msgpack_json.h"
#include "socketio/codec/socketio_dialect.h"

/* ---- incoming ---- */

/* The values in a packet's map, each as its first item; INVALID when it is absent. */
struct packed_fields {
    struct msgpack_item type;
    struct msgpack_item name_space;
    struct msgpack_item id;
    struct msgpack_item data;
    struct slice data_bytes;
};

static void note_packed_field(struct packed_fields *fields, struct slice key, struct slice bytes)
{
    struct slice rest = bytes;
    struct msgpack_item value;
    msgpack_read(&rest, &value);
    if (value.type == MSGPACK_UNDEFINED)
        value.type = MSGPACK_INVALID;
    if (slice_is(key, "type"))
        fields->type = value;
    else if (slice_is(key, "nsp"))
        fields->name_space = value;
    else if (slice_is(key, "id"))
        fields->id = value;
    if (!slice_is(key, "data"))
        return;
    fields->data = value;
    fields->data_bytes = bytes;
}

/* The second of two values with the same key counts. */
static bool find_packed_fields(struct slice packed, struct packed_fields *fields)
{
    struct msgpack_item map, key;
    *fields = (struct packed_fields){0};
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
            note_packed_field(fields, key.bytes, bytes);
    }
    return packed.len == 0;
}

static bool check_packed_fields(const struct packed_fields *fields, const char **problem)
{
    *problem = "unknown packet type";
    if (fields->type.type != MSGPACK_NATURAL || fields->type.natural > SOCKETIO_CONNECT_ERROR)
        return false;
    *problem = "a namespace begins with a slash and has no comma";
    struct slice name = fields->name_space.bytes;
    if (fields->name_space.type != MSGPACK_STRING || name.len == 0 || name.data[0] != '/' ||
        memchr(name.data, ',', name.len))
        return false;
    *problem = "the acknowledgement id is no natural number";
    if (fields->id.type != MSGPACK_INVALID && fields->id.type != MSGPACK_NATURAL)
        return false;
    *problem = "the packet's data is not what its type has";
    bool needs_data =
        fields->type.natural != SOCKETIO_CONNECT && fields->type.natural != SOCKETIO_DISCONNECT;
    return fields->data.type == MSGPACK_MAP || fields->data.type == MSGPACK_ARRAY ||
           (fields->data.type == MSGPACK_INVALID && !needs_data);
}

bool socketio_unpack(struct slice packed, struct buffer *text, struct socketio_packet *out,
                     const char **problem)
{
    struct packed_fields fields;
    bool lost = false;
    *problem = "not a packet in MessagePack";
    if (!find_packed_fields(packed, &fields) || !check_packed_fields(&fields, problem))
        return false;
    *problem = "out of memory";
    buffer_append_byte(text, (char)('0' + fields.type.natural));
    if (fields.name_space.bytes.len > 1) {
        buffer_append_slice(text, fields.name_space.bytes);
        buffer_append_byte(text, ',');
    }
    if (fields.id.type == MSGPACK_NATURAL)
        buffer_append_uint(text, fields.id.natural);
    if (fields.data.type != MSGPACK_INVALID && !msgpack_to_json(&fields.data_bytes, text, &lost))
        return false;
    if (text->failed || !socketio_parse(text->data, text->len, out, problem))
        return false;
    out->unreadable = out->unreadable || (lost && out->type == SOCKETIO_EVENT);
    return true;
}

/* ---- outgoing ---- */

/* Packs each argument by itself: inside their array they might be one level deeper than JSON is read. */
static void pack_event_arguments(struct slice array, struct buffer *out)
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
        at = json.at + 1; /* skips the comma */
    }
    msgpack_write_close(out, opened_at, count);
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
        int64_t id = 0;
        for (size_t i = 0; i < packet.ack_id.len; i++)
            id = id * 10 + (packet.ack_id.data[i] - '0');
        msgpack_write_string(out, SLICE("id"));
        msgpack_write_int(out, id);
    }
    if (data.len) {
        struct json json;
        json_init(&json, (char *)data.data, data.len);
        msgpack_write_string(out, SLICE("data"));
        if (data.data[0] == '[')
            pack_event_arguments(data, out);
        else if (!msgpack_from_json(&json, out))
            msgpack_write_nil(out);
    }
    msgpack_write_close(out, opened_at, 2U + (packet.ack_id.data != NULL) + (data.len > 0));
}

const struct dialect DIALECT_TABLE_SOCKETIO_PACKED = {
    .slot = DIALECT_SLOT_SOCKETIO_PACKED,
    .text = &DIALECT_TABLE_SOCKETIO,
    .pack = socketio_pack,
    .keeps_events = true,
    .confirms_acks = true,
    .answers_asked_only = true,
};
