/*
 * Shared by the files of the peer hub: peer_hub.c (sending and receiving events, making and freeing the hub)
 * and peer_hub_links.c (which links there are). Nobody else includes this.
 */
#ifndef ROLLCALL_BUS_FLEET_PEER_HUB_INTERNAL_H
#define ROLLCALL_BUS_FLEET_PEER_HUB_INTERNAL_H

#include "bus/fleet/peer_hub.h"
#include "bus/fleet/peer_roster.h"

struct peer_hub {
    struct peer_hub_options options;
    struct listener listener;
    struct peer_roster roster;
    struct pending_peers pending;
};

/* Returns whether a process with this name has gateways. */
bool peer_hub_has_gateways(struct slice process);

/* Handles a frame that arrived on one of the links. */
void peer_hub_take_frame(struct peer_hub *hub, struct slice frame);

#endif
