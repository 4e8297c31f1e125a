#include "store/memory/memory_graph.h"

#include "base/container.h"
#include "store/memory/memory_graph_cache.h"

#include <stdlib.h>

struct memory_graph_store {
    struct graph_store store;
    struct memory_graphs *graphs;
    struct state_store *state;
    const struct clock *clock;
};

/* ---- put ---- */

/* What a node's first state is read with: those of one batch that nobody has checked. */
struct check {
    struct memory_graphs *graphs;
    struct memory_graph_user *nodes[MEMORY_GRAPH_BATCH];
    struct slice ids[MEMORY_GRAPH_BATCH];
    size_t count;
    bool known;
};

static void checked(void *arg, enum state_status status, const struct presence *presences,
                    size_t count)
{
    struct check *check = arg;
    struct memory_graphs *graphs = check->graphs;
    check->known = status == STATE_OK && count == check->count;
    memory_graphs_lock(graphs);
    for (size_t i = 0; check->known && i < count; i++)
        memory_graph_users_set_online(&graphs->nodes, check->nodes[i],
                                      presences[i].status != PRESENCE_OFFLINE,
                                      presences[i].version);
    memory_graphs_unlock(graphs);
}

static void add_check(struct check *check, struct memory_graph_user *node)
{
    if (node->version != INT64_MIN)
        return;
    check->nodes[check->count] = node;
    check->ids[check->count++] = memory_graph_user_id(node);
}

/* Refers to the next batch of contacts, or to the owner when `count` is 0, and sees who of them is
 * online. The nodes stay while the graph refers to them. */
static bool intern(struct memory_graph_store *store, struct memory_graph *made,
                   const struct slice *ids, size_t count, struct slice owner)
{
    struct memory_graphs *graphs = store->graphs;
    struct check check = {.graphs = graphs, .known = true};
    bool interned = true;
    memory_graphs_lock(graphs);
    for (size_t i = 0; i < count && interned; i++) {
        struct memory_graph_user *node = memory_graph_users_retain(&graphs->nodes, ids[i]);
        interned = node != NULL;
        if (!node)
            break;
        made->contacts[made->contact_count++] = node->number;
        add_check(&check, node);
    }
    if (count == 0) {
        made->owner = memory_graph_users_retain(&graphs->nodes, owner);
        interned = made->owner != NULL;
        if (made->owner)
            add_check(&check, made->owner);
    }
    memory_graphs_unlock(graphs);
    if (interned && check.count)
        state_read(store->state, check.ids, check.count, checked, &check);
    return interned && check.known;
}

static bool intern_all(struct memory_graph_store *store, struct memory_graph *made,
                       const struct social_graph *graph, struct slice owner)
{
    size_t contacts = memory_graph_contacts(graph);
    for (size_t at = 0; at < contacts; at += MEMORY_GRAPH_BATCH) {
        size_t left = contacts - at;
        size_t count = left < MEMORY_GRAPH_BATCH ? left : MEMORY_GRAPH_BATCH;
        if (!intern(store, made, graph->contacts.ids + at, count, owner))
            return false;
    }
    return intern(store, made, NULL, 0, owner);
}

static bool install(struct memory_graph_store *store, struct memory_graph *made, uint64_t ticket)
{
    struct memory_graphs *graphs = store->graphs;
    memory_graphs_lock(graphs);
    bool good = *memory_graphs_drops(graphs, memory_graph_user_id(made->owner)) == ticket;
    if (good)
        memory_graph_link(graphs, made, store->clock->now_ms);
    memory_graphs_unlock(graphs);
    return good;
}

static struct memory_graph_store *store_of(struct graph_store *store)
{
    return CONTAINER_OF(store, struct memory_graph_store, store);
}

static void memory_graph_put(struct graph_store *port, struct slice user_id, uint64_t ticket,
                             const struct social_graph *graph)
{
    struct memory_graph_store *store = store_of(port);
    struct memory_graph *made = memory_graph_make(graph);
    if (!made)
        return;
    if (!memory_graphs_reserve(store->graphs, made->cost, store->clock->now_ms))
        free(made);
    else if (!intern_all(store, made, graph, user_id) || !install(store, made, ticket))
        memory_graph_release(store->graphs, made);
}

/* ---- audience ---- */

/* The user's graph, pinned; NULL: a miss. */
static struct memory_graph *pin(struct memory_graph_store *store, struct slice user_id,
                                uint64_t *ticket)
{
    struct memory_graphs *graphs = store->graphs;
    memory_graphs_lock(graphs);
    struct memory_graph_user *node = memory_graph_users_find(&graphs->nodes, user_id);
    struct memory_graph *graph = node ? node->graph : NULL;
    *ticket = *memory_graphs_drops(graphs, user_id);
    if (graph && !memory_graph_users_is_online(&graphs->nodes, node->number) &&
        memory_graph_is_over(graph, store->clock->now_ms)) {
        memory_graph_unlink(graphs, graph);
        graph = NULL;
    }
    if (graph) {
        graph->pins++;
        if (memory_graph_users_is_online(&graphs->nodes, node->number))
            memory_graph_place(graphs, graph, store->clock->now_ms);
    }
    memory_graphs_unlock(graphs);
    return graph;
}

/* Finds who is online under the lock, and reads their ids, which may be far apart, after it. */
static size_t find_online(struct memory_graphs *graphs, const struct memory_graph *graph,
                          struct memory_graph_user **nodes, struct slice *ids)
{
    size_t count = 0;
    memory_graphs_lock(graphs);
    for (size_t i = 0; i < graph->contact_count; i++)
        if (memory_graph_users_is_online(&graphs->nodes, graph->contacts[i]))
            nodes[count++] = graphs->nodes.by_number[graph->contacts[i]];
    pthread_mutex_unlock(&graphs->lock);
    for (size_t i = 0; i < count; i++)
        ids[i] = memory_graph_user_id(nodes[i]);
    return count;
}

static void answer(struct memory_graphs *graphs, const struct memory_graph *graph,
                   graph_lookup_done done, void *arg)
{
    struct graph_lookup audience = {.known = true, .graph = memory_graph_view(graph)};
    size_t max = graph->contact_count;
    struct slice *ids = malloc((max + 1) * (sizeof(*ids) + sizeof(struct memory_graph_user *)));
    if (!ids) {
        done(arg, STATE_UNAVAILABLE, NULL);
        return;
    }
    audience.graph.contacts = (struct id_list){
        ids, find_online(graphs, graph, (struct memory_graph_user **)(ids + max + 1), ids)};
    done(arg, STATE_OK, &audience);
    free(ids);
}

static void memory_graph_audience(struct graph_store *port, struct slice user_id,
                                  graph_lookup_done done, void *arg)
{
    struct memory_graph_store *store = store_of(port);
    uint64_t ticket;
    struct memory_graph *graph = pin(store, user_id, &ticket);
    if (!graph) {
        done(arg, STATE_OK, &(struct graph_lookup){.ticket = ticket});
        return;
    }
    answer(store->graphs, graph, done, arg);
    memory_graphs_lock(store->graphs);
    memory_graph_unpin(store->graphs, graph);
    memory_graphs_unlock(store->graphs);
}

/* ---- changes ---- */

static void memory_graph_drop(struct graph_store *port, struct slice user_id)
{
    struct memory_graphs *graphs = store_of(port)->graphs;
    memory_graphs_lock(graphs);
    ++*memory_graphs_drops(graphs, user_id);
    struct memory_graph_user *node = memory_graph_users_find(&graphs->nodes, user_id);
    if (node && node->graph)
        memory_graph_unlink(graphs, node->graph);
    memory_graphs_unlock(graphs);
}

static void memory_graph_set_online(struct graph_store *port, struct slice user_id, bool online,
                                    int64_t version)
{
    struct memory_graph_store *store = store_of(port);
    struct memory_graphs *graphs = store->graphs;
    memory_graphs_lock(graphs);
    struct memory_graph_user *node = memory_graph_users_find(&graphs->nodes, user_id);
    if (node && memory_graph_users_set_online(&graphs->nodes, node, online, version) && node->graph)
        memory_graph_place(graphs, node->graph, store->clock->now_ms);
    memory_graphs_unlock(graphs);
}

static void memory_graph_free(struct graph_store *port)
{
    free(store_of(port));
}

static const struct graph_store_operations OPERATIONS = {
    .lookup = memory_graph_audience,
    .put = memory_graph_put,
    .drop = memory_graph_drop,
    .set_online = memory_graph_set_online,
    .free = memory_graph_free,
};

struct graph_store *memory_graphs_store(struct memory_graphs *graphs, struct state_store *state,
                                        const struct clock *clock)
{
    struct memory_graph_store *store = malloc(sizeof(*store));
    if (!store)
        return NULL;
    *store = (struct memory_graph_store){
        .store.operations = &OPERATIONS, .graphs = graphs, .state = state, .clock = clock};
    return &store->store;
}
