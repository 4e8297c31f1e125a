#include "store/redis_recovery.h"

#include "base/buffer.h"
#include "base/container.h"
#include "store/redis_keys.h"
#include "store/redis_lua.h"
#include "store/redis_store.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <xxhash.h>

enum { HEX_DIGITS = 16, EVENT_HEAD = 2 * HEX_DIGITS };

/* A user of whom late events may come. */
struct lately {
    uint64_t user_hash;
    int64_t until_ms;
};

struct redis_recovery {
    struct recovery_store store;
    struct redis_recovery_options options;
    struct redis_keys keys;
    struct redis_script script; /* of what is under way too: see `errands` */
    struct redis_listener listener;
    size_t errands;
    bool is_freed;
    int64_t disturbed_at_ms; /* -1: never */
    int64_t lately_until_ms; /* when the last of them has passed */
    struct lately lately[REDIS_RECOVERY_LATELY_MAX];
    struct list takings;
};

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
    void (*done)(void *arg, const struct recovery_record *record); /* NULL: it was answered */
    void *arg;
    struct list held; /* what arrived here meanwhile */
    size_t held_count;
    size_t held_bytes;
    bool broken; /* something could not be held */
    size_t user_len;
    size_t pid_len;
    char bytes[]; /* user, pid */
};

static struct redis_recovery *recovery_of(struct recovery_store *store)
{
    return CONTAINER_OF(store, struct redis_recovery, store);
}

static int64_t now_ms(const struct redis_recovery *recovery)
{
    return recovery->options.clock->now_ms;
}

static void end_errand(struct redis_recovery *recovery)
{
    if (--recovery->errands == 0 && recovery->is_freed)
        free(recovery);
}

/* Runs an operation of the script on a user's sessions. */
static void run(struct redis_recovery *recovery, struct slice user_id, struct redis_words words,
                void (*done)(void *arg, const struct resp_value *reply), void *arg)
{
    char key[REDIS_KEY_BYTES_MAX];
    struct slice sessions = redis_key_user(&recovery->keys, key, "recoveries:", user_id, "");
    recovery->errands++;
    redis_eval(recovery->options.client, &recovery->script, REDIS_WORDS(sessions), words, done,
               arg);
}

/* ---- what an event and a number are in Redis ---- */

struct hex {
    char text[HEX_DIGITS + 1];
};

static struct slice write_hex(struct hex *hex, uint64_t number)
{
    snprintf(hex->text, sizeof(hex->text), "%016" PRIx64, number);
    return (struct slice){hex->text, HEX_DIGITS};
}

static bool read_hex(struct slice text, uint64_t *out)
{
    char digits[HEX_DIGITS + 1] = {0};
    char *end;
    if (text.len < HEX_DIGITS)
        return false;
    memcpy(digits, text.data, HEX_DIGITS);
    *out = strtoull(digits, &end, 16);
    return end == digits + HEX_DIGITS;
}

static void write_event(struct buffer *out, const struct recovery_event *event)
{
    struct hex offset, id;
    buffer_append_slice(out, write_hex(&offset, event->offset));
    buffer_append_slice(out, write_hex(&id, event->id));
    buffer_append_slice(out, event->frames);
}

static bool read_event(const struct resp_value *value, struct recovery_event *out)
{
    if (value->type != RESP_TEXT || value->text.len < EVENT_HEAD)
        return false;
    out->frames = slice_after(value->text, EVENT_HEAD);
    return read_hex(value->text, &out->offset) &&
           read_hex(slice_after(value->text, HEX_DIGITS), &out->id);
}

/* ---- parking ---- */

static struct lately *lately_of(struct redis_recovery *recovery, struct slice user_id,
                                uint64_t *hash)
{
    *hash = XXH3_64bits(user_id.data, user_id.len);
    return &recovery->lately[*hash % REDIS_RECOVERY_LATELY_MAX];
}

static void note_lately(struct redis_recovery *recovery, struct slice user_id)
{
    uint64_t hash;
    struct lately *lately = lately_of(recovery, user_id, &hash);
    recovery->lately_until_ms = now_ms(recovery) + REDIS_RECOVERY_LATELY_MS;
    *lately = (struct lately){hash, recovery->lately_until_ms};
}

static bool expects(struct recovery_store *store, struct slice user_id)
{
    struct redis_recovery *recovery = recovery_of(store);
    uint64_t hash;
    if (now_ms(recovery) >= recovery->lately_until_ms)
        return false;
    const struct lately *lately = lately_of(recovery, user_id, &hash);
    return lately->user_hash == hash && now_ms(recovery) < lately->until_ms;
}

static void parked(void *arg, const struct resp_value *reply)
{
    (void)reply;
    end_errand(arg);
}

static void park(struct recovery_store *store, const struct recovery_record *record)
{
    enum { WORDS_BEFORE = 8, WORDS_MAX = WORDS_BEFORE + RECOVERY_TOPICS_MAX + RECOVERY_EVENTS_MAX };
    struct redis_recovery *recovery = recovery_of(store);
    struct redis_store_number time, window, topics;
    struct hex floor, ceiling;
    struct buffer events = BUFFER_INIT;
    size_t topic_count =
        record->topic_count < RECOVERY_TOPICS_MAX ? record->topic_count : RECOVERY_TOPICS_MAX;
    struct slice words[WORDS_MAX] = {
        SLICE("park"),
        redis_store_time(&time, recovery->options.script_clock),
        redis_store_number(&window, recovery->options.window_ms),
        record->pid,
        record->sid,
        write_hex(&floor, record->floor),
        write_hex(&ceiling, record->ceiling),
        redis_store_number(&topics, (int64_t)topic_count),
    };
    size_t count = WORDS_BEFORE;
    assert(record->event_count <= RECOVERY_EVENTS_MAX);
    for (size_t i = 0; i < topic_count; i++)
        words[count++] = record->topics[i];
    for (size_t i = 0; i < record->event_count; i++)
        write_event(&events, &record->events[i]);
    for (size_t i = 0, at = 0; i < record->event_count && !events.failed; i++) {
        words[count++] =
            (struct slice){events.data + at, EVENT_HEAD + record->events[i].frames.len};
        at += EVENT_HEAD + record->events[i].frames.len;
    }
    note_lately(recovery, record->user_id);
    if (!events.failed)
        run(recovery, record->user_id, (struct redis_words){words, count}, parked, recovery);
    buffer_free(&events);
}

/* Who is parked is known to Redis alone. */
static bool is_empty(struct recovery_store *store)
{
    (void)store;
    return true;
}

/* ---- events ---- */

static void disturb(struct recovery_store *store)
{
    recovery_of(store)->disturbed_at_ms = now_ms(recovery_of(store));
}

static void appended(void *arg, const struct resp_value *reply)
{
    struct redis_recovery *recovery = arg;
    if (!redis_store_is_integer(reply))
        disturb(&recovery->store);
    end_errand(recovery);
}

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

static void hold_for(struct redis_recovery *recovery, struct slice user_id,
                     const struct recovery_event *event)
{
    for (struct list *at = recovery->takings.next; at != &recovery->takings; at = at->next) {
        struct taking *taking = CONTAINER_OF(at, struct taking, of_recovery);
        if (slice_equal((struct slice){taking->bytes, taking->user_len}, user_id))
            hold(taking, event);
    }
}

static void append(struct recovery_store *store, const struct slice *user_ids, size_t count,
                   const struct recovery_event *event)
{
    struct redis_recovery *recovery = recovery_of(store);
    struct redis_store_number time;
    struct buffer text = BUFFER_INIT;
    write_event(&text, event);
    if (text.failed)
        disturb(store);
    for (size_t i = 0; i < count; i++) {
        hold_for(recovery, user_ids[i], event);
        if (!text.failed)
            run(recovery, user_ids[i],
                REDIS_WORDS(SLICE("append"),
                            redis_store_time(&time, recovery->options.script_clock),
                            buffer_slice(&text)),
                appended, recovery);
    }
    buffer_free(&text);
}

/* ---- coming back ---- */

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
    void (*done)(void *arg, const struct recovery_record *record) = taking->done;
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
    end_errand(recovery);
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
    note_lately(recovery, user_id);
    return taking;
}

static void take(struct recovery_store *store, struct slice user_id, struct slice pid,
                 uint64_t offset, void (*done)(void *arg, const struct recovery_record *record),
                 void *arg)
{
    struct redis_recovery *recovery = recovery_of(store);
    struct taking *taking = make_taking(recovery, user_id, pid);
    struct redis_store_number time, calm;
    struct hex text;
    if (!taking) {
        done(arg, NULL);
        return;
    }
    taking->done = done;
    taking->arg = arg;
    run(recovery, user_id,
        REDIS_WORDS(SLICE("take"), redis_store_time(&time, recovery->options.script_clock), pid,
                    write_hex(&text, offset),
                    recovery->disturbed_at_ms < 0
                        ? SLICE("")
                        : redis_store_number(&calm, now_ms(recovery) - recovery->disturbed_at_ms)),
        taken, taking);
}

/* ---- life ---- */

/* That Redis is found at the start disturbs nothing. */
static void availability_changed(struct redis_listener *listener, bool available)
{
    struct redis_recovery *recovery = CONTAINER_OF(listener, struct redis_recovery, listener);
    if (!available || recovery->disturbed_at_ms >= 0)
        disturb(&recovery->store);
}

static void free_recovery(struct recovery_store *store)
{
    struct redis_recovery *recovery = recovery_of(store);
    redis_unlisten(&recovery->listener);
    while (!list_empty(&recovery->takings))
        answer(CONTAINER_OF(recovery->takings.next, struct taking, of_recovery), NULL);
    recovery->is_freed = true;
    if (recovery->errands == 0)
        free(recovery);
}

static const struct recovery_store_operations OPERATIONS = {
    .park = park,
    .is_empty = is_empty,
    .expects = expects,
    .append = append,
    .take = take,
    .disturb = disturb,
    .free = free_recovery,
};

struct recovery_store *redis_recovery_make(const struct redis_recovery_options *options)
{
    struct redis_recovery *recovery = calloc(1, sizeof(*recovery));
    if (!recovery)
        return NULL;
    recovery->store = (struct recovery_store){.operations = &OPERATIONS, .is_shared = true};
    recovery->options = *options;
    recovery->keys.cluster = redis_is_cluster(options->client);
    recovery->disturbed_at_ms = -1;
    recovery->listener.changed = availability_changed;
    list_init(&recovery->takings);
    if (!redis_script_init(&recovery->script, slice_of(REDIS_LUA_RECOVERY))) {
        free(recovery);
        return NULL;
    }
    redis_listen(options->client, &recovery->listener);
    return &recovery->store;
}
