#include "frame/http1_target.h"

#include "frame/http1_char.h"

bool http1_host_valid(struct slice host)
{
    return http1_char_all(host, HTTP1_CHAR_HOST);
}

/* "/path?query" */
static void split_query(struct slice text, struct http1_target *target)
{
    target->query = slice_split(text, '?', &target->path);
}

/* "http://authority[/path][?query]" after the "//" */
static bool parse_absolute(struct slice text, struct http1_target *target)
{
    size_t end = 0;
    while (end < text.len && text.data[end] != '/' && text.data[end] != '?')
        end++;
    target->authority = slice_first(text, end);
    if (end == 0 || text.data[0] == ':' || !http1_host_valid(target->authority))
        return false;
    split_query(slice_after(text, end), target);
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
        split_query(text, target);
        return true;
    }
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        if (http1_char_same_name(slice_first(text, schemes[i].len), schemes[i]))
            return parse_absolute(slice_after(text, schemes[i].len), target);
    }
    return asterisk_allowed && slice_equal(text, SLICE("*"));
}

/* The byte that "%XY" stands for, or -1; NUL too is refused. */
static int escaped_byte(struct slice text)
{
    if (text.len < 3)
        return -1;
    int high = http1_char_hex(text.data[1]);
    int low = http1_char_hex(text.data[2]);
    if (high < 0 || low < 0 || (high | low) == 0)
        return -1;
    return high << 4 | low;
}

static bool decode(struct slice text, bool plus_is_space, char *out, size_t *len)
{
    size_t written = 0;
    while (text.len > 0) {
        char c = text.data[0];
        size_t taken = 1;
        if (c == '%') {
            int byte = escaped_byte(text);
            if (byte < 0)
                return false;
            c = (char)byte;
            taken = 3;
        } else if (c == '+' && plus_is_space) {
            c = ' ';
        } else if (c == '\0') {
            return false;
        }
        out[written++] = c;
        text = slice_after(text, taken);
    }
    *len = written;
    return true;
}

bool http1_percent_decode(struct slice text, char *out, size_t *len)
{
    return decode(text, false, out, len);
}

bool http1_query_decode(struct slice text, char *out, size_t *len)
{
    return decode(text, true, out, len);
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

struct slice http1_query_find(struct slice query, struct slice name)
{
    struct slice found;
    struct slice value;
    while (http1_query_next(&query, &found, &value)) {
        if (slice_equal(found, name))
            return value.data ? value : (struct slice){found.data + found.len, 0};
    }
    return SLICE_NONE;
}
