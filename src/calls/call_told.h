/*
 * What the devices of this gateway were told about calls: for whom a call rings, and which calls ended.
 *
 * An event about a call is sent once, and is lost where its receiver has no route for a moment (a link was cut, Redis's clock
 * was set forward, a failover lost a lease). A device would ring, or wait for an answer, for ever. So the gateway notes the
 * events that pass through it to its own devices, and compares with the call store, whatever the fault was:
 *
 *   call_incoming ──► RINGS ──call_accepted, call_ended, call_rejected──► done
 *                       │ rang longer than any call does
 *                       ▼
 *                     the store is asked ──it rings──► asked again later
 *                       │ it ended, was lost, or was answered elsewhere
 *                       ▼
 *                     the user's devices are told
 *
 * A caller, or a callee who has answered, has a binding, whose loss asks the store (call_losses.h); call_told_has_ended() says
 * whether the end was told here.
 *
 * Bounded: CALL_TOLD_RINGS_MAX users for whom a call rings and CALL_TOLD_ENDS ends; the oldest give way.
 * Part of the call plane, on its thread.
 */
#ifndef ROLLCALL_CALLS_CALL_TOLD_H
#define ROLLCALL_CALLS_CALL_TOLD_H

#include "base/hash_key.h"
#include "base/list.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    CALL_TOLD_RINGS_MAX = 4096,
    CALL_TOLD_RINGS_PER_RUN = 256,
    CALL_TOLD_LATE_MS = 2000, /* after the ring timeout */
    CALL_TOLD_ENDS = 1024,
    CALL_TOLD_TELLINGS_MAX = 16,
};

struct call_plane;

struct call_told {
    struct list rings; /* the oldest first */
    size_t ring_count;
    struct hash_key key;
    uint64_t ends[CALL_TOLD_ENDS]; /* hashes of users and calls, a ring */
    size_t next_end;
};

void call_told_init(struct call_told *told, uint64_t hash_seed);

/* No operation may be pending. */
void call_told_free(struct call_told *told);

/* An event of this name, with these fields (JSON), goes to the user's devices here. A delivery_call_hook. */
void call_told_note(void *plane, struct slice user_id, struct slice name, struct slice fields);

/* Returns whether the user's devices here were told lately that the call ended. */
bool call_told_has_ended(const struct call_plane *plane, struct slice user_id,
                         struct slice call_id);

/* Asks the store about calls that have been ringing for too long. */
void call_told_run(struct call_plane *plane);

#endif
