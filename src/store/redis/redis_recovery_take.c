#include "base/container.h"
#include "store/redis/redis_recovery_internal.h"
#include "store/redis/redis_store.h"

#include <stdlib.h>

struct held_event {
    struct list of_taking;
    uint64_t id;
    size_t len;
    char frames[];
};

/* A session that is being taken. */
struct taking {
    struct list of_recovery;
    struct redis_recovery *recovery;
    recovery_take_done done; /* NULL: it was answered */
    void *arg;
    struct list held; /* what arrived here meanwhile */
    size_t held_count;
    size_t held_bytes;
    bool broken; /* something could not be held */
    size_t user_len;
    size_t pid_len;
    char bytes[]; /* user, pid */
};

/* ---- what arrives meanwhile ---- */

static bool is_held(const struct taking *taking, uint64_t id)
{
    for (struct list *at = taking->held.next; id && at != &taking->held; at = at->next)
        if (CONTAINER_OF(at, struct held_event, of_taking)->id == id)
            return true;
    return false;
}

static void hold(struct taking *taking, const struct recovery_event *event)
{
    size_t len = event->frames.len;
    if (is_held(taking, event->id))
        return;
    bool fits = taking->held_count < RECOVERY_EVENTS_MAX &&
                taking->held_bytes + len <= RECOVERY_EVENT_BYTES_MAX;
    struct held_event *held = fits ? malloc(sizeof(*held) + len) : NULL;
    if (!held) {
        taking->broken = true;
        return;
    }
    held->id = event->id;
    held->len = len;
    memcpy(held->frames, event->frames.data, len);
    list_append(&taking->held, &held->of_taking);
    taking->held_count++;
    taking->held_bytes += len;
}

void redis_recovery_hold(struct redis_recovery *recovery, struct slice user_id,
                         const struct recovery_event *event)
{
    for (struct list *at = recovery->takings.next; at != &recovery->takings; at = at->next) {
        struct taking *taking = CONTAINER_OF(at, struct taking, of_recovery);
        if (slice_equal((struct slice){taking->bytes, taking->user_len}, user_id))
            hold(taking, event);
    }
}

/* ---- the answer ---- */

static void free_taking(struct taking *taking)
{
    for (struct list *at = taking->held.next; at != &taking->held;) {
        struct held_event *held = CONTAINER_OF(at, struct held_event, of_taking);
        at = at->next;
        free(held);
    }
    free(taking);
}

/* Answers once, and is out of everybody's sight from then on. */
static void answer(struct taking *taking, const struct recovery_record *record)
{
    recovery_take_done done = taking->done;
    taking->done = NULL;
    if (!done)
        return;
    list_remove(&taking->of_recovery);
    done(taking->arg, record);
}

static bool is_among(const struct recovery_record *record, const struct recovery_event *events,
                     uint64_t id)
{
    for (size_t i = 0; id && i < record->event_count; i++)
        if (events[i].id == id)
            return true;
    return false;
}

/* What arrived here meanwhile comes after what Redis had. False: there is too much. */
static bool add_held(const struct taking *taking, struct recovery_record *record,
                     struct recovery_event events[RECOVERY_EVENTS_MAX])
{
    for (struct list *at = taking->held.next; at != &taking->held; at = at->next) {
        const struct held_event *held = CONTAINER_OF(at, struct held_event, of_taking);
        if (is_among(record, events, held->id))
            continue;
        if (record->event_count == RECOVERY_EVENTS_MAX)
            return false;
        events[record->event_count++] =
            (struct recovery_event){RECOVERY_MISSED, held->id, {held->frames, held->len}};
    }
    return true;
}

static bool read_hex(struct slice text, uint64_t *out)
{
    char digits[REDIS_RECOVERY_HEX_DIGITS + 1] = {0};
    char *end;
    if (text.len < REDIS_RECOVERY_HEX_DIGITS)
        return false;
    memcpy(digits, text.data, REDIS_RECOVERY_HEX_DIGITS);
    *out = strtoull(digits, &end, 16);
    return end == digits + REDIS_RECOVERY_HEX_DIGITS;
}

static bool read_event(const struct resp_value *value, struct recovery_event *out)
{
    if (value->type != RESP_TEXT || value->text.len < REDIS_RECOVERY_EVENT_HEAD)
        return false;
    out->frames = slice_after(value->text, REDIS_RECOVERY_EVENT_HEAD);
    return read_hex(value->text, &out->offset) &&
           read_hex(slice_after(value->text, REDIS_RECOVERY_HEX_DIGITS), &out->id);
}

enum { AT_SID, AT_CEILING, AT_TOPICS, AT_EVENTS, ANSWER_ITEMS };

static bool read_answer(const struct resp_value *reply, struct recovery_record *record,
                        struct recovery_event events[RECOVERY_EVENTS_MAX],
                        struct slice topics[RECOVERY_TOPICS_MAX])
{
    if (!redis_store_is_array(reply, ANSWER_ITEMS))
        return false;
    const struct resp_value *names = &reply->items[AT_TOPICS], *kept = &reply->items[AT_EVENTS];
    if (!redis_store_is_array(names, 0) || !redis_store_is_array(kept, 0) ||
        names->count > RECOVERY_TOPICS_MAX || kept->count > RECOVERY_EVENTS_MAX)
        return false;
    record->sid = reply->items[AT_SID].text;
    for (; record->topic_count < names->count; record->topic_count++)
        topics[record->topic_count] = names->items[record->topic_count].text;
    bool read = read_hex(reply->items[AT_CEILING].text, &record->ceiling);
    for (; read && record->event_count < kept->count; record->event_count++)
        read = read_event(&kept->items[record->event_count], &events[record->event_count]);
    return read;
}

static void taken(void *arg, const struct resp_value *reply)
{
    struct taking *taking = arg;
    struct redis_recovery *recovery = taking->recovery;
    struct recovery_event events[RECOVERY_EVENTS_MAX];
    struct slice topics[RECOVERY_TOPICS_MAX];
    struct recovery_record record = {
        .user_id = {taking->bytes, taking->user_len},
        .pid = {taking->bytes + taking->user_len, taking->pid_len},
        .events = events,
        .topics = topics,
    };
    bool whole = !taking->broken && read_answer(reply, &record, events, topics) &&
                 add_held(taking, &record, events);
    answer(taking, whole ? &record : NULL);
    free_taking(taking);
    redis_recovery_end(recovery);
}

static struct taking *make_taking(struct redis_recovery *recovery, struct slice user_id,
                                  struct slice pid)
{
    struct taking *taking = malloc(sizeof(*taking) + user_id.len + pid.len);
    if (!taking)
        return NULL;
    *taking = (struct taking){.recovery = recovery, .user_len = user_id.len, .pid_len = pid.len};
    memcpy(taking->bytes, user_id.data, user_id.len);
    memcpy(taking->bytes + user_id.len, pid.data, pid.len);
    list_init(&taking->held);
    list_append(&recovery->takings, &taking->of_recovery);
    redis_recovery_note_lately(recovery, user_id);
    return taking;
}

void redis_recovery_take(struct recovery_store *store, struct slice user_id, struct slice pid,
                         uint64_t offset, recovery_take_done done, void *arg)
{
    struct redis_recovery *recovery = redis_recovery_of(store);
    struct taking *taking = make_taking(recovery, user_id, pid);
    struct redis_store_number time, calm;
    struct redis_recovery_hex text;
    if (!taking) {
        done(arg, NULL);
        return;
    }
    taking->done = done;
    taking->arg = arg;
    redis_recovery_run(recovery, user_id,
                       REDIS_ARGS(SLICE("take"),
                                  redis_store_time(&time, recovery->options.script_clock), pid,
                                  redis_recovery_write_hex(&text, offset),
                                  recovery->disturbed_at_ms < 0
                                      ? SLICE("")
                                      : redis_store_number(&calm, redis_recovery_now_ms(recovery) -
                                                                      recovery->disturbed_at_ms)),
                       taken, taking);
}

void redis_recovery_give_up(struct redis_recovery *recovery)
{
    while (!list_empty(&recovery->takings))
        answer(CONTAINER_OF(recovery->takings.next, struct taking, of_recovery), NULL);
}
