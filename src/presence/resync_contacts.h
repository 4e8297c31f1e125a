/*
 * Resync of contacts (the part of resync.h that goes through the users connected here): the gateway may have
 * missed pushes about changes of their contacts. Each user gets a presence_snapshot of the contacts that
 * changed since the store was last known to be healthy, less RESYNC_UNDETECTED_MS; a version is at least the
 * time of its change (store/state_store.h). It is a snapshot because it also contains changes that did
 * arrive, which must not look like new changes.
 */
#ifndef ROLLCALL_PRESENCE_RESYNC_CONTACTS_H
#define ROLLCALL_PRESENCE_RESYNC_CONTACTS_H

#include "presence/presence_plane.h"

/* Queues every user who is connected here now. */
void resync_contacts_begin(struct presence_plane *plane);

/* Takes some users off the queue. */
void resync_contacts_run(struct presence_plane *plane);

#endif
