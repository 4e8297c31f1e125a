/*
 * Typing, on the side of the viewers: for each chat open on this gateway, the users shown as typing.
 *
 *   event, or a record of the store ──► followed ──visibility read──► changed ──within the budget──► shown
 *   stop, or no renewal for the time to live ──► changed ──within the budget──► told, no longer followed
 *
 * Coalescing: a view sends at once while its budget lasts, TYPING_VIEW_PUSHES_PER_PERIOD in every
 * TYPING_VIEW_PERIOD_MS. Beyond that the newest state of each typer waits for the next period, and a typer who
 * stops before anybody was told costs nothing. At most TYPING_VIEW_SHOWN_MAX typers are followed at a time;
 * others are not shown until one of them stops. So a chat costs each viewer a bounded number of messages a
 * second, however many users type in it.
 *
 * Privacy: every member who has the chat open sees it, contact or not, unless the user shows presence to nobody or
 * there is a block between the two (visibility.h). The visibility is read again
 * with every renewal, and at once on typing_view_recheck(): viewers who lost visibility are told that the
 * typing ended and no more; so is everybody if it cannot be read. A stop goes to those who got the start.
 *
 * Typing that is not renewed ends here by itself, so that nobody is shown forever after a gateway crashed.
 *
 * One per worker, on its thread. A view exists while somebody types in the chat and somebody here has it
 * open.
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
    TYPING_VIEW_PERIOD_MS = 100,
    TYPING_VIEW_PUSHES_PER_PERIOD = 4,
    TYPING_VIEW_SHOWN_MAX = 50,
    TYPING_VIEW_VISIBILITY_MS = 500, /* read again when older; shorter than between renewals */
};

struct typing_views {
    const struct clock *clock;
    struct wheel *wheel;
    struct router *router;
    struct presence_plane *presence;
    struct metrics *metrics;
    int64_t ttl_ms;
    struct table by_chat;
};

/* Returns false when out of memory. The owner sets the other fields. */
bool typing_views_init(struct typing_views *views, uint64_t seed);
void typing_views_free(struct typing_views *views);

/* A user types in a chat, or no longer. `since_wall_ms` is the time of the device's command. */
void typing_view_update(struct typing_views *views, struct slice chat_id, struct slice user_id,
                        bool typing, int64_t since_wall_ms);

/* Follows a user who, according to the store, types for `left_ms` more; for the opener of a chat, who gets the
 * user in the snapshot and must be told the end too. Returns false when it cannot: too many users type. */
bool typing_view_follow(struct typing_views *views, struct slice chat_id, struct slice user_id,
                        int64_t left_ms);

/* Frees the view: nobody here has the chat open any more, so its events no longer arrive. */
void typing_view_close(struct typing_views *views, struct slice chat_id);

/* The visibility of this user may have changed. */
void typing_view_recheck(struct typing_views *views, struct slice chat_id, struct slice user_id);

#endif
