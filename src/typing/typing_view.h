/*
 * Typing, on the side of those who see it: the rooms open on this gateway and who types in them.
 *
 *   event, or what the store remembers ──► HEARD ──sight read──► due ──within the budget──► SHOWN
 *   stop, or no renewal for the time to live ──► due ──within the budget──► told, forgotten
 *
 * Coalescing: a room pushes at once while its budget lasts, TYPING_VIEW_PUSHES_PER_TICK in every
 * TYPING_VIEW_TICK_MS; what is over waits for the next tick as the newest state of each who types, and
 * one who stopped before anybody was told costs nothing. At most TYPING_VIEW_SHOWN_MAX are followed at
 * a time; who types beyond that is not shown until another stops. So a room costs each of its viewers a
 * bounded number of pushes a second, however many type in it.
 *
 * Privacy: only those who may see the user (sight.h) see them typing. A sight is read anew with every
 * renewal, and at once when typing_view_review() says so: who lost sight is told that the typing ended,
 * and no more; so is everybody when it cannot be read. A stop goes to whom the start went.
 *
 * What nobody renews ends here by itself, so a gateway that dies leaves nobody typing for ever.
 *
 * One per worker, on its thread. Rooms exist while somebody types in them and somebody here looks.
 */
#ifndef ROLLCALL_TYPING_TYPING_VIEW_H
#define ROLLCALL_TYPING_TYPING_VIEW_H

#include "base/clock.h"
#include "base/table.h"
#include "base/wheel.h"
#include "metrics/metrics.h"
#include "routing/router.h"

struct presence_plane;

enum {
    TYPING_VIEW_TICK_MS = 100,
    TYPING_VIEW_PUSHES_PER_TICK = 4,
    TYPING_VIEW_SHOWN_MAX = 50,
    TYPING_VIEW_SIGHT_MS = 500, /* less than the time between two renewals */
};

struct typing_views {
    const struct clock *clock;
    struct wheel *wheel;
    struct router *router;
    struct presence_plane *presence;
    struct metrics *metrics;
    int64_t ttl_ms;
    struct table rooms; /* by chat */
};

/* False when memory is short. The other fields are the maker's to set. */
bool typing_views_init(struct typing_views *rooms, uint64_t seed);
void typing_views_free(struct typing_views *rooms);

/* A user types in a chat, or no longer. `since_wall_ms` is when they said so. */
void typing_view_heard(struct typing_views *rooms, struct slice chat_id, struct slice user_id,
                       bool typing, int64_t since_wall_ms);

/* Somebody opens the chat and learned from the store that this user types for `left_ms` more: the one
 * who opens is told in another way, so this only sees to it that the end is told. False: it cannot, there
 * are too many. */
bool typing_view_known(struct typing_views *rooms, struct slice chat_id, struct slice user_id,
                       int64_t left_ms);

/* Nobody here has the chat open any more: what happens there from now on is not heard of. */
void typing_view_abandon(struct typing_views *rooms, struct slice chat_id);

/* What may be seen of this user may have changed. */
void typing_view_review(struct typing_views *rooms, struct slice chat_id, struct slice user_id);

#endif
