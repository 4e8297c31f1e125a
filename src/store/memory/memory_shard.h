/*
 * One shard of the memory state store: the users that hash to it and their leases, and the rules by
 * which leases become presence. No locks and no completions here: memory_state.c holds the shard's
 * lock around every call.
 *
 * A user record lives while it has leases, lingers, or is remembered as offline; exactly one of
 * these holds: lease_count > 0; on `lingering`; on `offline`.
 */
#ifndef ROLLCALL_STORE_MEMORY_MEMORY_SHARD_H
#define ROLLCALL_STORE_MEMORY_MEMORY_SHARD_H

#include "base/clock.h"
#include "base/list.h"
#include "base/table.h"
#include "store/memory/memory_history.h"
#include "store/memory/memory_state.h"

struct memory_user {
    struct table_node node;
    struct list waiting; /* on the shard's lingering or offline list */
    struct list leases;
    int64_t version;
    int64_t last_seen_ms;
    int64_t linger_until_ms;
    uint32_t lease_count;
    uint32_t idle_count;
    uint8_t status; /* enum presence_status: what others are shown */
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
    bool own_device; /* the device is called by conn_id; device_len is 0 then */
    uint8_t device_len;
    char device[];
};

struct memory_shard {
    struct table users;
    struct table leases;   /* by conn_id */
    struct list by_expiry; /* leases, the next to expire first */
    struct list lingering; /* users, the next to end first */
    struct list offline;   /* users, longest offline first */
    size_t offline_count;
    int64_t version_floor; /* no user forgotten here had a greater version */
    size_t online_count;
    size_t multi_device_count;
    struct memory_history history;
    const struct memory_state_options *options;
};

bool memory_shard_init(struct memory_shard *shard, const struct memory_state_options *options);
void memory_shard_free(struct memory_shard *shard);

struct memory_user *memory_shard_user(const struct memory_shard *shard, struct slice user_id);

/* Whoever's it is. */
struct memory_lease *memory_shard_lease(const struct memory_shard *shard,
                                        const struct ulid *conn_id);

/* The same, but NULL when it is another user's. */
struct memory_lease *memory_shard_lease_of(const struct memory_shard *shard, struct slice user_id,
                                           const struct ulid *conn_id);

/* What others see of a user now; of one without a record: offline, never seen. */
struct presence memory_user_presence(const struct memory_user *user);
struct presence memory_shard_presence(const struct memory_shard *shard, struct slice user_id);

/* Each says whether the user's presence changed. `now` holds both clocks. */

/* NULL and no change when memory is short. A lease that is open already is refreshed, and as idle as it
 * is said to be now. */
struct memory_user *memory_shard_open(struct memory_shard *shard, const struct lease *lease,
                                      uint16_t gateway, const struct clock *now, bool *changed);
void memory_shard_renew(struct memory_shard *shard, struct memory_lease *lease,
                        int64_t last_heartbeat_ms, const struct clock *now);
bool memory_shard_set_idle(struct memory_shard *shard, struct memory_lease *lease, bool idle,
                           const struct clock *now);
bool memory_shard_close(struct memory_shard *shard, struct memory_lease *lease,
                        const struct clock *now);

bool memory_shard_set_call(struct memory_shard *shard, struct memory_user *user, bool in_call,
                           const struct clock *now);

/* Ends the next expired lease or the next grace that is over; *user is whose. False: nothing is due. */
bool memory_shard_reap_one(struct memory_shard *shard, const struct clock *now,
                           struct memory_user **user, bool *changed);

/* Forgets the longest offline beyond the bound. */
void memory_shard_trim(struct memory_shard *shard);

#endif
