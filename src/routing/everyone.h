/*
 * An event for everyone who is connected to this gateway, sent at a pace that leaves the loop to others.
 *
 *   everyone_begin() ──► EVERYONE_USERS_PER_STEP users each EVERYONE_STEP_MS ──► the last user
 *
 * Events go one after the other, in the order in which they came. At most EVERYONE_PENDING_MAX wait; one more makes the
 * oldest go to the rest of its users at once, because it was promised to them. Who connects meanwhile may or may not
 * get the event. A user with several devices gets it on all.
 *
 * One per gateway, on its thread. It borrows the router, the wheel and the clock.
 */
#ifndef ROLLCALL_ROUTING_EVERYONE_H
#define ROLLCALL_ROUTING_EVERYONE_H

#include "base/clock.h"
#include "base/id_list.h"
#include "base/wheel.h"
#include "metrics/metrics.h"
#include "routing/router.h"

enum { EVERYONE_USERS_PER_STEP = 256, EVERYONE_STEP_MS = 2, EVERYONE_PENDING_MAX = 64 };

struct everyone {
    struct router *router;
    struct wheel *wheel;
    const struct clock *clock;
    struct metrics *metrics;
    struct list pending;
    size_t pending_count;
    struct wheel_timer step;
};

void everyone_init(struct everyone *everyone, struct router *router, struct wheel *wheel,
                   const struct clock *clock, struct metrics *metrics);

/* Drops what is pending: the gateway ends. */
void everyone_free(struct everyone *everyone);

/* Begins to send an event; copies its name and its fields, a JSON object, and who is not meant, a sorted list (NULL: all
 * are). Out of memory it is dropped. */
void everyone_begin(struct everyone *everyone, struct slice name, struct slice fields,
                    uint64_t event_id, const struct id_list *except);

#endif
