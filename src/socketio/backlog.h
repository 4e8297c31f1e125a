/*
 * The backlog of a session that may be recovered: the events sent to it lately, since the last ones before a cut
 * may never have arrived.
 *
 * It shares the blobs, holds at most BACKLOG_EVENTS_MAX of them, and drops those older than BACKLOG_AGE_MAX_MS: a
 * client that still answers pings by then has received them, and one that has not is recognised by an offset
 * below the floor. A session that was sent nothing lately has no backlog. The backlog also recognises a second
 * copy of an event it holds. One thread.
 */
#ifndef ROLLCALL_SOCKETIO_BACKLOG_H
#define ROLLCALL_SOCKETIO_BACKLOG_H

#include "base/blob.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BACKLOG_EVENTS_MAX = 32, BACKLOG_AGE_MAX_MS = 60000 };

struct backlog {
    uint64_t floor; /* events up to this offset are not kept */
    uint8_t first;
    uint8_t count;
    struct blob *blobs[BACKLOG_EVENTS_MAX]; /* a ring */
    uint64_t ids[BACKLOG_EVENTS_MAX];       /* of the same events; 0: equal to no other */
};

/* Adds a reference to an event's blob; makes the backlog if there is none. Returns false when out of memory. */
bool backlog_note(struct backlog **backlog, struct blob *blob, uint64_t id);

/* Whether the backlog holds this event; NULL holds none. */
bool backlog_has(const struct backlog *backlog, uint64_t id);

/* Drops events that are too old. Frees an empty backlog; *floor then gets its floor. */
void backlog_expire(struct backlog **backlog, int64_t wall_ms, uint64_t *floor);

/* The nth event, oldest first. */
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
