/*
 * What an endpoint was told lately, as hashes: so that an event which reaches it by several roads (as a
 * friend's, through each chat they share) is told once.
 *
 * The memory is small and forgets the oldest; it is allocated when first needed, since most connections
 * only ever have one road. A hash that collides drops an event in 2^59 cases.
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

/* True when this key was not noted lately; from now on it is. Without memory everything is new. */
bool recent_note(struct recent **recent, uint64_t key);

void recent_free(struct recent **recent);

#endif
