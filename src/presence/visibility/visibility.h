/*
 * Visibility: which members of a chat may see one user type in it. It takes what the privacy engine needs from the
 * user's social graph (contacts/graph_reader.h) once and then answers for any number of viewers, so that an event in
 * a chat costs one read and not one per viewer.
 *
 * A visibility describes the moment it was read; its holder decides for how long to use it. privacy.h makes the
 * decision.
 */
#ifndef ROLLCALL_PRESENCE_VISIBILITY_VISIBILITY_H
#define ROLLCALL_PRESENCE_VISIBILITY_VISIBILITY_H

#include "presence/presence_plane.h"

#include <stdbool.h>

struct visibility;
struct visibility_reading;

/* Takes the visibility; NULL: it cannot be read now. */
typedef void (*visibility_done)(void *arg, struct visibility *visibility);

/* Reads who may see the user type. `done` runs exactly once, possibly before this function returns. *reading is
 * set first, and is cleared just before `done` runs. */
void visibility_read(struct presence_plane *plane, struct slice user_id,
                     struct visibility_reading **reading, visibility_done done, void *arg);

/* Cancels a read: its `done` will not run. */
void visibility_cancel(struct visibility_reading **reading);

/* Returns whether this viewer, who is a member of the same chat, may see the user type. */
bool visibility_allows(const struct visibility *visibility, struct slice viewer);

/* Returns whether both allow the same viewers; may return false where they do. */
bool visibility_equal(const struct visibility *a, const struct visibility *b);

void visibility_free(struct visibility **visibility);

#endif
