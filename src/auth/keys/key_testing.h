/* Keys for tests, generated when the test runs, so that the repository contains no private key. A
 * test that cannot generate one aborts. Not part of the program. */
#ifndef ROLLCALL_AUTH_KEYS_KEY_TESTING_H
#define ROLLCALL_AUTH_KEYS_KEY_TESTING_H

#include "auth/jwt_sign.h"
#include "auth/keys/key_set.h"
#include "base/buffer.h"

#include <openssl/evp.h>

EVP_PKEY *key_testing_rsa(unsigned bits);
EVP_PKEY *key_testing_p256(void);
EVP_PKEY *key_testing_ed25519(void);

/* Append to `out`. */
void key_testing_private_pem(const EVP_PKEY *pkey, struct buffer *out);
void key_testing_public_pem(const EVP_PKEY *pkey, struct buffer *out);

/* Appends the public JWK with `extra` (", \"name\":value" pairs, or "") at its end. If `kid` is
 * NULL, the JWK has none. */
void key_testing_jwk(const EVP_PKEY *pkey, const char *kid, const char *extra, struct buffer *out);

/* Returns a signer with this `kid`; NULL means the thumbprint. */
struct jwt_signer *key_testing_signer(const EVP_PKEY *pkey, const char *kid);

/* Parses a copy of `text`. Returns NULL and sets *error if it is refused. */
struct key_set *key_testing_parse(struct slice text, struct auth_error *error);

#endif
