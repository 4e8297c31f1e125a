/*
 * Dwell: how often one user's presence is published (`presence.min_dwell_ms`), so that a device that flaps
 * does not make every viewer's connection flap with it.
 *
 *   no entry ──change──► published at once, RECENT ──change──► HELD ──time is up──► the state is read
 *                             │  ▲                                                       │
 *        time is up: no entry ┘  └────────────────── published ◄─────────────────────────┘
 *
 * A held change is not kept. When the time is up the state store is read, because another gateway may have
 * changed the user meanwhile, and publishing the older change last would be wrong for good. What is durable or
 * shared (last seen, the set of online users) is recorded at once, held or not.
 *
 * The announcement of a published state (announcement.h) is decided by what this gateway told before. If the
 * changes seen here do not follow from each other, another gateway told something in between, so the state is
 * announced in any case.
 *
 * One read per turn of the loop, of at most DWELL_READ_MAX users; a failed read is repeated one period later.
 * Beyond DWELL_USERS_MAX entries, and when out of memory, a change is published at once. Part of the presence
 * plane, on its thread.
 */
#ifndef ROLLCALL_PRESENCE_DWELL_H
#define ROLLCALL_PRESENCE_DWELL_H

#include "base/list.h"
#include "base/table.h"
#include "base/wheel.h"
#include "protocol/message.h"

#include <stdbool.h>
#include <stddef.h>

struct presence_plane;

enum {
    DWELL_USERS_MAX = 65536,
    DWELL_READ_MAX = 100,
    DWELL_RETRY_MS = 100, /* after there was no memory for a read */
};

struct dwell {
    struct presence_plane *plane;
    struct wheel *wheel;
    int64_t min_ms; /* 0: every change is published at once */
    struct table users;
    struct list order; /* entries by the end of their period; those being read are in no list */
    struct wheel_timer timer;
    bool reading;
};

/* Initialises with `presence.min_dwell_ms` of the plane's configuration. Returns false when out of memory. */
bool dwell_init(struct dwell *dwell, struct presence_plane *plane, struct wheel *wheel,
                uint64_t hash_seed);

/* No read may be pending. Also for a struct of zeroes. */
void dwell_free(struct dwell *dwell);

/* Returns whether to publish the change now. If not, the user's state is published when the period ends. */
bool dwell_admit(struct dwell *dwell, const struct presence_change *change);

/* Publishes what is held at once, and holds nothing from now on: the gateway is going to stop. */
void dwell_stop(struct dwell *dwell);

/* Returns whether nothing is held and no read is pending. */
bool dwell_is_idle(const struct dwell *dwell);

#endif
