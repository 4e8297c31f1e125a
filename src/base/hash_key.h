/*
 * A hash of bytes with a secret key, for places where equal hashes decide something: which event is a repetition,
 * which entry of a set is replaced, which bucket of a table is searched.
 *
 * Clients choose ids and bodies, and an unkeyed hash of them can be inverted: whoever knows it constructs two
 * inputs with one hash and so suppresses an event of somebody else, or fills one bucket. The key is XXH3's whole
 * secret, derived from a random seed of the process that is never shown, written or sent. So a hash is only ever
 * compared with hashes of the same process. A seed alone, as XXH3 takes one, is added to constants that are
 * known, which is too little for inputs that an attacker constructs.
 *
 * Hashes that only balance or filter, such as the choice of a shard or of a counter's slot, need no key; a seed
 * is enough.
 */
#ifndef ROLLCALL_BASE_HASH_KEY_H
#define ROLLCALL_BASE_HASH_KEY_H

#include "base/slice.h"

#include <stdint.h>

enum { HASH_KEY_BYTES = 192 };

struct hash_key {
    uint8_t secret[HASH_KEY_BYTES];
};

/* The same seed makes the same key, so that tests repeat themselves. */
void hash_key_init(struct hash_key *key, uint64_t seed);

uint64_t hash_key_hash(const struct hash_key *key, struct slice bytes);

#endif
