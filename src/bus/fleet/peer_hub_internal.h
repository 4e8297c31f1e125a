/*
 * What the rooms of a peer hub share: peer_hub.c (events in and out, life) and peer_hub_links.c (its links, and
 * who they should lead to). Nobody else includes this.
 */
#ifndef ROLLCALL_BUS_FLEET_PEER_HUB_INTERNAL_H
#define ROLLCALL_BUS_FLEET_PEER_HUB_INTERNAL_H

#include "bus/fleet/peer_hub.h"
#include "bus/fleet/peer_roster.h"

struct peer_hub {
    struct peer_hub_options options;
    struct listener listener;
    struct peer_roster roster;
    struct pending_peers strangers;
};

static inline struct peer_hub *peer_hub_of(const struct peer_member *member)
{
    return member->arg;
}

/* Whether a gateway of this id is one of the process of that name. */
bool peer_hub_is_gateway_of(struct slice gateway_id, struct slice process);

/* A frame came by one of the links. */
void peer_hub_take_frame(struct peer_hub *hub, struct slice frame);

#endif
