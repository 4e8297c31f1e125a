/*
 * Chance is passed in, so that a simulation can repeat itself. The system's source is unguessable
 * (getrandom(2), fetched in blocks); a seeded one (for tests and the simulator) repeats for ever.
 * One struct per thread.
 */
#ifndef ROLLCALL_BASE_RANDOM_H
#define ROLLCALL_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

enum { RANDOM_BLOCK_BYTES = 256 };

struct random {
    void (*refill)(struct random *random);
    uint64_t state[4]; /* of a seeded source */
    uint16_t left;     /* unused bytes at the end of block */
    uint8_t block[RANDOM_BLOCK_BYTES];
};

void random_init_system(struct random *random);
void random_init_seeded(struct random *random, uint64_t seed);

void random_bytes(struct random *random, void *out, size_t len);
uint64_t random_u64(struct random *random);

/* A uniform number in [0, bound); 0 when bound is 0. */
uint64_t random_below(struct random *random, uint64_t bound);

#endif
