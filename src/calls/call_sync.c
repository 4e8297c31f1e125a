#include "calls/call_sync.h"

#include "base/container.h"
#include "log/log.h"

#include <stdlib.h>
#include <string.h>

/* Rounds of reading and setting while calls of one user keep changing. Beyond that the last transition
 * starts a sync of its own. */
enum { ROUNDS_MAX = 16 };

void call_sync_init(struct call_sync *sync, struct call_store *store,
                    struct presence_plane *presence)
{
    *sync = (struct call_sync){.store = store, .presence = presence};
    list_init(&sync->waiting);
}

static void call_syncing_release(struct call_syncing *syncing)
{
    struct call_sync *sync = syncing->sync;
    if (syncing >= sync->spares && syncing < sync->spares + CALL_SYNC_SPARES)
        syncing->in_use = false;
    else
        free(syncing);
}

void call_sync_free(struct call_sync *sync)
{
    struct list *next;
    for (struct list *at = sync->waiting.next; at != &sync->waiting; at = next) {
        next = at->next;
        call_syncing_release(CONTAINER_OF(at, struct call_syncing, waiting));
    }
    list_init(&sync->waiting);
    sync->waiting_count = 0;
}

static struct slice call_syncing_user(const struct call_syncing *syncing)
{
    return (struct slice){syncing->user, syncing->user_len};
}

static void call_syncing_wait(struct call_syncing *syncing)
{
    struct call_sync *sync = syncing->sync;
    if (sync->waiting_count == CALL_SYNC_WAITING_MAX) {
        log_error("in_call_not_set", "user=%s reason=%s", log_quote(call_syncing_user(syncing)),
                  "too many wait");
        call_syncing_release(syncing);
        return;
    }
    list_append(&sync->waiting, &syncing->waiting);
    sync->waiting_count++;
}

static void call_syncing_read(struct call_syncing *syncing);

static void on_in_call_set(void *arg, bool set)
{
    if (set)
        call_syncing_read(arg);
    else
        call_syncing_wait(arg);
}

static void on_call_of_user_read(void *arg, const struct call_answer *answer)
{
    struct call_syncing *syncing = arg;
    bool in_call = answer->result == CALL_DONE && answer->call->state == CALL_ACCEPTED;
    bool agrees = syncing->rounds > 0 && syncing->set == in_call;
    if (answer->result == CALL_UNAVAILABLE) {
        call_syncing_wait(syncing);
    } else if (agrees || syncing->rounds == ROUNDS_MAX) {
        call_syncing_release(syncing);
    } else {
        syncing->rounds++;
        syncing->set = in_call;
        presence_set_call(syncing->sync->presence, call_syncing_user(syncing), in_call,
                          on_in_call_set, syncing);
    }
}

static void call_syncing_read(struct call_syncing *syncing)
{
    call_store_get(syncing->sync->store, SLICE_NONE, call_syncing_user(syncing),
                   on_call_of_user_read, syncing);
}

void call_sync_user(struct call_sync *sync, struct slice user_id)
{
    struct call_syncing *syncing = malloc(sizeof(*syncing));
    for (size_t i = 0; !syncing && i < CALL_SYNC_SPARES; i++)
        syncing = sync->spares[i].in_use ? NULL : &sync->spares[i];
    if (!syncing) {
        log_error("in_call_not_set", "user=%s reason=%s", log_quote(user_id), "out of memory");
        return;
    }
    *syncing =
        (struct call_syncing){.sync = sync, .in_use = true, .user_len = (uint8_t)user_id.len};
    memcpy(syncing->user, user_id.data, user_id.len);
    call_syncing_read(syncing);
}

/* Users that fail again wait for the next retry. */
void call_sync_retry(struct call_sync *sync)
{
    for (size_t count = sync->waiting_count; count > 0; count--) {
        struct call_syncing *syncing =
            CONTAINER_OF(sync->waiting.next, struct call_syncing, waiting);
        list_remove(&syncing->waiting);
        sync->waiting_count--;
        syncing->rounds = 0;
        call_syncing_read(syncing);
    }
}
