#include "text/json.h"
#include "text/json_text.h"
#include "text/utf8_character.h"

/* Whether a comma must part what comes now from what was written before. Only '{', '[' and ':' can
 * end the output in front of an item that has none before it; a string that ends in one of these
 * still ends in a quote. */
static inline bool needs_comma(const struct buffer *out)
{
    char last = out->len ? out->data[out->len - 1] : '[';
    return last != '{' && last != '[' && last != ':';
}

/* Appends an item that is JSON already. */
static inline void write_item(struct buffer *out, struct slice item)
{
    bool comma = needs_comma(out);
    if (!buffer_reserve(out, comma + item.len))
        return;
    char *to = out->data + out->len;
    if (comma)
        *to++ = ',';
    if (item.len)
        memcpy(to, item.data, item.len);
    out->len += comma + item.len;
}

void json_write_object(struct buffer *out)
{
    write_item(out, SLICE("{"));
}

void json_write_object_end(struct buffer *out)
{
    buffer_append_byte(out, '}');
}

void json_write_array(struct buffer *out)
{
    write_item(out, SLICE("["));
}

void json_write_array_end(struct buffer *out)
{
    buffer_append_byte(out, ']');
}

static void write_control(struct buffer *out, unsigned char byte)
{
    static const char hex[] = "0123456789abcdef";
    static const char letters[] = "btn\0fr"; /* of the bytes from 8 to 13 */
    if (byte >= '\b' && byte <= '\r' && byte != '\v') {
        buffer_append(out, (char[]){'\\', letters[byte - '\b']}, 2);
        return;
    }
    buffer_append(out, (char[]){'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]}, 6);
}

/* Writes what ended a plain run, if anything did, and returns how many bytes that was. */
static size_t write_special(struct buffer *out, struct slice rest)
{
    if (rest.len == 0)
        return 0;
    if (rest.data[0] == '"' || rest.data[0] == '\\') {
        buffer_append(out, (char[]){'\\', rest.data[0]}, 2);
        return 1;
    }
    if ((unsigned char)rest.data[0] < ' ') {
        write_control(out, (unsigned char)rest.data[0]);
        return 1;
    }
    size_t sequence = utf8_character_len(rest.data, rest.len);
    if (sequence == 0) {
        buffer_append_text(out, UTF8_CHARACTER_REPLACEMENT);
        return 1;
    }
    buffer_append(out, rest.data, sequence);
    return sequence;
}

static void write_special_string(struct buffer *out, struct slice value)
{
    write_item(out, SLICE("\""));
    while (value.len > 0) {
        size_t plain = json_text_plain_run(value.data, value.data + value.len);
        buffer_append(out, value.data, plain);
        value = slice_after(value, plain);
        value = slice_after(value, write_special(out, value));
    }
    buffer_append_byte(out, '"');
}

/* Writes a string all of which is plain, as most are, in one step; false when it is not. */
static inline bool write_plain_string(struct buffer *out, struct slice value)
{
    if (value.len && json_text_plain_run(value.data, value.data + value.len) != value.len)
        return false;
    bool comma = needs_comma(out);
    if (!buffer_reserve(out, comma + value.len + 2))
        return true;
    char *to = out->data + out->len;
    if (comma)
        *to++ = ',';
    *to++ = '"';
    if (value.len)
        memcpy(to, value.data, value.len);
    to[value.len] = '"';
    out->len += comma + value.len + 2;
    return true;
}

void json_write_string(struct buffer *out, struct slice value)
{
    if (!write_plain_string(out, value))
        write_special_string(out, value);
}

void json_write_key(struct buffer *out, struct slice key)
{
    json_write_string(out, key);
    buffer_append_byte(out, ':');
}

void json_write_int(struct buffer *out, int64_t value)
{
    if (needs_comma(out))
        buffer_append_byte(out, ',');
    buffer_append_int(out, value);
}

void json_write_bool(struct buffer *out, bool value)
{
    write_item(out, value ? SLICE("true") : SLICE("false"));
}

void json_write_null(struct buffer *out)
{
    write_item(out, SLICE("null"));
}

void json_write_raw(struct buffer *out, struct slice json)
{
    write_item(out, json);
}
