#include "protocol/http1/http1_target.h"

#include "protocol/http1/http1_char.h"

bool http1_host_valid(struct slice host)
{
    return http1_char_all(host, HTTP1_CHAR_HOST);
}

/* "http://authority[/path][?query]" after the "//" */
static bool target_parse_absolute(struct slice text, struct http1_target *target)
{
    size_t end = 0;
    while (end < text.len && text.data[end] != '/' && text.data[end] != '?')
        end++;
    target->authority = slice_first(text, end);
    if (end == 0 || text.data[0] == ':' || !http1_host_valid(target->authority))
        return false;
    target->query = slice_split(slice_after(text, end), '?', &target->path);
    if (target->path.len == 0)
        target->path = SLICE("/");
    return true;
}

bool http1_target_parse(struct slice text, bool asterisk_allowed, struct http1_target *target)
{
    static const struct slice schemes[] = {SLICE("http://"), SLICE("https://")};
    *target = (struct http1_target){.path = text};
    if (text.len == 0 || !http1_char_all(text, HTTP1_CHAR_TARGET))
        return false;
    if (text.data[0] == '/') {
        target->query = slice_split(text, '?', &target->path);
        return true;
    }
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        if (http1_char_same_name(slice_first(text, schemes[i].len), schemes[i]))
            return target_parse_absolute(slice_after(text, schemes[i].len), target);
    }
    return asterisk_allowed && slice_equal(text, SLICE("*"));
}

/* Takes the next character off the front of *text, which is not empty, and decodes its escape. Returns -1 if it
 * is invalid or NUL. */
static int target_take_character(struct slice *text, bool plus_is_space)
{
    char c = text->data[0];
    int byte = (unsigned char)c;
    if (c == '%') {
        int high = text->len < 3 ? -1 : http1_char_hex(text->data[1]);
        int low = text->len < 3 ? -1 : http1_char_hex(text->data[2]);
        byte = high < 0 || low < 0 ? -1 : high << 4 | low;
    } else if (c == '+' && plus_is_space) {
        byte = ' ';
    }
    if (byte <= 0)
        return -1;
    *text = slice_after(*text, c == '%' ? 3 : 1);
    return byte;
}

static bool target_decode_escapes(struct slice text, bool plus_is_space, char *out, size_t *len)
{
    size_t written = 0;
    while (text.len > 0) {
        int byte = target_take_character(&text, plus_is_space);
        if (byte < 0)
            return false;
        out[written++] = (char)byte;
    }
    *len = written;
    return true;
}

bool http1_percent_decode(struct slice text, char *out, size_t *len)
{
    return target_decode_escapes(text, false, out, len);
}

bool http1_query_decode(struct slice text, char *out, size_t *len)
{
    return target_decode_escapes(text, true, out, len);
}

bool http1_query_next(struct slice *query, struct slice *name, struct slice *value)
{
    while (query->len > 0) {
        struct slice parameter;
        *query = slice_split(*query, '&', &parameter);
        if (parameter.len == 0)
            continue;
        *value = slice_split(parameter, '=', name);
        return true;
    }
    return false;
}

/* Compares without decoding first, because most names differ in their first character. */
static bool target_query_name_is(struct slice raw, struct slice name)
{
    for (size_t i = 0; i < name.len; i++)
        if (raw.len == 0 || target_take_character(&raw, true) != (unsigned char)name.data[i])
            return false;
    return raw.len == 0;
}

struct slice http1_query_find(struct slice query, struct slice name)
{
    struct slice found;
    struct slice value;
    while (http1_query_next(&query, &found, &value)) {
        if (target_query_name_is(found, name))
            return value.data ? value : (struct slice){found.data + found.len, 0};
    }
    return SLICE_NONE;
}
