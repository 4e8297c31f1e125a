#include "text/json_text.h"

#include "text/utf8_character.h"

/* Returns the number of the escape "\uXXXX" at `at`; -1 if there is none. */
static int32_t read_json_unicode_escape(const char *at, const char *end)
{
    if (end - at < 6 || at[0] != '\\' || at[1] != 'u')
        return -1;
    int32_t unit = 0;
    for (int i = 2; i < 6; i++) {
        char lower = (char)(at[i] | 0x20);
        if (at[i] >= '0' && at[i] <= '9')
            unit = unit << 4 | (at[i] - '0');
        else if (lower >= 'a' && lower <= 'f')
            unit = unit << 4 | (lower - 'a' + 10);
        else
            return -1;
    }
    return unit;
}

static bool is_json_surrogate(int32_t unit)
{
    return unit >= 0xd800 && unit <= 0xdfff;
}

/* Returns the code point of the escape at `at`, or -1 if it is invalid, and sets its length. */
static int32_t read_json_escape(const char *at, const char *end, size_t *len)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char meanings[] = "\"\\/\b\f\n\r\t";
    int32_t unit = read_json_unicode_escape(at, end);
    if (unit < 0) {
        *len = 2;
        const char *found = end - at >= 2 ? memchr(letters, at[1], sizeof(letters) - 1) : NULL;
        return found ? meanings[found - letters] : -1;
    }
    *len = 6;
    if (!is_json_surrogate(unit))
        return unit;
    *len = 12;
    int32_t low = unit <= 0xdbff ? read_json_unicode_escape(at + 6, end) : -1;
    if (low < 0xdc00 || low > 0xdfff)
        return -1;
    return 0x10000 + (unit - 0xd800) * 0x400 + (low - 0xdc00);
}

const char *json_text_special(const char *at, const char *end, bool *escaped, const char **expected)
{
    size_t len;
    if (*at == '\\') {
        *escaped = true;
        *expected = "a valid escape sequence";
        return read_json_escape(at, end, &len) < 0 ? NULL : at + len;
    }
    *expected = (unsigned char)*at < ' ' ? "control characters to be escaped" : "valid UTF-8";
    len = (unsigned char)*at < ' ' ? 0 : utf8_character_len(at, (size_t)(end - at));
    return len ? at + len : NULL;
}

bool json_text_is_surrogate(const char *at, const char *end)
{
    return is_json_surrogate(read_json_unicode_escape(at, end));
}

/* No escape is shorter than its character, so writing never overtakes reading. */
char *json_text_unescape(char *start, const char *end)
{
    char *to = start;
    const char *from = start;
    while (from < end) {
        const char *backslash = memchr(from, '\\', (size_t)(end - from));
        size_t plain = (size_t)((backslash ? backslash : end) - from);
        memmove(to, from, plain);
        to += plain;
        from += plain;
        if (backslash) {
            size_t len;
            to += utf8_character_write(to, (uint32_t)read_json_escape(from, end, &len));
            from += len;
        }
    }
    return to;
}
