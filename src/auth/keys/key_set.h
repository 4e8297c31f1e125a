/*
 * The keys that verify tokens, read from one file.
 *
 * The file is PEM (public keys or certificates, one after another) or a JWK set; its content
 * decides which. Only the key of a certificate counts: its dates and issuer are ignored. A file
 * with a private or symmetric key is refused. Entries of a JWK set for other purposes (encryption,
 * other algorithms) are skipped with a log line.
 *
 * A key is named by its `kid` and always also by its RFC 7638 thumbprint. Keys from PEM have no
 * `kid`, and the issuer's name for them is unknown here, so a token with an unknown `kid` is tried
 * against the keys without a `kid`; if there are none, it is refused before any cryptography.
 *
 * A set never changes after loading. It is reference-counted: all workers share one, and rotation
 * means loading a new set and releasing the old one. Any thread may share, use and release it.
 */
#ifndef ROLLCALL_AUTH_KEYS_KEY_SET_H
#define ROLLCALL_AUTH_KEYS_KEY_SET_H

#include "auth/auth_error.h"
#include "auth/keys/key_algorithm.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    KEY_SET_KEYS_MAX = 64,
    /* Maximum keys that one token is tried against. */
    KEY_SET_CANDIDATES_MAX = 4,
};

struct key;
struct key_set;

/* Reads the file. Returns NULL and sets *error if it cannot be used. The caller holds one
 * reference. */
struct key_set *key_set_load(const char *path, struct auth_error *error);

/* The same from memory, which is modified. Errors show `name` instead of the path. */
struct key_set *key_set_parse(const char *name, char *data, size_t len, struct auth_error *error);

/* Reads a file that holds a shared secret; one line end behind it does not count. Otherwise like key_set_load(). */
struct key_set *key_set_load_secret(const char *path, struct auth_error *error);

/* Makes a set with the keys of all `sets`, of which some may be NULL, but not all. Returns NULL when out of
 * memory. */
struct key_set *key_set_unite(const struct key_set *const *sets, size_t count);

struct key_set *key_set_share(struct key_set *set);

/* Releases one reference and nulls the caller's pointer; the last one frees the set. *held may be
 * NULL. */
void key_set_release(struct key_set **held);

size_t key_set_count(const struct key_set *set);

/* Returns whether the set has the key that has this tag (key.h). */
bool key_set_has_tag(const struct key_set *set, uint32_t tag);

/* Returns whether every key of `set` is also in `other`, whatever its name. */
bool key_set_is_within(const struct key_set *set, const struct key_set *other);

/* Returns whether a key of the set has this `kid`. */
bool key_set_has_name(const struct key_set *set, struct slice name);

enum key_set_choice {
    KEY_SET_CHOSEN,
    KEY_SET_UNKNOWN_NAME,    /* no key has this name */
    KEY_SET_WRONG_ALGORITHM, /* no key with this name has this algorithm */
    KEY_SET_AMBIGUOUS,       /* more than KEY_SET_CANDIDATES_MAX keys fit */
};

struct key_set_candidates {
    const struct key *keys[KEY_SET_CANDIDATES_MAX]; /* valid as long as the set */
    size_t count;
};

/* Finds the keys that may have signed a token with this `kid` (empty: none) and `alg`. */
enum key_set_choice key_set_choose(const struct key_set *set, struct slice name,
                                   enum key_algorithm algorithm, struct key_set_candidates *out);

#endif
