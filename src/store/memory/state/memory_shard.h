/*
 * One shard of the state store in memory: the users that hash to it, their leases, and the rules by which
 * leases become presence. No locks and no completions: memory_state.c holds the shard's lock around every
 * function.
 *
 * A user record exists while the user has leases, lingers, or is remembered as offline. Exactly one of these
 * holds: lease_count > 0; on `lingering`; on `offline`.
 */
#ifndef ROLLCALL_STORE_MEMORY_STATE_MEMORY_SHARD_H
#define ROLLCALL_STORE_MEMORY_STATE_MEMORY_SHARD_H

#include "base/clock.h"
#include "base/list.h"
#include "base/table.h"
#include "store/memory/state/memory_history.h"
#include "store/memory/state/memory_state.h"

struct memory_user {
    struct table_node node;
    struct list waiting; /* on the shard's `lingering` or `offline` list */
    struct list leases;  /* the one that was refreshed longest ago first */
    int64_t version;
    int64_t last_seen_ms;
    int64_t linger_until_ms;
    uint32_t lease_count;
    uint32_t idle_count;
    uint8_t status; /* enum presence_status, as others see it */
    bool in_call;
    uint8_t id_len;
    char id[];
};

struct memory_lease {
    struct table_node node;
    struct list by_expiry;
    struct list of_user;
    struct memory_user *user;
    struct ulid conn_id;
    int64_t expires_at_ms;
    int64_t last_heartbeat_ms;
    uint16_t gateway;
    bool idle;
    bool own_device; /* the device's id is conn_id, and device_len is 0 */
    uint8_t device_len;
    char device[];
};

struct memory_shard {
    struct table users;
    struct table leases;   /* by conn_id */
    struct list by_expiry; /* leases, the next to expire first */
    struct list lingering; /* users whose grace runs, the next to end first */
    struct list offline;   /* users, the longest offline first */
    size_t offline_count;
    int64_t version_floor; /* at least the version of every forgotten user */
    size_t online_count;
    size_t multi_device_count;
    struct memory_history history;
    const struct memory_state_options *options;
};

bool memory_shard_init(struct memory_shard *shard, const struct memory_state_options *options);
void memory_shard_free(struct memory_shard *shard);

struct memory_user *memory_shard_user(const struct memory_shard *shard, struct slice user_id);

/* Returns the lease of any user. */
struct memory_lease *memory_shard_lease(const struct memory_shard *shard,
                                        const struct ulid *conn_id);

/* Returns NULL if the lease is another user's. */
struct memory_lease *memory_shard_lease_of(const struct memory_shard *shard, struct slice user_id,
                                           const struct ulid *conn_id);

/* Returns what others see of a user now; a user without a record is offline, never seen. */
struct presence memory_user_presence(const struct memory_user *user);
struct presence memory_shard_presence(const struct memory_shard *shard, struct slice user_id);

/* A `bool` of the functions below, returned or in `*changed`, is whether the user's presence changed. */

/* Opens a lease; refreshes an open one and sets its idle flag. Returns NULL and changes nothing when out of
 * memory. */
struct memory_user *memory_shard_open(struct memory_shard *shard, const struct lease *lease,
                                      uint16_t gateway, const struct clock *now, bool *changed);

/* Returns the lease that gives way when the user has more than `lease->user_leases_max`; NULL: none. */
struct memory_lease *memory_shard_displaced(const struct memory_shard *shard,
                                            const struct memory_user *user,
                                            const struct lease *lease, uint16_t gateway);
void memory_shard_renew(struct memory_shard *shard, struct memory_lease *lease,
                        int64_t last_heartbeat_ms, const struct clock *now);
bool memory_shard_set_idle(struct memory_shard *shard, struct memory_lease *lease, bool idle,
                           const struct clock *now);
bool memory_shard_close(struct memory_shard *shard, struct memory_lease *lease, int64_t left_at_ms,
                        const struct clock *now);
bool memory_shard_set_call(struct memory_shard *shard, struct memory_user *user, bool in_call,
                           const struct clock *now);

/* Ends the next expired lease or the next grace that is over; `*user` is its user. Returns whether one was due. */
bool memory_shard_reap_one(struct memory_shard *shard, const struct clock *now,
                           struct memory_user **user, bool *changed);

/* Forgets a user who has no lease, with the history; the version floor remembers the version. */
void memory_shard_forget(struct memory_shard *shard, struct slice user_id);

/* Forgets the users who are longest offline beyond the bound. */
void memory_shard_trim(struct memory_shard *shard);

#endif
