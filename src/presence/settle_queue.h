/*
 * The settle queue: what this gateway knows of users, and the state store may have lost. It is settled with the
 * store (state_settle()) as soon as that answers, and what changes by it is published.
 *
 *   entry      why it is here                                    when
 *   departure  the store did not confirm the end of a lease,     at once, or when the offline grace is over
 *              because it was unavailable or did not answer
 *   said more  viewers were told a higher version than the       at once
 *              store has: it lost a record, or its clock went
 *              back
 *
 * A claim about a user whose leases may be missing stays undecided until all gateways have had the time to
 * register theirs (resync_is_settled(); a window where a record is missing); then it is made again as the final one. So a departed user goes offline with
 * the time at which this gateway saw it, and a user who is still connected elsewhere does not.
 *
 * At most SETTLE_PENDING_MAX claims are pending at a time. Beyond SETTLE_QUEUE_MAX entries the newest are
 * dropped and counted: the lease of a dropped departure expires, and resync.h finds the rest.
 *
 * Part of the presence plane, on its thread.
 */
#ifndef ROLLCALL_PRESENCE_SETTLE_QUEUE_H
#define ROLLCALL_PRESENCE_SETTLE_QUEUE_H

#include "base/list.h"
#include "base/slice.h"
#include "base/ulid.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct presence;
struct presence_plane;

enum { SETTLE_QUEUE_MAX = 65536, SETTLE_PENDING_MAX = 64 };

struct settle_queue {
    struct list graced;    /* departures whose grace is running, the next to end first */
    struct list ready;     /* to be sent */
    struct list undecided; /* to be sent as final claims */
    size_t count;          /* in all three lists, and pending */
    size_t pending;
    bool is_sending;
    bool paused; /* the store did not answer: until the next run */
};

void settle_queue_init(struct settle_queue *queue);

/* No claim may be pending. */
void settle_queue_free(struct settle_queue *queue);

/* A lease of this gateway ended at this time (wall clock), and the store has not confirmed it. `is_uncertain`: it may have
 * ended the lease, so the user's state is published even if the claim changes nothing. */
void settle_queue_add_departure(struct presence_plane *plane, struct slice user_id,
                                const struct ulid *conn_id, int64_t left_at_ms, bool is_uncertain);

/* Compares what the store has of a user with what viewers were told (last_known.h). If they were told a higher version, adds
 * the user, and returns true: this presence must not be told. */
bool settle_queue_check(struct presence_plane *plane, const struct presence *presence);

/* Sends what is due. The store is available. */
void settle_queue_run(struct presence_plane *plane);

#endif
