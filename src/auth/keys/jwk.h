/*
 * JSON Web Keys (RFC 7517, 8037): reads and writes one public key and computes its thumbprint (RFC
 * 7638).
 *
 * An issuer's key set contains keys for many purposes; those that cannot verify our tokens are
 * skipped. Private and symmetric keys are refused, because a file with one is in the wrong place,
 * and a holder of a verification key must not be able to sign.
 */
#ifndef ROLLCALL_AUTH_KEYS_JWK_H
#define ROLLCALL_AUTH_KEYS_JWK_H

#include "auth/keys/key.h"
#include "base/buffer.h"
#include "base/slice.h"
#include "text/json.h"

#include <openssl/evp.h>
#include <stdbool.h>

enum jwk_result {
    JWK_OK,
    JWK_SKIPPED, /* well-formed, but not a key for our tokens */
    JWK_REFUSED, /* the file must not be used, or is not JSON (see json->error) */
};

struct jwk {
    EVP_PKEY *pkey;
    struct slice id;    /* points into the JSON text; empty if there is no `kid` */
    const char *reason; /* why it was skipped or refused; static text */
};

/* Reads the next object. On JWK_OK the caller owns out->pkey; else it is NULL. */
enum jwk_result jwk_read(struct json *json, struct jwk *out);

/* Appends the public half of `pkey` as a JWK with `kid` (its thumbprint), `alg` and `use`. Returns
 * false if the type of the key is not accepted or when out of memory. */
bool jwk_write(struct buffer *out, const EVP_PKEY *pkey);

/* Writes the thumbprint, not terminated. Fails like jwk_write(). */
bool jwk_thumbprint(const EVP_PKEY *pkey, char out[KEY_THUMBPRINT_LEN]);

#endif
