/*
 * Signing tokens: for development, for `rollcall token`, and for tests. The server never signs with
 * anything but its own dev key.
 *
 * A signer is a private key and the name that its tokens carry as `kid`; the algorithm follows
 * from its type, as in auth/keys/key.h. It is immutable: threads may sign with one at the same time. It
 * is owned by who loaded it, until jwt_signer_free().
 */
#ifndef ROLLCALL_AUTH_JWT_SIGN_H
#define ROLLCALL_AUTH_JWT_SIGN_H

#include "auth/auth_error.h"
#include "base/buffer.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

struct jwt_signer;

/* What a token says. Empty slices are left out. Borrowed for the call. */
struct jwt_sign_claims {
    struct slice user;
    struct slice scope;
    struct slice issuer;
    struct slice audience;
    int64_t issued_at_wall_ms;  /* cut to seconds, as is usual */
    int64_t expires_at_wall_ms; /* written with milliseconds where it has any */
};

/* Reads a private key in PEM. Tokens will name it by its RFC 7638 thumbprint. NULL, with the
 * reason, when it cannot be used. */
struct jwt_signer *jwt_signer_load(const char *path, struct auth_error *error);

/* The same from memory; `kid` empty means the thumbprint. */
struct jwt_signer *jwt_signer_parse(struct slice pem, struct slice kid, struct auth_error *error);

/* Wipes and frees the key and nulls the caller's pointer. NULL is fine. */
void jwt_signer_free(struct jwt_signer **held);

/* Appends a token. False when OpenSSL fails or memory runs out; `out` then is as before. */
bool jwt_sign(const struct jwt_signer *signer, const struct jwt_sign_claims *claims,
              struct buffer *out);

/* Appends a token with a header and claims of the caller's making, whatever they say: what tests
 * and the fuzzer build their attacks with. */
bool jwt_sign_raw(const struct jwt_signer *signer, struct slice header, struct slice claims,
                  struct buffer *out);

/* Appends the public half as a JWK set. Fails as jwt_sign() does. */
bool jwt_signer_write_jwks(const struct jwt_signer *signer, struct buffer *out);

#endif
