#include "base/container.h"
#include "base/list.h"
#include "log/log.h"
#include "store/aggregate/aggregate_forward.h"
#include "store/aggregate/aggregate_stores.h"

#include <stdlib.h>

struct aggregate_graph {
    struct graph_store store;
    struct aggregate_client *client;
    struct loop *loop;
    struct list failed_drops; /* that are repeated when the timer fires */
    size_t failed_count;
    struct wheel_timer retry;
    size_t pending; /* drops that are under way */
    bool is_freed;  /* by its owner; the last drop frees the memory */
};

/* A drop whose arrival is not certain. */
struct graph_drop {
    struct list place;
    struct aggregate_graph *graph;
    size_t user_len;
    char user[];
};

static struct aggregate_graph *graph_of(struct graph_store *store)
{
    return CONTAINER_OF(store, struct aggregate_graph, store);
}

/* ---- drops ---- */

static void end_drop(struct graph_drop *drop)
{
    struct aggregate_graph *graph = drop->graph;
    free(drop);
    if (--graph->pending == 0 && graph->is_freed)
        free(graph);
}

static void keep_failed_drop(struct graph_drop *drop)
{
    struct aggregate_graph *graph = drop->graph;
    if (graph->is_freed || graph->failed_count == AGGREGATE_FAILED_DROPS_MAX) {
        log_warn("graph_drop_lost", "user=%s",
                 log_quote((struct slice){drop->user, drop->user_len}));
        end_drop(drop);
        return;
    }
    list_append(&graph->failed_drops, &drop->place);
    graph->failed_count++;
    if (!wheel_is_set(&graph->retry))
        loop_set_timer(graph->loop, &graph->retry,
                       graph->loop->clock.now_ms + AGGREGATE_DROP_RETRY_MS);
}

static void complete_drop(const struct aggregate_forwarded *forwarded,
                          const union aggregate_outcome *outcome)
{
    if (outcome)
        end_drop(forwarded->arg);
    else
        keep_failed_drop(forwarded->arg);
}

static void send_drop(struct graph_drop *drop)
{
    struct slice user_id = {drop->user, drop->user_len};
    aggregate_forward(drop->graph->client, user_id, AGGREGATE_GRAPH_DROP,
                      &(union aggregate_arguments){.subject.user_id = user_id}, SLICE_NONE,
                      complete_drop, NULL, drop);
}

static void on_forwarded_drop_retry_due(struct wheel_timer *timer)
{
    struct aggregate_graph *graph = CONTAINER_OF(timer, struct aggregate_graph, retry);
    for (size_t left = graph->failed_count; left > 0; left--) {
        struct graph_drop *drop = CONTAINER_OF(graph->failed_drops.next, struct graph_drop, place);
        list_remove(&drop->place);
        graph->failed_count--;
        send_drop(drop);
    }
}

static void aggregate_graph_drop(struct graph_store *store, struct slice user_id)
{
    struct aggregate_graph *graph = graph_of(store);
    struct graph_drop *drop = malloc(sizeof(*drop) + user_id.len);
    if (!drop)
        return;
    drop->graph = graph;
    drop->user_len = user_id.len;
    memcpy(drop->user, user_id.data, user_id.len);
    list_init(&drop->place);
    graph->pending++;
    send_drop(drop);
}

/* ---- the other operations ---- */

static void complete_lookup(const struct aggregate_forwarded *forwarded,
                            const union aggregate_outcome *outcome)
{
    struct graph_lookup nothing = {0};
    ((graph_lookup_done)forwarded->done)(forwarded->arg,
                                         outcome ? outcome->status : forwarded->status,
                                         outcome ? &outcome->lookup.lookup : &nothing);
}

static void aggregate_graph_lookup(struct graph_store *store, struct slice user_id,
                                   graph_lookup_done done, void *arg)
{
    aggregate_forward(graph_of(store)->client, user_id, AGGREGATE_GRAPH_LOOKUP,
                      &(union aggregate_arguments){.subject.user_id = user_id}, SLICE_NONE,
                      complete_lookup, (aggregate_any_done)done, arg);
}

static void aggregate_graph_put(struct graph_store *store, struct slice user_id, uint64_t ticket,
                                const struct social_graph *graph)
{
    aggregate_forward(graph_of(store)->client, user_id, AGGREGATE_GRAPH_PUT,
                      &(union aggregate_arguments){.graph_put = {user_id, ticket, *graph}},
                      SLICE_NONE, NULL, NULL, NULL);
}

static void aggregate_graph_set_online(struct graph_store *store, struct slice user_id, bool online,
                                       int64_t version)
{
    aggregate_forward(graph_of(store)->client, user_id, AGGREGATE_GRAPH_SET_ONLINE,
                      &(union aggregate_arguments){.graph_online = {user_id, online, version}},
                      SLICE_NONE, NULL, NULL, NULL);
}

/* ---- life ---- */

static void aggregate_graph_free(struct graph_store *store)
{
    struct aggregate_graph *graph = graph_of(store);
    loop_cancel_timer(graph->loop, &graph->retry);
    graph->pending++;
    graph->is_freed = true;
    while (!list_empty(&graph->failed_drops)) {
        struct graph_drop *drop = CONTAINER_OF(graph->failed_drops.next, struct graph_drop, place);
        list_remove(&drop->place);
        end_drop(drop);
    }
    if (--graph->pending == 0)
        free(graph);
}

static const struct graph_store_operations OPERATIONS = {
    .lookup = aggregate_graph_lookup,
    .put = aggregate_graph_put,
    .drop = aggregate_graph_drop,
    .set_online = aggregate_graph_set_online,
    .free = aggregate_graph_free,
};

struct graph_store *aggregate_graph_make(struct aggregate_client *client, struct loop *loop)
{
    struct aggregate_graph *graph = calloc(1, sizeof(*graph));
    if (!graph)
        return NULL;
    graph->store.operations = &OPERATIONS;
    graph->client = client;
    graph->loop = loop;
    graph->retry.fire = on_forwarded_drop_retry_due;
    list_init(&graph->failed_drops);
    return &graph->store;
}
