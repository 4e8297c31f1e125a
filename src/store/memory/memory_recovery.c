#include "store/memory/memory_recovery.h"

#include "base/container.h"
#include "base/table.h"
#include "store/memory/memory_parked_session.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct memory_recovery {
    pthread_mutex_t lock;
    struct table users;  /* struct memory_recovery_user */
    struct list oldest;  /* sessions by age; all are kept equally long, so also by expiry */
    atomic_size_t count; /* written under the lock, read without it, like the next */
    atomic_size_t bytes; /* of all parked sessions */
    uint64_t generation; /* grows when the parked sessions become unrecoverable */
    int64_t recovery_ms;
};

struct memory_recovery_user {
    struct table_node node;
    struct list sessions;
    size_t session_count;
    struct slice user_id; /* its bytes follow the struct */
};

struct memory_recovery_port {
    struct recovery_store store;
    struct memory_recovery *shared;
    const struct clock *clock;
};

static struct memory_recovery_port *memory_recovery_port_of(struct recovery_store *store)
{
    return CONTAINER_OF(store, struct memory_recovery_port, store);
}

static bool recovery_user_matches(const struct table_node *node, struct slice key)
{
    return slice_equal(CONTAINER_OF(node, struct memory_recovery_user, node)->user_id, key);
}

static struct memory_recovery_user *find_recovery_user(struct memory_recovery *shared,
                                                       struct slice user_id)
{
    struct table_node *node = table_find(&shared->users, user_id);
    return node ? CONTAINER_OF(node, struct memory_recovery_user, node) : NULL;
}

/* ---- dropping sessions; the lock is held ---- */

/* Removes a session from the lists, and its user with the last one; the caller owns it then. */
static void unlist_parked_session(struct memory_recovery *shared,
                                  struct memory_parked_session *session)
{
    struct memory_recovery_user *user = session->user;
    list_remove(&session->by_age);
    list_remove(&session->of_user);
    atomic_fetch_sub(&shared->count, 1);
    atomic_fetch_sub(&shared->bytes, memory_parked_session_bytes(session));
    if (--user->session_count)
        return;
    table_remove(&shared->users, &user->node);
    free(user);
}

static void drop_parked_session(struct memory_recovery *shared,
                                struct memory_parked_session *session)
{
    unlist_parked_session(shared, session);
    memory_parked_session_free(&session);
}

static struct memory_parked_session *oldest_parked_session(struct memory_recovery *shared)
{
    return CONTAINER_OF(shared->oldest.next, struct memory_parked_session, by_age);
}

static void drop_expired_parked_sessions(struct memory_recovery *shared, int64_t now_ms)
{
    while (atomic_load(&shared->count) && oldest_parked_session(shared)->expires_at_ms <= now_ms)
        drop_parked_session(shared, oldest_parked_session(shared));
}

/* ---- parking ---- */

static struct memory_recovery_user *find_or_make_recovery_user(struct memory_recovery *shared,
                                                               struct slice user_id)
{
    struct memory_recovery_user *user = find_recovery_user(shared, user_id);
    if (user)
        return user;
    user = malloc(sizeof(*user) + user_id.len);
    if (!user)
        return NULL;
    char *bytes = (char *)(user + 1);
    memcpy(bytes, user_id.data, user_id.len);
    *user = (struct memory_recovery_user){.user_id = {bytes, user_id.len}};
    list_init(&user->sessions);
    table_insert(&shared->users, &user->node, user->user_id);
    return user;
}

/* Beyond a bound the oldest session is dropped: of the user, or of all. */
static void list_parked_session(struct memory_recovery *shared, struct memory_recovery_user *user,
                                struct memory_parked_session *session, int64_t now_ms)
{
    session->user = user;
    session->expires_at_ms = now_ms + shared->recovery_ms;
    session->generation = shared->generation;
    list_append(&user->sessions, &session->of_user);
    list_append(&shared->oldest, &session->by_age);
    user->session_count++;
    atomic_fetch_add(&shared->count, 1);
    atomic_fetch_add(&shared->bytes, memory_parked_session_bytes(session));
    if (user->session_count > RECOVERY_USER_SESSIONS_MAX)
        drop_parked_session(
            shared, CONTAINER_OF(user->sessions.next, struct memory_parked_session, of_user));
    if (atomic_load(&shared->count) > MEMORY_RECOVERY_SESSIONS_MAX)
        drop_parked_session(shared, oldest_parked_session(shared));
}

static void memory_recovery_park(struct recovery_store *store, const struct parked_session *source)
{
    struct memory_recovery_port *port = memory_recovery_port_of(store);
    struct memory_recovery *shared = port->shared;
    struct memory_parked_session *session = memory_parked_session_make(source);
    if (!session)
        return;
    pthread_mutex_lock(&shared->lock);
    drop_expired_parked_sessions(shared, port->clock->now_ms);
    struct memory_recovery_user *user = find_or_make_recovery_user(shared, source->user_id);
    if (user)
        list_parked_session(shared, user, session, port->clock->now_ms);
    pthread_mutex_unlock(&shared->lock);
    if (!user)
        memory_parked_session_free(&session);
}

static bool memory_recovery_is_empty(struct recovery_store *store)
{
    return atomic_load(&memory_recovery_port_of(store)->shared->count) == 0;
}

static bool memory_recovery_expects(struct recovery_store *store, struct slice user_id)
{
    struct memory_recovery *shared = memory_recovery_port_of(store)->shared;
    if (memory_recovery_is_empty(store))
        return false;
    pthread_mutex_lock(&shared->lock);
    bool found = find_recovery_user(shared, user_id) != NULL;
    pthread_mutex_unlock(&shared->lock);
    return found;
}

static void append_to_parked_session(struct memory_recovery *shared,
                                     struct memory_parked_session *session,
                                     const struct recovery_event *event)
{
    atomic_fetch_sub(&shared->bytes, memory_parked_session_bytes(session));
    memory_parked_session_append(session, event);
    atomic_fetch_add(&shared->bytes, memory_parked_session_bytes(session));
}

static void memory_recovery_append(struct recovery_store *store, const struct slice *user_ids,
                                   size_t count, const struct recovery_event *event)
{
    struct memory_recovery *shared = memory_recovery_port_of(store)->shared;
    pthread_mutex_lock(&shared->lock);
    drop_expired_parked_sessions(shared, memory_recovery_port_of(store)->clock->now_ms);
    for (size_t i = 0; i < count; i++) {
        struct memory_recovery_user *user = find_recovery_user(shared, user_ids[i]);
        struct list *at = user ? user->sessions.next : NULL;
        for (; at && at != &user->sessions; at = at->next)
            append_to_parked_session(
                shared, CONTAINER_OF(at, struct memory_parked_session, of_user), event);
    }
    pthread_mutex_unlock(&shared->lock);
}

/* ---- recovery ---- */

/* Removes the session from the store; NULL when there is none. */
static struct memory_parked_session *remove_parked_session(struct memory_recovery_port *port,
                                                           struct slice user_id, struct slice pid)
{
    struct memory_recovery *shared = port->shared;
    struct memory_parked_session *found = NULL;
    pthread_mutex_lock(&shared->lock);
    drop_expired_parked_sessions(shared, port->clock->now_ms);
    struct memory_recovery_user *user = find_recovery_user(shared, user_id);
    struct list *at = user ? user->sessions.next : NULL;
    for (; at && at != &user->sessions && !found; at = at->next) {
        struct memory_parked_session *session =
            CONTAINER_OF(at, struct memory_parked_session, of_user);
        if (slice_equal(session->pid, pid))
            found = session;
    }
    if (found)
        unlist_parked_session(shared, found);
    if (found && found->generation != shared->generation)
        found->floor = RECOVERY_MISSED;
    pthread_mutex_unlock(&shared->lock);
    return found;
}

static void memory_recovery_take(struct recovery_store *store, struct slice user_id,
                                 struct slice pid, uint64_t offset, recovery_take_done done,
                                 void *arg)
{
    struct recovery_event events[RECOVERY_EVENTS_MAX];
    struct memory_parked_session *session =
        remove_parked_session(memory_recovery_port_of(store), user_id, pid);
    if (session && offset >= session->floor)
        done(arg, &(struct parked_session){
                      .user_id = user_id,
                      .pid = session->pid,
                      .sid = session->sid,
                      .floor = session->floor,
                      .ceiling = session->ceiling,
                      .events = events,
                      .event_count = memory_parked_session_events(session, offset, events),
                      .topics = session->topics,
                      .topic_count = session->topic_count,
                  });
    else
        done(arg, NULL);
    memory_parked_session_free(&session);
}

static void memory_recovery_invalidate(struct recovery_store *store)
{
    struct memory_recovery *shared = memory_recovery_port_of(store)->shared;
    pthread_mutex_lock(&shared->lock);
    shared->generation++;
    pthread_mutex_unlock(&shared->lock);
}

static size_t memory_recovery_held_bytes(struct recovery_store *store)
{
    return atomic_load(&memory_recovery_port_of(store)->shared->bytes);
}

static size_t memory_recovery_shed(struct recovery_store *store, size_t bytes)
{
    struct memory_recovery *shared = memory_recovery_port_of(store)->shared;
    pthread_mutex_lock(&shared->lock);
    size_t held = atomic_load(&shared->bytes), freed = 0;
    while (atomic_load(&shared->count) && freed < bytes) {
        drop_parked_session(shared, oldest_parked_session(shared));
        freed = held - atomic_load(&shared->bytes);
    }
    pthread_mutex_unlock(&shared->lock);
    return freed;
}

static void memory_recovery_free_port(struct recovery_store *store)
{
    free(memory_recovery_port_of(store));
}

static const struct recovery_store_operations MEMORY_RECOVERY_OPERATIONS = {
    .park = memory_recovery_park,
    .is_empty = memory_recovery_is_empty,
    .expects = memory_recovery_expects,
    .append = memory_recovery_append,
    .take = memory_recovery_take,
    .invalidate = memory_recovery_invalidate,
    .held_bytes = memory_recovery_held_bytes,
    .shed = memory_recovery_shed,
    .free = memory_recovery_free_port,
};

struct recovery_store *memory_recovery_store(struct memory_recovery *recovery,
                                             const struct clock *clock)
{
    struct memory_recovery_port *port = malloc(sizeof(*port));
    if (!port)
        return NULL;
    *port =
        (struct memory_recovery_port){{.operations = &MEMORY_RECOVERY_OPERATIONS}, recovery, clock};
    return &port->store;
}

struct memory_recovery *memory_recovery_make(int64_t recovery_ms, uint64_t hash_seed)
{
    struct memory_recovery *recovery = calloc(1, sizeof(*recovery));
    if (!recovery || !table_init(&recovery->users, hash_seed, recovery_user_matches)) {
        free(recovery);
        return NULL;
    }
    pthread_mutex_init(&recovery->lock, NULL);
    list_init(&recovery->oldest);
    recovery->recovery_ms = recovery_ms;
    return recovery;
}

void memory_recovery_free(struct memory_recovery **recovery)
{
    struct memory_recovery *freed = *recovery;
    *recovery = NULL;
    if (!freed)
        return;
    while (atomic_load(&freed->count))
        drop_parked_session(freed, oldest_parked_session(freed));
    table_free(&freed->users);
    pthread_mutex_destroy(&freed->lock);
    free(freed);
}
