#include "text/json.h"
#include "text/json_text.h"
#include "text/utf8_character.h"

/* Returns whether the next item needs a comma before it. Only '{', '[' and ':' can end the output
 * before an item that needs none; a string with such a last character still ends in a quote. */
static inline bool json_needs_comma(const struct buffer *out)
{
    char last = out->len ? out->data[out->len - 1] : '[';
    return last != '{' && last != '[' && last != ':';
}

/* Appends an item that is already JSON. */
static inline void write_json_item(struct buffer *out, struct slice item)
{
    bool comma = json_needs_comma(out);
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
    write_json_item(out, SLICE("{"));
}

void json_write_object_end(struct buffer *out)
{
    buffer_append_byte(out, '}');
}

void json_write_array(struct buffer *out)
{
    write_json_item(out, SLICE("["));
}

void json_write_array_end(struct buffer *out)
{
    buffer_append_byte(out, ']');
}

/* Writes the character that ended a plain run, if any, and returns how many bytes of input it
 * is. */
static size_t write_special_json_character(struct buffer *out, struct slice rest)
{
    static const char hex[] = "0123456789abcdef";
    static const char letters[] = "btn\0fr"; /* escapes of the bytes 8 to 13 */
    if (rest.len == 0)
        return 0;
    unsigned char byte = (unsigned char)rest.data[0];
    if (rest.data[0] == '"' || rest.data[0] == '\\') {
        buffer_append(out, (char[]){'\\', rest.data[0]}, 2);
        return 1;
    }
    if (byte >= '\b' && byte <= '\r' && byte != '\v') {
        buffer_append(out, (char[]){'\\', letters[byte - '\b']}, 2);
        return 1;
    }
    if (byte < ' ') {
        buffer_append(out, (char[]){'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]}, 6);
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

/* Writes a plain string, as most are, in one step. Returns false if it is not plain. */
static inline bool write_plain_json_string(struct buffer *out, struct slice value)
{
    if (value.len && json_text_plain_run(value.data, value.data + value.len) != value.len)
        return false;
    bool comma = json_needs_comma(out);
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
    if (write_plain_json_string(out, value))
        return;
    write_json_item(out, SLICE("\""));
    while (value.len > 0) {
        size_t plain = json_text_plain_run(value.data, value.data + value.len);
        buffer_append(out, value.data, plain);
        value = slice_after(value, plain);
        value = slice_after(value, write_special_json_character(out, value));
    }
    buffer_append_byte(out, '"');
}

void json_write_key(struct buffer *out, struct slice key)
{
    json_write_string(out, key);
    buffer_append_byte(out, ':');
}

void json_write_int(struct buffer *out, int64_t value)
{
    if (json_needs_comma(out))
        buffer_append_byte(out, ',');
    buffer_append_int(out, value);
}

void json_write_bool(struct buffer *out, bool value)
{
    write_json_item(out, value ? SLICE("true") : SLICE("false"));
}

void json_write_null(struct buffer *out)
{
    write_json_item(out, SLICE("null"));
}

void json_write_raw(struct buffer *out, struct slice json)
{
    write_json_item(out, json);
}
