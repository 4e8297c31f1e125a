/*
 * A set of recently seen 64-bit keys, for receivers that get the same event over several
 * transports and must handle it once.
 *
 * Two events with the same key are one event to the receiver, so a client must be unable to choose or
 * predict a key: it is made of random bits of the server, or it is a hash with a secret.
 *
 * A key has SEEN_WAYS possible slots; a new key replaces the oldest of them. So a lookup costs one
 * cache line whatever the set holds, nothing is ever allocated, and a key is forgotten after about
 * SEEN_KEYS_MAX newer ones (in practice after a third of that at the earliest). All zero is the
 * empty set; the key 0 counts as 1. One thread.
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

/* Adds the key. Returns true if it was not in the set. */
bool seen_note(struct seen *seen, uint64_t key);

#endif
