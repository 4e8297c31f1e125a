/*
 * The two formats of an ECDSA signature over P-256: JOSE writes r and s as 32 bytes each (RFC 7518
 * §3.4), OpenSSL uses DER. A signature in DER is not a valid JOSE signature; the fixed length
 * excludes it.
 */
#ifndef ROLLCALL_AUTH_KEYS_ES256_H
#define ROLLCALL_AUTH_KEYS_ES256_H

#include <stdbool.h>
#include <stddef.h>

enum { ES256_RAW_BYTES = 64, ES256_DER_BYTES_MAX = 72 };

/* Returns false only when out of memory. */
bool es256_to_der(const unsigned char raw[ES256_RAW_BYTES], unsigned char der[ES256_DER_BYTES_MAX],
                  size_t *der_len);

/* Returns false if `der` is not a signature of that curve. */
bool es256_from_der(const unsigned char *der, size_t der_len, unsigned char raw[ES256_RAW_BYTES]);

#endif
