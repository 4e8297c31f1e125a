#include "store/memory/memory_graph_cache.h"

#include "base/container.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* ---- the cache ---- */

struct memory_circles *memory_circles_make(const struct memory_circles_options *options)
{
    struct memory_circles *circles = calloc(1, sizeof(*circles));
    if (!circles)
        return NULL;
    if (!memory_nodes_init(&circles->nodes, options->contacts_total_max, options->hash_seed)) {
        free(circles);
        return NULL;
    }
    pthread_mutex_init(&circles->lock, NULL);
    list_init(&circles->here);
    list_init(&circles->gone);
    list_init(&circles->dead);
    circles->cost_max = options->contacts_total_max;
    circles->hash_seed = options->hash_seed;
    return circles;
}

static void free_list(struct list *list)
{
    struct list *at = list->next;
    while (at != list) {
        struct memory_circle *circle = CONTAINER_OF(at, struct memory_circle, by_use);
        at = at->next;
        free(circle);
    }
}

void memory_circles_free(struct memory_circles **circles)
{
    struct memory_circles *freed = *circles;
    *circles = NULL;
    if (!freed)
        return;
    free_list(&freed->here);
    free_list(&freed->gone);
    free_list(&freed->dead);
    memory_nodes_free(&freed->nodes);
    pthread_mutex_destroy(&freed->lock);
    free(freed);
}

uint64_t *memory_circles_drops(struct memory_circles *circles, struct slice user_id)
{
    return &circles->drops[XXH3_64bits_withSeed(user_id.data, user_id.len, circles->hash_seed) %
                           MEMORY_CIRCLE_DROP_SLOTS];
}

void memory_circles_lock(struct memory_circles *circles)
{
    pthread_mutex_lock(&circles->lock);
}

struct memory_circles_counts memory_circles_count(struct memory_circles *circles)
{
    memory_circles_lock(circles);
    struct memory_circles_counts counts = {circles->circle_count, circles->nodes.by_id.size,
                                           circles->cost};
    pthread_mutex_unlock(&circles->lock);
    return counts;
}

/* ---- a circle ---- */

static struct circle_list list_at(const struct memory_circle *circle, uint32_t at, uint32_t count)
{
    return (struct circle_list){(const struct slice *)((const char *)circle + at), count};
}

struct circle memory_circle_view(const struct memory_circle *circle)
{
    return (struct circle){
        .presence_visibility = circle->presence_visibility,
        .last_seen_visibility = circle->last_seen_visibility,
        .blocked = list_at(circle, circle->blocked_at, circle->blocked_count),
        .chats = list_at(circle, circle->chats_at, circle->chat_count),
    };
}

static size_t bytes_of(const struct circle_list *list)
{
    size_t bytes = list->count * sizeof(struct slice);
    for (size_t i = 0; i < list->count; i++)
        bytes += list->ids[i].len;
    return bytes;
}

/* Copies a list to `at`: all slices first, then their bytes. */
static void copy_list(char *at, const struct circle_list *list)
{
    struct slice *ids = (struct slice *)at;
    at += list->count * sizeof(*ids);
    for (size_t i = 0; i < list->count; i++) {
        memcpy(at, list->ids[i].data, list->ids[i].len);
        ids[i] = (struct slice){at, list->ids[i].len};
        at += list->ids[i].len;
    }
}

static size_t aligned(size_t bytes)
{
    return (bytes + sizeof(void *) - 1) & ~(sizeof(void *) - 1);
}

size_t memory_circle_contacts(const struct circle *circle)
{
    return circle->contacts.count < CIRCLE_CONTACTS_MAX ? circle->contacts.count
                                                        : CIRCLE_CONTACTS_MAX;
}

struct memory_circle *memory_circle_make(const struct circle *circle)
{
    size_t contacts = memory_circle_contacts(circle);
    size_t blocked_at = aligned(sizeof(struct memory_circle) + contacts * sizeof(uint32_t));
    size_t chats_at = blocked_at + aligned(bytes_of(&circle->blocked));
    size_t bytes = chats_at + bytes_of(&circle->chats);
    struct memory_circle *made = bytes <= UINT32_MAX ? malloc(bytes) : NULL;
    if (!made)
        return NULL;
    *made = (struct memory_circle){
        .blocked_at = (uint32_t)blocked_at,
        .blocked_count = (uint32_t)circle->blocked.count,
        .chats_at = (uint32_t)chats_at,
        .chat_count = (uint32_t)circle->chats.count,
        .cost = (uint32_t)(MEMORY_CIRCLE_OWNER_COST + contacts + circle->blocked.count +
                           circle->chats.count),
        .presence_visibility = circle->presence_visibility,
        .last_seen_visibility = circle->last_seen_visibility,
    };
    copy_list((char *)made + blocked_at, &circle->blocked);
    copy_list((char *)made + chats_at, &circle->chats);
    list_init(&made->by_use);
    return made;
}

/* ---- its life ---- */

void memory_circle_place(struct memory_circles *circles, struct memory_circle *circle,
                         int64_t now_ms)
{
    bool here = memory_nodes_online(&circles->nodes, circle->owner->number);
    circle->gone_at_ms = now_ms;
    list_remove(&circle->by_use);
    list_append(here ? &circles->here : &circles->gone, &circle->by_use);
}

void memory_circle_link(struct memory_circles *circles, struct memory_circle *circle,
                        int64_t now_ms)
{
    if (circle->owner->circle)
        memory_circle_unlink(circles, circle->owner->circle);
    circle->owner->circle = circle;
    circle->linked = true;
    circles->circle_count++;
    memory_circle_place(circles, circle, now_ms);
}

void memory_circle_unlink(struct memory_circles *circles, struct memory_circle *circle)
{
    assert(circle->linked);
    circle->linked = false;
    circle->owner->circle = NULL;
    circles->circle_count--;
    list_remove(&circle->by_use);
    if (circle->pins == 0)
        list_append(&circles->dead, &circle->by_use);
}

void memory_circle_unpin(struct memory_circles *circles, struct memory_circle *circle)
{
    if (--circle->pins == 0 && !circle->linked)
        list_append(&circles->dead, &circle->by_use);
}

void memory_circle_release(struct memory_circles *circles, struct memory_circle *circle)
{
    while (circle->contact_count) {
        memory_circles_lock(circles);
        for (size_t i = 0; i < MEMORY_CIRCLE_BATCH && circle->contact_count; i++)
            memory_nodes_drop(&circles->nodes,
                              circles->nodes.by_number[circle->contacts[--circle->contact_count]]);
        pthread_mutex_unlock(&circles->lock);
    }
    memory_circles_lock(circles);
    if (circle->owner)
        memory_nodes_drop(&circles->nodes, circle->owner);
    circles->cost -= circle->cost;
    pthread_mutex_unlock(&circles->lock);
    free(circle);
}

void memory_circles_unlock(struct memory_circles *circles)
{
    struct list dead;
    list_init(&dead);
    while (!list_empty(&circles->dead)) {
        struct list *first = circles->dead.next;
        list_remove(first);
        list_append(&dead, first);
    }
    pthread_mutex_unlock(&circles->lock);
    struct list *at = dead.next;
    while (at != &dead) {
        struct memory_circle *circle = CONTAINER_OF(at, struct memory_circle, by_use);
        at = at->next;
        memory_circle_release(circles, circle);
    }
}

static struct memory_circle *first_of(const struct list *list)
{
    return list_empty(list) ? NULL : CONTAINER_OF(list->next, struct memory_circle, by_use);
}

bool memory_circle_is_over(const struct memory_circle *circle, int64_t now_ms)
{
    return circle->gone_at_ms + CIRCLE_OFFLINE_TTL_MS <= now_ms;
}

static void expire(struct memory_circles *circles, int64_t now_ms)
{
    struct memory_circle *circle;
    while ((circle = first_of(&circles->gone)) && memory_circle_is_over(circle, now_ms))
        memory_circle_unlink(circles, circle);
}

bool memory_circles_reserve(struct memory_circles *circles, size_t cost, int64_t now_ms)
{
    for (;;) {
        memory_circles_lock(circles);
        expire(circles, now_ms);
        bool fits = circles->cost + cost <= circles->cost_max;
        struct memory_circle *victim = first_of(&circles->gone);
        if (!victim)
            victim = first_of(&circles->here);
        if (fits)
            circles->cost += cost;
        else if (victim)
            memory_circle_unlink(circles, victim);
        memory_circles_unlock(circles);
        if (fits || !victim)
            return fits;
    }
}
