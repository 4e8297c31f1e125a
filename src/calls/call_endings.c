#include "calls/call_endings.h"

#include "base/container.h"
#include "calls/call_events.h"
#include "calls/call_plane_internal.h"

#include <stdlib.h>

struct call_ending {
    struct list place;
    struct call_plane *plane;
    int64_t at_ms; /* monotonic */
    struct call call;
    char bytes[];
};

void call_endings_init(struct call_endings *endings)
{
    *endings = (struct call_endings){.repeated_ms = INT64_MIN};
    list_init(&endings->kept);
}

static struct call_ending *call_endings_take(struct call_endings *endings)
{
    struct call_ending *oldest = CONTAINER_OF(endings->kept.next, struct call_ending, place);
    list_remove(&oldest->place);
    endings->count--;
    return oldest;
}

void call_endings_free(struct call_endings *endings)
{
    while (endings->count > 0)
        free(call_endings_take(endings));
}

static void call_endings_keep(struct call_endings *endings, struct call_ending *ending)
{
    if (endings->count == CALL_ENDINGS_MAX)
        free(call_endings_take(endings));
    list_append(&endings->kept, &ending->place);
    endings->count++;
}

void call_endings_add(struct call_plane *plane, const struct call *call)
{
    struct call_ending *ending = malloc(sizeof(*ending) + call->id.len + call->caller.user_id.len +
                                        call->callee.user_id.len);
    if (!ending)
        return;
    char *at = ending->bytes;
    *ending = (struct call_ending){
        .plane = plane, .at_ms = plane->presence->clock->now_ms, .call = *call};
    ending->call.id = slice_copy_to(&at, call->id);
    ending->call.caller = (struct call_device){.user_id = slice_copy_to(&at, call->caller.user_id)};
    ending->call.callee = (struct call_device){.user_id = slice_copy_to(&at, call->callee.user_id)};
    call_endings_keep(&plane->endings, ending);
}

/* ---- once more ---- */

static void on_call_ended_again(void *arg, const struct call_answer *answer)
{
    struct call_ending *ending = arg;
    struct call_plane *plane = ending->plane;
    if (answer->result == CALL_UNAVAILABLE || answer->result == CALL_UNKNOWN) {
        plane->endings.repeated_ms = INT64_MIN;
        call_endings_keep(&plane->endings, ending);
        return;
    }
    if (answer->result == CALL_DONE)
        call_events_ended(plane->delivery, &ending->call, NULL);
    call_sync_user(&plane->sync, ending->call.caller.user_id);
    if (ending->call.callee.user_id.data)
        call_sync_user(&plane->sync, ending->call.callee.user_id);
    free(ending);
}

/* Those without an answer are kept again, for the next run. */
static void call_endings_repeat(struct call_plane *plane)
{
    for (size_t count = plane->endings.count; count > 0 && plane->endings.count > 0; count--) {
        struct call_ending *ending = call_endings_take(&plane->endings);
        call_store_end(plane->store, ending->call.id, ending->call.caller.user_id,
                       on_call_ended_again, ending);
    }
}

/* While the store is away nothing is forgotten. */
void call_endings_run(struct call_plane *plane)
{
    struct call_endings *endings = &plane->endings;
    const struct presence_plane *presence = plane->presence;
    int64_t disturbed_ms = presence->resync.disturbed_at_ms;
    if (!state_available(presence->store))
        return;
    if (disturbed_ms != endings->repeated_ms && resync_is_disturbed(presence)) {
        endings->repeated_ms = disturbed_ms;
        call_endings_repeat(plane);
    }
    while (endings->count > 0 &&
           CONTAINER_OF(endings->kept.next, struct call_ending, place)->at_ms +
                   CALL_ENDINGS_KEPT_MS <=
               presence->clock->now_ms)
        free(call_endings_take(endings));
}
