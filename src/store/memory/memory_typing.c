#include "store/memory/memory_typing.h"

#include "base/container.h"
#include "base/list.h"
#include "base/table.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <xxhash.h>

enum {
    TYPISTS_DROPPED_PER_UPDATE = 4, /* more than one, so that expired records cannot pile up */
    TYPISTS_PER_SHARD_MAX = 65536,
};

struct typing_notice {
    struct ulid conn_id;
    int64_t ends_at_ms;
};

/* One user in one chat. It outlives its last notice until the interval of the rate limit is over too. */
struct typist {
    struct table_node node;
    struct list of_chat;
    struct list by_update;
    struct typing_chat *chat;
    int64_t updated_at_ms;
    struct typing_notice notices[TYPING_DEVICES_MAX];
    uint8_t notice_count;
    uint8_t user_id_len;
    char user_id[];
};

struct typing_chat {
    struct table_node node;
    struct list typists;
    uint8_t id_len;
    char id[];
};

struct typing_shard {
    pthread_mutex_t lock;
    struct table chats;
    struct table typists;  /* by chat and user */
    struct list by_update; /* typists, the least recently updated first */
    size_t count;
};

struct memory_typing {
    struct memory_typing_options options;
    int64_t interval_ms;
    struct typing_shard shards[MEMORY_TYPING_SHARDS];
};

struct memory_typing_port {
    struct typing_store store;
    struct memory_typing *typing;
    const struct clock *clock;
};

static bool typing_chat_matches(const struct table_node *node, struct slice key)
{
    const struct typing_chat *chat = CONTAINER_OF(node, struct typing_chat, node);
    return slice_equal((struct slice){chat->id, chat->id_len}, key);
}

/* A chat and a user as one key; the length of the chat's id separates the two. */
struct typist_key {
    char bytes[1 + CHAT_ID_BYTES_MAX + USER_ID_BYTES_MAX];
};

static struct slice write_typist_key(struct typist_key *key, struct slice chat_id,
                                     struct slice user_id)
{
    assert(chat_id.len <= CHAT_ID_BYTES_MAX && user_id.len <= USER_ID_BYTES_MAX);
    key->bytes[0] = (char)chat_id.len;
    memcpy(key->bytes + 1, chat_id.data, chat_id.len);
    memcpy(key->bytes + 1 + chat_id.len, user_id.data, user_id.len);
    return (struct slice){key->bytes, 1 + chat_id.len + user_id.len};
}

static bool typist_matches(const struct table_node *node, struct slice wanted)
{
    const struct typist *typist = CONTAINER_OF(node, struct typist, node);
    struct typist_key key;
    return slice_equal(write_typist_key(&key,
                                        (struct slice){typist->chat->id, typist->chat->id_len},
                                        (struct slice){typist->user_id, typist->user_id_len}),
                       wanted);
}

struct memory_typing *memory_typing_make(const struct memory_typing_options *options)
{
    struct memory_typing *typing = calloc(1, sizeof(*typing));
    if (!typing)
        return NULL;
    typing->options = *options;
    typing->interval_ms = 1000 / (int64_t)options->rate_per_second;
    for (size_t i = 0; i < MEMORY_TYPING_SHARDS; i++) {
        pthread_mutex_init(&typing->shards[i].lock, NULL);
        list_init(&typing->shards[i].by_update);
    }
    for (size_t i = 0; i < MEMORY_TYPING_SHARDS; i++)
        if (!table_init(&typing->shards[i].chats, options->hash_seed, typing_chat_matches) ||
            !table_init(&typing->shards[i].typists, options->hash_seed, typist_matches)) {
            memory_typing_free(&typing);
            return NULL;
        }
    return typing;
}

static void drop_typist(struct typing_shard *shard, struct typist *typist)
{
    struct typing_chat *chat = typist->chat;
    table_remove(&shard->typists, &typist->node);
    list_remove(&typist->of_chat);
    list_remove(&typist->by_update);
    free(typist);
    shard->count--;
    if (list_empty(&chat->typists)) {
        table_remove(&shard->chats, &chat->node);
        free(chat);
    }
}

void memory_typing_free(struct memory_typing **typing)
{
    struct memory_typing *freed = *typing;
    *typing = NULL;
    if (!freed)
        return;
    for (size_t i = 0; i < MEMORY_TYPING_SHARDS; i++) {
        struct typing_shard *shard = &freed->shards[i];
        while (!list_empty(&shard->by_update))
            drop_typist(shard, CONTAINER_OF(shard->by_update.next, struct typist, by_update));
        table_free(&shard->chats);
        table_free(&shard->typists);
        pthread_mutex_destroy(&shard->lock);
    }
    free(freed);
}

static struct typing_shard *lock_typing_shard(struct memory_typing *typing, struct slice chat_id)
{
    uint64_t hash = XXH3_64bits_withSeed(chat_id.data, chat_id.len, typing->options.hash_seed);
    struct typing_shard *shard = &typing->shards[(hash >> 32) % MEMORY_TYPING_SHARDS];
    pthread_mutex_lock(&shard->lock);
    return shard;
}

static struct typing_chat *find_typing_chat(const struct typing_shard *shard, struct slice chat_id)
{
    struct table_node *node = table_find(&shard->chats, chat_id);
    return node ? CONTAINER_OF(node, struct typing_chat, node) : NULL;
}

static struct typist *find_typist(const struct typing_shard *shard, struct slice chat_id,
                                  struct slice user_id)
{
    struct typist_key key;
    struct table_node *node = table_find(&shard->typists, write_typist_key(&key, chat_id, user_id));
    return node ? CONTAINER_OF(node, struct typist, node) : NULL;
}

static struct typist *make_typist(struct typing_shard *shard, struct slice chat_id,
                                  struct slice user_id)
{
    struct typist *typist = malloc(sizeof(*typist) + user_id.len);
    if (!typist)
        return NULL;
    struct typing_chat *chat = find_typing_chat(shard, chat_id);
    if (!chat) {
        chat = malloc(sizeof(*chat) + chat_id.len);
        if (!chat) {
            free(typist);
            return NULL;
        }
        list_init(&chat->typists);
        chat->id_len = (uint8_t)chat_id.len;
        memcpy(chat->id, chat_id.data, chat_id.len);
        table_insert(&shard->chats, &chat->node, chat_id);
    }
    *typist = (struct typist){
        .chat = chat, .updated_at_ms = INT64_MIN / 2, .user_id_len = (uint8_t)user_id.len};
    memcpy(typist->user_id, user_id.data, user_id.len);
    struct typist_key key;
    table_insert(&shard->typists, &typist->node, write_typist_key(&key, chat_id, user_id));
    list_append(&chat->typists, &typist->of_chat);
    list_init(&typist->by_update);
    shard->count++;
    return typist;
}

/* ---- notices ---- */

static void remove_typing_notice(struct typist *typist, size_t index)
{
    typist->notice_count--;
    memmove(&typist->notices[index], &typist->notices[index + 1],
            (typist->notice_count - index) * sizeof(typist->notices[0]));
}

/* Notices are in the order of their updates, hence of their ends. */
static void remove_ended_notices(struct typist *typist, int64_t now_ms)
{
    while (typist->notice_count && typist->notices[0].ends_at_ms <= now_ms)
        remove_typing_notice(typist, 0);
}

/* `conn_id` NULL means all devices. */
static void remove_device_notices(struct typist *typist, const struct ulid *conn_id)
{
    for (size_t i = typist->notice_count; i-- > 0;)
        if (!conn_id || ulid_equal(&typist->notices[i].conn_id, conn_id))
            remove_typing_notice(typist, i);
}

/* ---- the port ---- */

static struct memory_typing_port *memory_typing_port_of(struct typing_store *store)
{
    return CONTAINER_OF(store, struct memory_typing_port, store);
}

static struct typing_outcome update_typist(struct memory_typing *typing, struct typing_shard *shard,
                                           struct typist *typist, const struct ulid *conn_id,
                                           int64_t now_ms)
{
    int64_t free_at_ms = typist->updated_at_ms + typing->interval_ms;
    if (now_ms < free_at_ms)
        return (struct typing_outcome){TYPING_LIMITED, free_at_ms - now_ms};
    remove_ended_notices(typist, now_ms);
    enum typing_result result = typist->notice_count ? TYPING_RENEWED : TYPING_STARTED;
    remove_device_notices(typist, conn_id);
    if (typist->notice_count == TYPING_DEVICES_MAX)
        remove_typing_notice(typist, 0);
    typist->notices[typist->notice_count++] =
        (struct typing_notice){*conn_id, now_ms + typing->options.ttl_ms};
    typist->updated_at_ms = now_ms;
    list_remove(&typist->by_update);
    list_append(&shard->by_update, &typist->by_update);
    return (struct typing_outcome){.result = result};
}

static void memory_typing_start(struct typing_store *store, struct slice chat_id,
                                struct slice user_id, const struct ulid *conn_id,
                                typing_start_done done, void *arg)
{
    struct memory_typing_port *port = memory_typing_port_of(store);
    struct memory_typing *typing = port->typing;
    int64_t now_ms = port->clock->now_ms;
    int64_t kept_ms =
        typing->options.ttl_ms > typing->interval_ms ? typing->options.ttl_ms : typing->interval_ms;
    struct typing_outcome outcome = {0};
    struct typing_shard *shard = lock_typing_shard(typing, chat_id);
    /* Drop expired records, and the oldest ones of a full shard: a read then only misses a user. */
    for (int i = 0; i < TYPISTS_DROPPED_PER_UPDATE && !list_empty(&shard->by_update); i++) {
        struct typist *oldest = CONTAINER_OF(shard->by_update.next, struct typist, by_update);
        if (oldest->updated_at_ms + kept_ms > now_ms && shard->count < TYPISTS_PER_SHARD_MAX)
            break;
        drop_typist(shard, oldest);
    }
    struct typist *typist = find_typist(shard, chat_id, user_id);
    if (!typist)
        typist = make_typist(shard, chat_id, user_id);
    if (typist)
        outcome = update_typist(typing, shard, typist, conn_id, now_ms);
    pthread_mutex_unlock(&shard->lock);
    done(arg, typist ? STATE_OK : STATE_UNAVAILABLE, &outcome);
}

static void memory_typing_stop(struct typing_store *store, struct slice chat_id,
                               struct slice user_id, const struct ulid *conn_id,
                               typing_stop_done done, void *arg)
{
    struct memory_typing_port *port = memory_typing_port_of(store);
    struct typing_shard *shard = lock_typing_shard(port->typing, chat_id);
    struct typist *typist = find_typist(shard, chat_id, user_id);
    bool stopped = false;
    if (typist) {
        remove_ended_notices(typist, port->clock->now_ms);
        bool typed = typist->notice_count > 0;
        remove_device_notices(typist, conn_id);
        stopped = typed && typist->notice_count == 0;
    }
    pthread_mutex_unlock(&shard->lock);
    done(arg, STATE_OK, stopped);
}

static void memory_typing_read(struct typing_store *store, struct slice chat_id, size_t max,
                               typing_users_done done, void *arg)
{
    struct memory_typing_port *port = memory_typing_port_of(store);
    int64_t now_ms = port->clock->now_ms;
    struct typing_user users[TYPING_READ_MAX];
    char ids[TYPING_READ_MAX][USER_ID_BYTES_MAX];
    size_t bound = max < TYPING_READ_MAX ? max : TYPING_READ_MAX;
    size_t count = 0;
    struct typing_shard *shard = lock_typing_shard(port->typing, chat_id);
    const struct typing_chat *chat = find_typing_chat(shard, chat_id);
    const struct list *at = chat ? chat->typists.next : NULL;
    for (; at && at != &chat->typists && count < bound; at = at->next) {
        struct typist *typist = CONTAINER_OF(at, struct typist, of_chat);
        remove_ended_notices(typist, now_ms);
        if (!typist->notice_count)
            continue;
        memcpy(ids[count], typist->user_id, typist->user_id_len);
        users[count] = (struct typing_user){
            .user_id = {ids[count], typist->user_id_len},
            .left_ms = typist->notices[typist->notice_count - 1].ends_at_ms - now_ms,
        };
        count++;
    }
    pthread_mutex_unlock(&shard->lock);
    done(arg, STATE_OK, users, count);
}

static void memory_typing_free_port(struct typing_store *store)
{
    free(memory_typing_port_of(store));
}

static const struct typing_store_operations MEMORY_TYPING_OPERATIONS = {
    .start = memory_typing_start,
    .stop = memory_typing_stop,
    .read = memory_typing_read,
    .free = memory_typing_free_port,
};

struct typing_store *memory_typing_store(struct memory_typing *typing, const struct clock *clock)
{
    struct memory_typing_port *port = malloc(sizeof(*port));
    if (!port)
        return NULL;
    *port = (struct memory_typing_port){{&MEMORY_TYPING_OPERATIONS}, typing, clock};
    return &port->store;
}

size_t memory_typing_count(struct memory_typing *typing)
{
    size_t count = 0;
    for (size_t i = 0; i < MEMORY_TYPING_SHARDS; i++) {
        pthread_mutex_lock(&typing->shards[i].lock);
        count += typing->shards[i].count;
        pthread_mutex_unlock(&typing->shards[i].lock);
    }
    return count;
}
