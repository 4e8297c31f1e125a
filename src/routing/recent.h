/*
 * Hashes of the events that an endpoint got lately, so that an event which comes from several change sources
 * (a contact and each shared chat) is delivered once.
 *
 * It holds RECENT_MAX hashes; a new one replaces the oldest. It is allocated when first needed, since most
 * connections have one source only. The hashes are keyed
 * (base/hash_key.h): by accident a colliding hash drops one event in 2^59, and nobody can construct one.
 */
#ifndef ROLLCALL_ROUTING_RECENT_H
#define ROLLCALL_ROUTING_RECENT_H

#include <stdbool.h>
#include <stdint.h>

enum { RECENT_MAX = 32 };

struct recent {
    uint64_t keys[RECENT_MAX];
    uint32_t next;
};

/* Notes a key. Returns whether it was not noted lately; always true when out of memory. */
bool recent_note(struct recent **recent, uint64_t key);

void recent_free(struct recent **recent);

#endif
