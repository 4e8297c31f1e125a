#include "redis/protocol/resp.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- replies ----
 *
 * Until a reply is complete both its values and its input may move, so arrays store the index of their first
 * item, and texts that of their first byte, in `integer`. resp_parse() makes pointers of them at the end. */

enum { VALUES_FIRST = 64, INTEGER_DIGITS_MAX = 19 };

/* Finds the line that begins at `at`, without its CRLF. */
static enum resp_result resp_find_line(struct slice input, size_t at, struct slice *line)
{
    struct slice rest = slice_first(slice_after(input, at), RESP_LINE_BYTES_MAX);
    const char *end = rest.len ? memchr(rest.data, '\r', rest.len) : NULL;
    if (!end)
        return rest.len == RESP_LINE_BYTES_MAX ? RESP_INVALID : RESP_INCOMPLETE;
    *line = (struct slice){rest.data, (size_t)(end - rest.data)};
    if (at + line->len + 1 == input.len)
        return RESP_INCOMPLETE;
    return end[1] == '\n' && line->len > 0 ? RESP_COMPLETE : RESP_INVALID;
}

bool resp_parse_integer(struct slice text, int64_t *out)
{
    bool negative = text.len && text.data[0] == '-';
    uint64_t value = 0;
    size_t i = negative || (text.len && text.data[0] == '+') ? 1 : 0;
    if (i == text.len || text.len - i > INTEGER_DIGITS_MAX)
        return false;
    for (; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        value = value * 10 + (uint64_t)(text.data[i] - '0');
    }
    if (value > (uint64_t)INT64_MAX + negative)
        return false;
    *out = negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

/* Makes space for `count` more consecutive values. */
static bool resp_reserve_values(struct resp_parser *parser, size_t count)
{
    if (count > RESP_VALUES_MAX - parser->used)
        return false;
    if (parser->used + count > parser->cap) {
        size_t cap = parser->cap ? parser->cap : VALUES_FIRST;
        while (cap < parser->used + count)
            cap *= 2;
        struct resp_value *values = realloc(parser->values, cap * sizeof(*values));
        if (!values)
            return false;
        parser->values = values;
        parser->cap = cap;
    }
    parser->used += count;
    return true;
}

static struct resp_value *resp_next_value(struct resp_parser *parser)
{
    return &parser->values[parser->depth ? parser->levels[parser->depth - 1].next : 0];
}

/* Stores a whole value, which ends at `at`, and closes the arrays that it completes. */
static enum resp_result resp_put_value(struct resp_parser *parser, size_t at,
                                       struct resp_value value)
{
    *resp_next_value(parser) = value;
    parser->at = at;
    while (parser->depth > 0) {
        struct resp_level *level = &parser->levels[parser->depth - 1];
        level->next++;
        if (--level->left > 0)
            return RESP_INCOMPLETE;
        parser->depth--;
    }
    return RESP_COMPLETE;
}

static enum resp_result resp_put_text(struct resp_parser *parser, size_t start, size_t len,
                                      size_t at, enum resp_type type)
{
    return resp_put_value(
        parser, at,
        (struct resp_value){.type = type, .integer = (int64_t)start, .text = {.len = len}});
}

/* Reads `len` bytes and CRLF. */
static enum resp_result resp_read_bulk(struct resp_parser *parser, struct slice input, size_t start,
                                       int64_t len, enum resp_type type)
{
    if (len < 0 || len > RESP_TEXT_BYTES_MAX)
        return RESP_INVALID;
    size_t end = start + (size_t)len;
    if (end + 2 > input.len)
        return RESP_INCOMPLETE;
    if (input.data[end] != '\r' || input.data[end + 1] != '\n')
        return RESP_INVALID;
    return resp_put_text(parser, start, (size_t)len, end + 2, type);
}

static enum resp_result resp_open_array(struct resp_parser *parser, size_t at, int64_t count,
                                        enum resp_type type)
{
    size_t first = parser->used;
    if (count < 0 || parser->depth == RESP_DEPTH_MAX || (type == RESP_PUSH && parser->depth > 0))
        return RESP_INVALID;
    if (!resp_reserve_values(parser, (size_t)count))
        return RESP_INVALID;
    struct resp_value value = {.type = type, .integer = (int64_t)first, .count = (size_t)count};
    if (count == 0)
        return resp_put_value(parser, at, value);
    *resp_next_value(parser) = value;
    parser->levels[parser->depth++] = (struct resp_level){first, (size_t)count};
    parser->at = at;
    return RESP_INCOMPLETE;
}

/* Reads a value whose line, which ends at `at`, gives a length or a count. */
static enum resp_result resp_read_sized(struct resp_parser *parser, struct slice input,
                                        struct slice line, size_t at)
{
    int64_t size;
    if (!resp_parse_integer(slice_after(line, 1), &size) || size > RESP_TEXT_BYTES_MAX)
        return RESP_INVALID;
    if (size == -1 && (line.data[0] == '$' || line.data[0] == '*'))
        return resp_put_value(parser, at, (struct resp_value){.type = RESP_NULL});
    switch (line.data[0]) {
    case '$':
    case '=':
        return resp_read_bulk(parser, input, at, size, RESP_TEXT);
    case '!':
        return resp_read_bulk(parser, input, at, size, RESP_ERROR);
    case '%':
        return resp_open_array(parser, at, size * 2, RESP_ARRAY);
    case '>':
        return resp_open_array(parser, at, size, RESP_PUSH);
    default:
        return resp_open_array(parser, at, size, RESP_ARRAY);
    }
}

/* Reads one value, or the head of an array. INCOMPLETE with an advanced `at`: the next value follows. */
static enum resp_result resp_read_value(struct resp_parser *parser, struct slice input)
{
    struct slice line;
    enum resp_result found = resp_find_line(input, parser->at, &line);
    if (found != RESP_COMPLETE)
        return found;
    size_t text = parser->at + 1;
    size_t at = parser->at + line.len + 2;
    struct slice rest = slice_after(line, 1);
    struct resp_value value = {.type = RESP_INTEGER};
    switch (line.data[0]) {
    case '+':
    case ',':
    case '(':
        return resp_put_text(parser, text, line.len - 1, at, RESP_TEXT);
    case '-':
        return resp_put_text(parser, text, line.len - 1, at, RESP_ERROR);
    case '_':
        return line.len == 1 ? resp_put_value(parser, at, (struct resp_value){.type = RESP_NULL})
                             : RESP_INVALID;
    case '#':
        value.integer = slice_is(rest, "t");
        return value.integer || slice_is(rest, "f") ? resp_put_value(parser, at, value)
                                                    : RESP_INVALID;
    case ':':
        return resp_parse_integer(rest, &value.integer) ? resp_put_value(parser, at, value)
                                                        : RESP_INVALID;
    case '$':
    case '=':
    case '!':
    case '*':
    case '~':
    case '%':
    case '>':
        return resp_read_sized(parser, input, line, at);
    default:
        return RESP_INVALID;
    }
}

enum resp_result resp_parse(struct resp_parser *parser, struct slice input,
                            const struct resp_value **reply, size_t *len)
{
    enum resp_result result;
    size_t before;
    bool is_new_reply = parser->at == 0 && parser->depth == 0;
    if (is_new_reply) {
        if (parser->cap > RESP_VALUES_KEPT)
            resp_parser_free(parser);
        resp_parser_restart(parser);
        if (!resp_reserve_values(parser, 1))
            return RESP_INVALID;
    }
    do {
        before = parser->at;
        result = resp_read_value(parser, input);
    } while (result == RESP_INCOMPLETE && parser->at > before);
    if (result != RESP_COMPLETE)
        return result;
    for (size_t i = 0; i < parser->used; i++) {
        struct resp_value *value = &parser->values[i];
        if (value->type == RESP_ARRAY || value->type == RESP_PUSH)
            value->items = &parser->values[value->integer];
        else if (value->type == RESP_TEXT || value->type == RESP_ERROR)
            value->text.data = input.data + value->integer;
    }
    *reply = &parser->values[0];
    *len = parser->at;
    parser->at = 0;
    return RESP_COMPLETE;
}

void resp_parser_restart(struct resp_parser *parser)
{
    parser->used = 0;
    parser->at = 0;
    parser->depth = 0;
}

void resp_parser_free(struct resp_parser *parser)
{
    free(parser->values);
    *parser = (struct resp_parser){0};
}

bool resp_is_error(const struct resp_value *reply, const char *word)
{
    struct slice first;
    if (reply->type != RESP_ERROR)
        return false;
    slice_split(reply->text, ' ', &first);
    return slice_is(first, word);
}

/* ---- commands ---- */

void resp_write_count(struct buffer *out, size_t count)
{
    buffer_append_byte(out, '*');
    buffer_append_uint(out, count);
    buffer_append(out, "\r\n", 2);
}

void resp_write_argument(struct buffer *out, struct slice argument)
{
    buffer_append_byte(out, '$');
    buffer_append_uint(out, argument.len);
    buffer_append(out, "\r\n", 2);
    buffer_append_slice(out, argument);
    buffer_append(out, "\r\n", 2);
}

void resp_write_integer(struct buffer *out, int64_t argument)
{
    char text[24];
    int len = snprintf(text, sizeof(text), "%lld", (long long)argument);
    resp_write_argument(out, (struct slice){text, (size_t)len});
}

void resp_write_command(struct buffer *out, const struct slice *arguments, size_t count)
{
    resp_write_count(out, count);
    for (size_t i = 0; i < count; i++)
        resp_write_argument(out, arguments[i]);
}
