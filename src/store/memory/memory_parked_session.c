#include "store/memory/memory_parked_session.h"

#include "base/container.h"

#include <stdlib.h>

struct kept_event {
    struct list of_session;
    uint64_t offset;
    uint64_t id;
    size_t len;
    char frames[];
};

static struct kept_event *event_at(struct list *place)
{
    return CONTAINER_OF(place, struct kept_event, of_session);
}

/* The oldest go, and are said to be gone. What was said of later ones stays. */
static void trim_events(struct memory_parked_session *parked)
{
    struct list *at = parked->events.next;
    while (at != &parked->events && (parked->event_count > RECOVERY_EVENTS_MAX ||
                                     parked->event_bytes > RECOVERY_EVENT_BYTES_MAX)) {
        struct kept_event *event = event_at(at);
        at = at->next;
        if (event->offset > parked->floor)
            parked->floor = event->offset;
        parked->event_count--;
        parked->event_bytes -= event->len;
        list_remove(&event->of_session);
        free(event);
    }
}

static bool has_event(const struct memory_parked_session *parked, uint64_t id)
{
    for (struct list *at = parked->events.next; id && at != &parked->events; at = at->next)
        if (event_at(at)->id == id)
            return true;
    return false;
}

void memory_parked_session_append(struct memory_parked_session *parked,
                                  const struct recovery_event *event)
{
    if (has_event(parked, event->id))
        return;
    struct kept_event *kept = malloc(sizeof(*kept) + event->frames.len);
    if (!kept) {
        parked->floor = RECOVERY_MISSED;
        return;
    }
    kept->offset = event->offset;
    kept->id = event->id;
    kept->len = event->frames.len;
    memcpy(kept->frames, event->frames.data, event->frames.len);
    list_append(&parked->events, &kept->of_session);
    parked->event_count++;
    parked->event_bytes += kept->len;
    trim_events(parked);
}

size_t memory_parked_session_events(const struct memory_parked_session *parked, uint64_t offset,
                                    struct recovery_event events[RECOVERY_EVENTS_MAX])
{
    size_t count = 0;
    for (struct list *at = parked->events.next; at != &parked->events; at = at->next) {
        struct kept_event *kept = event_at(at);
        if (kept->offset > offset)
            events[count++] =
                (struct recovery_event){kept->offset, kept->id, {kept->frames, kept->len}};
    }
    return count;
}

static struct slice copy(char **at, struct slice text)
{
    struct slice copied = {*at, text.len};
    memcpy(*at, text.data, text.len);
    *at += text.len;
    return copied;
}

struct memory_parked_session *memory_parked_session_make(const struct parked_session *record)
{
    size_t topics =
        record->topic_count < RECOVERY_TOPICS_MAX ? record->topic_count : RECOVERY_TOPICS_MAX;
    size_t bytes = record->pid.len + record->sid.len;
    for (size_t i = 0; i < topics; i++)
        bytes += record->topics[i].len;
    struct memory_parked_session *parked = calloc(1, sizeof(*parked) + bytes);
    if (!parked)
        return NULL;
    char *at = (char *)(parked + 1);
    parked->pid = copy(&at, record->pid);
    parked->sid = copy(&at, record->sid);
    for (size_t i = 0; i < topics; i++)
        parked->topics[i] = copy(&at, record->topics[i]);
    parked->topic_count = topics;
    parked->floor = record->floor;
    parked->ceiling = record->ceiling;
    list_init(&parked->events);
    for (size_t i = 0; i < record->event_count; i++)
        memory_parked_session_append(parked, &record->events[i]);
    return parked;
}

void memory_parked_session_free(struct memory_parked_session **parked)
{
    struct memory_parked_session *freed = *parked;
    *parked = NULL;
    if (!freed)
        return;
    for (struct list *at = freed->events.next; at != &freed->events;) {
        struct kept_event *event = event_at(at);
        at = at->next;
        free(event);
    }
    free(freed);
}
