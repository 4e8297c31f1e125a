/*
 * The re-read queue: users whose presence has to be read from the state store again, at a bounded pace.
 *
 *   entry           why it is here                           what follows from the read
 *   uncertain user  an operation may have taken effect       the presence is published as if it had just
 *                   (STATE_UNKNOWN), and no gateway has      changed; receivers that have this version
 *                   published the change                     already drop it
 *   stale topic     the bus may have missed events of the    the state goes to each local subscriber that
 *                   topic `presence:<user>` (resync.h), or   does not have it (routing/router.h)
 *                   an event overtook a snapshot
 *
 * A stale topic waits for two runs: a change of privacy may have been missed too, so the first run starts
 * a visibility review (visibility_review.h) and the next one reads the state.
 *
 * resync_run() calls reread_queue_run() with each presence_reap(). A run allows the users who waited when
 * it began: at most REREAD_USERS_PER_READ uncertain users, and REREAD_READS_PER_RUN reads' worth of stale
 * topics. One read is pending at a time, with at most REREAD_USERS_PER_READ users, uncertain users first.
 * The entries of a failed read go back to the end of the queue and wait for the next run.
 *
 * Uncertain users are not read while the store may have come back without its data (resync.h): it
 * may not have their records yet. Beyond REREAD_UNCERTAIN_MAX the newest are left to their next transition.
 *
 * Topics belong to the router, which takes a topic off the queue when it frees it. Part of the presence
 * plane, on its thread.
 */
#ifndef ROLLCALL_PRESENCE_REREAD_QUEUE_H
#define ROLLCALL_PRESENCE_REREAD_QUEUE_H

#include "base/list.h"
#include "base/slice.h"
#include "protocol/message.h"

#include <stdbool.h>
#include <stddef.h>

struct presence_plane;
struct topic;

enum {
    REREAD_USERS_PER_READ = 100,
    REREAD_READS_PER_RUN = 10,
    REREAD_UNCERTAIN_MAX = 4096,
};

struct reread_queue {
    struct list uncertain; /* the longest waiting first */
    size_t uncertain_count;
    size_t uncertain_readable; /* how many of them this run may still read */
    struct list stale;         /* topics that wait for a visibility review */
    struct list reviewed;      /* topics whose users are read next */
    size_t reviewed_readable;  /* how many of them this run may still read */
    bool reading;
};

void reread_queue_init(struct reread_queue *queue);

/* No read may be pending. */
void reread_queue_free(struct reread_queue *queue);

/* Adds an uncertain user. `announcement` is what to announce if the user turns out to be connected. */
void reread_queue_add_user(struct presence_plane *plane, struct slice user_id,
                           enum presence_announcement announcement);

/* Adds a stale topic `presence:<user>`; one that waits already is not added again. */
void reread_queue_add_topic(struct presence_plane *plane, struct topic *topic);

/* Starts the reads of one run. The store is available. */
void reread_queue_run(struct presence_plane *plane);

#endif
