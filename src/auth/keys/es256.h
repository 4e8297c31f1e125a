/*
 * The two spellings of an ECDSA signature over P-256: JOSE writes r and s as 32 bytes each
 * (RFC 7518 §3.4), OpenSSL reads and writes DER. A signature in DER is no JOSE signature, and the
 * fixed length is what keeps it out.
 */
#ifndef ROLLCALL_AUTH_KEYS_ES256_H
#define ROLLCALL_AUTH_KEYS_ES256_H

#include <stdbool.h>
#include <stddef.h>

enum { ES256_RAW_BYTES = 64, ES256_DER_BYTES_MAX = 72 };

/* False only when memory runs out. */
bool es256_to_der(const unsigned char raw[ES256_RAW_BYTES], unsigned char der[ES256_DER_BYTES_MAX],
                  size_t *der_len);

/* False when `der` is no signature of that curve. */
bool es256_from_der(const unsigned char *der, size_t der_len, unsigned char raw[ES256_RAW_BYTES]);

#endif
