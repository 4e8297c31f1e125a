#include "store/recovery_local.h"

#include "base/container.h"

#include <stdlib.h>
#include <string.h>

/* An event that arrived while the session was being taken. */
struct late_event {
    struct list place;
    uint64_t id;
    size_t len;
    char frames[];
};

struct recovery_taking {
    struct list place;
    recovery_take_done done; /* NULL once it has run */
    void *arg;
    struct list late_events;
    size_t late_count;
    size_t late_bytes;
    bool is_incomplete; /* a late event could not be kept */
    size_t user_len;
    size_t pid_len;
    char bytes[]; /* user, pid */
};

void recovery_local_init(struct recovery_local *local, uint64_t hash_seed)
{
    hash_key_init(&local->key, hash_seed);
    list_init(&local->takings);
}

/* ---- recent users ---- */

void recovery_local_note(struct recovery_local *local, struct slice user_id, int64_t now_ms)
{
    uint64_t hash = hash_key_hash(&local->key, user_id);
    local->recent_until_ms = now_ms + RECOVERY_RECENT_MS;
    local->recent[hash % RECOVERY_RECENT_MAX] =
        (struct recovery_recent){hash, local->recent_until_ms};
}

bool recovery_local_expects(const struct recovery_local *local, struct slice user_id,
                            int64_t now_ms)
{
    if (now_ms >= local->recent_until_ms)
        return false;
    uint64_t hash = hash_key_hash(&local->key, user_id);
    const struct recovery_recent *recent = &local->recent[hash % RECOVERY_RECENT_MAX];
    return recent->user_hash == hash && now_ms < recent->until_ms;
}

/* ---- events that arrive meanwhile ---- */

static void add_late_event(struct recovery_taking *taking, const struct recovery_event *event)
{
    size_t len = event->frames.len;
    for (struct list *at = taking->late_events.next; event->id && at != &taking->late_events;
         at = at->next)
        if (CONTAINER_OF(at, struct late_event, place)->id == event->id)
            return;
    bool fits = taking->late_count < RECOVERY_EVENTS_MAX &&
                taking->late_bytes + len <= RECOVERY_EVENT_BYTES_MAX;
    struct late_event *late = fits ? malloc(sizeof(*late) + len) : NULL;
    if (!late) {
        taking->is_incomplete = true;
        return;
    }
    late->id = event->id;
    late->len = len;
    memcpy(late->frames, event->frames.data, len);
    list_append(&taking->late_events, &late->place);
    taking->late_count++;
    taking->late_bytes += len;
}

void recovery_local_add(struct recovery_local *local, struct slice user_id,
                        const struct recovery_event *event)
{
    for (struct list *at = local->takings.next; at != &local->takings; at = at->next) {
        struct recovery_taking *taking = CONTAINER_OF(at, struct recovery_taking, place);
        if (slice_equal((struct slice){taking->bytes, taking->user_len}, user_id))
            add_late_event(taking, event);
    }
}

/* Appends the late events that the store has not kept too. Returns false when there are too many. */
static bool append_late_events(const struct recovery_taking *taking, struct parked_session *session,
                               struct recovery_event events[RECOVERY_EVENTS_MAX])
{
    for (struct list *at = taking->late_events.next; at != &taking->late_events; at = at->next) {
        const struct late_event *late = CONTAINER_OF(at, struct late_event, place);
        bool is_kept = false;
        for (size_t i = 0; late->id && i < session->event_count && !is_kept; i++)
            is_kept = events[i].id == late->id;
        if (is_kept)
            continue;
        if (session->event_count == RECOVERY_EVENTS_MAX)
            return false;
        events[session->event_count++] =
            (struct recovery_event){RECOVERY_MISSED, late->id, {late->frames, late->len}};
    }
    return true;
}

/* ---- taking ---- */

struct recovery_taking *recovery_local_take(struct recovery_local *local, struct slice user_id,
                                            struct slice pid, recovery_take_done done, void *arg)
{
    struct recovery_taking *taking = malloc(sizeof(*taking) + user_id.len + pid.len);
    if (!taking)
        return NULL;
    *taking = (struct recovery_taking){
        .done = done, .arg = arg, .user_len = user_id.len, .pid_len = pid.len};
    char *at = taking->bytes;
    slice_copy_to(&at, user_id);
    slice_copy_to(&at, pid);
    list_init(&taking->late_events);
    list_append(&local->takings, &taking->place);
    return taking;
}

/* Runs the completion once. From then on no late event is added. */
static void complete_taking(struct recovery_taking *taking, const struct parked_session *session)
{
    recovery_take_done done = taking->done;
    taking->done = NULL;
    list_remove(&taking->place);
    if (done)
        done(taking->arg, session);
}

static void complete_with_session(struct recovery_taking *taking,
                                  const struct parked_session *session)
{
    struct recovery_event events[RECOVERY_EVENTS_MAX];
    struct parked_session whole = *session;
    bool is_complete = !taking->is_incomplete && session->event_count <= RECOVERY_EVENTS_MAX;
    if (is_complete && session->event_count)
        memcpy(events, session->events, session->event_count * sizeof(*events));
    whole.user_id = (struct slice){taking->bytes, taking->user_len};
    whole.pid = (struct slice){taking->bytes + taking->user_len, taking->pid_len};
    whole.events = events;
    is_complete = is_complete && append_late_events(taking, &whole, events);
    complete_taking(taking, is_complete ? &whole : NULL);
}

void recovery_taking_finish(struct recovery_taking **taking, const struct parked_session *session)
{
    struct recovery_taking *finished = *taking;
    *taking = NULL;
    if (session)
        complete_with_session(finished, session);
    else
        complete_taking(finished, NULL);
    for (struct list *at = finished->late_events.next; at != &finished->late_events;) {
        struct late_event *late = CONTAINER_OF(at, struct late_event, place);
        at = at->next;
        free(late);
    }
    free(finished);
}

void recovery_local_end(struct recovery_local *local)
{
    while (!list_empty(&local->takings))
        complete_taking(CONTAINER_OF(local->takings.next, struct recovery_taking, place), NULL);
}
