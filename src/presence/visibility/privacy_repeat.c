#include "presence/visibility/privacy_repeat.h"

#include "presence/presence_plane.h"

#include <string.h>

void privacy_repeat_note(struct presence_plane *plane, struct slice user_id)
{
    struct privacy_repeats *repeats = &plane->privacy_repeats;
    if (user_id.len > USER_ID_BYTES_MAX)
        return;
    repeats->last[repeats->next].at_ms = plane->clock->now_ms;
    repeats->last[repeats->next].user_id_len = (uint8_t)user_id.len;
    memcpy(repeats->last[repeats->next].user_id, user_id.data, user_id.len);
    repeats->next = (repeats->next + 1) % PRIVACY_REPEATS_MAX;
}

/* Publishing notes the user again, so the entries are taken from a copy. */
void privacy_repeat_run(struct presence_plane *plane)
{
    struct privacy_repeats taken = plane->privacy_repeats;
    int64_t since_ms = plane->resync.disturbed_at_ms - RESYNC_UNDETECTED_MS;
    plane->privacy_repeats = (struct privacy_repeats){0};
    for (size_t i = 0; i < PRIVACY_REPEATS_MAX; i++)
        if (taken.last[i].user_id_len > 0 && taken.last[i].at_ms >= since_ms)
            presence_publish_privacy(
                plane, (struct slice){taken.last[i].user_id, taken.last[i].user_id_len});
}
