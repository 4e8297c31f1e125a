#include "store/memory/memory_graph.h"

#include "base/container.h"
#include "store/memory/memory_graph_cache.h"

#include <stdlib.h>

struct memory_graph_port {
    struct graph_store store;
    struct memory_graphs *graphs;
    struct state_store *state;
    const struct clock *clock;
};

static struct memory_graph_port *memory_graph_port_of(struct graph_store *store)
{
    return CONTAINER_OF(store, struct memory_graph_port, store);
}

/* ---- put ---- */

/* The users of one batch whose presence has not been read yet. */
struct presence_check {
    struct memory_graphs *graphs;
    struct memory_graph_user *users[MEMORY_GRAPH_BATCH];
    struct slice ids[MEMORY_GRAPH_BATCH];
    size_t count;
    bool known;
};

static void on_contact_presences_read(void *arg, enum state_status status,
                                      const struct presence *presences, size_t count)
{
    struct presence_check *check = arg;
    struct memory_graphs *graphs = check->graphs;
    check->known = status == STATE_OK && count == check->count;
    memory_graphs_lock(graphs);
    for (size_t i = 0; check->known && i < count; i++)
        memory_graph_users_set_online(&graphs->users, check->users[i],
                                      presences[i].status != PRESENCE_OFFLINE,
                                      presences[i].version);
    memory_graphs_unlock(graphs);
}

static void add_presence_check(struct presence_check *check, struct memory_graph_user *user)
{
    if (user->version != INT64_MIN)
        return;
    check->users[check->count] = user;
    check->ids[check->count++] = memory_graph_user_id(user);
}

/* Takes references to the next batch of contacts, or to the owner if `count` is 0, and reads the presence of
 * those for whom it is not known. The graph keeps the references. Returns false when out of memory. */
static bool intern_graph_batch(struct memory_graph_port *port, struct memory_graph *made,
                               const struct slice *ids, size_t count, struct slice owner)
{
    struct memory_graphs *graphs = port->graphs;
    struct presence_check check = {.graphs = graphs, .known = true};
    bool interned = true;
    memory_graphs_lock(graphs);
    for (size_t i = 0; i < count && interned; i++) {
        struct memory_graph_user *user = memory_graph_users_retain(&graphs->users, ids[i]);
        interned = user != NULL;
        if (!user)
            break;
        made->contacts[made->contact_count++] = user->number;
        add_presence_check(&check, user);
    }
    if (count == 0) {
        made->owner = memory_graph_users_retain(&graphs->users, owner);
        interned = made->owner != NULL;
        if (made->owner)
            add_presence_check(&check, made->owner);
    }
    memory_graphs_unlock(graphs);
    if (interned && check.count)
        state_read(port->state, check.ids, check.count, on_contact_presences_read, &check);
    return interned && check.known;
}

static void memory_graph_put(struct graph_store *store, struct slice user_id, uint64_t ticket,
                             const struct social_graph *graph)
{
    struct memory_graph_port *port = memory_graph_port_of(store);
    struct memory_graphs *graphs = port->graphs;
    struct memory_graph *made = memory_graph_make(graph);
    size_t contacts = memory_graph_contacts(graph);
    if (!made)
        return;
    if (!memory_graphs_reserve(graphs, made->cost, port->clock->now_ms)) {
        free(made);
        return;
    }
    bool interned = true, linked = false;
    for (size_t at = 0; interned && at < contacts; at += MEMORY_GRAPH_BATCH) {
        size_t left = contacts - at;
        interned =
            intern_graph_batch(port, made, graph->contacts.ids + at,
                               left < MEMORY_GRAPH_BATCH ? left : MEMORY_GRAPH_BATCH, user_id);
    }
    if (interned && intern_graph_batch(port, made, NULL, 0, user_id)) {
        memory_graphs_lock(graphs);
        linked = *memory_graphs_drops(graphs, user_id) == ticket;
        if (linked)
            memory_graph_link(graphs, made, port->clock->now_ms);
        memory_graphs_unlock(graphs);
    }
    if (!linked)
        memory_graph_release(graphs, made);
}

/* ---- lookup ---- */

/* Returns the user's graph, pinned; NULL on a miss. */
static struct memory_graph *pin_memory_graph(struct memory_graph_port *port, struct slice user_id,
                                             uint64_t *ticket)
{
    struct memory_graphs *graphs = port->graphs;
    memory_graphs_lock(graphs);
    struct memory_graph_user *user = memory_graph_users_find(&graphs->users, user_id);
    struct memory_graph *graph = user ? user->graph : NULL;
    bool online = user && memory_graph_users_is_online(&graphs->users, user->number);
    *ticket = *memory_graphs_drops(graphs, user_id);
    if (graph && !online && memory_graph_is_expired(graph, port->clock->now_ms)) {
        memory_graph_unlink(graphs, graph);
        graph = NULL;
    }
    if (graph) {
        graph->pins++;
        if (online)
            memory_graph_place(graphs, graph, port->clock->now_ms);
    }
    memory_graphs_unlock(graphs);
    return graph;
}

/* Finds the online contacts under the lock. Reads their ids, which may be far apart in memory, after it. */
static size_t find_online_graph_contacts(struct memory_graphs *graphs,
                                         const struct memory_graph *graph,
                                         struct memory_graph_user **users, struct slice *ids)
{
    size_t count = 0;
    memory_graphs_lock(graphs);
    for (size_t i = 0; i < graph->contact_count; i++)
        if (memory_graph_users_is_online(&graphs->users, graph->contacts[i]))
            users[count++] = graphs->users.by_number[graph->contacts[i]];
    pthread_mutex_unlock(&graphs->lock);
    for (size_t i = 0; i < count; i++)
        ids[i] = memory_graph_user_id(users[i]);
    return count;
}

static void memory_graph_lookup(struct graph_store *store, struct slice user_id,
                                graph_lookup_done done, void *arg)
{
    struct memory_graph_port *port = memory_graph_port_of(store);
    uint64_t ticket;
    struct memory_graph *graph = pin_memory_graph(port, user_id, &ticket);
    if (!graph) {
        done(arg, STATE_OK, &(struct graph_lookup){.ticket = ticket});
        return;
    }
    struct graph_lookup lookup = {.known = true, .graph = memory_graph_borrow(graph)};
    size_t max = graph->contact_count;
    struct slice *ids = malloc((max + 1) * (sizeof(*ids) + sizeof(struct memory_graph_user *)));
    if (ids) {
        struct memory_graph_user **users = (struct memory_graph_user **)(ids + max + 1);
        lookup.graph.contacts =
            (struct id_list){ids, find_online_graph_contacts(port->graphs, graph, users, ids)};
        done(arg, STATE_OK, &lookup);
    } else {
        done(arg, STATE_UNAVAILABLE, NULL);
    }
    free(ids);
    memory_graphs_lock(port->graphs);
    memory_graph_unpin(port->graphs, graph);
    memory_graphs_unlock(port->graphs);
}

/* ---- changes ---- */

static void memory_graph_drop(struct graph_store *store, struct slice user_id)
{
    struct memory_graphs *graphs = memory_graph_port_of(store)->graphs;
    memory_graphs_lock(graphs);
    ++*memory_graphs_drops(graphs, user_id);
    struct memory_graph_user *user = memory_graph_users_find(&graphs->users, user_id);
    if (user && user->graph)
        memory_graph_unlink(graphs, user->graph);
    memory_graphs_unlock(graphs);
}

static void memory_graph_set_online(struct graph_store *store, struct slice user_id, bool online,
                                    int64_t version)
{
    struct memory_graph_port *port = memory_graph_port_of(store);
    struct memory_graphs *graphs = port->graphs;
    memory_graphs_lock(graphs);
    struct memory_graph_user *user = memory_graph_users_find(&graphs->users, user_id);
    if (user && memory_graph_users_set_online(&graphs->users, user, online, version) && user->graph)
        memory_graph_place(graphs, user->graph, port->clock->now_ms);
    memory_graphs_unlock(graphs);
}

static void memory_graph_free_port(struct graph_store *store)
{
    free(memory_graph_port_of(store));
}

static const struct graph_store_operations MEMORY_GRAPH_OPERATIONS = {
    .lookup = memory_graph_lookup,
    .put = memory_graph_put,
    .drop = memory_graph_drop,
    .set_online = memory_graph_set_online,
    .free = memory_graph_free_port,
};

struct graph_store *memory_graphs_store(struct memory_graphs *graphs, struct state_store *state,
                                        const struct clock *clock)
{
    struct memory_graph_port *port = malloc(sizeof(*port));
    if (!port)
        return NULL;
    *port = (struct memory_graph_port){.store.operations = &MEMORY_GRAPH_OPERATIONS,
                                       .graphs = graphs,
                                       .state = state,
                                       .clock = clock};
    return &port->store;
}
