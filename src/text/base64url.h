/* Base64url without padding (RFC 4648 §5), as JOSE uses it. Strict: padding, white space and
 * non-canonical trailing bits are refused. */
#ifndef ROLLCALL_TEXT_BASE64URL_H
#define ROLLCALL_TEXT_BASE64URL_H

#include "base/buffer.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>

/* Returns the maximum number of bytes that `len` characters decode to. */
static inline size_t base64url_decoded_max(size_t len)
{
    return len / 4 * 3 + 2;
}

/* Decodes into `out`, which has base64url_decoded_max() of space, and sets *out_len. Returns false
 * for invalid text; a part of it may then be decoded. Not in constant time, so never compare
 * secrets by it. */
bool base64url_decode(struct slice text, unsigned char *out, size_t *out_len);

/* Appends `len` bytes as base64url text. */
void base64url_encode(struct buffer *out, const void *data, size_t len);

#endif
