#include "protocol/http1/http1_char.h"

#define T HTTP1_CHAR_TOKEN
#define U HTTP1_CHAR_TARGET
#define H HTTP1_CHAR_HOST
#define V HTTP1_CHAR_VALUE

/* Control characters and DEL are in no class. */
const uint8_t http1_char_class[256] = {
    ['\t'] = V,
    [' '] = V,
    ['0' ... '9'] = T | U | H | V,
    ['A' ... 'Z'] = T | U | H | V,
    ['a' ... 'z'] = T | U | H | V,
    ['-'] = T | U | H | V,
    ['.'] = T | U | H | V,
    ['_'] = T | U | H | V,
    ['~'] = T | U | H | V,
    ['!'] = T | U | H | V,
    ['$'] = T | U | H | V,
    ['%'] = T | U | H | V,
    ['&'] = T | U | H | V,
    ['\''] = T | U | H | V,
    ['*'] = T | U | H | V,
    ['+'] = T | U | H | V,
    ['('] = U | H | V,
    [')'] = U | H | V,
    [','] = U | H | V,
    [';'] = U | H | V,
    ['='] = U | H | V,
    [':'] = U | H | V,
    ['['] = U | H | V,
    [']'] = U | H | V,
    ['/'] = U | V,
    ['?'] = U | V,
    ['@'] = U | V,
    ['\\'] = U | V,
    ['{'] = U | V,
    ['}'] = U | V,
    ['^'] = T | U | V,
    ['`'] = T | U | V,
    ['|'] = T | U | V,
    ['#'] = T | V,
    ['"'] = V,
    ['<'] = V,
    ['>'] = V,
    [0x80 ... 0xff] = V,
};

/* Has no branch per byte: nearly every text passes, so stopping early would gain nothing. */
bool http1_char_all(struct slice text, uint8_t class)
{
    uint8_t common = class;
    for (size_t i = 0; i < text.len; i++)
        common &= http1_char_class[(unsigned char)text.data[i]];
    return common != 0;
}

static char http1_char_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

bool http1_char_same_letters(const char *a, const char *b, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (http1_char_lower(a[i]) != http1_char_lower(b[i]))
            return false;
    }
    return true;
}

struct slice http1_char_trim(struct slice text)
{
    while (text.len > 0 && (text.data[0] == ' ' || text.data[0] == '\t')) {
        text.data++;
        text.len--;
    }
    while (text.len > 0 && (text.data[text.len - 1] == ' ' || text.data[text.len - 1] == '\t'))
        text.len--;
    return text;
}

int http1_char_hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}
