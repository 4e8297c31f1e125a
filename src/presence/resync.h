/*
 * Resync: what the bus may have missed (bus.h, `gap`) is read anew, and told where it is news.
 *
 *   presence:<user>         a change of privacy may have been missed, so who may see is decided anew
 *                           (review.h); a run later the state is read, RESYNC_USERS_MAX users at a time, one
 *                           read at a time, and each subscriber told what is news to them (router.h)
 *   chat:<chat>:presence    each who has the chat open gets a chat_snapshot: who is there, who types, and up
 *                           to which sequence there are messages, so that a client sees what it missed
 *   chat:<chat>:typing      nothing: typing lasts seconds, and the snapshot above says who types
 *   server:<gateway>:deliver  each user connected here gets a presence_snapshot of those contacts that
 *                           changed since the store last was known to be well, RESYNC_GRAPHS_PER_RUN users
 *                           a run
 *
 * A store that was gone may have come back without its memory, and then it knows of nobody until the gateways
 * have registered anew what they hold. So chats are shown anew only RESYNC_SETTLE_MS later, and for as long as
 * a lease lasts what was last known counts for more than no record (look.h).
 *
 * A topic that became live for the first time has a gap too. It costs nothing unless somebody had read the
 * state already: views are set right before that, so who has none yet will read later and miss nothing.
 *
 * What is left to the client: messages, calls' signals and deliveries that were on their way to this gateway
 * while its subscription was broken and of which Redis said that they were received (messages by
 * sync_request, which the sequence in a chat_snapshot or the next message calls for; the rest is gone, as
 * the bus is at most once).
 *
 * Everything is paced by resync_run(), which the plane calls with each presence_reap(): at most
 * RESYNC_READS_PER_RUN reads and as many reviews as they have users, RESYNC_CHATS_PER_RUN snapshots. While the
 * store does not answer nothing is forgotten. Part of the presence plane, on its thread.
 */
#ifndef ROLLCALL_PRESENCE_RESYNC_H
#define ROLLCALL_PRESENCE_RESYNC_H

#include "base/buffer.h"
#include "base/list.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

struct endpoint;
struct presence_plane;
struct topic;

enum {
    RESYNC_USERS_MAX = 100,
    RESYNC_READS_PER_RUN = 10,
    RESYNC_CHATS_PER_RUN = 100,
    RESYNC_GRAPHS_PER_RUN = 50,
    RESYNC_DOUBT_MS = 10000, /* so long a broken connection may go unnoticed */
    RESYNC_SETTLE_MS = 1000,
};

/* What the plane keeps for it. */
struct resync {
    struct list topics;   /* that may have missed events */
    struct list reviewed; /* those of users whose state is to be read next */
    size_t readable;      /* of those, how many in this run */
    bool reading;
    /* The users whose contacts are looked at: their ids, each behind its length in a byte. */
    struct buffer graphs;
    size_t graphs_at;
    unsigned graphs_under_way;
    int64_t available_since_ms; /* monotonic; INT64_MAX: the store is not */
    int64_t disturbed_at_ms;    /* monotonic: when the store, or the way to it, last was gone */
    int64_t well_at_ms;         /* wall clock: when all was last known to be well; 0: never */
    int64_t since_ms;           /* contacts that changed before are not told */
    /* Tells an endpoint anew how a chat is that it has open. NULL: nobody is told. */
    void (*refresh_chat)(struct endpoint *endpoint, struct slice chat_id);
};

void resync_init(struct resync *resync);
void resync_free(struct resync *resync);

/* The bus may have missed events of the topic of this name; SLICE_NONE: of any. */
void resync_gap(struct presence_plane *plane, struct slice name);

/* The state of the topic's user is to be read anew. */
void resync_topic(struct presence_plane *plane, struct topic *topic);

/* Whether the store may not know yet of somebody who is here. */
bool resync_may_have_forgotten(const struct presence_plane *plane);

/* Does some of what is due. */
void resync_run(struct presence_plane *plane);

/* Whether nothing is under way; what is due may still wait for the next run. */
bool resync_idle(const struct resync *resync);

#endif
