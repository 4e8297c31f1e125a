#include "store/redis/redis_recovery_internal.h"

#include "base/buffer.h"
#include "base/container.h"
#include "store/redis/redis_lua.h"
#include "store/redis/redis_store.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <xxhash.h>

enum {
    PARKING_WORDS_FIRST = 8,
    PARKING_WORDS_MAX = PARKING_WORDS_FIRST + RECOVERY_TOPICS_MAX + RECOVERY_EVENTS_MAX,
};

struct redis_recovery *redis_recovery_of(struct recovery_store *store)
{
    return CONTAINER_OF(store, struct redis_recovery, store);
}

int64_t redis_recovery_now_ms(const struct redis_recovery *recovery)
{
    return recovery->options.clock->now_ms;
}

void redis_recovery_end(struct redis_recovery *recovery)
{
    if (--recovery->errands == 0 && recovery->is_freed)
        free(recovery);
}

void redis_recovery_run(struct redis_recovery *recovery, struct slice user_id,
                        struct redis_args words,
                        void (*done)(void *arg, const struct resp_value *reply), void *arg)
{
    char key[REDIS_KEY_BYTES_MAX];
    struct slice sessions = redis_key_user(&recovery->keys, key, "recoveries:", user_id, "");
    recovery->errands++;
    redis_eval(recovery->options.client, &recovery->script, REDIS_ARGS(sessions), words, done, arg);
}

/* ---- what is in Redis ---- */

struct slice redis_recovery_write_hex(struct redis_recovery_hex *hex, uint64_t number)
{
    snprintf(hex->text, sizeof(hex->text), "%016" PRIx64, number);
    return (struct slice){hex->text, REDIS_RECOVERY_HEX_DIGITS};
}

static void write_event(struct buffer *out, const struct recovery_event *event)
{
    struct redis_recovery_hex offset, id;
    buffer_append_slice(out, redis_recovery_write_hex(&offset, event->offset));
    buffer_append_slice(out, redis_recovery_write_hex(&id, event->id));
    buffer_append_slice(out, event->frames);
}

/* ---- parking ---- */

static struct redis_recovery_lately *lately_of(struct redis_recovery *recovery,
                                               struct slice user_id, uint64_t *hash)
{
    *hash = XXH3_64bits(user_id.data, user_id.len);
    return &recovery->lately[*hash % REDIS_RECOVERY_LATELY_MAX];
}

void redis_recovery_note_lately(struct redis_recovery *recovery, struct slice user_id)
{
    uint64_t hash;
    struct redis_recovery_lately *lately = lately_of(recovery, user_id, &hash);
    recovery->lately_until_ms = redis_recovery_now_ms(recovery) + REDIS_RECOVERY_LATELY_MS;
    *lately = (struct redis_recovery_lately){hash, recovery->lately_until_ms};
}

static bool expects(struct recovery_store *store, struct slice user_id)
{
    struct redis_recovery *recovery = redis_recovery_of(store);
    uint64_t hash;
    if (redis_recovery_now_ms(recovery) >= recovery->lately_until_ms)
        return false;
    const struct redis_recovery_lately *lately = lately_of(recovery, user_id, &hash);
    return lately->user_hash == hash && redis_recovery_now_ms(recovery) < lately->until_ms;
}

static void parked(void *arg, const struct resp_value *reply)
{
    (void)reply;
    redis_recovery_end(arg);
}

/* A session on its way to Redis, as words. */
struct parking {
    struct redis_store_number time, window, topics;
    struct redis_recovery_hex floor, ceiling;
    struct buffer events;
    struct slice words[PARKING_WORDS_MAX];
    size_t count;
};

static void add_events(struct parking *parking, const struct recovery_record *record)
{
    for (size_t i = 0; i < record->event_count; i++)
        write_event(&parking->events, &record->events[i]);
    const char *at = parking->events.data;
    for (size_t i = 0; i < record->event_count && !parking->events.failed; i++) {
        size_t len = REDIS_RECOVERY_EVENT_HEAD + record->events[i].frames.len;
        parking->words[parking->count++] = (struct slice){at, len};
        at += len;
    }
}

static void park(struct recovery_store *store, const struct recovery_record *record)
{
    struct redis_recovery *recovery = redis_recovery_of(store);
    struct parking parking = {.events = BUFFER_INIT};
    size_t topic_count =
        record->topic_count < RECOVERY_TOPICS_MAX ? record->topic_count : RECOVERY_TOPICS_MAX;
    const struct slice first[PARKING_WORDS_FIRST] = {
        SLICE("park"),
        redis_store_time(&parking.time, recovery->options.script_clock),
        redis_store_number(&parking.window, recovery->options.window_ms),
        record->pid,
        record->sid,
        redis_recovery_write_hex(&parking.floor, record->floor),
        redis_recovery_write_hex(&parking.ceiling, record->ceiling),
        redis_store_number(&parking.topics, (int64_t)topic_count),
    };
    assert(record->event_count <= RECOVERY_EVENTS_MAX);
    memcpy(parking.words, first, sizeof(first));
    parking.count = PARKING_WORDS_FIRST;
    for (size_t i = 0; i < topic_count; i++)
        parking.words[parking.count++] = record->topics[i];
    add_events(&parking, record);
    redis_recovery_note_lately(recovery, record->user_id);
    if (!parking.events.failed)
        redis_recovery_run(recovery, record->user_id,
                           (struct redis_args){parking.words, parking.count}, parked, recovery);
    buffer_free(&parking.events);
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
    redis_recovery_of(store)->disturbed_at_ms = redis_recovery_now_ms(redis_recovery_of(store));
}

static void appended(void *arg, const struct resp_value *reply)
{
    struct redis_recovery *recovery = arg;
    if (!redis_store_is_integer(reply))
        disturb(&recovery->store);
    redis_recovery_end(recovery);
}

static void append(struct recovery_store *store, const struct slice *user_ids, size_t count,
                   const struct recovery_event *event)
{
    struct redis_recovery *recovery = redis_recovery_of(store);
    struct redis_store_number time;
    struct buffer text = BUFFER_INIT;
    write_event(&text, event);
    if (text.failed)
        disturb(store);
    for (size_t i = 0; i < count; i++) {
        redis_recovery_hold(recovery, user_ids[i], event);
        if (!text.failed)
            redis_recovery_run(recovery, user_ids[i],
                               REDIS_ARGS(SLICE("append"),
                                          redis_store_time(&time, recovery->options.script_clock),
                                          buffer_slice(&text)),
                               appended, recovery);
    }
    buffer_free(&text);
}

/* ---- life ---- */

/* That Redis is found at the start disturbs nothing. */
static void availability_changed(struct redis_observer *listener, bool available)
{
    struct redis_recovery *recovery = CONTAINER_OF(listener, struct redis_recovery, listener);
    if (!available || recovery->disturbed_at_ms >= 0)
        disturb(&recovery->store);
}

static void free_recovery(struct recovery_store *store)
{
    struct redis_recovery *recovery = redis_recovery_of(store);
    redis_unobserve(&recovery->listener);
    redis_recovery_give_up(recovery);
    recovery->is_freed = true;
    if (recovery->errands == 0)
        free(recovery);
}

static const struct recovery_store_operations OPERATIONS = {
    .park = park,
    .is_empty = is_empty,
    .expects = expects,
    .append = append,
    .take = redis_recovery_take,
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
    recovery->listener.on_availability_changed = availability_changed;
    list_init(&recovery->takings);
    if (!redis_script_init(&recovery->script, slice_of(REDIS_LUA_RECOVERY))) {
        free(recovery);
        return NULL;
    }
    redis_observe(options->client, &recovery->listener);
    return &recovery->store;
}
