/*
 * The last transitions of a shard's users, in a ring: the newest take the place of the oldest, whoever's they
 * are. A user stands in it by a hash, so that an entry has one size; of two users with the same hash each is
 * told the other's, which the seed makes nobody's choice.
 *
 * No locks: whoever holds the shard's.
 */
#ifndef ROLLCALL_STORE_MEMORY_MEMORY_HISTORY_H
#define ROLLCALL_STORE_MEMORY_MEMORY_HISTORY_H

#include "store/state_store.h"

enum { MEMORY_HISTORY_ENTRIES = 128 };

enum memory_cause {
    MEMORY_CONNECTED,
    MEMORY_DISCONNECTED,
    MEMORY_EXPIRED,
    MEMORY_IDLE,
    MEMORY_ACTIVE,
    MEMORY_GRACE_OVER,
    MEMORY_CALL_STARTED,
    MEMORY_CALL_ENDED,
    MEMORY_CAUSE_COUNT
};

struct memory_history_entry {
    uint64_t user_hash;
    int64_t at_ms;
    int64_t version;
    uint8_t status; /* enum presence_status */
    uint8_t cause;  /* enum memory_cause */
};

/* Begins as zero but for the seed. */
struct memory_history {
    struct memory_history_entry entries[MEMORY_HISTORY_ENTRIES];
    size_t next;
    uint64_t hash_seed;
};

/* The presence as it is after the transition. */
void memory_history_add(struct memory_history *history, const struct presence *presence,
                        enum memory_cause cause, int64_t wall_ms);

/* A user's last transitions, oldest first, at most `max`. */
size_t memory_history_of(const struct memory_history *history, struct slice user_id,
                         struct state_history *out, size_t max);

#endif
