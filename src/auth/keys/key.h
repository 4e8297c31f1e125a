/*
 * A public key that tokens are verified with, and the one algorithm it is for.
 *
 * The algorithm follows from the key's type when it is loaded and never from a token: RSA is RS256,
 * P-256 is ES256, Ed25519 is EdDSA. Nothing else is let in, so there is no secret an attacker could
 * turn a public key into and no weaker algorithm to fall back to.
 *
 * A key is immutable after key_init(), and any number of threads may verify with it at once. It
 * holds an OpenSSL context that is ready to verify; each verification works on a copy. Measured on
 * RS256 (instructions a verification): context built anew 332,700, copied 304,800, one kept by each
 * thread 303,700. The copy saves what can be saved and needs no state per thread.
 */
#ifndef ROLLCALL_AUTH_KEYS_KEY_H
#define ROLLCALL_AUTH_KEYS_KEY_H

#include "auth/auth_error.h"
#include "auth/keys/key_algorithm.h"
#include "base/slice.h"

#include <openssl/evp.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    KEY_ID_BYTES_MAX = 128,
    KEY_THUMBPRINT_LEN = 43, /* RFC 7638, SHA-256 in base64url */
    KEY_RSA_BITS_MIN = 2048,
    KEY_RSA_BITS_MAX = 8192, /* bounds what one verification can cost */
    KEY_SIGNATURE_BYTES_MAX = KEY_RSA_BITS_MAX / 8,
};

struct key {
    enum key_algorithm algorithm;
    size_t id_len; /* 0: the file gave the key no `kid` */
    char id[KEY_ID_BYTES_MAX];
    char thumbprint[KEY_THUMBPRINT_LEN];
    EVP_PKEY *pkey;
    EVP_MD *sha256;
    EVP_PKEY_CTX *digest_verifier; /* RS256 and ES256: verifies a digest */
    EVP_MD_CTX *message_verifier;  /* EdDSA: verifies the message itself */
};

/* The algorithm a key is for. False, with the reason, when it is of a type, size or exponent that
 * is not let in. */
bool key_algorithm_of(const EVP_PKEY *pkey, enum key_algorithm *out, struct auth_error *error);

/* Takes `pkey`, also when it fails. `id` may be empty. End it with key_release(). */
bool key_init(struct key *key, EVP_PKEY *pkey, struct slice id, struct auth_error *error);

void key_release(struct key *key);

/* True when `name` is the key's `kid` or its thumbprint. */
bool key_is_named(const struct key *key, struct slice name);

/* True when `signature` was made over exactly `message` by the private half of this key. Leaves
 * OpenSSL's error queue as it was. */
bool key_verify(const struct key *key, struct slice message, const unsigned char *signature,
                size_t signature_len);

#endif
