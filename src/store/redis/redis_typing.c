#include "store/redis/redis_typing.h"

#include "base/container.h"
#include "store/redis/redis_keys.h"
#include "store/redis/redis_lua.h"
#include "store/redis/redis_store.h"

#include <stdlib.h>

struct redis_typing {
    struct typing_store store;
    struct redis_typing_options options;
    struct redis_script script;
    size_t pending; /* operations; the last one frees a store that its owner has freed */
    bool is_freed;
};

/* One pending operation. */
struct typing_operation {
    struct redis_typing *typing;
    union {
        typing_start_done started;
        typing_stop_done stopped;
        typing_users_done read;
    } done;
    void *arg;
};

static struct redis_typing *redis_typing_of(struct typing_store *store)
{
    return CONTAINER_OF(store, struct redis_typing, store);
}

/* Returns NULL when out of memory. */
static struct typing_operation *begin_typing_operation(struct redis_typing *typing, void *arg)
{
    struct typing_operation *operation = malloc(sizeof(*operation));
    if (!operation)
        return NULL;
    *operation = (struct typing_operation){.typing = typing, .arg = arg};
    typing->pending++;
    return operation;
}

static struct typing_operation end_typing_operation(void *arg)
{
    struct typing_operation operation = *(struct typing_operation *)arg;
    free(arg);
    if (--operation.typing->pending == 0 && operation.typing->is_freed)
        free(operation.typing);
    return operation;
}

/* Runs an operation of the script with at most four arguments of its own. */
static void run_typing_script(struct redis_typing *typing, const char *verb, struct redis_args keys,
                              struct redis_args arguments, redis_reply_done done,
                              struct typing_operation *operation)
{
    enum { ARGUMENTS_FIRST = 2, ARGUMENTS_MAX = 4 };
    struct redis_store_number time;
    struct slice all[ARGUMENTS_FIRST + ARGUMENTS_MAX] = {
        slice_of(verb), redis_store_time(&time, typing->options.clock)};
    for (size_t i = 0; i < arguments.count; i++)
        all[ARGUMENTS_FIRST + i] = arguments.items[i];
    redis_eval(typing->options.client, &typing->script, keys,
               (struct redis_args){all, ARGUMENTS_FIRST + arguments.count}, done, operation);
}

/* Runs "start" or "stop". */
static void run_typing_update(struct redis_typing *typing, const char *verb, struct slice chat_id,
                              struct slice user_id, const struct ulid *conn_id,
                              redis_reply_done done, struct typing_operation *operation)
{
    char chat[REDIS_KEY_BYTES_MAX], pace[REDIS_KEY_BYTES_MAX], conn[ULID_TEXT_LEN];
    struct redis_store_number ttl, interval;
    struct slice keys[] = {redis_key_plain(chat, "typing:r:", chat_id), SLICE_NONE};
    keys[1] = redis_key_beside(pace, "typing_pace:", keys[0], user_id);
    run_typing_script(
        typing, verb, (struct redis_args){keys, keys[1].len ? 2 : 1},
        REDIS_ARGS(user_id, conn_id ? redis_store_ulid(conn, conn_id) : SLICE(""),
                   redis_store_number(&ttl, typing->options.ttl_ms),
                   redis_store_number(&interval, 1000 / (int64_t)typing->options.rate_per_second)),
        done, operation);
}

/* The status of an operation that changes something: without a reply it may have happened. */
static enum state_status typing_update_status(bool ok, const struct resp_value *reply)
{
    if (ok)
        return STATE_OK;
    return reply ? STATE_UNAVAILABLE : STATE_UNKNOWN;
}

/* ---- start ---- */

static void on_typing_started(void *arg, const struct resp_value *reply)
{
    static const char *const NAMES[] = {
        [TYPING_STARTED] = "started", [TYPING_RENEWED] = "renewed", [TYPING_LIMITED] = "limited"};
    struct typing_operation operation = end_typing_operation(arg);
    struct typing_outcome outcome = {0};
    bool ok = false;
    for (int i = TYPING_STARTED; redis_store_is_array(reply, 2) && i <= TYPING_LIMITED; i++)
        if (slice_is(reply->items[0].text, NAMES[i])) {
            outcome = (struct typing_outcome){(enum typing_result)i,
                                              redis_store_integer(&reply->items[1])};
            ok = true;
        }
    operation.done.started(operation.arg, typing_update_status(ok, reply), &outcome);
}

static void redis_typing_start(struct typing_store *store, struct slice chat_id,
                               struct slice user_id, const struct ulid *conn_id,
                               typing_start_done done, void *arg)
{
    struct redis_typing *typing = redis_typing_of(store);
    struct typing_operation *operation = begin_typing_operation(typing, arg);
    if (!operation) {
        done(arg, STATE_UNAVAILABLE, &(struct typing_outcome){0});
        return;
    }
    operation->done.started = done;
    run_typing_update(typing, "start", chat_id, user_id, conn_id, on_typing_started, operation);
}

/* ---- stop ---- */

static void on_typing_stopped(void *arg, const struct resp_value *reply)
{
    struct typing_operation operation = end_typing_operation(arg);
    bool ok = redis_store_is_integer(reply);
    operation.done.stopped(operation.arg, typing_update_status(ok, reply),
                           ok && reply->integer == 1);
}

/* A stop of all devices, which every message is. */
struct typing_check {
    struct typing_operation *operation;
    struct slice chat_id;
    struct slice user_id;
    char bytes[];
};

/* Most senders have no notice, and then there is nothing to stop. A notice that starts after this reply belongs to the
 * next message. */
static void on_typing_notice_checked(void *arg, const struct resp_value *reply)
{
    struct typing_check *check = arg;
    bool has_none = redis_store_is_integer(reply) && reply->integer == 0;
    if (has_none || !reply || check->operation->typing->is_freed)
        on_typing_stopped(check->operation, has_none ? reply : NULL);
    else
        run_typing_update(check->operation->typing, "stop", check->chat_id, check->user_id, NULL,
                          on_typing_stopped, check->operation);
    free(check);
}

/* Returns false when out of memory. */
static bool check_typing_notice(struct typing_operation *operation, struct slice chat_id,
                                struct slice user_id)
{
    struct typing_check *check = malloc(sizeof(*check) + chat_id.len + user_id.len);
    char text[REDIS_KEY_BYTES_MAX];
    if (!check)
        return false;
    *check = (struct typing_check){.operation = operation,
                                   .chat_id = {check->bytes, chat_id.len},
                                   .user_id = {check->bytes + chat_id.len, user_id.len}};
    memcpy(check->bytes, chat_id.data, chat_id.len);
    memcpy(check->bytes + chat_id.len, user_id.data, user_id.len);
    struct slice key = redis_key_plain(text, "typing:r:", chat_id);
    redis_command(operation->typing->options.client, key,
                  REDIS_ARGS(SLICE("HEXISTS"), key, user_id), on_typing_notice_checked, check);
    return true;
}

static void redis_typing_stop(struct typing_store *store, struct slice chat_id,
                              struct slice user_id, const struct ulid *conn_id,
                              typing_stop_done done, void *arg)
{
    struct redis_typing *typing = redis_typing_of(store);
    struct typing_operation *operation = begin_typing_operation(typing, arg);
    if (!operation) {
        done(arg, STATE_UNAVAILABLE, false);
        return;
    }
    operation->done.stopped = done;
    if (!conn_id && check_typing_notice(operation, chat_id, user_id))
        return;
    run_typing_update(typing, "stop", chat_id, user_id, conn_id, on_typing_stopped, operation);
}

/* ---- read ---- */

/* Skips items that are not user ids. */
static void on_typing_users_read(void *arg, const struct resp_value *reply)
{
    struct typing_operation operation = end_typing_operation(arg);
    struct typing_user users[TYPING_READ_MAX];
    size_t count = 0;
    bool ok = redis_store_is_array(reply, 0);
    for (size_t i = 0; ok && i + 1 < reply->count && count < TYPING_READ_MAX; i += 2) {
        struct slice user_id = reply->items[i].text;
        if (reply->items[i].type == RESP_TEXT && user_id.len && user_id.len <= USER_ID_BYTES_MAX)
            users[count++] =
                (struct typing_user){user_id, redis_store_integer(&reply->items[i + 1])};
    }
    operation.done.read(operation.arg, ok ? STATE_OK : STATE_UNAVAILABLE, users, count);
}

static void redis_typing_read(struct typing_store *store, struct slice chat_id, size_t max,
                              typing_users_done done, void *arg)
{
    struct redis_typing *typing = redis_typing_of(store);
    struct typing_operation *operation = begin_typing_operation(typing, arg);
    struct redis_store_number bound;
    char chat[REDIS_KEY_BYTES_MAX];
    if (!operation) {
        done(arg, STATE_UNAVAILABLE, NULL, 0);
        return;
    }
    operation->done.read = done;
    run_typing_script(typing, "read", REDIS_ARGS(redis_key_plain(chat, "typing:r:", chat_id)),
                      REDIS_ARGS(redis_store_number(
                          &bound, max < TYPING_READ_MAX ? (int64_t)max : (int64_t)TYPING_READ_MAX)),
                      on_typing_users_read, operation);
}

static void redis_typing_free(struct typing_store *store)
{
    struct redis_typing *typing = redis_typing_of(store);
    typing->is_freed = true;
    if (typing->pending == 0)
        free(typing);
}

static const struct typing_store_operations OPERATIONS = {
    .start = redis_typing_start,
    .stop = redis_typing_stop,
    .read = redis_typing_read,
    .free = redis_typing_free,
};

struct typing_store *redis_typing_make(const struct redis_typing_options *options)
{
    struct redis_typing *typing = malloc(sizeof(*typing));
    if (!typing)
        return NULL;
    *typing = (struct redis_typing){.store = {&OPERATIONS}, .options = *options};
    if (!redis_script_init(&typing->script, slice_of(REDIS_LUA_TYPING))) {
        free(typing);
        return NULL;
    }
    return &typing->store;
}
