/*
 * The names of keys in Redis.
 *
 * On a single server a user's keys are exactly those of the design: "user_servers:alice". On a cluster the user id is
 * a hash tag in braces, "user_servers:{alice}", so that all keys of one user are in one slot and one script may use
 * them together.
 *
 * A '}' in a user id would end the hash tag early, and two users could then share keys. So on a cluster an id is
 * encoded if it has a '}', or if it looks like an encoded id: every '%' becomes "%25" and every '}' becomes "%7D". All
 * other ids are written as they are. The encoding is injective: an id written as it is contains neither "%25" nor
 * "%7D", and an encoded id contains at least one of them.
 *
 * These are pure functions. They write keys to the caller's memory.
 */
#ifndef ROLLCALL_STORE_REDIS_REDIS_KEYS_H
#define ROLLCALL_STORE_REDIS_REDIS_KEYS_H

#include "base/slice.h"

#include <stdbool.h>

/* Enough for the longest id, encoded, with any prefix and suffix that we use. */
enum { REDIS_KEY_BYTES_MAX = 1024 };

struct redis_keys {
    bool cluster;
};

/* Writes "<prefix><user><suffix>", on a cluster "<prefix>{<user>}<suffix>" with the user encoded. Asserts that the user
 * is not empty and that the key fits. */
struct slice redis_key_user(const struct redis_keys *keys, char out[REDIS_KEY_BYTES_MAX],
                            const char *prefix, struct slice user, const char *suffix);

/* Writes "<prefix><id>", which may be in any slot. */
struct slice redis_key_plain(char out[REDIS_KEY_BYTES_MAX], const char *prefix, struct slice id);

/* Writes "<prefix>{<key>}:<id>", a key in the slot of `key`, which redis_key_plain() wrote. Returns SLICE_NONE when
 * `key` has a '}': then no such name exists. */
struct slice redis_key_beside(char out[REDIS_KEY_BYTES_MAX], const char *prefix, struct slice key,
                              struct slice id);

/* The inverse of redis_key_user(): writes the user of a key that begins with `prefix` to `out` and *user. On a cluster
 * *rest is the suffix; on a single server nothing separates the suffix from the user, and *rest is empty. Returns false
 * when redis_key_user() cannot have written the key. */
bool redis_key_read_user(const struct redis_keys *keys, char out[REDIS_KEY_BYTES_MAX],
                         struct slice key, const char *prefix, struct slice *user,
                         struct slice *rest);

#endif
