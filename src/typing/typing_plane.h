/*
 * Typing, on the side of the devices that type: from a device's command to the store and the chat's topic.
 * typing_view.h is the side of the viewers.
 *
 *   typing_start ──the store accepts it──► published, and again with each renewal
 *                └─too soon──► dropped; the device is told once, until a notice is accepted again
 *   typing_stop, message sent, chat closed, device left ──user's last device──► the end is published
 *   silence for the time to live ──► typing has ended; nothing is published
 *
 * An endpoint records its typing notices, one for each chat that its device typed in, from the first notice
 * until the endpoint leaves: at most TYPING_CHATS_PER_DEVICE_MAX; a new one ends the oldest.
 *
 * The caller checks that the user is a member. One per worker, on its thread.
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
    struct typing_views views;
};

enum typing_verdict {
    TYPING_ACCEPTED,
    TYPING_TOO_SOON, /* dropped, and the device must be told */
    TYPING_DROPPED,  /* dropped, and the device was told before */
    TYPING_FAILED,   /* the store is unavailable, or out of memory */
};

typedef void (*typing_verdict_done)(void *arg, enum typing_verdict verdict, int64_t retry_after_ms);

/* Returns whether an update now is too soon according to this gateway alone, so that it can be dropped without
 * an operation of the store. */
bool typing_is_too_soon(const struct typing_plane *plane, const struct endpoint *endpoint,
                        struct slice chat_id, int64_t *retry_after_ms);

/* Returns whether this device typed in the chat, or still waits for the answer to its start. */
bool typing_is_noted(const struct endpoint *endpoint, struct slice chat_id);

/* Counts a dropped update. Returns TOO_SOON for the first of a series, then DROPPED. */
enum typing_verdict typing_drop(struct typing_plane *plane, struct endpoint *endpoint,
                                struct slice chat_id);

/* The device types. `done` runs exactly once, possibly before this function returns. */
void typing_start(struct typing_plane *plane, struct endpoint *endpoint, const struct ulid *conn_id,
                  struct slice chat_id, typing_verdict_done done, void *arg);

/* The device no longer types, also if its start is still pending. Does nothing if it did not type. */
void typing_stop(struct typing_plane *plane, struct endpoint *endpoint, struct slice chat_id);

/* The device leaves: ends its typing everywhere and frees its notices. */
void typing_leave(struct typing_plane *plane, struct endpoint *endpoint);

/* The user no longer types in the chat on any device: they sent a message, or were removed. */
void typing_end(struct typing_plane *plane, struct slice chat_id, struct slice user_id);

/* Handles an event on a chat's typing topic. */
void typing_received(struct typing_plane *plane, struct slice chat_id, struct slice payload);

#endif
