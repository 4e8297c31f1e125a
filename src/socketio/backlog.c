#include "socketio/backlog.h"

#include "socketio/codec/socketio_offset.h"

#include <stdlib.h>

static void backlog_drop_first(struct backlog *backlog)
{
    struct blob **first = &backlog->blobs[backlog->first];
    backlog->floor = socketio_offset_of(*first);
    blob_drop(first);
    backlog->first = (backlog->first + 1) % BACKLOG_EVENTS_MAX;
    backlog->count--;
}

bool backlog_note(struct backlog **backlog, struct blob *blob, uint64_t id)
{
    if (!*backlog)
        *backlog = calloc(1, sizeof(**backlog));
    struct backlog *kept = *backlog;
    if (!kept)
        return false;
    if (kept->count == BACKLOG_EVENTS_MAX)
        backlog_drop_first(kept);
    size_t at = (kept->first + kept->count++) % BACKLOG_EVENTS_MAX;
    kept->blobs[at] = blob_share(blob);
    kept->ids[at] = id;
    return true;
}

bool backlog_has(const struct backlog *backlog, uint64_t id)
{
    for (size_t i = 0; backlog && id && i < backlog->count; i++)
        if (backlog_id_at(backlog, i) == id)
            return true;
    return false;
}

void backlog_expire(struct backlog **backlog, int64_t wall_ms, uint64_t *floor)
{
    uint64_t oldest_us = (uint64_t)(wall_ms - BACKLOG_AGE_MAX_MS) * 1000;
    if (!*backlog)
        return;
    while ((*backlog)->count && socketio_offset_of(backlog_at(*backlog, 0)) < oldest_us)
        backlog_drop_first(*backlog);
    if ((*backlog)->count == 0) {
        *floor = (*backlog)->floor;
        backlog_free(backlog);
    }
}

void backlog_free(struct backlog **backlog)
{
    if (!*backlog)
        return;
    while ((*backlog)->count)
        backlog_drop_first(*backlog);
    free(*backlog);
    *backlog = NULL;
}
