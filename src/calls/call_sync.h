/*
 * Sets `in_call` of users according to the call store, and retries until it is set.
 *
 *   read (call store) ──► set (state store) ──► read again ──unchanged──► done
 *                            │ not set: store unavailable, or out of memory
 *                            ▼
 *                         waiting ──call_sync_retry()──► read
 *
 * The second read makes the order of gateways irrelevant: whichever gateway sets last reads after that.
 * When memory is short, CALL_SYNC_SPARES users can still be served.
 */
#ifndef ROLLCALL_CALLS_CALL_SYNC_H
#define ROLLCALL_CALLS_CALL_SYNC_H

#include "base/list.h"
#include "presence/presence_plane.h"
#include "store/call_store.h"

enum {
    CALL_SYNC_SPARES = 16,
    CALL_SYNC_WAITING_MAX = 4096, /* beyond, users are logged and left to their next transition */
};

struct call_sync;

struct call_syncing {
    struct list waiting; /* on call_sync.waiting, or alone */
    struct call_sync *sync;
    unsigned rounds;
    bool in_use; /* for spares */
    bool set;    /* the value that was set last */
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

/* No operation may be pending. */
void call_sync_free(struct call_sync *sync);

/* Starts to set `in_call` of this user. */
void call_sync_user(struct call_sync *sync, struct slice user_id);

/* Retries what could not be set. */
void call_sync_retry(struct call_sync *sync);

#endif
