#include "store/memory/memory_graph_users.h"

#include "base/container.h"

#include <stdlib.h>
#include <string.h>

static bool graph_user_matches(const struct table_node *node, struct slice key)
{
    return slice_equal(memory_graph_user_id(CONTAINER_OF(node, struct memory_graph_user, node)),
                       key);
}

bool memory_graph_users_init(struct memory_graph_users *users, size_t max, uint64_t hash_seed)
{
    *users = (struct memory_graph_users){
        .by_number = calloc(max, sizeof(struct memory_graph_user *)),
        .online = calloc(max / 64 + 1, sizeof(*users->online)),
        .free_numbers = calloc(max, sizeof(*users->free_numbers)),
        .max = max,
    };
    if (users->by_number && users->online && users->free_numbers &&
        table_init(&users->by_id, hash_seed, graph_user_matches))
        return true;
    free(users->by_number);
    free(users->online);
    free(users->free_numbers);
    return false;
}

static void free_graph_user(struct table_node *node, void *arg)
{
    (void)arg;
    free(CONTAINER_OF(node, struct memory_graph_user, node));
}

void memory_graph_users_free(struct memory_graph_users *users)
{
    table_each(&users->by_id, free_graph_user, NULL);
    table_free(&users->by_id);
    free(users->by_number);
    free(users->online);
    free(users->free_numbers);
}

struct memory_graph_user *memory_graph_users_find(const struct memory_graph_users *users,
                                                  struct slice user_id)
{
    struct table_node *node = table_find(&users->by_id, user_id);
    return node ? CONTAINER_OF(node, struct memory_graph_user, node) : NULL;
}

struct memory_graph_user *memory_graph_users_retain(struct memory_graph_users *users,
                                                    struct slice user_id)
{
    struct memory_graph_user *user = memory_graph_users_find(users, user_id);
    if (user) {
        user->refs++;
        return user;
    }
    if (users->free_count == 0 && users->used == users->max)
        return NULL;
    user = malloc(sizeof(*user) + user_id.len);
    if (!user)
        return NULL;
    *user = (struct memory_graph_user){
        .version = INT64_MIN,
        .refs = 1,
        .number =
            users->free_count ? users->free_numbers[--users->free_count] : (uint32_t)users->used++,
        .id_len = (uint8_t)user_id.len,
    };
    memcpy(user->id, user_id.data, user_id.len);
    users->by_number[user->number] = user;
    table_insert(&users->by_id, &user->node, user_id);
    return user;
}

static void set_online_bit(struct memory_graph_users *users, uint32_t number, bool online)
{
    uint64_t bit = 1ULL << (number % 64);
    if (online)
        users->online[number / 64] |= bit;
    else
        users->online[number / 64] &= ~bit;
}

void memory_graph_users_release(struct memory_graph_users *users, struct memory_graph_user *user)
{
    if (--user->refs)
        return;
    set_online_bit(users, user->number, false);
    users->by_number[user->number] = NULL;
    users->free_numbers[users->free_count++] = user->number;
    table_remove(&users->by_id, &user->node);
    free(user);
}

bool memory_graph_users_set_online(struct memory_graph_users *users, struct memory_graph_user *user,
                                   bool online, int64_t version)
{
    if (version <= user->version)
        return false;
    bool changed = memory_graph_users_is_online(users, user->number) != online;
    user->version = version;
    set_online_bit(users, user->number, online);
    return changed;
}
