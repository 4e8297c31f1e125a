#include "store/redis/redis_typing.h"

#include "base/container.h"
#include "store/redis/redis_keys.h"
#include "store/redis/redis_lua.h"
#include "store/redis/redis_store.h"

#include <stdlib.h>

struct redis_typing {
    struct typing_store store;
    struct redis_typing_options options;
    struct redis_script script; /* of what is under way too: see `errands` */
    size_t errands;
    bool is_freed;
};

/* An operation whose answer is awaited. */
struct errand {
    struct redis_typing *typing;
    union {
        typing_start_done started;
        typing_stop_done stopped;
        typing_users_done read;
    } done;
    void *arg;
};

static struct redis_typing *typing_of(struct typing_store *store)
{
    return CONTAINER_OF(store, struct redis_typing, store);
}

static struct errand *make_errand(struct redis_typing *typing, void *arg)
{
    struct errand *errand = malloc(sizeof(*errand));
    if (!errand)
        return NULL;
    *errand = (struct errand){.typing = typing, .arg = arg};
    typing->errands++;
    return errand;
}

static struct errand end_errand(void *arg)
{
    struct errand errand = *(struct errand *)arg;
    free(arg);
    if (--errand.typing->errands == 0 && errand.typing->is_freed)
        free(errand.typing);
    return errand;
}

/* Runs an operation of the script, with up to four words of its own. */
static void run(struct redis_typing *typing, const char *operation, struct redis_args keys,
                struct redis_args own, void (*done)(void *arg, const struct resp_value *reply),
                struct errand *errand)
{
    enum { WORDS_BEFORE = 2, OWN_MAX = 4 };
    struct redis_store_number time;
    struct slice words[WORDS_BEFORE + OWN_MAX] = {slice_of(operation),
                                                  redis_store_time(&time, typing->options.clock)};
    for (size_t i = 0; i < own.count; i++)
        words[WORDS_BEFORE + i] = own.items[i];
    redis_eval(typing->options.client, &typing->script, keys,
               (struct redis_args){words, WORDS_BEFORE + own.count}, done, errand);
}

static struct slice chat_key(char out[REDIS_KEY_BYTES_MAX], struct slice chat_id)
{
    return redis_key_plain(out, "typing:r:", chat_id);
}

/* Starts or stops. */
static void update(struct redis_typing *typing, const char *operation, struct slice chat_id,
                   struct slice user_id, const struct ulid *conn_id,
                   void (*done)(void *arg, const struct resp_value *reply), struct errand *errand)
{
    char chat[REDIS_KEY_BYTES_MAX], pace[REDIS_KEY_BYTES_MAX], conn[ULID_TEXT_LEN];
    struct redis_store_number ttl, interval;
    struct slice keys[] = {chat_key(chat, chat_id), SLICE_NONE};
    keys[1] = redis_key_beside(pace, "typing_pace:", keys[0], user_id);
    run(typing, operation, (struct redis_args){keys, keys[1].len ? 2 : 1},
        REDIS_ARGS(user_id, conn_id ? redis_store_ulid(conn, conn_id) : SLICE(""),
                   redis_store_number(&ttl, typing->options.ttl_ms),
                   redis_store_number(&interval, 1000 / (int64_t)typing->options.rate_per_second)),
        done, errand);
}

/* For an operation that changes something. */
static enum state_status typing_status(bool ok, const struct resp_value *reply)
{
    if (ok)
        return STATE_OK;
    return reply ? STATE_UNAVAILABLE : STATE_UNKNOWN;
}

/* ---- start ---- */

static bool parse_outcome(const struct resp_value *reply, struct typing_outcome *outcome)
{
    static const char *const NAMES[] = {
        [TYPING_STARTED] = "started", [TYPING_RENEWED] = "renewed", [TYPING_LIMITED] = "limited"};
    if (!redis_store_is_array(reply, 2))
        return false;
    for (int i = TYPING_STARTED; i <= TYPING_LIMITED; i++)
        if (slice_is(reply->items[0].text, NAMES[i])) {
            *outcome = (struct typing_outcome){(enum typing_result)i,
                                               redis_store_integer(&reply->items[1])};
            return true;
        }
    return false;
}

static void started(void *arg, const struct resp_value *reply)
{
    struct errand errand = end_errand(arg);
    struct typing_outcome outcome = {0};
    bool ok = parse_outcome(reply, &outcome);
    errand.done.started(errand.arg, typing_status(ok, reply), &outcome);
}

static void start(struct typing_store *store, struct slice chat_id, struct slice user_id,
                  const struct ulid *conn_id, typing_start_done done, void *arg)
{
    struct redis_typing *typing = typing_of(store);
    struct errand *errand = make_errand(typing, arg);
    if (!errand) {
        done(arg, STATE_UNAVAILABLE, &(struct typing_outcome){0});
        return;
    }
    errand->done.started = done;
    update(typing, "start", chat_id, user_id, conn_id, started, errand);
}

/* ---- stop ---- */

static void stopped(void *arg, const struct resp_value *reply)
{
    struct errand errand = end_errand(arg);
    bool ok = redis_store_is_integer(reply);
    errand.done.stopped(errand.arg, typing_status(ok, reply), ok && reply->integer == 1);
}

static void stop(struct typing_store *store, struct slice chat_id, struct slice user_id,
                 const struct ulid *conn_id, typing_stop_done done, void *arg)
{
    struct redis_typing *typing = typing_of(store);
    struct errand *errand = make_errand(typing, arg);
    if (!errand) {
        done(arg, STATE_UNAVAILABLE, false);
        return;
    }
    errand->done.stopped = done;
    update(typing, "stop", chat_id, user_id, conn_id, stopped, errand);
}

/* ---- read ---- */

static size_t parse_users(const struct resp_value *reply, struct typing_user *users)
{
    size_t count = 0;
    for (size_t i = 0; i + 1 < reply->count && count < TYPING_READ_MAX; i += 2) {
        struct slice user_id = reply->items[i].text;
        if (reply->items[i].type == RESP_TEXT && user_id.len && user_id.len <= USER_ID_BYTES_MAX)
            users[count++] =
                (struct typing_user){user_id, redis_store_integer(&reply->items[i + 1])};
    }
    return count;
}

static void have_read(void *arg, const struct resp_value *reply)
{
    struct errand errand = end_errand(arg);
    struct typing_user users[TYPING_READ_MAX];
    bool ok = redis_store_is_array(reply, 0);
    errand.done.read(errand.arg, ok ? STATE_OK : STATE_UNAVAILABLE, users,
                     ok ? parse_users(reply, users) : 0);
}

static void read_chat(struct typing_store *store, struct slice chat_id, size_t max,
                      typing_users_done done, void *arg)
{
    struct redis_typing *typing = typing_of(store);
    struct errand *errand = make_errand(typing, arg);
    struct redis_store_number bound;
    char chat[REDIS_KEY_BYTES_MAX];
    if (!errand) {
        done(arg, STATE_UNAVAILABLE, NULL, 0);
        return;
    }
    errand->done.read = done;
    run(typing, "read", REDIS_ARGS(chat_key(chat, chat_id)),
        REDIS_ARGS(redis_store_number(&bound, max < TYPING_READ_MAX ? (int64_t)max
                                                                    : (int64_t)TYPING_READ_MAX)),
        have_read, errand);
}

static void free_typing(struct typing_store *store)
{
    struct redis_typing *typing = typing_of(store);
    typing->is_freed = true;
    if (typing->errands == 0)
        free(typing);
}

static const struct typing_store_operations OPERATIONS = {
    .start = start,
    .stop = stop,
    .read = read_chat,
    .free = free_typing,
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
