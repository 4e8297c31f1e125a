/*
 * The state store in Redis, for the files it is made of:
 *
 *   redis_state.c           what they share: life, scripts, availability
 *   redis_state_lease.c     one lease: open, idle, close; calls
 *   redis_state_renew.c     many leases at a time
 *   redis_state_look.c      presence and routes of many users
 *   redis_state_explain.c   leases and past of one
 *   redis_state_reap.c      what ran out
 *   redis_state_gateways.c  this gateway's record; claims and fencing
 *   redis_state_fleet.c     everybody's
 *   redis_state_shards.c    what a cluster keeps beside the scripts
 *   redis_state_reply.c     what scripts answer
 */
#ifndef ROLLCALL_STORE_REDIS_STATE_REDIS_STATE_INTERNAL_H
#define ROLLCALL_STORE_REDIS_STATE_REDIS_STATE_INTERNAL_H

#include "base/buffer.h"
#include "base/table.h"
#include "store/redis/redis_keys.h"
#include "store/redis/state/redis_state.h"
#include "store/redis/state/redis_state_scripts.h"

enum {
    REDIS_STATE_NUMBER_MAX = 24,
    REDIS_STATE_INSTANCE_LEN = 32,
    REDIS_STATE_ARGUMENTS_MAX = 400, /* of a script, its own */
};

/* A gateway's record as it was put last. */
struct redis_state_record {
    struct gateway_info info;
    char gateway_id[GATEWAY_ID_BYTES_MAX];
    char peer_address[STATE_PEER_ADDRESS_MAX];
};

/* The process whose record was in the way of ours, as it was seen last. */
struct redis_state_holder {
    bool seen;
    int64_t until_ms; /* by then the record of a dead one has lapsed */
    int64_t answered_at_ms;
    int64_t left_ms; /* of its record, then */
};

struct claiming;
struct reaping;

struct redis_state {
    struct state_store store;
    struct redis_state_options options;
    struct redis_keys keys;
    struct redis_observer listener;
    struct redis_script scripts[REDIS_STATE_SCRIPT_COUNT];
    char gateway_id[GATEWAY_ID_BYTES_MAX];
    char window_text[REDIS_STATE_NUMBER_MAX];
    char grace_text[REDIS_STATE_NUMBER_MAX];
    char instance[REDIS_STATE_INSTANCE_LEN + 1];
    struct slice first_arguments[3]; /* of every script about users */
    int64_t redis_ahead_ms;          /* of our wall clock, when it answered last */
    size_t under_way;
    bool closing; /* freed by its owner; goes with the last answer */
    /* redis_state_lease.c */
    struct table turns; /* of each lease the call that is under way */
    /* redis_state_gateways.c */
    bool claimed;
    bool fenced;
    bool known; /* our record was there when we looked last */
    bool released;
    int64_t registered_until_ms; /* monotonic */
    int64_t put_at_ms;
    struct wheel_timer put_timer;
    struct redis_state_record record;
    struct redis_state_holder holder;
    struct claiming *claiming; /* waits for its next look */
    /* redis_state_reap.c */
    int64_t reap_after_ms; /* monotonic */
    bool reaping;
    struct reaping *reapings[REDIS_STATE_SHARDS]; /* the one under way, for each shard's answer */
};

static inline struct slice redis_state_gateway_id(const struct redis_state *state)
{
    return (struct slice){state->gateway_id, state->options.gateway_id.len};
}

struct redis_state *redis_state_of(struct state_store *store);

/* Every command that somebody waits for: begin before it is sent, end when it was answered. After end() the
 * store may be gone. */
void redis_state_begin(struct redis_state *state);
void redis_state_end(struct redis_state *state);

/* Runs a script about users with arguments of its own behind the first three. `key_user` decides where. */
void redis_state_run(struct redis_state *state, enum redis_state_script script,
                     struct slice key_user, const struct slice *arguments, size_t count,
                     void (*done)(void *arg, const struct resp_value *reply), void *arg);

/* Runs any script. */
void redis_state_eval(struct redis_state *state, enum redis_state_script script,
                      struct redis_args keys, struct redis_args arguments,
                      void (*done)(void *arg, const struct resp_value *reply), void *arg);

/* A user as scripts know it: on a cluster in braces, and encoded. */
struct slice redis_state_name(const struct redis_state *state, char out[REDIS_KEY_BYTES_MAX],
                              struct slice user);

struct slice redis_state_number(char out[REDIS_STATE_NUMBER_MAX], int64_t number);

/* Whether this process may write as its gateway. */
bool redis_state_may_write(const struct redis_state *state);

/* Logs a reply that was not expected; NULL (out of reach) is told elsewhere. */
void redis_state_log_other(const struct resp_value *reply);

/* Whether a reply is of this type; logs what else it is. NULL: out of reach. */
static inline bool redis_state_is(const struct resp_value *reply, enum resp_type type)
{
    bool is = reply && reply->type == type;
    if (!is)
        redis_state_log_other(reply);
    return is;
}

/* Something under our keys was not ours, and is gone. */
void redis_state_mended(struct redis_state *state, int64_t count);

/* ---- redis_state_lease.c ---- */

/* For state->turns. */
bool redis_state_turn_matches(const struct table_node *node, struct slice key);

void redis_state_open(struct state_store *store, const struct lease *lease,
                      state_transition_done done, void *arg);
void redis_state_set_idle(struct state_store *store, struct slice user_id,
                          const struct ulid *conn_id, bool idle, state_transition_done done,
                          void *arg);
void redis_state_close(struct state_store *store, struct slice user_id, const struct ulid *conn_id,
                       state_transition_done done, void *arg);
void redis_state_set_call(struct state_store *store, struct slice user_id, bool in_call,
                          state_transition_done done, void *arg);

/* ---- redis_state_renew.c ---- */

void redis_state_renew(struct state_store *store, struct lease_renewal *renewals, size_t count,
                       state_renewals_done done, void *arg);

/* ---- redis_state_look.c ---- */

void redis_state_read(struct state_store *store, const struct slice *user_ids, size_t count,
                      state_presences_done done, void *arg);
void redis_state_routes(struct state_store *store, const struct slice *user_ids, size_t count,
                        state_routes_done done, void *arg);

/* ---- redis_state_explain.c ---- */

void redis_state_leases(struct state_store *store, struct slice user_id, state_leases_done done,
                        void *arg);
void redis_state_find(struct state_store *store, const struct ulid *conn_id, state_lease_done done,
                      void *arg);
void redis_state_history(struct state_store *store, struct slice user_id, state_history_done done,
                         void *arg);

/* ---- redis_state_reap.c ---- */

void redis_state_reap(struct state_store *store, size_t max, state_transitions_done done,
                      void *arg);

/* Nothing is reaped for a window from now. */
void redis_state_hold_off(struct redis_state *state);

/* ---- redis_state_gateways.c ---- */

void redis_state_put_gateway(struct state_store *store, const struct gateway_info *info);
void redis_state_gateways_init(struct redis_state *state);
void redis_state_gateways_stop(struct redis_state *state);

/* Redis is back, perhaps without its memory: the sooner that shows, the sooner all is registered again. */
void redis_state_gateways_return(struct redis_state *state);

/* ---- redis_state_fleet.c ---- */

void redis_state_gateways(struct state_store *store, state_gateways_done done, void *arg);

/* ---- redis_state_shards.c ---- */

/* Which shard a user is in. */
unsigned redis_state_shard(struct slice user);

/* The keys "<name>:{<shard>}". */
struct slice redis_state_shard_key(char out[REDIS_KEY_BYTES_MAX], const char *name, unsigned shard);

/* "<conn>:<user>"; without a connection the end of the user's grace. */
enum { REDIS_STATE_MEMBER_MAX = ULID_TEXT_LEN + 1 + USER_ID_BYTES_MAX };
struct slice redis_state_member(char out[REDIS_STATE_MEMBER_MAX], struct slice conn,
                                struct slice user);

/* Enters a member for so many ms from now, or takes it out (ms < 0). `done` may be NULL. */
void redis_state_index(struct redis_state *state, struct slice conn, struct slice user, int64_t ms,
                       void (*done)(void *arg, const struct resp_value *reply), void *arg);

/* Tells the sets of those who are online and in a call. `done` may be NULL. */
void redis_state_crowd(struct redis_state *state, const struct presence *presence,
                       void (*done)(void *arg, const struct resp_value *reply), void *arg);

/* A connection is with a gateway, and whose it is; or is gone. */
void redis_state_hold(struct redis_state *state, struct slice gateway, struct slice conn,
                      struct slice user);
void redis_state_let_go(struct redis_state *state, struct slice gateway, struct slice conn);

/* Says again whose a connection is; see REDIS_STATE_OWNER_MS. */
void redis_state_tell_owner(struct redis_state *state, struct slice conn, struct slice user);
enum { REDIS_STATE_OWNER_MS = 3600 * 1000 };

/* ---- redis_state_reply.c ---- */

/* Reads what a transition script answers. The user's id is `user`, or the reply's own when that is empty. False:
 * it is none. */
bool redis_state_read_transition(struct redis_state *state, const struct resp_value *reply,
                                 struct slice user, struct state_transition *out);

/* How long the user lingers, the gateway that no longer holds a lease, and whether that has ended now (else it was
 * unknown); of a reply that was read. */
int64_t redis_state_lingers_ms(const struct resp_value *reply);
struct slice redis_state_left_gateway(const struct resp_value *reply);
bool redis_state_has_ended(const struct resp_value *reply);

/* Status, in_call, last_seen and version, beginning at an item. */
bool redis_state_read_presence(const struct redis_state *state, const struct resp_value *items,
                               struct presence *out);

#endif
