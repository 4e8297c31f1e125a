/*
 * The keys that tokens are verified with, read from one file.
 *
 * The file is PEM (public keys or certificates, one after another) or a JWK set, told apart by its
 * content. Of a certificate only the key counts: neither its dates nor its issuer are looked at.
 * A file that holds a private or symmetric key is refused. Entries of a JWK set that are for
 * something else (encryption, other algorithms) are skipped with a line in the log.
 *
 * A key is named by its `kid` and always also by its RFC 7638 thumbprint. Keys from PEM have no
 * `kid`, and the issuer's name for them is not known here, so a token that names a key nobody knows
 * is tried against the keys without a `kid`, and refused before any cryptography when there are
 * none.
 *
 * A set never changes after it was loaded. It is counted: all workers share one, and rotation is
 * loading a new set and letting go of the old one. Any thread may share, use and release it.
 */
#ifndef ROLLCALL_AUTH_KEYS_KEY_SET_H
#define ROLLCALL_AUTH_KEYS_KEY_SET_H

#include "auth/auth_error.h"
#include "auth/keys/key_algorithm.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    KEY_SET_KEYS_MAX = 64,
    /* How many keys one token may be tried against. */
    KEY_SET_CANDIDATES_MAX = 4,
};

struct key;
struct key_set;

/* Reads the file. NULL, with what was expected, when it cannot be used. The caller holds one
 * reference. */
struct key_set *key_set_load(const char *path, struct auth_error *error);

/* The same from memory, which is written to. `name` stands for the path in errors. */
struct key_set *key_set_parse(const char *name, char *data, size_t len, struct auth_error *error);

struct key_set *key_set_share(struct key_set *set);

/* Gives up one reference and nulls the caller's pointer; the last one frees the set. NULL is fine.
 */
void key_set_release(struct key_set **held);

size_t key_set_count(const struct key_set *set);

enum key_set_choice {
    KEY_SET_CHOSEN,
    KEY_SET_UNKNOWN_NAME,    /* no key has this name */
    KEY_SET_WRONG_ALGORITHM, /* keys were found, none of them for this algorithm */
    KEY_SET_AMBIGUOUS,       /* more keys fit than a token is tried against */
};

struct key_set_candidates {
    const struct key *keys[KEY_SET_CANDIDATES_MAX]; /* live as long as the set */
    size_t count;
};

/* The keys a token with this `kid` (empty: none) and `alg` may have been signed with. */
enum key_set_choice key_set_choose(const struct key_set *set, struct slice name,
                                   enum key_algorithm algorithm, struct key_set_candidates *out);

#endif
