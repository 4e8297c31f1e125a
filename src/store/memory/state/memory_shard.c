#include "store/memory/state/memory_shard.h"

#include "base/container.h"

#include <assert.h>
#include <stdlib.h>

static struct slice memory_user_id(const struct memory_user *user)
{
    return (struct slice){user->id, user->id_len};
}

static bool memory_user_matches(const struct table_node *node, struct slice key)
{
    return slice_equal(memory_user_id(CONTAINER_OF(node, struct memory_user, node)), key);
}

static bool memory_lease_matches(const struct table_node *node, struct slice key)
{
    const struct memory_lease *lease = CONTAINER_OF(node, struct memory_lease, node);
    return memcmp(lease->conn_id.bytes, key.data, sizeof(lease->conn_id.bytes)) == 0;
}

static struct slice lease_table_key(const struct ulid *conn_id)
{
    return (struct slice){(const char *)conn_id->bytes, sizeof(conn_id->bytes)};
}

bool memory_shard_init(struct memory_shard *shard, const struct memory_state_options *options)
{
    shard->options = options;
    shard->version_floor = options->started_at_ms;
    hash_key_init(&shard->history.key, options->hash_seed);
    list_init(&shard->by_expiry);
    list_init(&shard->lingering);
    list_init(&shard->offline);
    return table_init(&shard->users, options->hash_seed, memory_user_matches) &&
           table_init(&shard->leases, options->hash_seed, memory_lease_matches);
}

static void free_memory_user(struct table_node *node, void *arg)
{
    (void)arg;
    free(CONTAINER_OF(node, struct memory_user, node));
}

static void free_memory_lease(struct table_node *node, void *arg)
{
    (void)arg;
    free(CONTAINER_OF(node, struct memory_lease, node));
}

void memory_shard_free(struct memory_shard *shard)
{
    table_each(&shard->leases, free_memory_lease, NULL);
    table_each(&shard->users, free_memory_user, NULL);
    table_free(&shard->leases);
    table_free(&shard->users);
}

struct memory_user *memory_shard_user(const struct memory_shard *shard, struct slice user_id)
{
    struct table_node *node = table_find(&shard->users, user_id);
    return node ? CONTAINER_OF(node, struct memory_user, node) : NULL;
}

struct memory_lease *memory_shard_lease(const struct memory_shard *shard,
                                        const struct ulid *conn_id)
{
    struct table_node *node = table_find(&shard->leases, lease_table_key(conn_id));
    return node ? CONTAINER_OF(node, struct memory_lease, node) : NULL;
}

struct memory_lease *memory_shard_lease_of(const struct memory_shard *shard, struct slice user_id,
                                           const struct ulid *conn_id)
{
    struct memory_lease *lease = memory_shard_lease(shard, conn_id);
    return lease && slice_equal(memory_user_id(lease->user), user_id) ? lease : NULL;
}

struct presence memory_shard_presence(const struct memory_shard *shard, struct slice user_id)
{
    const struct memory_user *user = memory_shard_user(shard, user_id);
    if (user)
        return memory_user_presence(user);
    return (struct presence){.user_id = user_id,
                             .status = PRESENCE_OFFLINE,
                             .last_seen_ms = TIME_NONE,
                             .version = shard->version_floor};
}

struct presence memory_user_presence(const struct memory_user *user)
{
    return (struct presence){
        .user_id = memory_user_id(user),
        .status = user->status,
        .in_call = user->in_call,
        .last_seen_ms = user->status == PRESENCE_OFFLINE ? user->last_seen_ms : TIME_NONE,
        .version = user->version,
    };
}

static void record_presence_change(struct memory_shard *shard, struct memory_user *user,
                                   enum memory_cause cause, const struct clock *now)
{
    user->version = user->version + 1 > now->wall_ms ? user->version + 1 : now->wall_ms;
    struct presence presence = memory_user_presence(user);
    memory_history_add(&shard->history, &presence, cause, now->wall_ms);
}

/* Every change of a user's status goes through here. */
static void set_user_status(struct memory_shard *shard, struct memory_user *user,
                            enum presence_status status, enum memory_cause cause,
                            const struct clock *now)
{
    assert(user->status != status);
    shard->online_count += user->status == PRESENCE_OFFLINE;
    shard->online_count -= status == PRESENCE_OFFLINE;
    user->status = (uint8_t)status;
    user->in_call &= status != PRESENCE_OFFLINE;
    record_presence_change(shard, user, cause, now);
}

bool memory_shard_set_call(struct memory_shard *shard, struct memory_user *user, bool in_call,
                           const struct clock *now)
{
    if (user->in_call == in_call || user->status == PRESENCE_OFFLINE)
        return false;
    user->in_call = in_call;
    record_presence_change(shard, user, in_call ? MEMORY_CALL_STARTED : MEMORY_CALL_ENDED, now);
    return true;
}

static void set_user_lease_count(struct memory_shard *shard, struct memory_user *user,
                                 uint32_t count)
{
    shard->multi_device_count += user->lease_count < 2 && count >= 2;
    shard->multi_device_count -= user->lease_count >= 2 && count < 2;
    user->lease_count = count;
}

static void append_to_offline_list(struct memory_shard *shard, struct memory_user *user)
{
    list_append(&shard->offline, &user->waiting);
    shard->offline_count++;
}

static void remove_from_waiting_list(struct memory_shard *shard, struct memory_user *user)
{
    if (user->lease_count == 0 && user->status == PRESENCE_OFFLINE && !list_empty(&user->waiting))
        shard->offline_count--;
    list_remove(&user->waiting);
}

/* Derives the user's presence from the leases. Returns whether it changed. */
static bool update_user_presence(struct memory_shard *shard, struct memory_user *user,
                                 enum memory_cause cause, const struct clock *now)
{
    if (user->lease_count == 0 && shard->options->offline_grace_ms > 0) {
        user->linger_until_ms = now->now_ms + shard->options->offline_grace_ms;
        list_append(&shard->lingering, &user->waiting);
        return false;
    }
    enum presence_status status = user->lease_count == 0                  ? PRESENCE_OFFLINE
                                  : user->idle_count == user->lease_count ? PRESENCE_AWAY
                                                                          : PRESENCE_ONLINE;
    bool changed = status != user->status;
    if (changed)
        set_user_status(shard, user, status, cause, now);
    if (status == PRESENCE_OFFLINE)
        append_to_offline_list(shard, user);
    return changed;
}

static struct memory_user *make_memory_user(struct memory_shard *shard, struct slice user_id)
{
    struct memory_user *user = malloc(sizeof(*user) + user_id.len);
    if (!user)
        return NULL;
    *user = (struct memory_user){
        .version = shard->version_floor,
        .last_seen_ms = TIME_NONE,
        .status = PRESENCE_OFFLINE,
        .id_len = (uint8_t)user_id.len,
    };
    memcpy(user->id, user_id.data, user_id.len);
    list_init(&user->waiting);
    list_init(&user->leases);
    table_insert(&shard->users, &user->node, user_id);
    return user;
}

static struct memory_lease *make_memory_lease(struct memory_shard *shard, const struct lease *lease,
                                              uint16_t gateway)
{
    char conn_id[ULID_TEXT_LEN];
    ulid_write(conn_id, &lease->conn_id);
    /* A connection without a device id of its own uses its conn_id, which need not be stored twice. */
    bool own_device = slice_equal(lease->device_id, (struct slice){conn_id, sizeof(conn_id)});
    size_t device_len = own_device ? 0 : lease->device_id.len;
    struct memory_lease *made = malloc(sizeof(*made) + device_len);
    if (!made)
        return NULL;
    *made = (struct memory_lease){
        .conn_id = lease->conn_id,
        .gateway = gateway,
        .idle = lease->idle,
        .own_device = own_device,
        .device_len = (uint8_t)device_len,
    };
    if (device_len)
        memcpy(made->device, lease->device_id.data, device_len);
    list_init(&made->by_expiry);
    list_init(&made->of_user);
    table_insert(&shard->leases, &made->node, lease_table_key(&lease->conn_id));
    return made;
}

struct memory_user *memory_shard_open(struct memory_shard *shard, const struct lease *lease,
                                      uint16_t gateway, const struct clock *now, bool *changed)
{
    assert(lease->user_id.len <= USER_ID_BYTES_MAX && lease->device_id.len <= DEVICE_ID_BYTES_MAX);
    *changed = false;
    struct memory_lease *known = memory_shard_lease_of(shard, lease->user_id, &lease->conn_id);
    if (known) {
        memory_shard_renew(shard, known, lease->last_heartbeat_ms, now);
        *changed = memory_shard_set_idle(shard, known, lease->idle, now);
        return known->user;
    }
    struct memory_user *user = memory_shard_user(shard, lease->user_id);
    struct memory_lease *made = make_memory_lease(shard, lease, gateway);
    if (made && !user)
        user = make_memory_user(shard, lease->user_id);
    if (!made || !user) {
        if (made)
            table_remove(&shard->leases, &made->node);
        free(made);
        return NULL;
    }
    remove_from_waiting_list(shard, user);
    made->user = user;
    set_user_lease_count(shard, user, user->lease_count + 1);
    user->idle_count += made->idle;
    memory_shard_renew(shard, made, lease->last_heartbeat_ms, now);
    *changed = update_user_presence(shard, user, MEMORY_CONNECTED, now);
    return user;
}

struct memory_lease *memory_shard_displaced(const struct memory_shard *shard,
                                            const struct memory_user *user,
                                            const struct lease *lease, uint16_t gateway)
{
    if (lease->user_leases_max == 0 || user->lease_count <= lease->user_leases_max)
        return NULL;
    struct memory_lease *oldest = CONTAINER_OF(user->leases.next, struct memory_lease, of_user);
    struct memory_lease *own =
        lease->silent_heard_ms
            ? memory_shard_lease_of(shard, lease->user_id, &lease->silent_conn_id)
            : NULL;
    bool is_better =
        own && (oldest->gateway == gateway || lease->silent_heard_ms < oldest->last_heartbeat_ms);
    struct memory_lease *chosen = is_better ? own : oldest;
    return ulid_equal(&chosen->conn_id, &lease->conn_id) ? NULL : chosen;
}

/* Every lease has the same window, so appending keeps both lists in the order of expiry. */
void memory_shard_renew(struct memory_shard *shard, struct memory_lease *lease,
                        int64_t last_heartbeat_ms, const struct clock *now)
{
    lease->last_heartbeat_ms = last_heartbeat_ms;
    lease->expires_at_ms = now->now_ms + shard->options->lease_window_ms;
    list_remove(&lease->by_expiry);
    list_append(&shard->by_expiry, &lease->by_expiry);
    list_remove(&lease->of_user);
    list_append(&lease->user->leases, &lease->of_user);
}

bool memory_shard_set_idle(struct memory_shard *shard, struct memory_lease *lease, bool idle,
                           const struct clock *now)
{
    if (lease->idle == idle)
        return false;
    lease->idle = idle;
    lease->user->idle_count += idle ? 1 : -1;
    return update_user_presence(shard, lease->user, idle ? MEMORY_IDLE : MEMORY_ACTIVE, now);
}

static bool end_memory_lease(struct memory_shard *shard, struct memory_lease *lease,
                             int64_t last_seen_ms, enum memory_cause cause, const struct clock *now)
{
    struct memory_user *user = lease->user;
    list_remove(&lease->by_expiry);
    list_remove(&lease->of_user);
    table_remove(&shard->leases, &lease->node);
    set_user_lease_count(shard, user, user->lease_count - 1);
    user->idle_count -= lease->idle;
    free(lease);
    if (user->last_seen_ms == TIME_NONE || last_seen_ms > user->last_seen_ms)
        user->last_seen_ms = last_seen_ms;
    return update_user_presence(shard, user, cause, now);
}

bool memory_shard_close(struct memory_shard *shard, struct memory_lease *lease, int64_t left_at_ms,
                        const struct clock *now)
{
    return end_memory_lease(shard, lease, left_at_ms, MEMORY_DISCONNECTED, now);
}

bool memory_shard_reap_one(struct memory_shard *shard, const struct clock *now,
                           struct memory_user **user, bool *changed)
{
    if (!list_empty(&shard->by_expiry)) {
        struct memory_lease *lease =
            CONTAINER_OF(shard->by_expiry.next, struct memory_lease, by_expiry);
        if (lease->expires_at_ms <= now->now_ms) {
            *user = lease->user;
            *changed =
                end_memory_lease(shard, lease, lease->last_heartbeat_ms, MEMORY_EXPIRED, now);
            return true;
        }
    }
    if (!list_empty(&shard->lingering)) {
        struct memory_user *next = CONTAINER_OF(shard->lingering.next, struct memory_user, waiting);
        if (next->linger_until_ms <= now->now_ms) {
            *user = next;
            *changed = true;
            list_remove(&next->waiting);
            set_user_status(shard, next, PRESENCE_OFFLINE, MEMORY_GRACE_OVER, now);
            append_to_offline_list(shard, next);
            return true;
        }
    }
    return false;
}

static void forget_offline_user(struct memory_shard *shard, struct memory_user *user)
{
    remove_from_waiting_list(shard, user);
    if (user->version > shard->version_floor)
        shard->version_floor = user->version;
    table_remove(&shard->users, &user->node);
    free(user);
}

void memory_shard_forget(struct memory_shard *shard, struct slice user_id)
{
    struct memory_user *user = memory_shard_user(shard, user_id);
    if (user && (user->lease_count > 0 || user->status != PRESENCE_OFFLINE))
        return;
    memory_history_forget(&shard->history, user_id);
    if (user)
        forget_offline_user(shard, user);
}

void memory_shard_trim(struct memory_shard *shard)
{
    size_t max = shard->options->offline_records_max / MEMORY_SHARDS + 1;
    while (shard->offline_count > max)
        forget_offline_user(shard, CONTAINER_OF(shard->offline.next, struct memory_user, waiting));
}
