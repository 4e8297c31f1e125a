/*
 * JSON Web Keys (RFC 7517, 8037): reading and writing one public key, and its thumbprint (RFC
 * 7638).
 *
 * A key set published by an issuer holds keys for many purposes; those that are not for verifying
 * our tokens are skipped. Private and symmetric keys are refused outright: a file that holds one
 * should not be where it is, and whoever reads a verification key must not be able to sign.
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
    struct slice id;    /* points into the JSON text; empty where there is no `kid` */
    const char *reason; /* why it was skipped or refused; static text */
};

/* Reads the object that comes next. On JWK_OK the caller owns out->pkey; else it is NULL. */
enum jwk_result jwk_read(struct json *json, struct jwk *out);

/* Appends the public half of `pkey` as a JWK with `kid` (its thumbprint), `alg` and `use`. False
 * when the key is of a type that is not let in, or memory runs out. */
bool jwk_write(struct buffer *out, const EVP_PKEY *pkey);

/* Not terminated. Fails as jwk_write() does. */
bool jwk_thumbprint(const EVP_PKEY *pkey, char out[KEY_THUMBPRINT_LEN]);

#endif
