#include "store/redis/redis_graph.h"

#include "base/container.h"
#include "log/log.h"
#include "store/redis/redis_graph_read.h"
#include "store/redis/redis_keys.h"
#include "store/redis/redis_lua.h"
#include "store/redis/redis_store.h"

#include <stdlib.h>

enum { USER_KEYS = 7, KEYS_MAX = USER_KEYS + 1, DROPS_PER_RETRY_MAX = 1000 };

struct redis_graphs {
    struct graph_store store;
    struct redis_graph_options options;
    struct redis_keys keys;
    struct redis_script script;
    struct list failed_drops; /* to be sent again, the oldest first */
    size_t failed_drop_count;
    struct wheel_timer retry; /* set while failed drops wait */
    size_t pending;           /* operations; the last one frees a store that its owner has freed */
    bool is_freed;
};

/* One pending lookup. */
struct graph_lookup_operation {
    struct redis_graphs *graphs;
    graph_lookup_done done;
    void *arg;
};

/* A drop that is pending, or waits to be sent again. */
struct graph_drop_operation {
    struct list place;
    struct redis_graphs *graphs;
    uint8_t user_id_len;
    char user_id[];
};

static struct redis_graphs *redis_graphs_of(struct graph_store *store)
{
    return CONTAINER_OF(store, struct redis_graphs, store);
}

static void end_graph_operation(struct redis_graphs *graphs)
{
    if (--graphs->pending == 0 && graphs->is_freed)
        free(graphs);
}

/* Runs an operation of the script on the keys of a user. `online_key` is passed as one more key if it is not empty. */
static void run_graph_script(struct redis_graphs *graphs, struct slice user_id,
                             struct slice online_key, struct redis_args arguments,
                             redis_reply_done done, void *arg)
{
    static const char *const NAMES[USER_KEYS][2] = {
        {"user:", ":circle"},     {"user:", ":friends"},        {"user:", ":blocked"},
        {"user:", ":chats"},      {"presence_visibility:", ""}, {"user:", ":circle:ticket"},
        {"user:", ":blocked_by"},
    };
    char bytes[USER_KEYS][REDIS_KEY_BYTES_MAX];
    struct slice keys[KEYS_MAX];
    for (size_t i = 0; i < USER_KEYS; i++)
        keys[i] = redis_key_user(&graphs->keys, bytes[i], NAMES[i][0], user_id, NAMES[i][1]);
    keys[USER_KEYS] = online_key;
    graphs->pending++;
    redis_eval(graphs->options.client, &graphs->script,
               (struct redis_args){keys, online_key.len ? KEYS_MAX : USER_KEYS}, arguments, done,
               arg);
}

/* ---- drop ---- */

static void schedule_drop_retry(struct redis_graphs *graphs)
{
    struct loop *loop = graphs->options.loop;
    if (!wheel_is_set(&graphs->retry))
        loop_set_timer(loop, &graphs->retry, loop->clock.now_ms + REDIS_GRAPH_RETRY_MS);
}

/* When too many drops have failed, the oldest is given up: its graph ages. */
static void on_graph_dropped(void *arg, const struct resp_value *reply)
{
    struct graph_drop_operation *drop = arg;
    struct redis_graphs *graphs = drop->graphs;
    if (redis_store_is_integer(reply) || graphs->is_freed) {
        free(drop);
        end_graph_operation(graphs);
        return;
    }
    list_append(&graphs->failed_drops, &drop->place);
    graphs->failed_drop_count++;
    if (graphs->failed_drop_count > REDIS_GRAPH_FAILED_DROPS_MAX) {
        struct graph_drop_operation *oldest =
            CONTAINER_OF(graphs->failed_drops.next, struct graph_drop_operation, place);
        list_remove(&oldest->place);
        graphs->failed_drop_count--;
        log_warn("graph_not_dropped", "user=%s",
                 log_quote((struct slice){oldest->user_id, oldest->user_id_len}));
        free(oldest);
    }
    schedule_drop_retry(graphs);
    end_graph_operation(graphs);
}

static void send_graph_drop(struct graph_drop_operation *drop)
{
    run_graph_script(drop->graphs, (struct slice){drop->user_id, drop->user_id_len}, SLICE_NONE,
                     REDIS_ARGS(SLICE("drop")), on_graph_dropped, drop);
}

/* A drop that fails at once is appended to the list again, so only the drops that are in it now are sent. */
static void on_drop_retry_due(struct wheel_timer *timer)
{
    struct redis_graphs *graphs = CONTAINER_OF(timer, struct redis_graphs, retry);
    size_t count = graphs->failed_drop_count < DROPS_PER_RETRY_MAX ? graphs->failed_drop_count
                                                                   : DROPS_PER_RETRY_MAX;
    for (; count > 0; count--) {
        struct graph_drop_operation *drop =
            CONTAINER_OF(graphs->failed_drops.next, struct graph_drop_operation, place);
        list_remove(&drop->place);
        graphs->failed_drop_count--;
        send_graph_drop(drop);
    }
    if (graphs->failed_drop_count > 0)
        schedule_drop_retry(graphs);
}

static void redis_graph_drop(struct graph_store *store, struct slice user_id)
{
    struct graph_drop_operation *drop = malloc(sizeof(*drop) + user_id.len);
    if (!drop) {
        log_warn("graph_not_dropped", "user=%s", log_quote(user_id));
        return;
    }
    *drop = (struct graph_drop_operation){.graphs = redis_graphs_of(store),
                                          .user_id_len = (uint8_t)user_id.len};
    memcpy(drop->user_id, user_id.data, user_id.len);
    list_init(&drop->place);
    send_graph_drop(drop);
}

/* ---- lookup ---- */

static void on_redis_graph_read(void *arg, enum state_status status,
                                const struct graph_lookup *lookup)
{
    struct graph_lookup_operation operation = *(struct graph_lookup_operation *)arg;
    free(arg);
    operation.done(operation.arg, status, lookup);
    end_graph_operation(operation.graphs);
}

static void on_graph_lookup_reply(void *arg, const struct resp_value *reply)
{
    struct graph_lookup_operation *operation = arg;
    redis_graph_read(operation->graphs->is_freed ? NULL : reply, operation->graphs->options.client,
                     on_redis_graph_read, operation);
}

static void redis_graph_lookup(struct graph_store *store, struct slice user_id,
                               graph_lookup_done done, void *arg)
{
    struct redis_graphs *graphs = redis_graphs_of(store);
    struct graph_lookup_operation *operation = malloc(sizeof(*operation));
    struct redis_store_number ticket;
    if (!operation) {
        done(arg, STATE_UNAVAILABLE, NULL);
        return;
    }
    *operation = (struct graph_lookup_operation){graphs, done, arg};
    run_graph_script(
        graphs, user_id, graphs->keys.cluster ? SLICE_NONE : SLICE(REDIS_GRAPH_ONLINE),
        REDIS_ARGS(
            SLICE("lookup"),
            redis_store_number(&ticket, (int64_t)random_below(graphs->options.random, INT64_MAX))),
        on_graph_lookup_reply, operation);
}

/* ---- put ---- */

/* Nobody waits for the reply: a graph that was not put is a miss. */
static void on_graph_put(void *arg, const struct resp_value *reply)
{
    (void)reply;
    end_graph_operation(arg);
}

static size_t add_graph_ids(struct slice *arguments, size_t at, const struct slice *ids,
                            size_t count)
{
    if (count)
        memcpy(arguments + at, ids, count * sizeof(*arguments));
    return at + count;
}

static void redis_graph_put(struct graph_store *store, struct slice user_id, uint64_t ticket,
                            const struct social_graph *graph)
{
    enum { ARGUMENTS_FIRST = 8 };
    struct redis_graphs *graphs = redis_graphs_of(store);
    const char *presence = redis_graph_visibility_name(graph->presence_visibility);
    const char *last_seen = redis_graph_visibility_name(graph->last_seen_visibility);
    size_t contacts =
        graph->contacts.count < GRAPH_CONTACTS_MAX ? graph->contacts.count : GRAPH_CONTACTS_MAX;
    size_t blocked = graph->blocked.count, blocked_by = graph->blocked_by.count;
    size_t chats = graph->chats.count;
    struct slice *arguments =
        malloc((ARGUMENTS_FIRST + contacts + blocked + blocked_by + chats) * sizeof(*arguments));
    struct redis_store_number numbers[5];
    if (arguments && presence && last_seen) {
        arguments[0] = SLICE("put");
        arguments[1] = redis_store_number(&numbers[0], (int64_t)ticket);
        arguments[2] = slice_of(presence);
        arguments[3] = slice_of(last_seen);
        arguments[4] = redis_store_number(&numbers[1], (int64_t)contacts);
        arguments[5] = redis_store_number(&numbers[2], (int64_t)blocked);
        arguments[6] = redis_store_number(&numbers[3], (int64_t)blocked_by);
        arguments[7] = redis_store_number(&numbers[4], (int64_t)chats);
        size_t count = add_graph_ids(arguments, ARGUMENTS_FIRST, graph->contacts.ids, contacts);
        count = add_graph_ids(arguments, count, graph->blocked.ids, blocked);
        count = add_graph_ids(arguments, count, graph->blocked_by.ids, blocked_by);
        count = add_graph_ids(arguments, count, graph->chats.ids, chats);
        run_graph_script(graphs, user_id, SLICE_NONE, (struct redis_args){arguments, count},
                         on_graph_put, graphs);
    }
    free(arguments);
}

/* ---- making and freeing ---- */

/* Does nothing: the state store keeps the online set. */
static void redis_graph_set_online(struct graph_store *store, struct slice user_id, bool online,
                                   int64_t version)
{
    (void)store;
    (void)user_id;
    (void)online;
    (void)version;
}

static void redis_graph_free(struct graph_store *store)
{
    struct redis_graphs *graphs = redis_graphs_of(store);
    struct list *at = graphs->failed_drops.next;
    while (at != &graphs->failed_drops) {
        struct graph_drop_operation *drop = CONTAINER_OF(at, struct graph_drop_operation, place);
        at = at->next;
        free(drop);
    }
    loop_cancel_timer(graphs->options.loop, &graphs->retry);
    graphs->is_freed = true;
    if (graphs->pending == 0)
        free(graphs);
}

static const struct graph_store_operations OPERATIONS = {
    .lookup = redis_graph_lookup,
    .put = redis_graph_put,
    .drop = redis_graph_drop,
    .set_online = redis_graph_set_online,
    .free = redis_graph_free,
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
        .retry.fire = on_drop_retry_due,
    };
    list_init(&graphs->failed_drops);
    if (!redis_script_init(&graphs->script, slice_of(REDIS_LUA_GRAPH))) {
        free(graphs);
        return NULL;
    }
    return &graphs->store;
}
