#include "store/memory/memory_graph_cache.h"

#include "base/container.h"
#include "base/id_list.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* ---- the cache ---- */

struct memory_graphs *memory_graphs_make(const struct memory_graphs_options *options)
{
    struct memory_graphs *graphs = calloc(1, sizeof(*graphs));
    if (!graphs)
        return NULL;
    if (!memory_graph_users_init(&graphs->users, options->contacts_total_max, options->hash_seed)) {
        free(graphs);
        return NULL;
    }
    pthread_mutex_init(&graphs->lock, NULL);
    list_init(&graphs->online);
    list_init(&graphs->offline);
    list_init(&graphs->dead);
    graphs->cost_max = options->contacts_total_max;
    graphs->hash_seed = options->hash_seed;
    return graphs;
}

static void free_graph_list(struct list *list)
{
    struct list *at = list->next;
    while (at != list) {
        struct memory_graph *graph = CONTAINER_OF(at, struct memory_graph, by_use);
        at = at->next;
        free(graph);
    }
}

void memory_graphs_free(struct memory_graphs **graphs)
{
    struct memory_graphs *freed = *graphs;
    *graphs = NULL;
    if (!freed)
        return;
    free_graph_list(&freed->online);
    free_graph_list(&freed->offline);
    free_graph_list(&freed->dead);
    memory_graph_users_free(&freed->users);
    pthread_mutex_destroy(&freed->lock);
    free(freed);
}

uint64_t *memory_graphs_drops(struct memory_graphs *graphs, struct slice user_id)
{
    return &graphs->drops[XXH3_64bits_withSeed(user_id.data, user_id.len, graphs->hash_seed) %
                          MEMORY_GRAPH_DROP_SLOTS];
}

void memory_graphs_lock(struct memory_graphs *graphs)
{
    pthread_mutex_lock(&graphs->lock);
}

struct memory_graphs_counts memory_graphs_count(struct memory_graphs *graphs)
{
    memory_graphs_lock(graphs);
    struct memory_graphs_counts counts = {graphs->graph_count, graphs->users.by_id.size,
                                          graphs->cost};
    pthread_mutex_unlock(&graphs->lock);
    return counts;
}

/* ---- a graph ---- */

static struct id_list graph_list_at(const struct memory_graph *graph, uint32_t at, uint32_t count)
{
    return (struct id_list){(const struct slice *)((const char *)graph + at), count};
}

struct social_graph memory_graph_borrow(const struct memory_graph *graph)
{
    return (struct social_graph){
        .presence_visibility = graph->presence_visibility,
        .last_seen_visibility = graph->last_seen_visibility,
        .blocked = graph_list_at(graph, graph->blocked_at, graph->blocked_count),
        .blocked_by = graph_list_at(graph, graph->blocked_by_at, graph->blocked_by_count),
        .chats = graph_list_at(graph, graph->chats_at, graph->chat_count),
    };
}

static size_t graph_list_bytes(const struct id_list *list)
{
    return list->count * sizeof(struct slice) + id_list_bytes(list->ids, list->count);
}

/* Copies a list to `at`, which is aligned: first all slices, then their bytes. */
static void pack_graph_list(char *at, const struct id_list *list)
{
    struct slice *slices = (struct slice *)at;
    id_list_pack(slices, list->ids, list->count, (char *)(slices + list->count));
}

static size_t align_graph_offset(size_t bytes)
{
    return (bytes + sizeof(void *) - 1) & ~(sizeof(void *) - 1);
}

size_t memory_graph_contacts(const struct social_graph *graph)
{
    return graph->contacts.count < GRAPH_CONTACTS_MAX ? graph->contacts.count : GRAPH_CONTACTS_MAX;
}

struct memory_graph *memory_graph_make(const struct social_graph *graph)
{
    size_t contacts = memory_graph_contacts(graph);
    size_t blocked_at =
        align_graph_offset(sizeof(struct memory_graph) + contacts * sizeof(uint32_t));
    size_t blocked_by_at = blocked_at + align_graph_offset(graph_list_bytes(&graph->blocked));
    size_t chats_at = blocked_by_at + align_graph_offset(graph_list_bytes(&graph->blocked_by));
    size_t bytes = chats_at + graph_list_bytes(&graph->chats);
    struct memory_graph *made = bytes <= UINT32_MAX ? malloc(bytes) : NULL;
    if (!made)
        return NULL;
    *made = (struct memory_graph){
        .blocked_at = (uint32_t)blocked_at,
        .blocked_count = (uint32_t)graph->blocked.count,
        .blocked_by_at = (uint32_t)blocked_by_at,
        .blocked_by_count = (uint32_t)graph->blocked_by.count,
        .chats_at = (uint32_t)chats_at,
        .chat_count = (uint32_t)graph->chats.count,
        .cost = (uint32_t)(MEMORY_GRAPH_OWNER_COST + contacts + graph->blocked.count +
                           graph->blocked_by.count + graph->chats.count),
        .presence_visibility = graph->presence_visibility,
        .last_seen_visibility = graph->last_seen_visibility,
    };
    pack_graph_list((char *)made + blocked_at, &graph->blocked);
    pack_graph_list((char *)made + blocked_by_at, &graph->blocked_by);
    pack_graph_list((char *)made + chats_at, &graph->chats);
    list_init(&made->by_use);
    return made;
}

/* ---- the life of a graph ---- */

void memory_graph_place(struct memory_graphs *graphs, struct memory_graph *graph, int64_t now_ms)
{
    bool is_online = memory_graph_users_is_online(&graphs->users, graph->owner->number);
    graph->offline_at_ms = now_ms;
    list_remove(&graph->by_use);
    list_append(is_online ? &graphs->online : &graphs->offline, &graph->by_use);
}

void memory_graph_link(struct memory_graphs *graphs, struct memory_graph *graph, int64_t now_ms)
{
    if (graph->owner->graph)
        memory_graph_unlink(graphs, graph->owner->graph);
    graph->owner->graph = graph;
    graph->linked = true;
    graphs->graph_count++;
    memory_graph_place(graphs, graph, now_ms);
}

void memory_graph_unlink(struct memory_graphs *graphs, struct memory_graph *graph)
{
    assert(graph->linked);
    graph->linked = false;
    graph->owner->graph = NULL;
    graphs->graph_count--;
    list_remove(&graph->by_use);
    if (graph->pins == 0)
        list_append(&graphs->dead, &graph->by_use);
}

void memory_graph_unpin(struct memory_graphs *graphs, struct memory_graph *graph)
{
    if (--graph->pins == 0 && !graph->linked)
        list_append(&graphs->dead, &graph->by_use);
}

void memory_graph_release(struct memory_graphs *graphs, struct memory_graph *graph)
{
    while (graph->contact_count) {
        memory_graphs_lock(graphs);
        for (size_t i = 0; i < MEMORY_GRAPH_BATCH && graph->contact_count; i++)
            memory_graph_users_release(
                &graphs->users, graphs->users.by_number[graph->contacts[--graph->contact_count]]);
        pthread_mutex_unlock(&graphs->lock);
    }
    memory_graphs_lock(graphs);
    if (graph->owner)
        memory_graph_users_release(&graphs->users, graph->owner);
    graphs->cost -= graph->cost;
    pthread_mutex_unlock(&graphs->lock);
    free(graph);
}

void memory_graphs_unlock(struct memory_graphs *graphs)
{
    struct list dead;
    list_init(&dead);
    while (!list_empty(&graphs->dead)) {
        struct list *first = graphs->dead.next;
        list_remove(first);
        list_append(&dead, first);
    }
    pthread_mutex_unlock(&graphs->lock);
    struct list *at = dead.next;
    while (at != &dead) {
        struct memory_graph *graph = CONTAINER_OF(at, struct memory_graph, by_use);
        at = at->next;
        memory_graph_release(graphs, graph);
    }
}

static struct memory_graph *first_listed_graph(const struct list *list)
{
    return list_empty(list) ? NULL : CONTAINER_OF(list->next, struct memory_graph, by_use);
}

bool memory_graph_is_expired(const struct memory_graph *graph, int64_t now_ms)
{
    return graph->offline_at_ms + GRAPH_OFFLINE_TTL_MS <= now_ms;
}

bool memory_graphs_reserve(struct memory_graphs *graphs, size_t cost, int64_t now_ms)
{
    for (;;) {
        struct memory_graph *expired;
        memory_graphs_lock(graphs);
        while ((expired = first_listed_graph(&graphs->offline)) &&
               memory_graph_is_expired(expired, now_ms))
            memory_graph_unlink(graphs, expired);
        bool fits = graphs->cost + cost <= graphs->cost_max;
        struct memory_graph *victim = first_listed_graph(&graphs->offline);
        if (!victim)
            victim = first_listed_graph(&graphs->online);
        if (fits)
            graphs->cost += cost;
        else if (victim)
            memory_graph_unlink(graphs, victim);
        memory_graphs_unlock(graphs);
        if (fits || !victim)
            return fits;
    }
}
