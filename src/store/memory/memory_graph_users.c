#include "store/memory/memory_graph_users.h"

#include "base/container.h"

#include <stdlib.h>
#include <string.h>

static bool node_matches(const struct table_node *node, struct slice key)
{
    return slice_equal(memory_graph_user_id(CONTAINER_OF(node, struct memory_graph_user, node)),
                       key);
}

bool memory_graph_users_init(struct memory_graph_users *nodes, size_t max, uint64_t hash_seed)
{
    *nodes = (struct memory_graph_users){
        .by_number = calloc(max, sizeof(struct memory_graph_user *)),
        .online = calloc(max / 64 + 1, sizeof(*nodes->online)),
        .free_numbers = calloc(max, sizeof(*nodes->free_numbers)),
        .max = max,
    };
    if (nodes->by_number && nodes->online && nodes->free_numbers &&
        table_init(&nodes->by_id, hash_seed, node_matches))
        return true;
    free(nodes->by_number);
    free(nodes->online);
    free(nodes->free_numbers);
    return false;
}

static void free_node(struct table_node *node, void *arg)
{
    (void)arg;
    free(CONTAINER_OF(node, struct memory_graph_user, node));
}

void memory_graph_users_free(struct memory_graph_users *nodes)
{
    table_each(&nodes->by_id, free_node, NULL);
    table_free(&nodes->by_id);
    free(nodes->by_number);
    free(nodes->online);
    free(nodes->free_numbers);
}

struct memory_graph_user *memory_graph_users_find(const struct memory_graph_users *nodes,
                                                  struct slice user_id)
{
    struct table_node *node = table_find(&nodes->by_id, user_id);
    return node ? CONTAINER_OF(node, struct memory_graph_user, node) : NULL;
}

static struct memory_graph_user *make_node(struct memory_graph_users *nodes, struct slice user_id)
{
    if (nodes->free_count == 0 && nodes->used == nodes->max)
        return NULL;
    struct memory_graph_user *node = malloc(sizeof(*node) + user_id.len);
    if (!node)
        return NULL;
    *node = (struct memory_graph_user){
        .version = INT64_MIN,
        .number =
            nodes->free_count ? nodes->free_numbers[--nodes->free_count] : (uint32_t)nodes->used++,
        .id_len = (uint8_t)user_id.len,
    };
    memcpy(node->id, user_id.data, user_id.len);
    nodes->by_number[node->number] = node;
    table_insert(&nodes->by_id, &node->node, user_id);
    return node;
}

struct memory_graph_user *memory_graph_users_retain(struct memory_graph_users *nodes,
                                                    struct slice user_id)
{
    struct memory_graph_user *node = memory_graph_users_find(nodes, user_id);
    if (!node)
        node = make_node(nodes, user_id);
    if (node)
        node->refs++;
    return node;
}

static void set_bit(struct memory_graph_users *nodes, uint32_t number, bool online)
{
    uint64_t bit = 1ULL << (number % 64);
    if (online)
        nodes->online[number / 64] |= bit;
    else
        nodes->online[number / 64] &= ~bit;
}

void memory_graph_users_release(struct memory_graph_users *nodes, struct memory_graph_user *node)
{
    if (--node->refs)
        return;
    set_bit(nodes, node->number, false);
    nodes->by_number[node->number] = NULL;
    nodes->free_numbers[nodes->free_count++] = node->number;
    table_remove(&nodes->by_id, &node->node);
    free(node);
}

bool memory_graph_users_set_online(struct memory_graph_users *nodes, struct memory_graph_user *node,
                                   bool online, int64_t version)
{
    if (version <= node->version)
        return false;
    bool changed = memory_graph_users_is_online(nodes, node->number) != online;
    node->version = version;
    set_bit(nodes, node->number, online);
    return changed;
}
