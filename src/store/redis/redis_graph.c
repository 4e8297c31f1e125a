#include "store/redis/redis_graph.h"

#include "base/container.h"
#include "log/log.h"
#include "store/redis/redis_graph_read.h"
#include "store/redis/redis_keys.h"
#include "store/redis/redis_lua.h"
#include "store/redis/redis_store.h"

#include <stdlib.h>

enum { USER_KEYS = 6, KEYS_MAX = USER_KEYS + 1, UNDROPPED_PER_TRY_MAX = 1000 };

struct redis_circles {
    struct circle_store store;
    struct redis_circle_options options;
    struct redis_keys keys;
    struct redis_script script;
    struct list undropped; /* to be sent again, longest waiting first */
    size_t undropped_count;
    struct wheel_timer retry; /* set while some wait */
    size_t errands;           /* under way; the last one ends a store that was freed */
    bool is_freed;
};

/* An audience asked for. */
struct errand {
    struct redis_circles *circles;
    void (*done)(void *arg, enum state_status status, const struct circle_audience *audience);
    void *arg;
};

/* A drop under way, or waiting to be tried again. */
struct drop {
    struct list place;
    struct redis_circles *circles;
    uint8_t user_id_len;
    char user_id[];
};

static struct redis_circles *circles_of(struct circle_store *store)
{
    return CONTAINER_OF(store, struct redis_circles, store);
}

static void end_errand(struct redis_circles *circles)
{
    if (--circles->errands == 0 && circles->is_freed)
        free(circles);
}

/* ---- the script ---- */

struct circle_keys {
    char bytes[USER_KEYS][REDIS_KEY_BYTES_MAX];
    struct slice items[KEYS_MAX];
    size_t count;
};

static void name_keys(const struct redis_circles *circles, struct slice user_id,
                      struct circle_keys *keys)
{
    static const char *const NAMES[USER_KEYS][2] = {
        {"user:", ":circle"}, {"user:", ":friends"},        {"user:", ":blocked"},
        {"user:", ":chats"},  {"presence_visibility:", ""}, {"user:", ":circle:ticket"},
    };
    for (keys->count = 0; keys->count < USER_KEYS; keys->count++)
        keys->items[keys->count] =
            redis_key_user(&circles->keys, keys->bytes[keys->count], NAMES[keys->count][0], user_id,
                           NAMES[keys->count][1]);
}

static void run(struct redis_circles *circles, const struct circle_keys *keys,
                struct redis_words words, void (*done)(void *arg, const struct resp_value *reply),
                void *arg)
{
    redis_eval(circles->options.client, &circles->script,
               (struct redis_words){keys->items, keys->count}, words, done, arg);
}

/* ---- drop ---- */

static void retry_later(struct redis_circles *circles)
{
    struct loop *loop = circles->options.loop;
    if (!wheel_is_set(&circles->retry))
        loop_set_timer(loop, &circles->retry, loop->clock.now_ms + REDIS_CIRCLE_RETRY_MS);
}

/* Too many: what waits longest is left to age. */
static void bound_undropped(struct redis_circles *circles)
{
    if (circles->undropped_count <= REDIS_CIRCLE_UNDROPPED_MAX)
        return;
    struct drop *oldest = CONTAINER_OF(circles->undropped.next, struct drop, place);
    list_remove(&oldest->place);
    circles->undropped_count--;
    log_warn("circle_not_dropped", "user=%s",
             log_quote((struct slice){oldest->user_id, oldest->user_id_len}));
    free(oldest);
}

static void dropped(void *arg, const struct resp_value *reply)
{
    struct drop *drop = arg;
    struct redis_circles *circles = drop->circles;
    if (redis_store_is_integer(reply) || circles->is_freed) {
        free(drop);
    } else {
        list_append(&circles->undropped, &drop->place);
        circles->undropped_count++;
        bound_undropped(circles);
        retry_later(circles);
    }
    end_errand(circles);
}

static void send_drop(struct drop *drop)
{
    struct circle_keys keys;
    name_keys(drop->circles, (struct slice){drop->user_id, drop->user_id_len}, &keys);
    drop->circles->errands++;
    run(drop->circles, &keys, REDIS_WORDS(SLICE("drop")), dropped, drop);
}

/* A drop that fails at once comes back to the list's end, so only those there now are tried. */
static void retry_drops(struct wheel_timer *timer)
{
    struct redis_circles *circles = CONTAINER_OF(timer, struct redis_circles, retry);
    size_t count = circles->undropped_count < UNDROPPED_PER_TRY_MAX ? circles->undropped_count
                                                                    : UNDROPPED_PER_TRY_MAX;
    for (; count > 0; count--) {
        struct drop *drop = CONTAINER_OF(circles->undropped.next, struct drop, place);
        list_remove(&drop->place);
        circles->undropped_count--;
        send_drop(drop);
    }
    if (circles->undropped_count > 0)
        retry_later(circles);
}

static void drop_circle(struct circle_store *store, struct slice user_id)
{
    struct redis_circles *circles = circles_of(store);
    struct drop *drop = malloc(sizeof(*drop) + user_id.len);
    if (!drop) {
        log_warn("circle_not_dropped", "user=%s", log_quote(user_id));
        return;
    }
    *drop = (struct drop){.circles = circles, .user_id_len = (uint8_t)user_id.len};
    memcpy(drop->user_id, user_id.data, user_id.len);
    list_init(&drop->place);
    send_drop(drop);
}

/* ---- audience ---- */

static void heard(void *arg, enum state_status status, const struct circle_audience *audience)
{
    struct errand errand = *(struct errand *)arg;
    free(arg);
    errand.done(errand.arg, status, audience);
    end_errand(errand.circles);
}

static void answered(void *arg, const struct resp_value *reply)
{
    struct errand *errand = arg;
    redis_circle_reading_start(errand->circles->is_freed ? NULL : reply,
                               errand->circles->options.client, heard, errand);
}

static void ask_audience(struct circle_store *store, struct slice user_id,
                         void (*done)(void *arg, enum state_status status,
                                      const struct circle_audience *audience),
                         void *arg)
{
    struct redis_circles *circles = circles_of(store);
    struct errand *errand = malloc(sizeof(*errand));
    struct circle_keys keys;
    struct redis_store_number ticket;
    if (!errand) {
        done(arg, STATE_UNAVAILABLE, NULL);
        return;
    }
    *errand = (struct errand){circles, done, arg};
    circles->errands++;
    name_keys(circles, user_id, &keys);
    if (!circles->keys.cluster)
        keys.items[keys.count++] = SLICE(REDIS_CIRCLE_ONLINE);
    run(circles, &keys,
        REDIS_WORDS(
            SLICE("audience"),
            redis_store_number(&ticket, (int64_t)random_below(circles->options.random, INT64_MAX))),
        answered, errand);
}

/* ---- put ---- */

static void have_put(void *arg, const struct resp_value *reply)
{
    (void)reply;
    end_errand(arg);
}

static size_t add_ids(struct slice *words, size_t at, const struct circle_list *list, size_t count)
{
    if (count)
        memcpy(words + at, list->ids, count * sizeof(*words));
    return at + count;
}

static void put_circle(struct circle_store *store, struct slice user_id, uint64_t ticket,
                       const struct circle *circle)
{
    enum { WORDS_BEFORE = 7 };
    struct redis_circles *circles = circles_of(store);
    const char *presence = redis_circle_visibility_name(circle->presence_visibility);
    const char *last_seen = redis_circle_visibility_name(circle->last_seen_visibility);
    size_t contacts =
        circle->contacts.count < CIRCLE_CONTACTS_MAX ? circle->contacts.count : CIRCLE_CONTACTS_MAX;
    size_t blocked = circle->blocked.count, chats = circle->chats.count;
    struct slice *words = malloc((WORDS_BEFORE + contacts + blocked + chats) * sizeof(*words));
    struct redis_store_number numbers[4];
    struct circle_keys keys;
    if (words && presence && last_seen) {
        words[0] = SLICE("put");
        words[1] = redis_store_number(&numbers[0], (int64_t)ticket);
        words[2] = slice_of(presence);
        words[3] = slice_of(last_seen);
        words[4] = redis_store_number(&numbers[1], (int64_t)contacts);
        words[5] = redis_store_number(&numbers[2], (int64_t)blocked);
        words[6] = redis_store_number(&numbers[3], (int64_t)chats);
        size_t count = add_ids(words, WORDS_BEFORE, &circle->contacts, contacts);
        count = add_ids(words, count, &circle->blocked, blocked);
        count = add_ids(words, count, &circle->chats, chats);
        name_keys(circles, user_id, &keys);
        circles->errands++;
        run(circles, &keys, (struct redis_words){words, count}, have_put, circles);
    }
    free(words);
}

/* ---- life ---- */

/* The state store knows. */
static void set_online(struct circle_store *store, struct slice user_id, bool online,
                       int64_t version)
{
    (void)store;
    (void)user_id;
    (void)online;
    (void)version;
}

static void free_circles(struct circle_store *store)
{
    struct redis_circles *circles = circles_of(store);
    struct list *at = circles->undropped.next;
    while (at != &circles->undropped) {
        struct drop *drop = CONTAINER_OF(at, struct drop, place);
        at = at->next;
        free(drop);
    }
    loop_cancel_timer(circles->options.loop, &circles->retry);
    circles->is_freed = true;
    if (circles->errands == 0)
        free(circles);
}

static const struct circle_store_operations OPERATIONS = {
    .audience = ask_audience,
    .put = put_circle,
    .drop = drop_circle,
    .set_online = set_online,
    .free = free_circles,
};

struct circle_store *redis_circle_make(const struct redis_circle_options *options)
{
    struct redis_circles *circles = malloc(sizeof(*circles));
    if (!circles)
        return NULL;
    *circles = (struct redis_circles){
        .store = {&OPERATIONS},
        .options = *options,
        .keys.cluster = redis_is_cluster(options->client),
        .retry.fire = retry_drops,
    };
    list_init(&circles->undropped);
    if (!redis_script_init(&circles->script, slice_of(REDIS_LUA_GRAPH))) {
        free(circles);
        return NULL;
    }
    return &circles->store;
}
