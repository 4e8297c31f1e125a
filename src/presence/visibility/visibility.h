/*
 * Sight: who may see one user. What the privacy engine needs to know of the user, taken from their graph
 * (audience.h) once and then asked for any number of viewers, so that an event of one who types in a room
 * costs one reading and not one per viewer.
 *
 * A sight is as true as the moment it was read; whoever keeps one says for how long. It knows of the
 * contacts those who were online then: nobody else is there to be told anything. The decision itself is
 * privacy.h's.
 */
#ifndef ROLLCALL_PRESENCE_VISIBILITY_VISIBILITY_H
#define ROLLCALL_PRESENCE_VISIBILITY_VISIBILITY_H

#include "presence/presence_plane.h"

#include <stdbool.h>

struct visibility;
struct visibility_reading;

/* Reads who may see the user. `done` runs once, also before this returns, and takes the sight; NULL: it
 * cannot be known now. *reading lasts until then, is set before and cleared by it. */
void visibility_read(struct presence_plane *plane, struct slice user_id,
                     struct visibility_reading **reading,
                     void (*done)(void *arg, struct visibility *sight), void *arg);

/* `done` will not run. */
void visibility_forget(struct visibility_reading **reading);

/* Whether this viewer may see the user at all. */
bool visibility_allows(const struct visibility *sight, struct slice viewer);

/* Whether the two allow the same. May say false where they do. */
bool visibility_equal(const struct visibility *a, const struct visibility *b);

void visibility_free(struct visibility **sight);

#endif
