/*
 * Chance is passed in, so that a simulation can repeat itself. The system's source is unguessable
 * (getrandom(2), fetched in blocks; the process ends if there is none); a seeded one, for tests and
 * the simulator, gives the same bytes on every machine for ever.
 *
 * Bytes are wiped from the block as they are given out, since they may have become a secret. One
 * struct per thread; after fork(2) a child must set up its own, or both give out the same.
 */
#ifndef ROLLCALL_BASE_RANDOM_H
#define ROLLCALL_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

enum { RANDOM_BLOCK_BYTES = 256 };

struct random {
    void (*refill)(struct random *random); /* fills the whole block */
    uint64_t state[4];                     /* of a seeded source */
    uint16_t left;                         /* unused bytes at the end of block */
    uint8_t block[RANDOM_BLOCK_BYTES];
};

void random_init_system(struct random *random);
void random_init_seeded(struct random *random, uint64_t seed);

void random_bytes(struct random *random, void *out, size_t len);
uint64_t random_u64(struct random *random);

/* A uniform number in [0, bound), without bias; 0 when bound is 0. */
uint64_t random_below(struct random *random, uint64_t bound);

#endif
