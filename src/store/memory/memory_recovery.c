#include "store/memory/memory_recovery.h"

#include "base/container.h"
#include "base/table.h"
#include "store/memory/memory_parked_session.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct memory_recovery {
    pthread_mutex_t lock;
    struct table users;  /* of struct parked_user */
    struct list oldest;  /* sessions; all have the same window, so this is by expiry too */
    atomic_size_t count; /* changed under the lock */
    uint64_t disturbances;
    int64_t window_ms;
};

struct parked_user {
    struct table_node node;
    struct list sessions;
    size_t session_count;
    struct slice user_id; /* behind the struct */
};

struct memory_recovery_port {
    struct recovery_store store;
    struct memory_recovery *shared;
    const struct clock *clock;
};

static struct memory_recovery_port *port_of(struct recovery_store *store)
{
    return CONTAINER_OF(store, struct memory_recovery_port, store);
}

static bool match(const struct table_node *node, struct slice key)
{
    return slice_equal(CONTAINER_OF(node, struct parked_user, node)->user_id, key);
}

static struct parked_user *find_user(struct memory_recovery *shared, struct slice user_id)
{
    struct table_node *node = table_find(&shared->users, user_id);
    return node ? CONTAINER_OF(node, struct parked_user, node) : NULL;
}

/* ---- ending; all under the lock ---- */

/* Takes a session out of everybody's sight. */
static void detach(struct memory_recovery *shared, struct memory_parked_session *parked)
{
    struct parked_user *user = parked->user;
    list_remove(&parked->of_all);
    list_remove(&parked->of_user);
    atomic_fetch_sub(&shared->count, 1);
    if (--user->session_count)
        return;
    table_remove(&shared->users, &user->node);
    free(user);
}

static void forget(struct memory_recovery *shared, struct memory_parked_session *parked)
{
    detach(shared, parked);
    memory_parked_session_free(&parked);
}

static struct memory_parked_session *oldest_of(struct memory_recovery *shared)
{
    return CONTAINER_OF(shared->oldest.next, struct memory_parked_session, of_all);
}

static void expire(struct memory_recovery *shared, int64_t now_ms)
{
    while (atomic_load(&shared->count) && oldest_of(shared)->until_ms <= now_ms)
        forget(shared, oldest_of(shared));
}

/* ---- parking ---- */

static struct parked_user *need_user(struct memory_recovery *shared, struct slice user_id)
{
    struct parked_user *user = find_user(shared, user_id);
    if (user)
        return user;
    user = malloc(sizeof(*user) + user_id.len);
    if (!user)
        return NULL;
    char *bytes = (char *)(user + 1);
    memcpy(bytes, user_id.data, user_id.len);
    *user = (struct parked_user){.user_id = {bytes, user_id.len}};
    list_init(&user->sessions);
    table_insert(&shared->users, &user->node, user->user_id);
    return user;
}

static void add(struct memory_recovery *shared, struct parked_user *user,
                struct memory_parked_session *parked, int64_t now_ms)
{
    parked->user = user;
    parked->until_ms = now_ms + shared->window_ms;
    parked->disturbances = shared->disturbances;
    list_append(&user->sessions, &parked->of_user);
    list_append(&shared->oldest, &parked->of_all);
    user->session_count++;
    atomic_fetch_add(&shared->count, 1);
    if (user->session_count > RECOVERY_USER_SESSIONS_MAX)
        forget(shared, CONTAINER_OF(user->sessions.next, struct memory_parked_session, of_user));
    if (atomic_load(&shared->count) > MEMORY_RECOVERY_SESSIONS_MAX)
        forget(shared, oldest_of(shared));
}

static void park(struct recovery_store *store, const struct parked_session *record)
{
    struct memory_recovery_port *port = port_of(store);
    struct memory_recovery *shared = port->shared;
    struct memory_parked_session *parked = memory_parked_session_make(record);
    if (!parked)
        return;
    pthread_mutex_lock(&shared->lock);
    expire(shared, port->clock->now_ms);
    struct parked_user *user = need_user(shared, record->user_id);
    if (user)
        add(shared, user, parked, port->clock->now_ms);
    pthread_mutex_unlock(&shared->lock);
    if (!user)
        memory_parked_session_free(&parked);
}

static bool is_empty(struct recovery_store *store)
{
    return atomic_load(&port_of(store)->shared->count) == 0;
}

static bool expects(struct recovery_store *store, struct slice user_id)
{
    struct memory_recovery *shared = port_of(store)->shared;
    if (is_empty(store))
        return false;
    pthread_mutex_lock(&shared->lock);
    bool found = find_user(shared, user_id) != NULL;
    pthread_mutex_unlock(&shared->lock);
    return found;
}

static void append(struct recovery_store *store, const struct slice *user_ids, size_t count,
                   const struct recovery_event *event)
{
    struct memory_recovery *shared = port_of(store)->shared;
    pthread_mutex_lock(&shared->lock);
    expire(shared, port_of(store)->clock->now_ms);
    for (size_t i = 0; i < count; i++) {
        struct parked_user *user = find_user(shared, user_ids[i]);
        struct list *at = user ? user->sessions.next : NULL;
        for (; at && at != &user->sessions; at = at->next)
            memory_parked_session_append(CONTAINER_OF(at, struct memory_parked_session, of_user),
                                         event);
    }
    pthread_mutex_unlock(&shared->lock);
}

/* ---- coming back ---- */

static struct memory_parked_session *find_parked(struct memory_recovery *shared,
                                                 struct slice user_id, struct slice pid)
{
    struct parked_user *user = find_user(shared, user_id);
    struct list *at = user ? user->sessions.next : NULL;
    for (; at && at != &user->sessions; at = at->next) {
        struct memory_parked_session *parked =
            CONTAINER_OF(at, struct memory_parked_session, of_user);
        if (slice_equal(parked->pid, pid))
            return parked;
    }
    return NULL;
}

static struct memory_parked_session *take_parked(struct memory_recovery_port *port,
                                                 struct slice user_id, struct slice pid)
{
    struct memory_recovery *shared = port->shared;
    pthread_mutex_lock(&shared->lock);
    expire(shared, port->clock->now_ms);
    struct memory_parked_session *parked = find_parked(shared, user_id, pid);
    if (parked)
        detach(shared, parked);
    if (parked && parked->disturbances != shared->disturbances)
        parked->floor = RECOVERY_MISSED;
    pthread_mutex_unlock(&shared->lock);
    return parked;
}

static void take(struct recovery_store *store, struct slice user_id, struct slice pid,
                 uint64_t offset, recovery_take_done done, void *arg)
{
    struct recovery_event events[RECOVERY_EVENTS_MAX];
    struct memory_parked_session *parked = take_parked(port_of(store), user_id, pid);
    if (parked && offset >= parked->floor)
        done(arg, &(struct parked_session){
                      .user_id = user_id,
                      .pid = parked->pid,
                      .sid = parked->sid,
                      .floor = parked->floor,
                      .ceiling = parked->ceiling,
                      .events = events,
                      .event_count = memory_parked_session_events(parked, offset, events),
                      .topics = parked->topics,
                      .topic_count = parked->topic_count,
                  });
    else
        done(arg, NULL);
    memory_parked_session_free(&parked);
}

static void disturb(struct recovery_store *store)
{
    struct memory_recovery *shared = port_of(store)->shared;
    pthread_mutex_lock(&shared->lock);
    shared->disturbances++;
    pthread_mutex_unlock(&shared->lock);
}

static void free_port(struct recovery_store *store)
{
    free(port_of(store));
}

static const struct recovery_store_operations OPERATIONS = {
    .park = park,
    .is_empty = is_empty,
    .expects = expects,
    .append = append,
    .take = take,
    .invalidate = disturb,
    .free = free_port,
};

struct recovery_store *memory_recovery_store(struct memory_recovery *recovery,
                                             const struct clock *clock)
{
    struct memory_recovery_port *port = malloc(sizeof(*port));
    if (!port)
        return NULL;
    *port = (struct memory_recovery_port){{.operations = &OPERATIONS}, recovery, clock};
    return &port->store;
}

struct memory_recovery *memory_recovery_make(int64_t window_ms, uint64_t hash_seed)
{
    struct memory_recovery *recovery = calloc(1, sizeof(*recovery));
    if (!recovery || !table_init(&recovery->users, hash_seed, match)) {
        free(recovery);
        return NULL;
    }
    pthread_mutex_init(&recovery->lock, NULL);
    list_init(&recovery->oldest);
    recovery->window_ms = window_ms;
    return recovery;
}

void memory_recovery_free(struct memory_recovery **recovery)
{
    struct memory_recovery *freed = *recovery;
    *recovery = NULL;
    if (!freed)
        return;
    while (atomic_load(&freed->count))
        forget(freed, oldest_of(freed));
    table_free(&freed->users);
    pthread_mutex_destroy(&freed->lock);
    free(freed);
}
