#include "calls/call_sync.h"

#include "base/container.h"
#include "log/log.h"

#include <stdlib.h>
#include <string.h>

/* Transitions of one user that overtake each other while it is set: more is a storm, and the last of
 * them brings a look of its own. */
enum { ROUNDS_MAX = 16 };

void call_sync_init(struct call_sync *sync, struct call_store *store,
                    struct presence_plane *presence)
{
    *sync = (struct call_sync){.store = store, .presence = presence};
    list_init(&sync->waiting);
}

static struct call_syncing *take_spare(struct call_sync *sync)
{
    for (size_t i = 0; i < CALL_SYNC_SPARES; i++)
        if (!sync->spares[i].in_use)
            return &sync->spares[i];
    return NULL;
}

static void release(struct call_syncing *syncing)
{
    struct call_sync *sync = syncing->sync;
    if (syncing >= sync->spares && syncing < sync->spares + CALL_SYNC_SPARES)
        syncing->in_use = false;
    else
        free(syncing);
}

static struct call_syncing *take_waiting(struct call_sync *sync)
{
    struct call_syncing *first = CONTAINER_OF(sync->waiting.next, struct call_syncing, waiting);
    list_remove(&first->waiting);
    sync->waiting_count--;
    return first;
}

void call_sync_free(struct call_sync *sync)
{
    struct list *next;
    for (struct list *at = sync->waiting.next; at != &sync->waiting; at = next) {
        next = at->next;
        release(CONTAINER_OF(at, struct call_syncing, waiting));
    }
    list_init(&sync->waiting);
    sync->waiting_count = 0;
}

static struct slice user_of(const struct call_syncing *syncing)
{
    return (struct slice){syncing->user, syncing->user_len};
}

static void give_up(struct slice user_id, const char *reason)
{
    log_error("in_call_not_set", "user=%s reason=%s", log_quote(user_id), reason);
}

static void wait_for_retry(struct call_syncing *syncing)
{
    struct call_sync *sync = syncing->sync;
    if (sync->waiting_count == CALL_SYNC_WAITING_MAX) {
        give_up(user_of(syncing), "too many wait");
        release(syncing);
        return;
    }
    list_append(&sync->waiting, &syncing->waiting);
    sync->waiting_count++;
}

static void look(struct call_syncing *syncing);

static void was_set(void *arg, bool set)
{
    if (set)
        look(arg);
    else
        wait_for_retry(arg);
}

static void looked(void *arg, const struct call_answer *answer)
{
    struct call_syncing *syncing = arg;
    bool in_call = answer->result == CALL_DONE && answer->call->state == CALL_ACCEPTED;
    bool agrees = syncing->rounds > 0 && syncing->set == in_call;
    if (answer->result == CALL_UNAVAILABLE) {
        wait_for_retry(syncing);
    } else if (agrees || syncing->rounds == ROUNDS_MAX) {
        release(syncing);
    } else {
        syncing->rounds++;
        syncing->set = in_call;
        presence_set_call(syncing->sync->presence, user_of(syncing), in_call, was_set, syncing);
    }
}

static void look(struct call_syncing *syncing)
{
    call_store_get(syncing->sync->store, SLICE_NONE, user_of(syncing), looked, syncing);
}

void call_sync_user(struct call_sync *sync, struct slice user_id)
{
    struct call_syncing *syncing = malloc(sizeof(*syncing));
    if (!syncing)
        syncing = take_spare(sync);
    if (!syncing) {
        give_up(user_id, "no memory");
        return;
    }
    *syncing =
        (struct call_syncing){.sync = sync, .in_use = true, .user_len = (uint8_t)user_id.len};
    memcpy(syncing->user, user_id.data, user_id.len);
    look(syncing);
}

/* Those that fail again wait for the next time. */
void call_sync_retry(struct call_sync *sync)
{
    for (size_t count = sync->waiting_count; count > 0; count--) {
        struct call_syncing *syncing = take_waiting(sync);
        syncing->rounds = 0;
        look(syncing);
    }
}
