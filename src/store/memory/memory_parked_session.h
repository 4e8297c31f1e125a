/*
 * One parked session of the recovery store in memory: what it was, and the events it has missed or may have.
 *
 * Events are kept in the order they came, at most RECOVERY_EVENTS_MAX of them and RECOVERY_EVENT_BYTES_MAX, each
 * id once. The floor rises over what makes room or was lost: from an offset below it the session cannot be
 * recovered.
 *
 * No locks: memory_recovery.c holds its own while a session is in sight, and whoever took it out has it alone.
 */
#ifndef ROLLCALL_STORE_MEMORY_MEMORY_PARKED_SESSION_H
#define ROLLCALL_STORE_MEMORY_MEMORY_PARKED_SESSION_H

#include "base/list.h"
#include "store/recovery_store.h"

struct parked_user;

struct memory_parked_session {
    struct list of_all; /* the first five are the store's */
    struct list of_user;
    struct parked_user *user;
    int64_t until_ms;
    uint64_t disturbances; /* how many there had been when it was parked */
    struct list events;
    size_t event_count;
    size_t event_bytes;
    uint64_t floor;
    uint64_t ceiling;
    struct slice pid; /* these three behind the struct */
    struct slice sid;
    size_t topic_count;
    struct slice topics[RECOVERY_TOPICS_MAX];
};

/* A copy of all but the user. NULL when memory is short. */
struct memory_parked_session *memory_parked_session_make(const struct parked_session *record);
void memory_parked_session_free(struct memory_parked_session **parked);

/* What there is no memory for is lost, and with it all that came before. */
void memory_parked_session_append(struct memory_parked_session *parked,
                                  const struct recovery_event *event);

/* The events beyond the offset, which point into the session. */
size_t memory_parked_session_events(const struct memory_parked_session *parked, uint64_t offset,
                                    struct recovery_event events[RECOVERY_EVENTS_MAX]);

#endif
