/*
 * The parts of the state store in Redis:
 *
 *   redis_state.c           making and freeing, scripts, availability
 *   redis_state_lease.c     one lease: open, idle, close; the in-call flag of a user
 *   redis_state_renew.c     many leases at a time
 *   redis_state_read.c      presence of many users
 *   redis_state_routes.c    routes of many users, cached (redis_route_cache.h)
 *   redis_state_explain.c   leases and history of one user
 *   redis_state_online.c    who is online
 *   redis_state_reap.c      expired leases and graces
 *   redis_state_looks.c     when to look for them, and where
 *   redis_state_gateways.c  this gateway's record; claims and fencing
 *   redis_state_fleet.c     the records of all gateways
 *   redis_state_registry.c  the ids and peer addresses of all gateways, cached
 *   redis_state_shards.c    keys of a cluster that the user scripts cannot reach
 *   redis_state_reply.c     replies of transition scripts
 */
#ifndef ROLLCALL_STORE_REDIS_STATE_REDIS_STATE_INTERNAL_H
#define ROLLCALL_STORE_REDIS_STATE_REDIS_STATE_INTERNAL_H

#include "base/buffer.h"
#include "base/table.h"
#include "store/redis/redis_keys.h"
#include "store/redis/state/redis_route_cache.h"
#include "store/redis/state/redis_state.h"
#include "store/redis/state/redis_state_scripts.h"

enum {
    REDIS_STATE_NUMBER_MAX = 24,
    REDIS_STATE_INSTANCE_LEN = 32,
    REDIS_STATE_ARGUMENTS_MAX = 456, /* a script's own arguments */
};

/* A gateway's record as it was put last. */
struct redis_state_record {
    struct gateway_info info;
    char gateway_id[GATEWAY_ID_BYTES_MAX];
    char peer_address[STATE_PEER_ADDRESS_MAX];
};

/* Another process's record under our gateway id, as it was seen last. */
struct redis_state_rival {
    bool seen;
    int64_t until_ms; /* the record of a dead process has expired by then */
    int64_t answered_at_ms;
    int64_t left_ms; /* the record's time to live at that moment */
};

/* The gateways as they were read last. */
struct redis_registry {
    struct gateway_info *infos;
    size_t count;
    char *texts;       /* what they point to */
    uint64_t tracking; /* of the connection on which they were read; 0: they must be read again */
    uint64_t changes;  /* reports so far */
};

struct redis_claim_operation;
struct redis_reap_pass;

enum { REDIS_REAPER_FLEET_MAX = 4096 };

/* redis_state_looks.c and redis_state_reap.c; all times are monotonic. */
struct redis_reaper {
    int64_t *look_at_ms; /* for each shard, when to look at it next */
    int64_t ready_at_ms; /* nothing is reaped before */
    int64_t sweep_at_ms; /* when to look at all shards of this gateway's share */
    int64_t sweep_closely_until_ms;
    bool is_sweep_due;
    uint8_t announced[REDIS_STATE_SHARDS / 8]; /* whose bits this gateway has set */
    int64_t audit_at_ms;
    int64_t check_bits_at_ms;
    unsigned audit_shard;
    uint8_t due[REDIS_STATE_SHARDS / 8]; /* on a cluster, where a scan has found something due */
    bool had_problem;
    bool is_reaping;
    int64_t clock_ahead_ms; /* how far Redis's clock is ahead of our monotonic one; 0: unknown */
    struct redis_reap_pass *told; /* the last pass, until the next one; NULL: none */
    size_t fleet_rank;            /* among the living gateways, and how many these are */
    size_t fleet_count;
    uint64_t fleet_hashes[REDIS_REAPER_FLEET_MAX]; /* of the others' ids, sorted */
};

struct redis_state {
    struct state_store store;
    struct redis_state_options options;
    struct redis_keys keys;
    struct redis_observer observer;
    struct redis_script scripts[REDIS_STATE_SCRIPT_COUNT];
    char gateway_id[GATEWAY_ID_BYTES_MAX];
    char window_text[REDIS_STATE_NUMBER_MAX];
    char grace_text[REDIS_STATE_NUMBER_MAX];
    char instance[REDIS_STATE_INSTANCE_LEN + 1];
    struct slice first_arguments[2]; /* of every script about users: the window and the grace */
    int64_t
        redis_ahead_ms; /* how far Redis's clock was ahead of our wall clock in its last answer */
    size_t pending;
    bool closing; /* freed by its owner; the last answer frees the memory */
    /* redis_state_lease.c */
    struct table lease_queues; /* for each lease, the operation that is pending */
    char requester[9];         /* names this store in the records of requests, at random */
    int64_t request_number;    /* the last one */
    /* redis_state_routes.c */
    struct redis_route_cache route_cache;
    struct list routes_reads; /* operations that are pending */
    size_t late_routes_reads; /* of them, those that nobody was told the remembered routes of */
    size_t route_turn;        /* which user confirms next */
    /* redis_state_gateways.c */
    bool claimed;
    bool fenced;
    bool known; /* Redis had our record when it last answered */
    bool released;
    int64_t registered_until_ms; /* monotonic */
    int64_t refilled_until_ms;   /* likewise: renewals fill the set of our connections anew */
    int64_t put_at_ms;
    int64_t listed_at_ms; /* when the registry was told last, and what; 0: nothing */
    uint64_t listed_hash;
    struct wheel_timer put_timer;
    struct redis_state_record record;
    struct redis_state_rival rival;
    char
        replaced[REDIS_STATE_INSTANCE_LEN + 1]; /* an instance whose process is gone; empty: none */
    struct redis_claim_operation *waiting_claim; /* waits for its next try */
    struct redis_reaper reaper;
    /* redis_state_registry.c */
    struct redis_registry registry;
};

static inline struct slice redis_state_gateway_id(const struct redis_state *state)
{
    return (struct slice){state->gateway_id, state->options.gateway_id.len};
}

struct redis_state *redis_state_of(struct state_store *store);

/* Every command with a completion calls begin() before it is sent and end() when it was answered. end() may free the
 * store. */
void redis_state_begin(struct redis_state *state);
void redis_state_end(struct redis_state *state);

/* Runs a script about users: appends `arguments` to the three that all of these scripts have. `key_user` decides the
 * slot; the other users must be in the same one. */
void redis_state_run(struct redis_state *state, enum redis_state_script script,
                     struct slice key_user, const struct slice *arguments, size_t count,
                     redis_reply_done done, void *arg);

/* Runs any script. Without `done` the reply is ignored. */
void redis_state_eval(struct redis_state *state, enum redis_state_script script,
                      struct redis_args keys, struct redis_args arguments, redis_reply_done done,
                      void *arg);

/* Writes a user as scripts expect it: on a cluster in braces and encoded. */
struct slice redis_state_user_name(const struct redis_state *state, char out[REDIS_KEY_BYTES_MAX],
                                   struct slice user);

struct slice redis_state_number(char out[REDIS_STATE_NUMBER_MAX], int64_t number);

/* Whether this process may write as its gateway. */
bool redis_state_may_write(const struct redis_state *state);

/* Logs an unexpected reply, except for problems of Redis that the client logs. */
void redis_state_log_unexpected(const struct resp_value *reply);

/* Whether a reply is of this type; logs any other reply. NULL means that Redis is out of reach. */
static inline bool redis_state_reply_is(const struct resp_value *reply, enum resp_type type)
{
    bool is = reply && reply->type == type;
    if (!is)
        redis_state_log_unexpected(reply);
    return is;
}

/* Whether a server of a cluster refused a tracked read because the slot has moved, or moves. A command that is not tracked
 * finds it. */
static inline bool redis_state_is_redirection(const struct resp_value *reply)
{
    return reply && (resp_is_error(reply, "MOVED") || resp_is_error(reply, "ASK") ||
                     resp_is_error(reply, "TRYAGAIN") || resp_is_error(reply, "CLUSTERDOWN"));
}

/* Counts and logs foreign values under our keys that a script removed. */
void redis_state_count_mended(struct redis_state *state, int64_t count);

/* ---- redis_state_lease.c ---- */

/* Matches the entries of state->lease_queues. */
bool redis_state_lease_queue_matches(const struct table_node *node, struct slice key);

void redis_state_open(struct state_store *store, const struct lease *lease,
                      state_transition_done done, void *arg);
void redis_state_set_idle(struct state_store *store, struct slice user_id,
                          const struct ulid *conn_id, bool idle, state_transition_done done,
                          void *arg);
void redis_state_close(struct state_store *store, struct slice user_id, const struct ulid *conn_id,
                       state_transition_done done, void *arg);
void redis_state_settle(struct state_store *store, const struct state_claim *claim,
                        state_transition_done done, void *arg);
void redis_state_set_call(struct state_store *store, struct slice user_id, bool in_call,
                          state_transition_done done, void *arg);

/* ---- redis_state_renew.c ---- */

void redis_state_renew(struct state_store *store, struct lease_renewal *renewals, size_t count,
                       state_renewals_done done, void *arg);

/* ---- redis_state_read.c ---- */

void redis_state_read(struct state_store *store, const struct slice *user_ids, size_t count,
                      state_presences_done done, void *arg);

/* ---- redis_state_routes.c ---- */

void redis_state_routes(struct state_store *store, const struct slice *user_ids, size_t count,
                        state_routes_done done, void *arg);

void redis_state_routes_early(struct state_store *store, const struct slice *user_ids, size_t count,
                              state_routes_remembered early, state_routes_done done, void *arg);

/* A key that was read with tracking has changed; SLICE_NONE: any may have. */
void redis_state_routes_on_invalidated(struct redis_state *state, struct slice key);

/* ---- redis_state_explain.c ---- */

void redis_state_leases(struct state_store *store, struct slice user_id, state_leases_done done,
                        void *arg);
void redis_state_find(struct state_store *store, const struct ulid *conn_id, state_lease_done done,
                      void *arg);
void redis_state_forget(struct state_store *store, struct slice user_id, state_forget_done done,
                        void *arg);
void redis_state_history(struct state_store *store, struct slice user_id, state_history_done done,
                         void *arg);

/* ---- redis_state_online.c ---- */

void redis_state_online(struct state_store *store, struct slice after, size_t limit,
                        state_online_done done, void *arg);
void redis_state_count_online(struct state_store *store, state_count_done done, void *arg);

/* ---- redis_state_reap.c ---- */

void redis_state_reap(struct state_store *store, size_t max, state_transitions_done done,
                      void *arg);

/* ---- redis_state_looks.c ---- */

/* Returns false when out of memory. */
bool redis_state_looks_init(struct redis_state *state);
void redis_state_looks_free(struct redis_state *state);

/* Reaps nothing for a window from now; in one shard. */
void redis_state_defer_reaping(struct redis_state *state);
void redis_state_defer_shard(struct redis_state *state, unsigned shard);

/* A lease or a grace of this user may end in so many ms without anybody renewing or closing it. */
void redis_state_expect_end(struct redis_state *state, struct slice user, int64_t in_ms);

/* More is overdue in this shard than one look could end. */
void redis_state_look_again(struct redis_state *state, unsigned shard);

/* The living gateways, as they were read. */
void redis_state_note_fleet(struct redis_state *state, const struct gateway_info *gateways,
                            size_t count);

/* On a cluster: the shards that have ever had a lease, one bit for each. */
#define REDIS_STATE_SHARD_BITS "presence:shards"

/* Sets the shard's bit, unless this gateway has. */
void redis_state_announce_shard(struct redis_state *state, unsigned shard);

/* A sweep is due: looks at all shards of this gateway's share that have a bit; without `bits` at all. */
void redis_state_sweep(struct redis_state *state, struct slice bits);

/* Decides what to look at now. Then whether there is anything, and the shards one after the other, from *next on. */
void redis_state_plan_looks(struct redis_state *state);
bool redis_state_has_look(const struct redis_state *state);
bool redis_state_next_look(struct redis_state *state, unsigned *next, unsigned *shard);

/* A scan has found something due in this shard: look at it. Whether one has; only the first call says so. */
void redis_state_note_due(struct redis_state *state, unsigned shard);
bool redis_state_take_due(struct redis_state *state, unsigned shard);

/* ---- redis_state_gateways.c ---- */

void redis_state_put_gateway(struct state_store *store, const struct gateway_info *info);
void redis_state_gateways_init(struct redis_state *state);
void redis_state_gateways_stop(struct redis_state *state);

/* Redis is available again, and may have lost its data. Puts the record at once: the sooner the store detects a loss,
 * the sooner all leases are registered again. */
void redis_state_gateways_on_available(struct redis_state *state);
void redis_state_gateways_on_server_returned(struct redis_state *state);

/* ---- redis_state_fleet.c ---- */

void redis_state_gateways(struct state_store *store, state_gateways_done done, void *arg);

/* ---- redis_state_registry.c ---- */

/* The gateways by the time at which each counts as dead; what others need to know about each, in the same slot. */
#define REDIS_STATE_GATEWAY_SET SLICE("presence:gateways")
#define REDIS_STATE_GATEWAY_INFOS SLICE("presence:gateway_infos:{presence:gateways}")

/* Writes what the registry has about a gateway: "<started_at_ms> <1 if draining, else 0> <peer_address>". */
enum { REDIS_STATE_INFO_MAX = STATE_PEER_ADDRESS_MAX + 32 };
struct slice redis_state_write_info(char out[REDIS_STATE_INFO_MAX],
                                    const struct gateway_info *info);

void redis_state_list_gateways(struct state_store *store, state_gateways_done done, void *arg);
void redis_state_registry_on_invalidated(struct redis_state *state, struct slice key);
void redis_state_registry_free(struct redis_state *state);

/* ---- redis_state_shards.c ---- */

/* Returns the shard of a user: on a cluster, the slot of the user's keys. */
unsigned redis_state_shard(struct slice user);

/* Writes ":{<tag>}", the end of the names of a shard's keys on a cluster; the tag's slot is the shard. */
enum { REDIS_STATE_SUFFIX_LEN = sizeof(":{@@@@}") - 1 };
struct slice redis_state_shard_suffix(char out[REDIS_STATE_SUFFIX_LEN], unsigned shard);

/* Writes the key "<name>:{<tag>}". */
struct slice redis_state_shard_key(char out[REDIS_KEY_BYTES_MAX], const char *name, unsigned shard);

/* The same on a cluster; `name` itself on a single server, where all users are in shard 0. */
struct slice redis_state_set_key(const struct redis_state *state, char out[REDIS_KEY_BYTES_MAX],
                                 const char *name, unsigned shard);

static inline unsigned redis_state_shard_count(const struct redis_state *state)
{
    return state->keys.cluster ? REDIS_STATE_SHARDS : 1;
}

/* Adds a connection to a gateway's set, with its owner; removes both. Without a gateway only the owner is removed. */
void redis_state_add_connection(struct redis_state *state, struct slice gateway, struct slice conn,
                                struct slice user);
void redis_state_remove_connection(struct redis_state *state, struct slice gateway,
                                   struct slice conn);

/* The key of a slot that never exists. A script that names it as its second key is refused (TRYAGAIN) while the slot moves
 * from one server to another, key by key, and is tried again: on either server it would miss keys, take a user for offline,
 * or write what the other server has. Without a cluster there is none. */
struct slice redis_state_moving_key(const struct redis_state *state, char out[REDIS_KEY_BYTES_MAX],
                                    unsigned shard);

/* Writes the owner of a connection, for REDIS_STATE_OWNER_MS. */
void redis_state_write_owner(struct redis_state *state, struct slice conn, struct slice user);
enum { REDIS_STATE_OWNER_MS = 3600 * 1000 };

/* ---- redis_state_reply.c ---- */

/* The part of a transition script's reply that is about the lease, not about its user. */
struct redis_lease_change {
    int64_t grace_ms;         /* how long the user's grace still lasts; 0: there is none */
    struct slice old_gateway; /* the gateway that no longer has the lease; points into the reply */
    bool has_ended;           /* just now; otherwise the lease was unknown */
    bool is_undecided;        /* of a claim */
};

/* Reads the reply of a transition script. The user's id is `user`, or the reply's own if `user` is empty. `lease` may be
 * NULL. Returns false when the reply is not a transition. */
bool redis_state_parse_transition(struct redis_state *state, const struct resp_value *reply,
                                  struct slice user, struct state_transition *out,
                                  struct redis_lease_change *lease);

/* Reads four items: status, in_call, last_seen and version. */
bool redis_state_parse_presence(const struct redis_state *state, const struct resp_value *items,
                                struct presence *out);

#endif
