#include "answer_head.h"

#include <strings.h>

enum { DIGITS_MAX = 9 };

struct slice answer_head_find(struct slice input)
{
    const char *end = input.len > 0 ? memmem(input.data, input.len, "\r\n\r\n", 4) : NULL;
    return end ? (struct slice){input.data, (size_t)(end - input.data) + 2} : SLICE_NONE;
}

unsigned answer_head_status(struct slice head)
{
    static const struct slice VERSION = {"HTTP/1.1 ", 9};
    return slice_starts_with(head, VERSION) ? answer_head_number(slice_after(head, VERSION.len))
                                            : 0;
}

struct slice answer_head_value(struct slice head, const char *name)
{
    size_t name_len = strlen(name);
    const char *end = head.data + head.len;
    for (const char *line = head.data; line < end;) {
        const char *stop = memmem(line, (size_t)(end - line), "\r\n", 2);
        stop = stop ? stop : end;
        if ((size_t)(stop - line) > name_len && line[name_len] == ':' &&
            strncasecmp(line, name, name_len) == 0) {
            const char *value = line + name_len + 1;
            while (value < stop && (*value == ' ' || *value == '\t'))
                value++;
            return (struct slice){value, (size_t)(stop - value)};
        }
        line = stop + (stop < end ? 2 : 0);
    }
    return SLICE_NONE;
}

unsigned answer_head_number(struct slice text)
{
    unsigned value = 0;
    for (size_t i = 0; i < text.len && i < DIGITS_MAX && text.data[i] >= '0' && text.data[i] <= '9';
         i++)
        value = value * 10 + (unsigned)(text.data[i] - '0');
    return value;
}
