/*
 * Makes `in_call` of users what the call store says, without fail.
 *
 *   look (call store) ──► set (state store) ──► look again ──the same──► done
 *                            │ not set: out of reach, or no memory
 *                            ▼
 *                         waiting ──call_sync_retry()──► look
 *
 * Looking again is what makes the order of gateways indifferent: whoever sets last has looked after it.
 * Where memory is short, CALL_SYNC_SPARES users can be served all the same.
 */
#ifndef ROLLCALL_CALLS_CALL_SYNC_H
#define ROLLCALL_CALLS_CALL_SYNC_H

#include "base/list.h"
#include "presence/presence_plane.h"
#include "store/call_store.h"

enum {
    CALL_SYNC_SPARES = 16,
    CALL_SYNC_WAITING_MAX = 4096, /* more are left to their next transition, and logged */
};

struct call_sync;

struct call_syncing {
    struct list waiting; /* on call_sync.waiting, or on none */
    struct call_sync *sync;
    unsigned rounds;
    bool in_use; /* of a spare */
    bool set;    /* what it was set to last */
    uint8_t user_len;
    char user[USER_ID_BYTES_MAX];
};

struct call_sync {
    struct call_store *store;
    struct presence_plane *presence;
    struct list waiting;
    size_t waiting_count;
    struct call_syncing spares[CALL_SYNC_SPARES];
};

void call_sync_init(struct call_sync *sync, struct call_store *store,
                    struct presence_plane *presence);

/* When nothing is under way any more. */
void call_sync_free(struct call_sync *sync);

void call_sync_user(struct call_sync *sync, struct slice user_id);

/* Tries again what could not be set. */
void call_sync_retry(struct call_sync *sync);

#endif
