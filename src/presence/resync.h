/*
 * Resync: after a gap (bus.h, `gap`) the bus may have missed events, so what may have changed is read
 * again, and clients are told what is new to them.
 *
 *   presence:<user>           the topic goes to the re-read queue (reread_queue.h): visibility is reviewed,
 *                             then the state is read and subscribers are told
 *   chat:<chat>:presence      each endpoint with the chat open gets a chat_snapshot: who is online, who types,
 *                             and the newest sequence, so that a client sees what it missed
 *   chat:<chat>:typing        nothing: typing lasts seconds, and the snapshot above lists who types
 *   server:<gateway>:deliver  each user connected here gets a presence_snapshot of the contacts that changed
 *                             since the store was last known to be healthy (resync_contacts.h)
 *
 * A store that was unreachable may have come back without its data; then it is empty until the gateways
 * have registered their leases again. So chats are sent again only RESYNC_SETTLE_MS later, and the last known
 * presence outweighs a missing record (presence_query.h). When the gateways have had the time to register
 * (resync_is_settled()), everything is read once more: now the store has the truth, and what was told, missed or
 * could not be told in between is corrected. This is the same after every disturbance of the store: it was
 * unavailable, it came back empty, or a failover lost leases.
 *
 * A topic that became live for the first time has a gap too. It costs nothing unless a subscriber has read
 * the state already: a subscription gets its view before its state is read, so a subscriber without a view
 * reads later and misses nothing.
 *
 * Resync does not recover deliveries that were lost while this gateway's subscription was broken, or while the
 * store was unavailable and a link too. Every device is told that it may have missed some (sync_required.h), and its client
 * syncs; call signals and other events are lost, because the bus delivers at most once.
 *
 * resync_run(), which the plane calls with each presence_reap(), does a bounded part: at most
 * RESYNC_CHATS_PER_RUN snapshots, one run of the re-read queue, and RESYNC_CONTACTS_PER_RUN users' contacts.
 * While the store is unavailable everything waits and nothing is dropped. Part of the presence plane, on
 * its thread.
 */
#ifndef ROLLCALL_PRESENCE_RESYNC_H
#define ROLLCALL_PRESENCE_RESYNC_H

#include "base/id_list.h"
#include "base/list.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

struct endpoint;
struct presence_plane;

enum {
    RESYNC_CHATS_PER_RUN = 100,
    RESYNC_SYNCS_PER_RUN = 500,      /* users who are told to sync */
    RESYNC_CONTACTS_PER_RUN = 50,    /* users whose contacts are read at the same time */
    RESYNC_CONTACTS_PER_QUERY = 100, /* contacts of one user */
    RESYNC_UNDETECTED_MS = 10000,    /* a broken connection is noticed within this time */
    RESYNC_SETTLE_MS = 1000,
    RESYNC_REGISTERED_MS =
        5000, /* by then gateways have registered their leases; from a third to two thirds of a window */
};

struct resync {
    struct list chats;    /* topics `chat:<chat>:presence` that may have missed events */
    struct id_list users; /* owned: the users whose contacts have to be read */
    size_t users_next;    /* the first of them that was not read yet */
    size_t syncs_next;    /* the first of them who was not told to sync yet, if they must */
    bool needs_syncs; /* deliveries may have been missed; the next pass over all users tells them */
    unsigned users_pending;
    int64_t available_since_ms; /* monotonic; INT64_MAX: the store is unavailable */
    int64_t disturbed_at_ms;    /* monotonic: when the store or the bus was last disturbed */
    bool was_available;         /* the store was, at some time */
    bool
        is_unsettled; /* the store was disturbed; everything is read once more when it is settled */
    int64_t healthy_at_ms;    /* wall clock: when both were last known to be healthy; 0: never */
    int64_t changed_since_ms; /* contacts that did not change since then are left out */
    /* Sends an endpoint a new snapshot of a chat it has open. NULL: no endpoint gets one. */
    void (*refresh_chat)(struct endpoint *endpoint, struct slice chat_id);
};

void resync_init(struct resync *resync);
void resync_free(struct resync *resync);

/* The bus may have missed events of the topic of this name; SLICE_NONE: of any topic. */
void resync_gap(struct presence_plane *plane, struct slice name);

/* The store is unavailable, or has lost leases. */
void resync_disturb(struct presence_plane *plane);

/* Returns whether all gateways have had the time to register their leases since the store was last disturbed; until then it
 * may lack records of connected users. */
bool resync_is_settled(const struct presence_plane *plane);

/* Returns whether it has been settled for as long again: by then gateways have told the store who left meanwhile. */
bool resync_has_been_settled(const struct presence_plane *plane);

/* Returns whether the store or the bus was disturbed within the last lease window. */
bool resync_is_disturbed(const struct presence_plane *plane);

/* Does a bounded part of what waits. */
void resync_run(struct presence_plane *plane);

/* Returns whether no operation is pending; entries may still wait for the next run. */
bool resync_is_idle(const struct presence_plane *plane);

#endif
