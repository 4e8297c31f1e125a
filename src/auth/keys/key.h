/*
 * A key that verifies tokens, and its one algorithm.
 *
 * The algorithm follows from the type of the key when it is loaded, never from a token: RSA is
 * RS256, P-256 is ES256, Ed25519 is EdDSA, a shared secret (from a file of its own) is HS256. Nothing
 * else is accepted, so an attacker can neither use a public key as a shared secret nor choose a weaker
 * algorithm.
 *
 * A key is immutable after key_init(); any number of threads may verify with it at once. It holds
 * an OpenSSL context that is ready to verify; each verification works on a copy. Measured with
 * RS256 (instructions per verification): new context 332,700, copied context 304,800, one context
 * per thread 303,700. So the copy saves nearly everything and needs no state per thread.
 */
#ifndef ROLLCALL_AUTH_KEYS_KEY_H
#define ROLLCALL_AUTH_KEYS_KEY_H

#include "auth/auth_error.h"
#include "auth/keys/key_algorithm.h"
#include "base/slice.h"

#include <openssl/evp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    KEY_ID_BYTES_MAX = 128,
    KEY_THUMBPRINT_LEN = 43, /* RFC 7638, SHA-256 in base64url */
    KEY_RSA_BITS_MIN = 2048,
    KEY_RSA_BITS_MAX = 8192, /* bounds what one verification can cost */
    KEY_SIGNATURE_BYTES_MAX = KEY_RSA_BITS_MAX / 8,
    KEY_SECRET_BYTES_MIN = 32, /* RFC 7518 §3.2 */
    KEY_SECRET_BYTES_MAX = 4096,
};

struct key {
    enum key_algorithm algorithm;
    size_t id_len; /* 0: the key has no `kid` in its file */
    char id[KEY_ID_BYTES_MAX];
    char thumbprint[KEY_THUMBPRINT_LEN];
    uint32_t tag;   /* tells this key from others, in sessions; from its material alone */
    EVP_PKEY *pkey; /* NULL in a shared secret */
    unsigned char *secret;
    size_t secret_len;
    EVP_MD *sha256;
    EVP_PKEY_CTX *digest_verifier; /* RS256 and ES256: verifies a digest */
    EVP_MD_CTX *message_verifier;  /* EdDSA: verifies the message itself */
};

/* Determines the algorithm of a key. Returns false and sets *error if its type, size or exponent is
 * not accepted. */
bool key_algorithm_of(const EVP_PKEY *pkey, enum key_algorithm *out, struct auth_error *error);

/* Takes `pkey`, also if it fails. `id` may be empty. The caller calls key_release() later. */
bool key_init(struct key *key, EVP_PKEY *pkey, struct slice id, struct auth_error *error);

/* Copies a shared secret. Returns false and sets *error if its length is not accepted. */
bool key_init_secret(struct key *key, struct slice secret, struct auth_error *error);

/* Makes a key with the same material and name. Returns false when out of memory. */
bool key_copy(struct key *key, const struct key *from);

/* Erases and frees. */
void key_release(struct key *key);

/* Returns whether `name` is the `kid` or the thumbprint of the key. */
bool key_is_named(const struct key *key, struct slice name);

/* Returns whether the private half of this key made `signature` for exactly `message`. Does not
 * change OpenSSL's error queue. */
bool key_verify(const struct key *key, struct slice message, const unsigned char *signature,
                size_t signature_len);

#endif
