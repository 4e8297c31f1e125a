/*
 * Pending peers: peer links that were accepted and have not proved yet that they have the secret.
 *
 *   accepted ──► pending ──opened: pending_peers_remove()──► an authenticated peer, its owner's alone
 *                   └── PEER_HANDSHAKE_LIMIT_MS, or `count_max` newer ones came: closed
 *
 * There are `count_max` places. When all are taken, a newcomer displaces the oldest pending peer, never an
 * authenticated one: a proof takes one round trip, so a peer that has not sent it while `count_max` others
 * connected is the least likely to send it at all. So a flood displaces its own connections, and keeps an
 * authentic peer out only if it opens `count_max` connections per round trip.
 *
 * The owner embeds a pending_peer in its own struct; nothing is allocated. One thread, that of the loop.
 */
#ifndef ROLLCALL_PEER_PENDING_PEERS_H
#define ROLLCALL_PEER_PENDING_PEERS_H

#include "base/list.h"
#include "peer/peer_link.h"

#include <stddef.h>
#include <stdint.h>

struct pending_peers {
    struct list places; /* the oldest first */
    size_t count;
    size_t count_max;
    uint64_t displaced; /* how many, ever */
};

struct pending_peer {
    struct list place;
    struct peer_link *link; /* borrowed; NULL: not pending any more */
};

void pending_peers_init(struct pending_peers *pending, size_t count_max);

/* Adds an accepted link. Without a free place, closes the oldest. */
void pending_peers_add(struct pending_peers *pending, struct pending_peer *peer,
                       struct peer_link *link);

/* Removes a peer that has authenticated or closed. Does nothing for one that is not pending any more. */
void pending_peers_remove(struct pending_peers *pending, struct pending_peer *peer);

#endif
