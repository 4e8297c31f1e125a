#include "base/random.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* Without randomness no token or identifier is safe to issue, so the process aborts. */
static void random_refill_from_system(struct random *random)
{
    static_assert(RANDOM_BLOCK_BYTES <= 256, "getrandom(2) returns up to 256 bytes in one piece");
    ssize_t got;
    do {
        got = getrandom(random->block, sizeof(random->block), 0);
    } while (got < 0 && errno == EINTR);
    if (got != (ssize_t)sizeof(random->block))
        abort();
}

static uint64_t random_rotate_left(uint64_t value, unsigned count)
{
    return value << count | value >> (64 - count);
}

/* xoshiro256** (Blackman and Vigna). */
static void random_refill_from_seed(struct random *random)
{
    uint64_t *state = random->state;
    for (size_t i = 0; i < sizeof(random->block); i += sizeof(uint64_t)) {
        uint64_t value = htole64(random_rotate_left(state[1] * 5, 7) * 9);
        memcpy(random->block + i, &value, sizeof(value));
        uint64_t shifted = state[1] << 17;
        state[2] ^= state[0];
        state[3] ^= state[1];
        state[1] ^= state[2];
        state[0] ^= state[3];
        state[2] ^= shifted;
        state[3] = random_rotate_left(state[3], 45);
    }
}

void random_init_system(struct random *random)
{
    memset(random, 0, sizeof(*random));
    random->refill = random_refill_from_system;
}

/* The state comes from splitmix64 (Steele, Lea and Flood), so similar seeds give dissimilar
 * states. */
void random_init_seeded(struct random *random, uint64_t seed)
{
    memset(random, 0, sizeof(*random));
    random->refill = random_refill_from_seed;
    for (size_t i = 0; i < 4; i++) {
        uint64_t mixed = seed += 0x9e3779b97f4a7c15;
        mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
        mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
        random->state[i] = mixed ^ mixed >> 31;
    }
}

void random_bytes(struct random *random, void *out, size_t len)
{
    uint8_t *to = out;
    while (len > 0) {
        if (random->left == 0) {
            random->refill(random);
            random->left = sizeof(random->block);
        }
        size_t count = len < random->left ? len : random->left;
        uint8_t *from = random->block + sizeof(random->block) - random->left;
        memcpy(to, from, count);
        memset(from, 0, count);
        random->left = (uint16_t)(random->left - count);
        to += count;
        len -= count;
    }
}

uint64_t random_u64(struct random *random)
{
    uint64_t value;
    random_bytes(random, &value, sizeof(value));
    return le64toh(value);
}

uint64_t random_below(struct random *random, uint64_t bound)
{
    if (bound == 0)
        return 0;
    /* 2^64 mod bound: without the lowest that many numbers, all remainders are equally frequent. */
    uint64_t dropped = (0 - bound) % bound;
    uint64_t value;
    do {
        value = random_u64(random);
    } while (value < dropped);
    return value % bound;
}
