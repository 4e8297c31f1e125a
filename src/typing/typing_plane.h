/*
 * Typing, on the side of those who type: from a device's command to the store and the chat's topic.
 * What others are shown of it is typing_view.h's.
 *
 *   typing_start ──store takes it──► published, repeated at each renewal
 *                └─too soon──► dropped; the device is told once, until one is taken again
 *   typing_stop, message sent, chat closed, device gone ──user's last device──► the end is published
 *   silence for the time to live ──► over; nobody needs to say so
 *
 * A device remembers the chats it types in (at most TYPING_CHATS_PER_DEVICE_MAX, the oldest is ended for
 * a new one) on its endpoint, from its first notice until it leaves.
 *
 * Whether the user is a member is the caller's question. One per worker, on its thread.
 */
#ifndef ROLLCALL_TYPING_TYPING_PLANE_H
#define ROLLCALL_TYPING_TYPING_PLANE_H

#include "base/clock.h"
#include "base/ulid.h"
#include "bus/bus.h"
#include "config/config.h"
#include "metrics/metrics.h"
#include "store/typing_store.h"
#include "typing/typing_view.h"

enum { TYPING_CHATS_PER_DEVICE_MAX = 8 };

struct typing_plane {
    const struct config *config;
    const struct clock *clock;
    struct bus *bus;
    struct metrics *metrics;
    struct typing_store *store;
    struct typing_views rooms;
};

enum typing_verdict {
    TYPING_TAKEN,
    TYPING_TOO_SOON, /* dropped, and the device has to be told */
    TYPING_DROPPED,  /* dropped, and it was told already */
    TYPING_FAILED,   /* the store is out of reach, or memory is short */
};

/* Whether an update that comes now would be too soon, as far as this gateway knows: what can be dropped
 * without asking anybody. */
bool typing_is_too_soon(const struct typing_plane *plane, const struct endpoint *endpoint,
                        struct slice chat_id, int64_t *retry_after_ms);

/* An update was dropped: TOO_SOON for the first of a series, then DROPPED. */
enum typing_verdict typing_drop(struct typing_plane *plane, struct endpoint *endpoint,
                                struct slice chat_id);

/* The device types. `done` may run before this returns. */
void typing_start(struct typing_plane *plane, struct endpoint *endpoint, const struct ulid *conn_id,
                  struct slice chat_id,
                  void (*done)(void *arg, enum typing_verdict verdict, int64_t retry_after_ms),
                  void *arg);

/* The device no longer types; nothing where it did not. What it started and is not through yet counts. */
void typing_stop(struct typing_plane *plane, struct endpoint *endpoint, struct slice chat_id);

/* The device leaves: ends its typing everywhere and frees what is remembered of it. */
void typing_leave(struct typing_plane *plane, struct endpoint *endpoint);

/* The user no longer types in the chat, on whatever device: they sent a message, or were removed. */
void typing_ended(struct typing_plane *plane, struct slice chat_id, struct slice user_id);

/* An event on a chat's typing topic. */
void typing_received(struct typing_plane *plane, struct slice chat_id, struct slice payload);

#endif
