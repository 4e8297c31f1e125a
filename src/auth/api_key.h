/*
 * An API key: "rk_" and 32 random bytes in base64url. It is shown once, when it is made; afterwards only its hash exists.
 * The key has all the entropy of its hash, so one round of SHA-256 without a salt hides it.
 */
#ifndef ROLLCALL_AUTH_API_KEY_H
#define ROLLCALL_AUTH_API_KEY_H

#include "base/random.h"
#include "base/slice.h"

#include <stdbool.h>

#define API_KEY_PREFIX SLICE("rk_")

enum {
    API_KEY_RANDOM_BYTES = 32,
    API_KEY_TEXT_LEN = 46,
    API_KEY_HASH_LEN = 64, /* hexadecimal */
    API_KEY_NAME_BYTES_MAX = 64,
};

/* Makes a key. Returns false when out of memory. */
bool api_key_make(struct random *random, char text[API_KEY_TEXT_LEN]);

/* Writes the hash of a key. Returns false if the text does not look like one. */
bool api_key_hash(struct slice text, char hash[API_KEY_HASH_LEN]);

/* Whether both hashes are equal, in a time that does not depend on where they differ. */
bool api_key_hash_equal(const char a[API_KEY_HASH_LEN], struct slice b);

/* A name has letters, digits, '.', '_' and '-'. */
bool api_key_name_valid(struct slice name);

#endif
