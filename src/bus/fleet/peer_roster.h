/*
 * The roster of a peer hub: its links, dialled or accepted, and which of several links to one peer it uses.
 *
 * An entry is one link, open or being dialled. Of all open entries with the same name exactly
 * one is chosen; when it closes, another takes over. Part of the hub (peer_hub.h), on its thread; only the
 * counters may be read from any thread.
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

struct peer_hub;

struct peer_roster {
    struct metrics *metrics;
    struct list entries;
    size_t count;
    size_t count_max;
    atomic_size_t chosen_count;
    atomic_size_t gateway_count; /* of them, processes with gateways */
    atomic_size_t lost_count;
};

struct roster_entry {
    struct list place;
    struct peer_roster *roster;
    struct peer_hub *hub;
    struct peer_dialer *dialer;  /* of a dialled entry */
    struct peer_link *link;      /* of an accepted entry */
    struct pending_peer pending; /* of an accepted entry that has not authenticated yet */
    bool learned;                /* from the registry */
    bool named;                  /* in the registry, as learned last */
    bool is_self;                /* our own address: kept, so that it is not dialled again */
    bool forgotten;              /* removed as soon as its dialler has ended */
    bool open;
    bool chosen;
    bool lost;       /* chosen, and the registry names none of its gateways */
    size_t name_len; /* of the name that the peer last proved */
    char name[PEER_NAME_BYTES_MAX];
    size_t address_len; /* 0: accepted */
    char address[];     /* terminated */
};

void peer_roster_init(struct peer_roster *roster, size_t count_max, struct metrics *metrics);

/* Returns NULL when there are too many, or when out of memory. */
struct roster_entry *peer_roster_add(struct peer_roster *roster, struct slice address,
                                     struct peer_hub *hub);

/* Removes a closed entry; the caller frees its dialler and its link. */
void peer_roster_remove(struct roster_entry *entry);

/* The entry has authenticated with that name; it has closed. */
void peer_roster_opened(struct roster_entry *entry, struct slice name);
void peer_roster_closed(struct roster_entry *entry);

void peer_roster_set_lost(struct roster_entry *entry, bool lost);

/* Returns the dialled entry with this address, unless it is forgotten; or NULL. */
struct roster_entry *peer_roster_find_address(struct peer_roster *roster, struct slice address);

static inline struct roster_entry *roster_entry_of(struct list *place)
{
    return CONTAINER_OF(place, struct roster_entry, place);
}

static inline struct slice roster_entry_name(const struct roster_entry *entry)
{
    return (struct slice){entry->name, entry->name_len};
}

#endif
