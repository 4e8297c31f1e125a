/*
 * What was seen lately, as hashes of 64 bits: for those who get the same thing by several roads and
 * must take it once.
 *
 * A key has SEEN_WAYS places it may be in; a new one takes the place of the oldest there. So a look
 * costs one cache line whatever is remembered, nothing is ever allocated, and a key is forgotten
 * after about SEEN_KEYS_MAX newer ones (after a third of that at the earliest, in practice). All
 * zero is empty; the key 0 counts as 1. One thread.
 */
#ifndef ROLLCALL_BASE_SEEN_H
#define ROLLCALL_BASE_SEEN_H

#include <stdbool.h>
#include <stdint.h>

enum { SEEN_WAYS = 8, SEEN_SETS = 2048, SEEN_KEYS_MAX = SEEN_WAYS * SEEN_SETS };

struct seen {
    uint64_t keys[SEEN_SETS][SEEN_WAYS];
    uint8_t oldest[SEEN_SETS];
};

/* True when this key was not seen lately; from now on it was. */
bool seen_note(struct seen *seen, uint64_t key);

#endif
