/*
 * The backlog of a session that may be recovered: the events it is owed and was sent lately, since what
 * was sent last before a cut may never have arrived.
 *
 * It shares the blobs, holds at most BACKLOG_EVENTS_MAX of them, and lets those go that are older than
 * BACKLOG_AGE_MAX_MS: a client that still answers pings by then has got them, and one that has not is known
 * by naming an offset below the floor. A session that was sent nothing lately has none. It also tells
 * whether an event that comes again was among them. One thread.
 */
#ifndef ROLLCALL_SOCKETIO_BACKLOG_H
#define ROLLCALL_SOCKETIO_BACKLOG_H

#include "base/blob.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BACKLOG_EVENTS_MAX = 32, BACKLOG_AGE_MAX_MS = 60000 };

struct backlog {
    uint64_t floor; /* offsets up to this one are not kept */
    uint8_t first;
    uint8_t count;
    struct blob *blobs[BACKLOG_EVENTS_MAX]; /* a ring */
    uint64_t ids[BACKLOG_EVENTS_MAX];       /* of the same; 0: it is like no other */
};

/* Adds a reference to an event's blob; makes the backlog when there is none. False: memory is short. */
bool backlog_note(struct backlog **backlog, struct blob *blob, uint64_t id);

/* NULL has none. */
bool backlog_has(const struct backlog *backlog, uint64_t id);

/* Lets go of what is too old, and of itself when that is all: *floor then is what its own was. */
void backlog_expire(struct backlog **backlog, int64_t wall_ms, uint64_t *floor);

/* The nth, oldest first. */
static inline struct blob *backlog_at(const struct backlog *backlog, size_t n)
{
    return backlog->blobs[(backlog->first + n) % BACKLOG_EVENTS_MAX];
}

static inline uint64_t backlog_id_at(const struct backlog *backlog, size_t n)
{
    return backlog->ids[(backlog->first + n) % BACKLOG_EVENTS_MAX];
}

void backlog_free(struct backlog **backlog);

#endif
