#include "store/memory/memory_graph.h"

#include "base/container.h"
#include "store/memory/memory_graph_cache.h"

#include <stdlib.h>

struct memory_circle_store {
    struct circle_store store;
    struct memory_circles *circles;
    struct state_store *state;
    const struct clock *clock;
};

/* ---- put ---- */

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
    memory_circles_lock(circles);
    for (size_t i = 0; check->known && i < count; i++)
        memory_nodes_set_online(&circles->nodes, check->nodes[i],
                                presences[i].status != PRESENCE_OFFLINE, presences[i].version);
    memory_circles_unlock(circles);
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
    memory_circles_lock(circles);
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
    memory_circles_unlock(circles);
    if (interned && check.count)
        state_read(store->state, check.ids, check.count, checked, &check);
    return interned && check.known;
}

static bool intern_all(struct memory_circle_store *store, struct memory_circle *made,
                       const struct circle *circle, struct slice owner)
{
    size_t contacts = memory_circle_contacts(circle);
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
    memory_circles_lock(circles);
    bool good = *memory_circles_drops(circles, memory_node_id(made->owner)) == ticket;
    if (good)
        memory_circle_link(circles, made, store->clock->now_ms);
    memory_circles_unlock(circles);
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
    struct memory_circle *made = memory_circle_make(circle);
    if (!made)
        return;
    if (!memory_circles_reserve(store->circles, made->cost, store->clock->now_ms))
        free(made);
    else if (!intern_all(store, made, circle, user_id) || !install(store, made, ticket))
        memory_circle_release(store->circles, made);
}

/* ---- audience ---- */

/* The user's circle, pinned; NULL: a miss. */
static struct memory_circle *pin(struct memory_circle_store *store, struct slice user_id,
                                 uint64_t *ticket)
{
    struct memory_circles *circles = store->circles;
    memory_circles_lock(circles);
    struct memory_node *node = memory_nodes_find(&circles->nodes, user_id);
    struct memory_circle *circle = node ? node->circle : NULL;
    *ticket = *memory_circles_drops(circles, user_id);
    if (circle && !memory_nodes_online(&circles->nodes, node->number) &&
        memory_circle_is_over(circle, store->clock->now_ms)) {
        memory_circle_unlink(circles, circle);
        circle = NULL;
    }
    if (circle) {
        circle->pins++;
        if (memory_nodes_online(&circles->nodes, node->number))
            memory_circle_place(circles, circle, store->clock->now_ms);
    }
    memory_circles_unlock(circles);
    return circle;
}

/* Finds who is online under the lock, and reads their ids, which may be far apart, after it. */
static size_t find_online(struct memory_circles *circles, const struct memory_circle *circle,
                          struct memory_node **nodes, struct slice *ids)
{
    size_t count = 0;
    memory_circles_lock(circles);
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
    struct circle_audience audience = {.known = true, .circle = memory_circle_view(circle)};
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
    memory_circles_lock(store->circles);
    memory_circle_unpin(store->circles, circle);
    memory_circles_unlock(store->circles);
}

/* ---- changes ---- */

static void memory_circle_drop(struct circle_store *port, struct slice user_id)
{
    struct memory_circles *circles = store_of(port)->circles;
    memory_circles_lock(circles);
    ++*memory_circles_drops(circles, user_id);
    struct memory_node *node = memory_nodes_find(&circles->nodes, user_id);
    if (node && node->circle)
        memory_circle_unlink(circles, node->circle);
    memory_circles_unlock(circles);
}

static void memory_circle_set_online(struct circle_store *port, struct slice user_id, bool online,
                                     int64_t version)
{
    struct memory_circle_store *store = store_of(port);
    struct memory_circles *circles = store->circles;
    memory_circles_lock(circles);
    struct memory_node *node = memory_nodes_find(&circles->nodes, user_id);
    if (node && memory_nodes_set_online(&circles->nodes, node, online, version) && node->circle)
        memory_circle_place(circles, node->circle, store->clock->now_ms);
    memory_circles_unlock(circles);
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
