/*
 * What a recovery store that is shared with other processes still keeps in its own: of a worker that parks and takes
 * sessions, the two things that the shared part cannot know in time (recovery_store.h).
 *
 *   - the users whom the worker parked or took within the last RECOVERY_RECENT_MS, so that it appends events that arrive late
 *     for them. It is a table of keyed hashes of fixed size, in which a newer user replaces an older one, so a few late events
 *     may be missed;
 *   - the events that arrive while a session is being taken, within the limits of one session.
 *
 * A part of its store, on the store's thread.
 */
#ifndef ROLLCALL_STORE_RECOVERY_LOCAL_H
#define ROLLCALL_STORE_RECOVERY_LOCAL_H

#include "base/hash_key.h"
#include "base/list.h"
#include "store/recovery_store.h"

enum { RECOVERY_RECENT_MS = 10000, RECOVERY_RECENT_MAX = 2048 };

/* A user for whom late events may arrive. */
struct recovery_recent {
    uint64_t user_hash;
    int64_t until_ms;
};

struct recovery_local {
    struct hash_key key;     /* of the hashes in `recent` */
    int64_t recent_until_ms; /* when the last entry of `recent` expires */
    struct recovery_recent recent[RECOVERY_RECENT_MAX];
    struct list takings; /* pending ones */
};

/* One session that is being taken. */
struct recovery_taking;

/* Initialises zeroed memory. */
void recovery_local_init(struct recovery_local *local, uint64_t hash_seed);

/* From now on late events may arrive for this user. */
void recovery_local_note(struct recovery_local *local, struct slice user_id, int64_t now_ms);
bool recovery_local_expects(const struct recovery_local *local, struct slice user_id,
                            int64_t now_ms);

/* Returns NULL when out of memory; `done` has not run then. */
struct recovery_taking *recovery_local_take(struct recovery_local *local, struct slice user_id,
                                            struct slice pid, recovery_take_done done, void *arg);

/* Adds an event that arrived for a user to the user's pending takings. */
void recovery_local_add(struct recovery_local *local, struct slice user_id,
                        const struct recovery_event *event);

/* Completes with the session and the events that arrived meanwhile, or with nothing (NULL); frees the taking. User and pid of
 * the session are the taking's. */
void recovery_taking_finish(struct recovery_taking **taking, const struct parked_session *session);

/* Completes all pending takings with nothing to recover; they are still to be finished. */
void recovery_local_end(struct recovery_local *local);

#endif
