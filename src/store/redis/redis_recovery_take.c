#include "store/redis/redis_recovery_internal.h"

#include <stdlib.h>

/* One pending take. */
struct recovery_take {
    struct redis_recovery *recovery;
    struct recovery_taking *taking;
};

/* ---- the reply ---- */

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
    struct recovery_take take = *(struct recovery_take *)arg;
    struct recovery_event events[RECOVERY_EVENTS_MAX];
    struct slice topics[RECOVERY_TOPICS_MAX];
    struct parked_session session = {.events = events, .topics = topics};
    free(arg);
    bool is_there = parse_take_reply(reply, &session, events, topics);
    recovery_taking_finish(&take.taking, is_there ? &session : NULL);
    redis_recovery_end(take.recovery);
}

/* ---- the request ---- */

/* How long ago events were missed, here or by the gateway for which the session is taken; negative: never. */
static int64_t missed_ms_ago(const struct redis_recovery *recovery, int64_t missed_ms)
{
    if (recovery->invalidated_at_ms < 0)
        return missed_ms;
    int64_t own_ms = redis_recovery_now_ms(recovery) - recovery->invalidated_at_ms;
    return missed_ms < 0 || own_ms < missed_ms ? own_ms : missed_ms;
}

void redis_recovery_take_since(struct recovery_store *store, struct slice user_id, struct slice pid,
                               uint64_t offset, int64_t missed_ms, recovery_take_done done,
                               void *arg)
{
    struct redis_recovery *recovery = redis_recovery_of(store);
    struct recovery_take *take = malloc(sizeof(*take));
    struct recovery_taking *taking =
        take ? recovery_local_take(&recovery->local, user_id, pid, done, arg) : NULL;
    struct redis_store_number time, since_missed_ms;
    struct redis_recovery_hex text;
    if (!taking) {
        free(take);
        done(arg, NULL);
        return;
    }
    *take = (struct recovery_take){recovery, taking};
    missed_ms = missed_ms_ago(recovery, missed_ms);
    recovery_local_note(&recovery->local, user_id, redis_recovery_now_ms(recovery));
    redis_recovery_run(
        recovery, user_id,
        REDIS_ARGS(SLICE("take"), redis_store_time(&time, recovery->options.script_clock), pid,
                   redis_recovery_write_hex(&text, offset),
                   missed_ms < 0 ? SLICE("") : redis_store_number(&since_missed_ms, missed_ms)),
        on_session_taken, take);
}

void redis_recovery_take(struct recovery_store *store, struct slice user_id, struct slice pid,
                         uint64_t offset, recovery_take_done done, void *arg)
{
    redis_recovery_take_since(store, user_id, pid, offset, -1, done, arg);
}
