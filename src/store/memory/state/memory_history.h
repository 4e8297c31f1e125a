/*
 * The last transitions of a shard's users, in one ring: the newest entry replaces the oldest of any user. An
 * entry names its user by a hash, so all entries have one size. Two users with the same hash would each be shown
 * the other's entries; the secret key keeps users from choosing such a pair.
 *
 * No locks: the caller holds the shard's lock.
 */
#ifndef ROLLCALL_STORE_MEMORY_STATE_MEMORY_HISTORY_H
#define ROLLCALL_STORE_MEMORY_STATE_MEMORY_HISTORY_H

#include "base/hash_key.h"
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

/* Initialised with zeroes and the key. */
struct memory_history {
    struct memory_history_entry entries[MEMORY_HISTORY_ENTRIES];
    size_t next;
    struct hash_key key;
};

/* Adds an entry; `presence` is the one after the transition. */
void memory_history_add(struct memory_history *history, const struct presence *presence,
                        enum memory_cause cause, int64_t wall_ms);

/* Forgets the user's transitions. */
void memory_history_forget(struct memory_history *history, struct slice user_id);

/* Returns at most `max` of the user's last transitions, oldest first. */
size_t memory_history_of(const struct memory_history *history, struct slice user_id,
                         struct state_history *out, size_t max);

#endif
