#include "base/container.h"
#include "store/redis/redis_recovery_internal.h"

#include <stdlib.h>

/* An event that arrived while the session was being taken. */
struct late_event {
    struct list place;
    uint64_t id;
    size_t len;
    char frames[];
};

/* One pending take. */
struct recovery_take {
    struct list place;
    struct redis_recovery *recovery;
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

/* ---- events that arrive meanwhile ---- */

static void add_late_event(struct recovery_take *take, const struct recovery_event *event)
{
    size_t len = event->frames.len;
    for (struct list *at = take->late_events.next; event->id && at != &take->late_events;
         at = at->next)
        if (CONTAINER_OF(at, struct late_event, place)->id == event->id)
            return;
    bool fits = take->late_count < RECOVERY_EVENTS_MAX &&
                take->late_bytes + len <= RECOVERY_EVENT_BYTES_MAX;
    struct late_event *late = fits ? malloc(sizeof(*late) + len) : NULL;
    if (!late) {
        take->is_incomplete = true;
        return;
    }
    late->id = event->id;
    late->len = len;
    memcpy(late->frames, event->frames.data, len);
    list_append(&take->late_events, &late->place);
    take->late_count++;
    take->late_bytes += len;
}

void redis_recovery_add_to_takes(struct redis_recovery *recovery, struct slice user_id,
                                 const struct recovery_event *event)
{
    for (struct list *at = recovery->takes.next; at != &recovery->takes; at = at->next) {
        struct recovery_take *take = CONTAINER_OF(at, struct recovery_take, place);
        if (slice_equal((struct slice){take->bytes, take->user_len}, user_id))
            add_late_event(take, event);
    }
}

/* ---- the reply ---- */

/* Runs the completion once. From then on no late event is added. */
static void complete_recovery_take(struct recovery_take *take, const struct parked_session *session)
{
    recovery_take_done done = take->done;
    take->done = NULL;
    if (!done)
        return;
    list_remove(&take->place);
    done(take->arg, session);
}

/* Appends the late events that Redis has not kept too. Returns false when there are too many. */
static bool append_late_events(const struct recovery_take *take, struct parked_session *session,
                               struct recovery_event events[RECOVERY_EVENTS_MAX])
{
    for (struct list *at = take->late_events.next; at != &take->late_events; at = at->next) {
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

static bool parse_recovery_hex(struct slice text, uint64_t *out)
{
    char digits[REDIS_RECOVERY_HEX_DIGITS + 1] = {0};
    char *end;
    if (text.len < REDIS_RECOVERY_HEX_DIGITS)
        return false;
    memcpy(digits, text.data, REDIS_RECOVERY_HEX_DIGITS);
    *out = strtoull(digits, &end, 16);
    return end == digits + REDIS_RECOVERY_HEX_DIGITS;
}

enum { AT_SID, AT_CEILING, AT_TOPICS, AT_EVENTS, TAKE_REPLY_ITEMS };

static bool parse_take_reply(const struct resp_value *reply, struct parked_session *session,
                             struct recovery_event events[RECOVERY_EVENTS_MAX],
                             struct slice topics[RECOVERY_TOPICS_MAX])
{
    if (!redis_store_is_array(reply, TAKE_REPLY_ITEMS))
        return false;
    const struct resp_value *names = &reply->items[AT_TOPICS], *kept = &reply->items[AT_EVENTS];
    if (!redis_store_is_array(names, 0) || !redis_store_is_array(kept, 0) ||
        names->count > RECOVERY_TOPICS_MAX || kept->count > RECOVERY_EVENTS_MAX)
        return false;
    session->sid = reply->items[AT_SID].text;
    for (; session->topic_count < names->count; session->topic_count++)
        topics[session->topic_count] = names->items[session->topic_count].text;
    bool ok = parse_recovery_hex(reply->items[AT_CEILING].text, &session->ceiling);
    for (; ok && session->event_count < kept->count; session->event_count++) {
        const struct resp_value *value = &kept->items[session->event_count];
        struct recovery_event *event = &events[session->event_count];
        event->frames = slice_after(value->text, REDIS_RECOVERY_EVENT_HEAD);
        ok = value->type == RESP_TEXT && parse_recovery_hex(value->text, &event->offset) &&
             parse_recovery_hex(slice_after(value->text, REDIS_RECOVERY_HEX_DIGITS), &event->id);
    }
    return ok;
}

static void on_session_taken(void *arg, const struct resp_value *reply)
{
    struct recovery_take *take = arg;
    struct redis_recovery *recovery = take->recovery;
    struct recovery_event events[RECOVERY_EVENTS_MAX];
    struct slice topics[RECOVERY_TOPICS_MAX];
    struct parked_session session = {
        .user_id = {take->bytes, take->user_len},
        .pid = {take->bytes + take->user_len, take->pid_len},
        .events = events,
        .topics = topics,
    };
    bool is_complete = !take->is_incomplete && parse_take_reply(reply, &session, events, topics) &&
                       append_late_events(take, &session, events);
    complete_recovery_take(take, is_complete ? &session : NULL);
    for (struct list *at = take->late_events.next; at != &take->late_events;) {
        struct late_event *late = CONTAINER_OF(at, struct late_event, place);
        at = at->next;
        free(late);
    }
    free(take);
    redis_recovery_end(recovery);
}

void redis_recovery_take(struct recovery_store *store, struct slice user_id, struct slice pid,
                         uint64_t offset, recovery_take_done done, void *arg)
{
    struct redis_recovery *recovery = redis_recovery_of(store);
    struct recovery_take *take = malloc(sizeof(*take) + user_id.len + pid.len);
    struct redis_store_number time, since_missed_ms;
    struct redis_recovery_hex text;
    if (!take) {
        done(arg, NULL);
        return;
    }
    *take = (struct recovery_take){.recovery = recovery,
                                   .done = done,
                                   .arg = arg,
                                   .user_len = user_id.len,
                                   .pid_len = pid.len};
    memcpy(take->bytes, user_id.data, user_id.len);
    memcpy(take->bytes + user_id.len, pid.data, pid.len);
    list_init(&take->late_events);
    list_append(&recovery->takes, &take->place);
    redis_recovery_note_recent(recovery, user_id);
    redis_recovery_run(
        recovery, user_id,
        REDIS_ARGS(SLICE("take"), redis_store_time(&time, recovery->options.script_clock), pid,
                   redis_recovery_write_hex(&text, offset),
                   recovery->invalidated_at_ms < 0
                       ? SLICE("")
                       : redis_store_number(&since_missed_ms, redis_recovery_now_ms(recovery) -
                                                                  recovery->invalidated_at_ms)),
        on_session_taken, take);
}

void redis_recovery_end_takes(struct redis_recovery *recovery)
{
    while (!list_empty(&recovery->takes))
        complete_recovery_take(CONTAINER_OF(recovery->takes.next, struct recovery_take, place),
                               NULL);
}
