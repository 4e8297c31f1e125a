#include "store/redis/redis_graph.h"

#include "base/container.h"
#include "log/log.h"
#include "store/redis/redis_graph_read.h"
#include "store/redis/redis_keys.h"
#include "store/redis/redis_lua.h"
#include "store/redis/redis_store.h"

#include <stdlib.h>

enum { USER_KEYS = 6, KEYS_MAX = USER_KEYS + 1, UNDROPPED_PER_TRY_MAX = 1000 };

struct redis_graphs {
    struct graph_store store;
    struct redis_graph_options options;
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
    struct redis_graphs *graphs;
    graph_lookup_done done;
    void *arg;
};

/* A drop under way, or waiting to be tried again. */
struct drop {
    struct list place;
    struct redis_graphs *graphs;
    uint8_t user_id_len;
    char user_id[];
};

static struct redis_graphs *graphs_of(struct graph_store *store)
{
    return CONTAINER_OF(store, struct redis_graphs, store);
}

static void end_errand(struct redis_graphs *graphs)
{
    if (--graphs->errands == 0 && graphs->is_freed)
        free(graphs);
}

/* ---- the script ---- */

struct graph_keys {
    char bytes[USER_KEYS][REDIS_KEY_BYTES_MAX];
    struct slice items[KEYS_MAX];
    size_t count;
};

static void name_keys(const struct redis_graphs *graphs, struct slice user_id,
                      struct graph_keys *keys)
{
    static const char *const NAMES[USER_KEYS][2] = {
        {"user:", ":circle"}, {"user:", ":friends"},        {"user:", ":blocked"},
        {"user:", ":chats"},  {"presence_visibility:", ""}, {"user:", ":circle:ticket"},
    };
    for (keys->count = 0; keys->count < USER_KEYS; keys->count++)
        keys->items[keys->count] =
            redis_key_user(&graphs->keys, keys->bytes[keys->count], NAMES[keys->count][0], user_id,
                           NAMES[keys->count][1]);
}

static void run(struct redis_graphs *graphs, const struct graph_keys *keys, struct redis_args words,
                void (*done)(void *arg, const struct resp_value *reply), void *arg)
{
    redis_eval(graphs->options.client, &graphs->script,
               (struct redis_args){keys->items, keys->count}, words, done, arg);
}

/* ---- drop ---- */

static void retry_later(struct redis_graphs *graphs)
{
    struct loop *loop = graphs->options.loop;
    if (!wheel_is_set(&graphs->retry))
        loop_set_timer(loop, &graphs->retry, loop->clock.now_ms + REDIS_GRAPH_RETRY_MS);
}

/* Too many: what waits longest is left to age. */
static void bound_undropped(struct redis_graphs *graphs)
{
    if (graphs->undropped_count <= REDIS_GRAPH_UNDROPPED_MAX)
        return;
    struct drop *oldest = CONTAINER_OF(graphs->undropped.next, struct drop, place);
    list_remove(&oldest->place);
    graphs->undropped_count--;
    log_warn("graph_not_dropped", "user=%s",
             log_quote((struct slice){oldest->user_id, oldest->user_id_len}));
    free(oldest);
}

static void dropped(void *arg, const struct resp_value *reply)
{
    struct drop *drop = arg;
    struct redis_graphs *graphs = drop->graphs;
    if (redis_store_is_integer(reply) || graphs->is_freed) {
        free(drop);
    } else {
        list_append(&graphs->undropped, &drop->place);
        graphs->undropped_count++;
        bound_undropped(graphs);
        retry_later(graphs);
    }
    end_errand(graphs);
}

static void send_drop(struct drop *drop)
{
    struct graph_keys keys;
    name_keys(drop->graphs, (struct slice){drop->user_id, drop->user_id_len}, &keys);
    drop->graphs->errands++;
    run(drop->graphs, &keys, REDIS_ARGS(SLICE("drop")), dropped, drop);
}

/* A drop that fails at once comes back to the list's end, so only those there now are tried. */
static void retry_drops(struct wheel_timer *timer)
{
    struct redis_graphs *graphs = CONTAINER_OF(timer, struct redis_graphs, retry);
    size_t count = graphs->undropped_count < UNDROPPED_PER_TRY_MAX ? graphs->undropped_count
                                                                   : UNDROPPED_PER_TRY_MAX;
    for (; count > 0; count--) {
        struct drop *drop = CONTAINER_OF(graphs->undropped.next, struct drop, place);
        list_remove(&drop->place);
        graphs->undropped_count--;
        send_drop(drop);
    }
    if (graphs->undropped_count > 0)
        retry_later(graphs);
}

static void drop_graph(struct graph_store *store, struct slice user_id)
{
    struct redis_graphs *graphs = graphs_of(store);
    struct drop *drop = malloc(sizeof(*drop) + user_id.len);
    if (!drop) {
        log_warn("graph_not_dropped", "user=%s", log_quote(user_id));
        return;
    }
    *drop = (struct drop){.graphs = graphs, .user_id_len = (uint8_t)user_id.len};
    memcpy(drop->user_id, user_id.data, user_id.len);
    list_init(&drop->place);
    send_drop(drop);
}

/* ---- audience ---- */

static void heard(void *arg, enum state_status status, const struct graph_lookup *audience)
{
    struct errand errand = *(struct errand *)arg;
    free(arg);
    errand.done(errand.arg, status, audience);
    end_errand(errand.graphs);
}

static void answered(void *arg, const struct resp_value *reply)
{
    struct errand *errand = arg;
    redis_graph_reading_start(errand->graphs->is_freed ? NULL : reply,
                              errand->graphs->options.client, heard, errand);
}

static void ask_audience(struct graph_store *store, struct slice user_id, graph_lookup_done done,
                         void *arg)
{
    struct redis_graphs *graphs = graphs_of(store);
    struct errand *errand = malloc(sizeof(*errand));
    struct graph_keys keys;
    struct redis_store_number ticket;
    if (!errand) {
        done(arg, STATE_UNAVAILABLE, NULL);
        return;
    }
    *errand = (struct errand){graphs, done, arg};
    graphs->errands++;
    name_keys(graphs, user_id, &keys);
    if (!graphs->keys.cluster)
        keys.items[keys.count++] = SLICE(REDIS_GRAPH_ONLINE);
    run(graphs, &keys,
        REDIS_ARGS(
            SLICE("audience"),
            redis_store_number(&ticket, (int64_t)random_below(graphs->options.random, INT64_MAX))),
        answered, errand);
}

/* ---- put ---- */

static void have_put(void *arg, const struct resp_value *reply)
{
    (void)reply;
    end_errand(arg);
}

static size_t add_ids(struct slice *words, size_t at, const struct id_list *list, size_t count)
{
    if (count)
        memcpy(words + at, list->ids, count * sizeof(*words));
    return at + count;
}

static void put_graph(struct graph_store *store, struct slice user_id, uint64_t ticket,
                      const struct social_graph *graph)
{
    enum { WORDS_BEFORE = 7 };
    struct redis_graphs *graphs = graphs_of(store);
    const char *presence = redis_graph_visibility_name(graph->presence_visibility);
    const char *last_seen = redis_graph_visibility_name(graph->last_seen_visibility);
    size_t contacts =
        graph->contacts.count < GRAPH_CONTACTS_MAX ? graph->contacts.count : GRAPH_CONTACTS_MAX;
    size_t blocked = graph->blocked.count, chats = graph->chats.count;
    struct slice *words = malloc((WORDS_BEFORE + contacts + blocked + chats) * sizeof(*words));
    struct redis_store_number numbers[4];
    struct graph_keys keys;
    if (words && presence && last_seen) {
        words[0] = SLICE("put");
        words[1] = redis_store_number(&numbers[0], (int64_t)ticket);
        words[2] = slice_of(presence);
        words[3] = slice_of(last_seen);
        words[4] = redis_store_number(&numbers[1], (int64_t)contacts);
        words[5] = redis_store_number(&numbers[2], (int64_t)blocked);
        words[6] = redis_store_number(&numbers[3], (int64_t)chats);
        size_t count = add_ids(words, WORDS_BEFORE, &graph->contacts, contacts);
        count = add_ids(words, count, &graph->blocked, blocked);
        count = add_ids(words, count, &graph->chats, chats);
        name_keys(graphs, user_id, &keys);
        graphs->errands++;
        run(graphs, &keys, (struct redis_args){words, count}, have_put, graphs);
    }
    free(words);
}

/* ---- life ---- */

/* The state store knows. */
static void set_online(struct graph_store *store, struct slice user_id, bool online,
                       int64_t version)
{
    (void)store;
    (void)user_id;
    (void)online;
    (void)version;
}

static void free_graphs(struct graph_store *store)
{
    struct redis_graphs *graphs = graphs_of(store);
    struct list *at = graphs->undropped.next;
    while (at != &graphs->undropped) {
        struct drop *drop = CONTAINER_OF(at, struct drop, place);
        at = at->next;
        free(drop);
    }
    loop_cancel_timer(graphs->options.loop, &graphs->retry);
    graphs->is_freed = true;
    if (graphs->errands == 0)
        free(graphs);
}

static const struct graph_store_operations OPERATIONS = {
    .lookup = ask_audience,
    .put = put_graph,
    .drop = drop_graph,
    .set_online = set_online,
    .free = free_graphs,
};

struct graph_store *redis_graph_make(const struct redis_graph_options *options)
{
    struct redis_graphs *graphs = malloc(sizeof(*graphs));
    if (!graphs)
        return NULL;
    *graphs = (struct redis_graphs){
        .store = {&OPERATIONS},
        .options = *options,
        .keys.cluster = redis_is_cluster(options->client),
        .retry.fire = retry_drops,
    };
    list_init(&graphs->undropped);
    if (!redis_script_init(&graphs->script, slice_of(REDIS_LUA_GRAPH))) {
        free(graphs);
        return NULL;
    }
    return &graphs->store;
}
