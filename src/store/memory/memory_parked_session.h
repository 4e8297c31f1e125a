/*
 * One parked session of the recovery store in memory: its state, and the events that its client missed or may
 * have missed.
 *
 * Events are kept in the order of arrival, at most RECOVERY_EVENTS_MAX and RECOVERY_EVENT_BYTES_MAX, each id
 * once. The floor rises over events that were dropped or lost: the session cannot be recovered from an offset
 * below it.
 *
 * No locks: memory_recovery.c holds its lock while the session is listed; the operation that removes it owns it.
 */
#ifndef ROLLCALL_STORE_MEMORY_MEMORY_PARKED_SESSION_H
#define ROLLCALL_STORE_MEMORY_MEMORY_PARKED_SESSION_H

#include "base/list.h"
#include "store/recovery_store.h"

struct memory_recovery_user;

struct memory_parked_session {
    /* These five belong to memory_recovery.c. */
    struct list by_age;
    struct list of_user;
    struct memory_recovery_user *user;
    int64_t expires_at_ms;
    uint64_t generation; /* the store's when the session was parked */
    struct list events;
    size_t event_count;
    size_t event_bytes;
    uint64_t floor;
    uint64_t ceiling;
    struct slice pid; /* the bytes of pid, sid and topics follow the struct */
    struct slice sid;
    size_t topic_count;
    struct slice topics[RECOVERY_TOPICS_MAX];
};

/* Returns a copy of everything but the user, or NULL when out of memory. */
struct memory_parked_session *memory_parked_session_make(const struct parked_session *source);
void memory_parked_session_free(struct memory_parked_session **session);

/* Keeps a copy of the event, unless its id is known. When out of memory the event is lost, and the floor rises
 * over everything. */
void memory_parked_session_append(struct memory_parked_session *session,
                                  const struct recovery_event *event);

/* Returns the memory that the session holds. */
size_t memory_parked_session_bytes(const struct memory_parked_session *session);

/* Writes the events beyond the offset, which point into the session, and returns how many. */
size_t memory_parked_session_events(const struct memory_parked_session *session, uint64_t offset,
                                    struct recovery_event events[RECOVERY_EVENTS_MAX]);

#endif
