#include "store/memory_circle.h"

#include "base/container.h"
#include "base/list.h"
#include "store/memory_nodes.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Drops are counted per slot of a hash: a collision merely voids a ticket that was good. */
enum { DROP_SLOTS = 4096 };

/* One allocation, and every user who is online has one, so it is kept small: contacts' numbers follow,
 * then the slices of blocks and their bytes, then those of chats. */
struct memory_circle {
    struct list by_use; /* on `here`, `gone` or `dead` */
    struct memory_node *owner;
    int64_t gone_at_ms; /* while on `gone`: when the owner left, monotonic */
    uint32_t pins;
    uint32_t contact_count; /* interned so far */
    uint32_t blocked_at;    /* where their slices begin, from the struct's start */
    uint32_t blocked_count;
    uint32_t chats_at;
    uint32_t chat_count;
    uint32_t cost;
    bool linked; /* the owner's */
    uint8_t presence_visibility;
    uint8_t last_seen_visibility;
    uint32_t contacts[];
};

static struct circle_list list_at(const struct memory_circle *circle, uint32_t at, uint32_t count)
{
    return (struct circle_list){(const struct slice *)((const char *)circle + at), count};
}

/* As it was put, but for the contacts. */
static struct circle circle_of(const struct memory_circle *circle)
{
    return (struct circle){
        .presence_visibility = circle->presence_visibility,
        .last_seen_visibility = circle->last_seen_visibility,
        .blocked = list_at(circle, circle->blocked_at, circle->blocked_count),
        .chats = list_at(circle, circle->chats_at, circle->chat_count),
    };
}

struct memory_circles {
    pthread_mutex_t lock;
    struct memory_nodes nodes;
    struct list here; /* circles of users who are online, least recently used first */
    struct list gone; /* of those who are not, longest gone first */
    struct list dead; /* unlinked and unpinned, to be released */
    size_t circle_count;
    size_t cost; /* of all that are not freed, and those being put */
    size_t cost_max;
    uint64_t hash_seed;
    uint64_t drops[DROP_SLOTS];
};

struct memory_circle_store {
    struct circle_store store;
    struct memory_circles *circles;
    struct state_store *state;
    const struct clock *clock;
};

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

static uint64_t *drops_of(struct memory_circles *circles, struct slice user_id)
{
    return &circles->drops[XXH3_64bits_withSeed(user_id.data, user_id.len, circles->hash_seed) %
                           DROP_SLOTS];
}

/* ---- the life of a circle; under the lock, but for release() ---- */

/* Puts a linked circle where its owner's presence says. */
static void place(struct memory_circles *circles, struct memory_circle *circle, int64_t now_ms)
{
    bool here = memory_nodes_online(&circles->nodes, circle->owner->number);
    circle->gone_at_ms = now_ms;
    list_remove(&circle->by_use);
    list_append(here ? &circles->here : &circles->gone, &circle->by_use);
}

static void unlink_circle(struct memory_circles *circles, struct memory_circle *circle)
{
    assert(circle->linked);
    circle->linked = false;
    circle->owner->circle = NULL;
    circles->circle_count--;
    list_remove(&circle->by_use);
    if (circle->pins == 0)
        list_append(&circles->dead, &circle->by_use);
}

static void unpin(struct memory_circles *circles, struct memory_circle *circle)
{
    if (--circle->pins == 0 && !circle->linked)
        list_append(&circles->dead, &circle->by_use);
}

/* Gives back the references of a circle that nobody else can reach, a batch under each lock. */
static void release(struct memory_circles *circles, struct memory_circle *circle)
{
    while (circle->contact_count) {
        pthread_mutex_lock(&circles->lock);
        for (size_t i = 0; i < MEMORY_CIRCLE_BATCH && circle->contact_count; i++)
            memory_nodes_drop(&circles->nodes,
                              circles->nodes.by_number[circle->contacts[--circle->contact_count]]);
        pthread_mutex_unlock(&circles->lock);
    }
    pthread_mutex_lock(&circles->lock);
    if (circle->owner)
        memory_nodes_drop(&circles->nodes, circle->owner);
    circles->cost -= circle->cost;
    pthread_mutex_unlock(&circles->lock);
    free(circle);
}

/* Unlocks, and releases what died under the lock. */
static void unlock(struct memory_circles *circles)
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
        release(circles, circle);
    }
}

static struct memory_circle *first_of(const struct list *list)
{
    return list_empty(list) ? NULL : CONTAINER_OF(list->next, struct memory_circle, by_use);
}

static bool is_over(const struct memory_circle *circle, int64_t now_ms)
{
    return circle->gone_at_ms + CIRCLE_OFFLINE_TTL_MS <= now_ms;
}

static void expire(struct memory_circles *circles, int64_t now_ms)
{
    struct memory_circle *circle;
    while ((circle = first_of(&circles->gone)) && is_over(circle, now_ms))
        unlink_circle(circles, circle);
}

/* Makes room for a cost, at the expense of others. False when that cannot be had. */
static bool reserve(struct memory_circles *circles, size_t cost, int64_t now_ms)
{
    for (;;) {
        pthread_mutex_lock(&circles->lock);
        expire(circles, now_ms);
        bool fits = circles->cost + cost <= circles->cost_max;
        struct memory_circle *victim = first_of(&circles->gone);
        if (!victim)
            victim = first_of(&circles->here);
        if (fits)
            circles->cost += cost;
        else if (victim)
            unlink_circle(circles, victim);
        unlock(circles);
        if (fits || !victim)
            return fits;
    }
}

/* ---- put ---- */

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

static size_t contacts_kept(const struct circle *circle)
{
    return circle->contacts.count < CIRCLE_CONTACTS_MAX ? circle->contacts.count
                                                        : CIRCLE_CONTACTS_MAX;
}

/* Its contacts are interned by intern_all(). */
static struct memory_circle *make_circle(const struct circle *circle)
{
    size_t contacts = contacts_kept(circle);
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

/* What a node's first state is read with: those of one batch that nobody has checked. */
struct check {
    struct memory_circles *circles;
    struct memory_node *nodes[MEMORY_CIRCLE_BATCH];
    struct slice ids[MEMORY_CIRCLE_BATCH];
    size_t count;
    bool known;
};

static void checked(void *arg, enum state_status status, const struct presence *presences,
                    size_t count)
{
    struct check *check = arg;
    struct memory_circles *circles = check->circles;
    check->known = status == STATE_OK && count == check->count;
    pthread_mutex_lock(&circles->lock);
    for (size_t i = 0; check->known && i < count; i++)
        memory_nodes_set_online(&circles->nodes, check->nodes[i],
                                presences[i].status != PRESENCE_OFFLINE, presences[i].version);
    unlock(circles);
}

static void add_check(struct check *check, struct memory_node *node)
{
    if (node->version != INT64_MIN)
        return;
    check->nodes[check->count] = node;
    check->ids[check->count++] = memory_node_id(node);
}

/* Refers to the next batch of contacts, or to the owner when `count` is 0, and sees who of them is
 * online. The nodes stay while the circle refers to them. */
static bool intern(struct memory_circle_store *store, struct memory_circle *made,
                   const struct slice *ids, size_t count, struct slice owner)
{
    struct memory_circles *circles = store->circles;
    struct check check = {.circles = circles, .known = true};
    bool interned = true;
    pthread_mutex_lock(&circles->lock);
    for (size_t i = 0; i < count && interned; i++) {
        struct memory_node *node = memory_nodes_share(&circles->nodes, ids[i]);
        interned = node != NULL;
        if (!node)
            break;
        made->contacts[made->contact_count++] = node->number;
        add_check(&check, node);
    }
    if (count == 0) {
        made->owner = memory_nodes_share(&circles->nodes, owner);
        interned = made->owner != NULL;
        if (made->owner)
            add_check(&check, made->owner);
    }
    unlock(circles);
    if (interned && check.count)
        state_read(store->state, check.ids, check.count, checked, &check);
    return interned && check.known;
}

static bool intern_all(struct memory_circle_store *store, struct memory_circle *made,
                       const struct circle *circle, struct slice owner)
{
    size_t contacts = contacts_kept(circle);
    for (size_t at = 0; at < contacts; at += MEMORY_CIRCLE_BATCH) {
        size_t left = contacts - at;
        size_t count = left < MEMORY_CIRCLE_BATCH ? left : MEMORY_CIRCLE_BATCH;
        if (!intern(store, made, circle->contacts.ids + at, count, owner))
            return false;
    }
    return intern(store, made, NULL, 0, owner);
}

static bool install(struct memory_circle_store *store, struct memory_circle *made, uint64_t ticket)
{
    struct memory_circles *circles = store->circles;
    pthread_mutex_lock(&circles->lock);
    bool good = *drops_of(circles, memory_node_id(made->owner)) == ticket;
    if (good) {
        if (made->owner->circle)
            unlink_circle(circles, made->owner->circle);
        made->owner->circle = made;
        made->linked = true;
        circles->circle_count++;
        place(circles, made, store->clock->now_ms);
    }
    unlock(circles);
    return good;
}

static struct memory_circle_store *store_of(struct circle_store *store)
{
    return CONTAINER_OF(store, struct memory_circle_store, store);
}

static void memory_circle_put(struct circle_store *port, struct slice user_id, uint64_t ticket,
                              const struct circle *circle)
{
    struct memory_circle_store *store = store_of(port);
    struct memory_circle *made = make_circle(circle);
    if (!made)
        return;
    if (!reserve(store->circles, made->cost, store->clock->now_ms))
        free(made);
    else if (!intern_all(store, made, circle, user_id) || !install(store, made, ticket))
        release(store->circles, made);
}

/* ---- audience ---- */

/* The user's circle, pinned; NULL: a miss. */
static struct memory_circle *pin(struct memory_circle_store *store, struct slice user_id,
                                 uint64_t *ticket)
{
    struct memory_circles *circles = store->circles;
    pthread_mutex_lock(&circles->lock);
    struct memory_node *node = memory_nodes_find(&circles->nodes, user_id);
    struct memory_circle *circle = node ? node->circle : NULL;
    *ticket = *drops_of(circles, user_id);
    if (circle && !memory_nodes_online(&circles->nodes, node->number) &&
        is_over(circle, store->clock->now_ms)) {
        unlink_circle(circles, circle);
        circle = NULL;
    }
    if (circle) {
        circle->pins++;
        if (memory_nodes_online(&circles->nodes, node->number))
            place(circles, circle, store->clock->now_ms);
    }
    unlock(circles);
    return circle;
}

/* Finds who is online under the lock, and reads their ids, which may be far apart, after it. */
static size_t find_online(struct memory_circles *circles, const struct memory_circle *circle,
                          struct memory_node **nodes, struct slice *ids)
{
    size_t count = 0;
    pthread_mutex_lock(&circles->lock);
    for (size_t i = 0; i < circle->contact_count; i++)
        if (memory_nodes_online(&circles->nodes, circle->contacts[i]))
            nodes[count++] = circles->nodes.by_number[circle->contacts[i]];
    pthread_mutex_unlock(&circles->lock);
    for (size_t i = 0; i < count; i++)
        ids[i] = memory_node_id(nodes[i]);
    return count;
}

static void answer(struct memory_circles *circles, const struct memory_circle *circle,
                   void (*done)(void *arg, enum state_status status,
                                const struct circle_audience *audience),
                   void *arg)
{
    struct circle_audience audience = {.known = true, .circle = circle_of(circle)};
    size_t max = circle->contact_count;
    struct slice *ids = malloc((max + 1) * (sizeof(*ids) + sizeof(struct memory_node *)));
    if (!ids) {
        done(arg, STATE_UNAVAILABLE, NULL);
        return;
    }
    audience.circle.contacts = (struct circle_list){
        ids, find_online(circles, circle, (struct memory_node **)(ids + max + 1), ids)};
    done(arg, STATE_OK, &audience);
    free(ids);
}

static void memory_circle_audience(struct circle_store *port, struct slice user_id,
                                   void (*done)(void *arg, enum state_status status,
                                                const struct circle_audience *audience),
                                   void *arg)
{
    struct memory_circle_store *store = store_of(port);
    uint64_t ticket;
    struct memory_circle *circle = pin(store, user_id, &ticket);
    if (!circle) {
        done(arg, STATE_OK, &(struct circle_audience){.ticket = ticket});
        return;
    }
    answer(store->circles, circle, done, arg);
    pthread_mutex_lock(&store->circles->lock);
    unpin(store->circles, circle);
    unlock(store->circles);
}

/* ---- changes ---- */

static void memory_circle_drop(struct circle_store *port, struct slice user_id)
{
    struct memory_circles *circles = store_of(port)->circles;
    pthread_mutex_lock(&circles->lock);
    ++*drops_of(circles, user_id);
    struct memory_node *node = memory_nodes_find(&circles->nodes, user_id);
    if (node && node->circle)
        unlink_circle(circles, node->circle);
    unlock(circles);
}

static void memory_circle_set_online(struct circle_store *port, struct slice user_id, bool online,
                                     int64_t version)
{
    struct memory_circle_store *store = store_of(port);
    struct memory_circles *circles = store->circles;
    pthread_mutex_lock(&circles->lock);
    struct memory_node *node = memory_nodes_find(&circles->nodes, user_id);
    if (node && memory_nodes_set_online(&circles->nodes, node, online, version) && node->circle)
        place(circles, node->circle, store->clock->now_ms);
    unlock(circles);
}

static void memory_circle_free(struct circle_store *port)
{
    free(store_of(port));
}

static const struct circle_store_operations OPERATIONS = {
    .audience = memory_circle_audience,
    .put = memory_circle_put,
    .drop = memory_circle_drop,
    .set_online = memory_circle_set_online,
    .free = memory_circle_free,
};

struct circle_store *memory_circles_store(struct memory_circles *circles, struct state_store *state,
                                          const struct clock *clock)
{
    struct memory_circle_store *store = malloc(sizeof(*store));
    if (!store)
        return NULL;
    *store = (struct memory_circle_store){
        .store.operations = &OPERATIONS, .circles = circles, .state = state, .clock = clock};
    return &store->store;
}

struct memory_circles_counts memory_circles_count(struct memory_circles *circles)
{
    pthread_mutex_lock(&circles->lock);
    struct memory_circles_counts counts = {circles->circle_count, circles->nodes.by_id.size,
                                           circles->cost};
    pthread_mutex_unlock(&circles->lock);
    return counts;
}
