#include "store/redis/redis_recovery_internal.h"

#include "base/buffer.h"
#include "base/container.h"
#include "store/redis/redis_lua.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

enum {
    PARK_ARGUMENTS_FIRST = 8,
    PARK_ARGUMENTS_MAX = PARK_ARGUMENTS_FIRST + RECOVERY_TOPICS_MAX + RECOVERY_EVENTS_MAX,
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
    if (--recovery->pending == 0 && recovery->is_freed)
        free(recovery);
}

void redis_recovery_run(struct redis_recovery *recovery, struct slice user_id,
                        struct redis_args arguments, redis_reply_done done, void *arg)
{
    char key[REDIS_KEY_BYTES_MAX];
    struct slice sessions = redis_key_user(&recovery->keys, key, "recoveries:", user_id, "");
    recovery->pending++;
    redis_eval(recovery->options.client, &recovery->script, REDIS_ARGS(sessions), arguments, done,
               arg);
}

/* ---- encoding ---- */

struct slice redis_recovery_write_hex(struct redis_recovery_hex *hex, uint64_t number)
{
    snprintf(hex->text, sizeof(hex->text), "%016" PRIx64, number);
    return (struct slice){hex->text, REDIS_RECOVERY_HEX_DIGITS};
}

static void write_recovery_event(struct buffer *out, const struct recovery_event *event)
{
    struct redis_recovery_hex offset, id;
    buffer_append_slice(out, redis_recovery_write_hex(&offset, event->offset));
    buffer_append_slice(out, redis_recovery_write_hex(&id, event->id));
    buffer_append_slice(out, event->frames);
}

/* ---- parking ---- */

static bool redis_recovery_expects(struct recovery_store *store, struct slice user_id)
{
    struct redis_recovery *recovery = redis_recovery_of(store);
    return recovery_local_expects(&recovery->local, user_id, redis_recovery_now_ms(recovery));
}

/* Nobody waits for the reply: a session that was not parked is not recovered. */
static void on_session_parked(void *arg, const struct resp_value *reply)
{
    (void)reply;
    redis_recovery_end(arg);
}

/* The arguments of one park operation, and the memory that they point to. */
struct park_arguments {
    struct redis_store_number time, recovery_time, topics;
    struct redis_recovery_hex floor, ceiling;
    struct buffer events;
    struct slice items[PARK_ARGUMENTS_MAX];
    size_t count;
};

static void redis_recovery_park(struct recovery_store *store, const struct parked_session *session)
{
    struct redis_recovery *recovery = redis_recovery_of(store);
    struct park_arguments arguments = {.events = BUFFER_INIT};
    size_t topic_count =
        session->topic_count < RECOVERY_TOPICS_MAX ? session->topic_count : RECOVERY_TOPICS_MAX;
    const struct slice first[PARK_ARGUMENTS_FIRST] = {
        SLICE("park"),
        redis_store_time(&arguments.time, recovery->options.script_clock),
        redis_store_number(&arguments.recovery_time, recovery->options.recovery_ms),
        session->pid,
        session->sid,
        redis_recovery_write_hex(&arguments.floor, session->floor),
        redis_recovery_write_hex(&arguments.ceiling, session->ceiling),
        redis_store_number(&arguments.topics, (int64_t)topic_count),
    };
    assert(session->event_count <= RECOVERY_EVENTS_MAX);
    memcpy(arguments.items, first, sizeof(first));
    arguments.count = PARK_ARGUMENTS_FIRST;
    for (size_t i = 0; i < topic_count; i++)
        arguments.items[arguments.count++] = session->topics[i];
    for (size_t i = 0; i < session->event_count; i++)
        write_recovery_event(&arguments.events, &session->events[i]);
    const char *at = arguments.events.data;
    for (size_t i = 0; i < session->event_count && !arguments.events.failed; i++) {
        size_t len = REDIS_RECOVERY_EVENT_HEAD + session->events[i].frames.len;
        arguments.items[arguments.count++] = (struct slice){at, len};
        at += len;
    }
    recovery_local_note(&recovery->local, session->user_id, redis_recovery_now_ms(recovery));
    if (!arguments.events.failed)
        redis_recovery_run(recovery, session->user_id,
                           (struct redis_args){arguments.items, arguments.count}, on_session_parked,
                           recovery);
    buffer_free(&arguments.events);
}

/* Parked sessions are in Redis alone, and the state store reports all of them. */
static bool redis_recovery_is_empty(struct recovery_store *store)
{
    (void)store;
    return true;
}

/* ---- events ---- */

static void redis_recovery_invalidate(struct recovery_store *store)
{
    redis_recovery_of(store)->invalidated_at_ms = redis_recovery_now_ms(redis_recovery_of(store));
}

/* One append to the sessions of several users. */
struct append_operation {
    struct redis_recovery *recovery;
    redis_recovery_append_done done;
    void *arg;
    size_t waiting;
    bool all;
};

static void end_recovery_append(struct append_operation *operation)
{
    if (--operation->waiting)
        return;
    if (operation->done)
        operation->done(operation->arg, operation->all);
    free(operation);
}

static void on_event_appended(void *arg, const struct resp_value *reply)
{
    struct append_operation *operation = arg;
    struct redis_recovery *recovery = operation->recovery;
    if (!redis_store_is_integer(reply)) {
        operation->all = false;
        redis_recovery_invalidate(&recovery->store);
    }
    end_recovery_append(operation);
    redis_recovery_end(recovery);
}

static void run_append(struct append_operation *operation, const struct slice *user_ids,
                       size_t count, const struct recovery_event *event)
{
    struct redis_recovery *recovery = operation->recovery;
    struct redis_store_number time;
    struct buffer text = BUFFER_INIT;
    write_recovery_event(&text, event);
    if (text.failed) {
        operation->all = false;
        redis_recovery_invalidate(&recovery->store);
    }
    for (size_t i = 0; i < count && !text.failed; i++) {
        operation->waiting++;
        redis_recovery_run(recovery, user_ids[i],
                           REDIS_ARGS(SLICE("append"),
                                      redis_store_time(&time, recovery->options.script_clock),
                                      buffer_slice(&text)),
                           on_event_appended, operation);
    }
    buffer_free(&text);
}

void redis_recovery_append_to(struct recovery_store *store, const struct slice *user_ids,
                              size_t count, const struct recovery_event *event,
                              redis_recovery_append_done done, void *arg)
{
    struct redis_recovery *recovery = redis_recovery_of(store);
    struct append_operation *operation = malloc(sizeof(*operation));
    for (size_t i = 0; i < count; i++)
        recovery_local_add(&recovery->local, user_ids[i], event);
    if (!operation) {
        redis_recovery_invalidate(store);
        if (done)
            done(arg, false);
        return;
    }
    *operation = (struct append_operation){recovery, done, arg, 1, true};
    run_append(operation, user_ids, count, event);
    end_recovery_append(operation);
}

static void redis_recovery_append(struct recovery_store *store, const struct slice *user_ids,
                                  size_t count, const struct recovery_event *event)
{
    redis_recovery_append_to(store, user_ids, count, event, NULL, NULL);
}

/* ---- making and freeing ---- */

/* The first connection to Redis invalidates nothing: no event was missed before it. */
static void on_recovery_availability_changed(struct redis_observer *observer, bool available)
{
    struct redis_recovery *recovery = CONTAINER_OF(observer, struct redis_recovery, observer);
    if (!available || recovery->invalidated_at_ms >= 0)
        redis_recovery_invalidate(&recovery->store);
}

static void redis_recovery_free(struct recovery_store *store)
{
    struct redis_recovery *recovery = redis_recovery_of(store);
    redis_unobserve(&recovery->observer);
    recovery_local_end(&recovery->local);
    recovery->is_freed = true;
    if (recovery->pending == 0)
        free(recovery);
}

static const struct recovery_store_operations OPERATIONS = {
    .park = redis_recovery_park,
    .is_empty = redis_recovery_is_empty,
    .expects = redis_recovery_expects,
    .append = redis_recovery_append,
    .take = redis_recovery_take,
    .invalidate = redis_recovery_invalidate,
    .free = redis_recovery_free,
};

struct recovery_store *redis_recovery_make(const struct redis_recovery_options *options)
{
    struct redis_recovery *recovery = calloc(1, sizeof(*recovery));
    if (!recovery)
        return NULL;
    recovery->store = (struct recovery_store){.operations = &OPERATIONS, .is_shared = true};
    recovery->options = *options;
    recovery_local_init(&recovery->local, options->hash_seed);
    recovery->keys.cluster = redis_is_cluster(options->client);
    recovery->invalidated_at_ms = -1;
    recovery->observer.on_availability_changed = on_recovery_availability_changed;
    if (!redis_script_init(&recovery->script, slice_of(REDIS_LUA_RECOVERY))) {
        free(recovery);
        return NULL;
    }
    redis_observe(options->client, &recovery->observer);
    return &recovery->store;
}
