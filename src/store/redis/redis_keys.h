/*
 * How keys are called in Redis.
 *
 * On a single server a user's keys are those of the design, letter by letter: "user_servers:alice". On a
 * cluster the user stands in braces, "user_servers:{alice}", so that all keys of one user are in one slot
 * and a script may touch them together.
 *
 * A brace in a user's id would end the tag early, and two users could then share keys. So on a cluster an
 * id that has a '}', or that could be taken for one so written, is encoded: every '%' becomes "%25" and
 * every '}' becomes "%7D". All other ids are written as they are. The encoding is injective: an id written
 * as it is contains neither "%25" nor "%7D", an encoded one contains at least one of them.
 *
 * Pure functions; keys are written to the caller's memory and last as long as that.
 */
#ifndef ROLLCALL_STORE_REDIS_REDIS_KEYS_H
#define ROLLCALL_STORE_REDIS_REDIS_KEYS_H

#include "base/slice.h"

#include <stdbool.h>

/* Room for the longest id, encoded, with whatever prefix and suffix we use. */
enum { REDIS_KEY_BYTES_MAX = 1024 };

struct redis_keys {
    bool cluster;
};

/* "<prefix><user><suffix>", on a cluster "<prefix>{<user>}<suffix>" with the user encoded. The user is not
 * empty. What does not fit is a programmer's error. */
struct slice redis_key_user(const struct redis_keys *keys, char out[REDIS_KEY_BYTES_MAX],
                            const char *prefix, struct slice user, const char *suffix);

/* "<prefix><id>", wherever that falls. */
struct slice redis_key_plain(char out[REDIS_KEY_BYTES_MAX], const char *prefix, struct slice id);

/* "<prefix>{<key>}:<id>", in the slot where `key` (of redis_key_plain()) is. SLICE_NONE where a '}' in that key
 * leaves no name for it. */
struct slice redis_key_beside(char out[REDIS_KEY_BYTES_MAX], const char *prefix, struct slice key,
                              struct slice id);

/* The inverse of redis_key_user(): the user of a key that begins with `prefix`. *user is written to `out`,
 * *rest is what stands behind the user on a cluster (where its end can be seen), else empty. False when the
 * key is not one that redis_key_user() makes. */
bool redis_key_read_user(const struct redis_keys *keys, char out[REDIS_KEY_BYTES_MAX],
                         struct slice key, const char *prefix, struct slice *user,
                         struct slice *rest);

#endif
