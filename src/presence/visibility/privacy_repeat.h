/*
 * Changes of privacy that this gateway published lately, in case the bus lost them.
 *
 * The bus delivers at most once: what a gateway publishes while its links break reaches nobody, and no other gateway
 * notices a gap. Viewers would see a user who hides for as long as they stay connected. So whatever was published since
 * RESYNC_UNDETECTED_MS before a disturbance is published again when the store is settled (presence/resync.h). A
 * review that finds nothing new tells nobody.
 *
 * Bounded by PRIVACY_REPEATS_MAX: the oldest give way. Part of the presence plane, on its thread.
 */
#ifndef ROLLCALL_PRESENCE_VISIBILITY_PRIVACY_REPEAT_H
#define ROLLCALL_PRESENCE_VISIBILITY_PRIVACY_REPEAT_H

#include "base/slice.h"
#include "protocol/presence.h"

#include <stddef.h>
#include <stdint.h>

enum { PRIVACY_REPEATS_MAX = 256 };

struct presence_plane;

struct privacy_repeats {
    struct {
        int64_t at_ms; /* monotonic */
        uint8_t user_id_len;
        char user_id[USER_ID_BYTES_MAX];
    } last[PRIVACY_REPEATS_MAX]; /* a ring; an empty id: none */
    size_t next;
};

/* A change of this user's privacy was published. */
void privacy_repeat_note(struct presence_plane *plane, struct slice user_id);

/* Publishes again what may have been lost. The store is settled after a disturbance. */
void privacy_repeat_run(struct presence_plane *plane);

#endif
