/*
 * UTF-8 validation of text that arrives in pieces.
 *
 * A validator is four bytes of state: the range of the next byte. It refuses at the first byte that
 * cannot continue valid text: overlong forms, surrogates (U+D800..U+DFFF) and code points above
 * U+10FFFF at the second byte of their sequence, 0xC0, 0xC1 and 0xF5..0xFF at once. A refusal is
 * final: everything added later is refused too.
 *
 * Nothing is allocated; the struct belongs to its holder. Not shared between threads.
 */
#ifndef ROLLCALL_TEXT_UTF8_H
#define ROLLCALL_TEXT_UTF8_H

#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct utf8 {
    uint32_t state; /* 0 between two characters; else see utf8.c */
};

#define UTF8_INIT ((struct utf8){0})

/* Adds the next `len` bytes. Returns false if one of them cannot continue valid text. */
bool utf8_add(struct utf8 *utf8, const char *data, size_t len);

/* Returns whether the text may end here: nothing was refused and no character is incomplete. */
static inline bool utf8_complete(const struct utf8 *utf8)
{
    return utf8->state == 0;
}

/* Returns whether `text` as a whole is valid UTF-8. */
bool utf8_valid(struct slice text);

#endif
