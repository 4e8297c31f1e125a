/*
 * Those at the door: peer links that were accepted and have not proved yet that they know the secret.
 *
 *   accepted ──► a stranger ──opened: pending_peers_remove()──► its owner's alone
 *                    └── PEER_HANDSHAKE_LIMIT_MS, or so many came after it: closed
 *
 * There are `count_max` places. Who comes when all are taken gets that of the stranger who has stood there
 * longest, not of one who knows the secret: a proof takes a round trip, so whoever has not given it while
 * `count_max` others came is the least likely to give it at all. So a flood costs those who make it their
 * places, and keeps an authentic peer out only if it brings `count_max` connections a round trip.
 *
 * A stranger lies within its owner's own struct; nothing is allocated. One thread, that of the loop.
 */
#ifndef ROLLCALL_PEER_PENDING_PEERS_H
#define ROLLCALL_PEER_PENDING_PEERS_H

#include "base/list.h"
#include "peer/peer_link.h"

#include <stddef.h>
#include <stdint.h>

struct pending_peers {
    struct list places; /* who came first stands first */
    size_t count;
    size_t count_max;
    uint64_t displaced; /* ever */
};

struct pending_peer {
    struct list place;
    struct peer_link *link; /* borrowed; NULL: no stranger any more */
};

void pending_peers_init(struct pending_peers *strangers, size_t count_max);

/* A link was accepted. Where there is no place, the oldest is closed, as peer_link_refuse() does. */
void pending_peers_add(struct pending_peers *strangers, struct pending_peer *stranger,
                       struct peer_link *link);

/* It has opened, or has gone. Harmless for one who is no stranger any more. */
void pending_peers_remove(struct pending_peers *strangers, struct pending_peer *stranger);

#endif
