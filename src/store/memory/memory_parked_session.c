#include "store/memory/memory_parked_session.h"

#include "base/container.h"

#include <stdlib.h>

struct kept_event {
    struct list place;
    uint64_t offset;
    uint64_t id;
    size_t len;
    char frames[];
};

static struct kept_event *kept_event_at(struct list *place)
{
    return CONTAINER_OF(place, struct kept_event, place);
}

void memory_parked_session_append(struct memory_parked_session *session,
                                  const struct recovery_event *event)
{
    for (struct list *at = session->events.next; event->id && at != &session->events; at = at->next)
        if (kept_event_at(at)->id == event->id)
            return;
    struct kept_event *kept = malloc(sizeof(*kept) + event->frames.len);
    if (!kept) {
        session->floor = RECOVERY_MISSED;
        return;
    }
    kept->offset = event->offset;
    kept->id = event->id;
    kept->len = event->frames.len;
    memcpy(kept->frames, event->frames.data, event->frames.len);
    list_append(&session->events, &kept->place);
    session->event_count++;
    session->event_bytes += kept->len;
    while (!list_empty(&session->events) && (session->event_count > RECOVERY_EVENTS_MAX ||
                                             session->event_bytes > RECOVERY_EVENT_BYTES_MAX)) {
        struct kept_event *oldest = kept_event_at(session->events.next);
        if (oldest->offset > session->floor)
            session->floor = oldest->offset;
        session->event_count--;
        session->event_bytes -= oldest->len;
        list_remove(&oldest->place);
        free(oldest);
    }
}

size_t memory_parked_session_bytes(const struct memory_parked_session *session)
{
    return sizeof(*session) + session->event_count * sizeof(struct kept_event) +
           session->event_bytes;
}

size_t memory_parked_session_events(const struct memory_parked_session *session, uint64_t offset,
                                    struct recovery_event events[RECOVERY_EVENTS_MAX])
{
    size_t count = 0;
    for (struct list *at = session->events.next; at != &session->events; at = at->next) {
        struct kept_event *kept = kept_event_at(at);
        if (kept->offset > offset)
            events[count++] =
                (struct recovery_event){kept->offset, kept->id, {kept->frames, kept->len}};
    }
    return count;
}

struct memory_parked_session *memory_parked_session_make(const struct parked_session *source)
{
    size_t topics =
        source->topic_count < RECOVERY_TOPICS_MAX ? source->topic_count : RECOVERY_TOPICS_MAX;
    size_t bytes = source->pid.len + source->sid.len;
    for (size_t i = 0; i < topics; i++)
        bytes += source->topics[i].len;
    struct memory_parked_session *session = calloc(1, sizeof(*session) + bytes);
    if (!session)
        return NULL;
    char *at = (char *)(session + 1);
    session->pid = slice_copy_to(&at, source->pid);
    session->sid = slice_copy_to(&at, source->sid);
    for (size_t i = 0; i < topics; i++)
        session->topics[i] = slice_copy_to(&at, source->topics[i]);
    session->topic_count = topics;
    session->floor = source->floor;
    session->ceiling = source->ceiling;
    list_init(&session->events);
    for (size_t i = 0; i < source->event_count; i++)
        memory_parked_session_append(session, &source->events[i]);
    return session;
}

void memory_parked_session_free(struct memory_parked_session **session)
{
    struct memory_parked_session *freed = *session;
    *session = NULL;
    if (!freed)
        return;
    for (struct list *at = freed->events.next; at != &freed->events;) {
        struct kept_event *event = kept_event_at(at);
        at = at->next;
        free(event);
    }
    free(freed);
}
