/*
 * Contacts' changes that a gateway may have missed: the part of resync.h that goes through the users
 * connected here. Each is shown, in a presence_snapshot, those contacts that changed since the store was
 * last known to be well, less RESYNC_DOUBT_MS; versions are times, or later (store/state_store.h). A
 * snapshot, since what did arrive is in it too, and must not look like another change.
 */
#ifndef ROLLCALL_PRESENCE_RESYNC_CONTACTS_H
#define ROLLCALL_PRESENCE_RESYNC_CONTACTS_H

#include "presence/presence_plane.h"

/* Puts every user who is here now in line. */
void resync_graphs_begin(struct presence_plane *plane);

/* Takes up some of them. */
void resync_graphs_run(struct presence_plane *plane);

#endif
