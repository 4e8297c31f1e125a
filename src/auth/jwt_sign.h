/*
 * Signs tokens: for development, for `rollcall token`, and for tests. The server itself signs only
 * with its development key.
 *
 * A signer is a private key and the `kid` of its tokens; its type determines the algorithm, as in
 * auth/keys/key.h. It is immutable, so several threads may sign with it at once. The caller that
 * loaded it owns it until jwt_signer_free().
 */
#ifndef ROLLCALL_AUTH_JWT_SIGN_H
#define ROLLCALL_AUTH_JWT_SIGN_H

#include "auth/auth_error.h"
#include "base/buffer.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

struct jwt_signer;

/* The claims of a token. Empty slices are omitted. Borrowed until jwt_sign() returns. */
struct jwt_sign_claims {
    struct slice user;
    struct slice scope;
    struct slice issuer;
    struct slice audience;
    int64_t issued_at_wall_ms;  /* truncated to seconds, as is usual */
    int64_t expires_at_wall_ms; /* written with milliseconds if it has any */
};

/* Reads a private key in PEM. The `kid` is its RFC 7638 thumbprint. Returns NULL and sets *error if
 * the key cannot be used. */
struct jwt_signer *jwt_signer_load(const char *path, struct auth_error *error);

/* The same from memory; an empty `kid` means the thumbprint. */
struct jwt_signer *jwt_signer_parse(struct slice pem, struct slice kid, struct auth_error *error);

/* Erases and frees the key and nulls the caller's pointer. *held may be NULL. */
void jwt_signer_free(struct jwt_signer **held);

/* Appends a token. Returns false, with `out` unchanged, if OpenSSL fails or when out of memory. */
bool jwt_sign(const struct jwt_signer *signer, const struct jwt_sign_claims *claims,
              struct buffer *out);

/* Appends a token with any header and claims, so that tests and the fuzzer can build forged
 * ones. */
bool jwt_sign_raw(const struct jwt_signer *signer, struct slice header, struct slice claims,
                  struct buffer *out);

/* Appends the public half as a JWK set. Fails as jwt_sign() does. */
bool jwt_signer_write_jwks(const struct jwt_signer *signer, struct buffer *out);

#endif
