#include "socketio/codec/msgpack_json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { NUMBER_TEXT_MAX = 32, DOUBLE_DIGITS_MIN = 15, DOUBLE_DIGITS_MAX = 17 };

/* Levels of a Buffer as JSON. */
enum { BUFFER_DEPTH = 2 };

/* ---- to JSON ---- */

/* A container being written. */
struct writing {
    struct slice *packed;
    struct buffer *json;
    bool *lost;
    bool with_buffers;
    unsigned depth;
};

static bool write_json_value(const struct writing *in);

static bool write_json_members(const struct writing *in, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct slice ahead = *in->packed;
        struct msgpack_item key, value;
        bool is_text = msgpack_read(&ahead, &key) && key.type == MSGPACK_STRING;
        bool is_undefined =
            is_text && msgpack_read(&ahead, &value) && value.type == MSGPACK_UNDEFINED;
        if (!is_text || is_undefined) {
            *in->lost = *in->lost || !is_text;
            bool skipped_key = msgpack_skip(in->packed);
            if (!skipped_key || !msgpack_skip(in->packed)) /* the value */
                return false;
            continue;
        }
        msgpack_read(in->packed, &key);
        json_write_key(in->json, key.bytes);
        if (!write_json_value(in))
            return false;
    }
    return true;
}

/* The outermost bracket may follow text that is not JSON, so no comma is written before it (text/json.h). */
static bool write_json_container(const struct writing *in, const struct msgpack_item *item)
{
    struct writing inside = *in;
    bool is_map = item->type == MSGPACK_MAP;
    inside.depth++;
    if (in->depth == 0)
        buffer_append_byte(in->json, is_map ? '{' : '[');
    else if (is_map)
        json_write_object(in->json);
    else
        json_write_array(in->json);
    bool whole = true;
    if (is_map)
        whole = write_json_members(&inside, item->count);
    else
        for (uint32_t i = 0; whole && i < item->count; i++)
            whole = write_json_value(&inside);
    buffer_append_byte(in->json, is_map ? '}' : ']');
    return whole;
}

/* Uses the fewest digits that give the same number back. */
static void write_json_real(struct buffer *json, double real)
{
    char text[NUMBER_TEXT_MAX];
    int digits = DOUBLE_DIGITS_MIN;
    if (!isfinite(real)) {
        json_write_null(json);
        return;
    }
    do
        snprintf(text, sizeof(text), "%.*g", digits, real);
    while (digits++ < DOUBLE_DIGITS_MAX && strtod(text, NULL) != real);
    json_write_raw(json, slice_of(text));
}

static void write_json_buffer(struct buffer *json, struct slice bytes)
{
    json_write_object(json);
    json_write_key_string(json, SLICE("type"), SLICE("Buffer"));
    json_write_key(json, SLICE("data"));
    json_write_array(json);
    for (size_t i = 0; i < bytes.len; i++)
        json_write_int(json, (unsigned char)bytes.data[i]);
    json_write_array_end(json);
    json_write_object_end(json);
}

/* For what JSON cannot say. */
static void write_json_loss(const struct writing *in)
{
    *in->lost = true;
    json_write_null(in->json);
}

static void write_json_scalar(const struct writing *in, const struct msgpack_item *item)
{
    char text[NUMBER_TEXT_MAX];
    switch (item->type) {
    case MSGPACK_BOOLEAN:
        json_write_bool(in->json, item->boolean);
        break;
    case MSGPACK_NATURAL:
        snprintf(text, sizeof(text), "%" PRIu64, item->natural);
        json_write_raw(in->json, slice_of(text));
        break;
    case MSGPACK_INTEGER:
        json_write_int(in->json, item->integer);
        break;
    case MSGPACK_REAL:
        write_json_real(in->json, item->real);
        break;
    case MSGPACK_STRING:
        json_write_string(in->json, item->bytes);
        break;
    case MSGPACK_BINARY:
        if (in->with_buffers && in->depth + BUFFER_DEPTH <= JSON_DEPTH_MAX)
            write_json_buffer(in->json, item->bytes);
        else
            write_json_loss(in);
        break;
    case MSGPACK_EXTENSION:
        write_json_loss(in);
        break;
    default:
        json_write_null(in->json);
        break;
    }
}

static bool write_json_value(const struct writing *in)
{
    struct slice start = *in->packed;
    struct msgpack_item item;
    if (!msgpack_read(in->packed, &item))
        return false;
    if (item.type != MSGPACK_ARRAY && item.type != MSGPACK_MAP) {
        write_json_scalar(in, &item);
        return true;
    }
    if (in->depth < JSON_DEPTH_MAX)
        return write_json_container(in, &item);
    *in->lost = true;
    *in->packed = start;
    json_write_null(in->json);
    return msgpack_skip(in->packed);
}

static bool write_json_outermost(const struct writing *writing)
{
    struct slice ahead = *writing->packed;
    struct msgpack_item item;
    return msgpack_read(&ahead, &item) &&
           (item.type == MSGPACK_ARRAY || item.type == MSGPACK_MAP) && write_json_value(writing);
}

bool msgpack_to_json(struct slice *packed, struct buffer *json, bool *lost)
{
    return write_json_outermost(&(struct writing){.packed = packed, .json = json, .lost = lost});
}

bool msgpack_to_json_with_buffers(struct slice *packed, struct buffer *json, bool *lost)
{
    return write_json_outermost(
        &(struct writing){.packed = packed, .json = json, .lost = lost, .with_buffers = true});
}

/* ---- from JSON ---- */

static bool pack_json_value(struct json *json, struct buffer *out);

static bool pack_json_object(struct json *json, struct buffer *out)
{
    size_t opened_at = msgpack_write_open(out, MSGPACK_MAP);
    uint32_t count = 0;
    struct slice key;
    json_object(json);
    for (; json_member(json, &key); count++) {
        msgpack_write_string(out, key);
        if (!pack_json_value(json, out))
            return false;
    }
    msgpack_write_close(out, opened_at, count);
    return !json->error;
}

static bool pack_json_array(struct json *json, struct buffer *out)
{
    size_t opened_at = msgpack_write_open(out, MSGPACK_ARRAY);
    uint32_t count = 0;
    json_array(json);
    for (; json_element(json); count++)
        if (!pack_json_value(json, out))
            return false;
    msgpack_write_close(out, opened_at, count);
    return !json->error;
}

static bool pack_json_number(struct json *json, struct buffer *out)
{
    struct json number;
    struct slice raw;
    int64_t integer;
    double real;
    if (!json_raw(json, &raw))
        return false;
    json_init(&number, (char *)raw.data, raw.len);
    if (json_int(&number, &integer)) {
        msgpack_write_int(out, integer);
        return true;
    }
    json_init(&number, (char *)raw.data, raw.len);
    if (json_double(&number, &real))
        msgpack_write_double(out, real);
    else
        msgpack_write_nil(out);
    return true;
}

static bool pack_json_value(struct json *json, struct buffer *out)
{
    struct slice text;
    bool value;
    switch (json_peek(json)) {
    case JSON_OBJECT:
        return pack_json_object(json, out);
    case JSON_ARRAY:
        return pack_json_array(json, out);
    case JSON_STRING:
        if (!json_string(json, &text))
            return false;
        msgpack_write_string(out, text);
        return true;
    case JSON_NUMBER:
        return pack_json_number(json, out);
    case JSON_NULL:
        msgpack_write_nil(out);
        return json_null(json);
    default:
        if (!json_bool(json, &value))
            return false;
        msgpack_write_bool(out, value);
        return true;
    }
}

bool msgpack_from_json(struct json *json, struct buffer *out)
{
    size_t len = out->len;
    if (pack_json_value(json, out))
        return true;
    out->len = len;
    return false;
}
