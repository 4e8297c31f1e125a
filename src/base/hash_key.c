#include "base/hash_key.h"

#include "base/random.h"

/* Inlined, the key costs hardly more than a seed does through the shared library. */
#define XXH_INLINE_ALL
#include <xxhash.h>

void hash_key_init(struct hash_key *key, uint64_t seed)
{
    struct random random;
    random_init_seeded(&random, seed);
    random_bytes(&random, key->secret, sizeof(key->secret));
}

uint64_t hash_key_hash(const struct hash_key *key, struct slice bytes)
{
    return XXH3_64bits_withSecret(bytes.data, bytes.len, key->secret, sizeof(key->secret));
}
