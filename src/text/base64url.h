/* Base64url without padding (RFC 4648 §5), as JOSE uses it. Strict: no padding, no white space, no
 * non-canonical trailing bits. */
#ifndef ROLLCALL_TEXT_BASE64URL_H
#define ROLLCALL_TEXT_BASE64URL_H

#include "base/buffer.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>

/* Bytes that `len` characters decode to at the most. */
static inline size_t base64url_decoded_max(size_t len)
{
    return len / 4 * 3 + 2;
}

/* Decodes into `out` (room for base64url_decoded_max); sets *out_len. False on invalid text, of
 * which some may have been decoded. Not in constant time: texts that are secret are compared
 * elsewhere. */
bool base64url_decode(struct slice text, unsigned char *out, size_t *out_len);

/* Appends the text of `len` bytes. */
void base64url_encode(struct buffer *out, const void *data, size_t len);

#endif
