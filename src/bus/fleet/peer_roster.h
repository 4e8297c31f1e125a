/*
 * Who a hub is linked to, or wants to be: its links, and which of several to one peer is used.
 *
 * A member is one link, dialled or accepted, or the standing wish for one. Of the open members with one
 * name exactly one is chosen; when it closes, another takes over. Part of the hub (peer_hub.h), on its
 * thread; only the count of the chosen is for any thread.
 */
#ifndef ROLLCALL_BUS_FLEET_PEER_ROSTER_H
#define ROLLCALL_BUS_FLEET_PEER_ROSTER_H

#include "base/container.h"
#include "base/list.h"
#include "metrics/metrics.h"
#include "peer/peer_dialer.h"
#include "peer/pending_peers.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct peer_roster {
    struct metrics *metrics;
    struct list members;
    size_t count;
    size_t count_max;
    atomic_size_t chosen_count;
    atomic_size_t lost_count;
};

struct peer_member {
    struct list place;
    struct peer_roster *roster;
    void *arg;                    /* the hub */
    struct peer_dialer *dialer;   /* of a dialled one */
    struct peer_link *link;       /* of an accepted one */
    struct pending_peer stranger; /* likewise, until it has proved itself */
    bool learned;                 /* from the registry */
    bool named;                   /* it still is, while the registry is gone through */
    bool is_myself;               /* stays, so that the address is not dialled again */
    bool forgotten;               /* goes as soon as its dialler has ended */
    bool open;
    bool chosen;
    bool lost;       /* chosen, and none of its gateways is registered */
    size_t name_len; /* what the peer called itself last */
    char name[PEER_NAME_BYTES_MAX];
    size_t address_len; /* 0: accepted */
    char address[];     /* terminated */
};

void peer_roster_init(struct peer_roster *roster, size_t count_max, struct metrics *metrics);

/* NULL: there are too many, or memory is short. */
struct peer_member *peer_roster_add(struct peer_roster *roster, struct slice address, void *arg);

/* A closed one; its dialler and its link are the caller's. */
void peer_roster_remove(struct peer_member *member);

/* Proved to be the peer of that name; and no longer there. */
void peer_roster_opened(struct peer_member *member, struct slice name);
void peer_roster_closed(struct peer_member *member);

void peer_roster_set_lost(struct peer_member *member, bool lost);

/* The dialled member with this address that is not forgotten, or NULL. */
struct peer_member *peer_roster_find_address(struct peer_roster *roster, struct slice address);

static inline struct peer_member *peer_member_of(struct list *place)
{
    return CONTAINER_OF(place, struct peer_member, place);
}

static inline struct slice peer_member_name(const struct peer_member *member)
{
    return (struct slice){member->name, member->name_len};
}

#endif
