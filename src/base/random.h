/*
 * A source of randomness is passed in, so that a simulation can repeat itself. The system's source
 * is unpredictable (getrandom(2), read in blocks; the process aborts if it fails). A seeded source,
 * for tests and simulations, returns the same bytes on every machine.
 *
 * Bytes are erased from the block when they are returned, since they may become a secret. One
 * struct per thread. After fork(2) a child must initialise its own, or both return the same bytes.
 */
#ifndef ROLLCALL_BASE_RANDOM_H
#define ROLLCALL_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

enum { RANDOM_BLOCK_BYTES = 256 };

struct random {
    void (*refill)(struct random *random); /* fills the whole block */
    uint64_t state[4];                     /* of a seeded source only */
    uint16_t left;                         /* unused bytes at the end of block */
    uint8_t block[RANDOM_BLOCK_BYTES];
};

void random_init_system(struct random *random);
void random_init_seeded(struct random *random, uint64_t seed);

void random_bytes(struct random *random, void *out, size_t len);
uint64_t random_u64(struct random *random);

/* Returns a uniform number in [0, bound), without bias; 0 if bound is 0. */
uint64_t random_below(struct random *random, uint64_t bound);

#endif
