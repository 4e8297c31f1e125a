#include "base/json.h"
#include "base/json_text.h"
#include "base/utf8_character.h"

/* Puts a comma before what is an item after another. Only '{', '[' and ':' can end the output while
 * nothing separates it from a value; a string that ends in one of these still ends in a quote. */
static void separate(struct buffer *out)
{
    char last = out->len ? out->data[out->len - 1] : '[';
    if (last != '{' && last != '[' && last != ':')
        buffer_append_byte(out, ',');
}

void json_write_object(struct buffer *out)
{
    separate(out);
    buffer_append_byte(out, '{');
}

void json_write_object_end(struct buffer *out)
{
    buffer_append_byte(out, '}');
}

void json_write_array(struct buffer *out)
{
    separate(out);
    buffer_append_byte(out, '[');
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

void json_write_string(struct buffer *out, struct slice value)
{
    separate(out);
    if (!buffer_reserve(out, value.len + 2))
        return;
    buffer_append_byte(out, '"');
    while (value.len > 0) {
        size_t plain = json_text_plain_run(value.data, value.data + value.len);
        buffer_append(out, value.data, plain);
        value = slice_after(value, plain);
        value = slice_after(value, write_special(out, value));
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
    separate(out);
    buffer_append_int(out, value);
}

void json_write_bool(struct buffer *out, bool value)
{
    separate(out);
    buffer_append_text(out, value ? "true" : "false");
}

void json_write_null(struct buffer *out)
{
    separate(out);
    buffer_append_text(out, "null");
}

void json_write_raw(struct buffer *out, struct slice json)
{
    separate(out);
    buffer_append_slice(out, json);
}
