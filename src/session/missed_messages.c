#include "session/missed_messages.h"

#include <stdlib.h>

enum { POINTS_MIN = 8 };

struct missed_messages {
    size_t count;
    size_t cap;
    struct sync_point points[]; /* chat ids are allocated one by one */
};

/* Reserves space for one more chat. Returns false when out of memory or at the bound. */
static bool reserve_missed_point(struct missed_messages **missed)
{
    size_t cap = *missed ? (*missed)->cap : 0;
    size_t count = *missed ? (*missed)->count : 0;
    if (count < cap)
        return true;
    if (count == MISSED_CHATS_MAX)
        return false;
    cap = cap ? cap * 2 : POINTS_MIN;
    struct missed_messages *grown =
        realloc(*missed, sizeof(*grown) + cap * sizeof(grown->points[0]));
    if (!grown)
        return false;
    grown->count = count;
    grown->cap = cap;
    *missed = grown;
    return true;
}

void missed_messages_note(struct missed_messages **missed, struct slice chat, int64_t sequence)
{
    int64_t after = sequence - 1;
    for (size_t i = 0; *missed && i < (*missed)->count; i++) {
        struct sync_point *point = &(*missed)->points[i];
        if (slice_equal(point->chat_id, chat)) {
            point->sequence = after < point->sequence ? after : point->sequence;
            return;
        }
    }
    char *id = malloc(chat.len);
    if (!id || !reserve_missed_point(missed)) {
        free(id);
        return;
    }
    memcpy(id, chat.data, chat.len);
    (*missed)->points[(*missed)->count++] =
        (struct sync_point){.chat_id = {id, chat.len}, .sequence = after};
}

size_t missed_messages_points(const struct missed_messages *missed,
                              const struct sync_point **points)
{
    if (!missed)
        return 0;
    *points = missed->points;
    return missed->count;
}

void missed_messages_free(struct missed_messages **missed)
{
    for (size_t i = 0; *missed && i < (*missed)->count; i++)
        free((char *)(*missed)->points[i].chat_id.data);
    free(*missed);
    *missed = NULL;
}
