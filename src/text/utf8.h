/*
 * UTF-8 validation of text that arrives in pieces.
 *
 * A validator is four bytes of state: what the next byte may be. It refuses at the first byte that
 * no valid text could continue with, so overlong forms, surrogates (U+D800..U+DFFF) and anything
 * above U+10FFFF are found at the second byte of their sequence, and 0xC0, 0xC1, 0xF5..0xFF at
 * once. A refusal is final: every later feed fails too.
 *
 * Nothing is allocated; the struct belongs to whoever embeds it. Not shared between threads.
 */
#ifndef ROLLCALL_TEXT_UTF8_H
#define ROLLCALL_TEXT_UTF8_H

#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct utf8 {
    uint32_t state; /* 0 between characters; else see utf8.c */
};

#define UTF8_INIT ((struct utf8){0})

/* Takes the next `len` bytes. False as soon as one of them cannot continue valid text. */
bool utf8_feed(struct utf8 *utf8, const char *data, size_t len);

/* Whether the text may end here: nothing was refused and no character is cut short. */
static inline bool utf8_complete(const struct utf8 *utf8)
{
    return utf8->state == 0;
}

/* Whether `text` as a whole is valid UTF-8. */
bool utf8_valid(struct slice text);

#endif
