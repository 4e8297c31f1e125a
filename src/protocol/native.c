/* The native dialect: {"type": …, "id": …, fields}. */
#include "protocol/dialect.h"

enum { NATIVE_ID_BYTES_MAX = 256 };

static bool decode_native(struct fields_scratch *scratch, char *data, size_t len,
                          struct message *out, const char **problem)
{
    struct json json;
    struct slice type;
    out->type = MESSAGE_INVALID;
    out->id = SLICE_NONE;
    json_init(&json, data, len);
    if (!fields_scan(scratch, &json, problem))
        return false;
    if (!json_done(&json)) {
        *problem = "expected one JSON object and nothing after it";
        return false;
    }
    struct slice id = fields_find(scratch, "id"); /* any scalar; echoed unchanged */
    if (id.data && (id.len > NATIVE_ID_BYTES_MAX || id.data[0] == '{' || id.data[0] == '[')) {
        *problem = "id must be a string or a number of at most 256 bytes";
        return false;
    }
    out->id = id;
    if (!fields_string(fields_find(scratch, "type"), &type)) {
        *problem = "type must be a string";
        return false;
    }
    out->type = message_type_from_client(type);
    return fields_decode(scratch, out, problem);
}

static void encode_native(const struct message *message, struct buffer *out)
{
    json_write_object(out);
    json_write_key_string(out, SLICE("type"), message_name(message));
    if (message->id.data) {
        json_write_key(out, SLICE("id"));
        json_write_raw(out, message->id);
    }
    fields_encode(out, message);
    json_write_object_end(out);
}

const struct dialect DIALECT_TABLE_NATIVE = {
    .slot = DIALECT_SLOT_NATIVE,
    .decode = decode_native,
    .encode = encode_native,
};
