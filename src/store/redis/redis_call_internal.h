/*
 * The parts of the call store on Redis:
 *
 *   redis_call.c            the port: operations on one call
 *   redis_call_request.c    requests: prepare, claim, commit (redis_call.h)
 *   redis_call_lifetime.c   renewals and the reaper
 *   redis_call_quiet.c      which shards the reaper may leave out
 *   redis_call_operation.c  operations, scripts and replies, for the other three
 *
 * An operation goes from script to script; each reply decides the next step, and the last one completes the operation,
 * exactly once. The store outlives its operations: once freed by its owner, it ends each of them at its next step with
 * CALL_UNAVAILABLE, and the last one frees the memory.
 */
#ifndef ROLLCALL_STORE_REDIS_REDIS_CALL_INTERNAL_H
#define ROLLCALL_STORE_REDIS_REDIS_CALL_INTERNAL_H

#include "base/list.h"
#include "net/loop.h"
#include "store/redis/redis_call.h"
#include "store/redis/redis_keys.h"
#include "store/redis/redis_store.h"

enum {
    REDIS_CALL_CLAIM_BYTES_MAX = ULID_TEXT_LEN + CALL_ID_BYTES_MAX,
    REDIS_CALL_INDEX_MAX = 24,
};

/* What is known of a shard's index; redis_call_quiet.c. */
struct redis_call_shard {
    struct redis_call_backend *calls;
    uint64_t empty_tracking; /* redis_tracking() under which it was empty; 0: nothing is known */
    int64_t empty_until_ms;  /* monotonic */
    uint64_t read_tracking;  /* of the read under way; 0: none */
    int64_t read_at_ms;      /* not before */
    bool has_changed;        /* since the read was sent */
};

struct redis_call_backend {
    struct call_store store;
    struct redis_observer observer;
    struct redis_call_shard shards[REDIS_CALL_SHARDS];
    struct redis_call_options options;
    struct redis_keys keys;
    struct redis_script call_script;
    struct redis_script claim_script;
    size_t pending;
    struct list paused; /* operations between two checks */
    bool is_reaping;    /* one pass at a time */
    bool is_freed;
};

/* A user's claim: a random nonce, followed by the call's id. */
struct call_claim {
    size_t len; /* 0: no claim */
    char bytes[REDIS_CALL_CLAIM_BYTES_MAX];
};

enum { CALL_SIDES = 2 }; /* caller, callee */

/* The slices point to memory behind the struct. */
struct call_operation {
    struct redis_call_backend *calls;
    call_answer_done done;
    call_device_lost on_lost; /* for a renewal, instead of `done` */
    void *arg;
    const char *verb; /* the script's operation */
    struct slice id;  /* SLICE_NONE: the call that the user is in */
    struct slice user;
    struct slice device;
    struct slice callee;
    struct ulid conn_id;
    char conn[ULID_TEXT_LEN];
    struct call_claim claim; /* a request's own claim; otherwise the user's current one */
    /* For requests only: */
    struct call_claim other_claim;      /* another call's claim that is in the way */
    struct call_claim dead[CALL_SIDES]; /* claims whose calls were found dead */
    size_t order[CALL_SIDES];           /* sides, the smaller user id first */
    size_t side_count;
    size_t next_side; /* index into `order` */
    size_t checks;
    bool unheard; /* the callee's claim is not taken */
    bool prepared;
    struct list place;        /* in calls->paused */
    struct wheel_timer pause; /* until the next check */
};

struct redis_call_backend *redis_call_backend_of(struct call_store *store);

/* ---- operations ---- */

/* Copies the plan with its ids. Returns NULL when out of memory. */
struct call_operation *call_operation_make(struct redis_call_backend *calls,
                                           const struct call_operation *plan);

/* Completes the operation and frees it. */
void call_operation_finish(struct call_operation *operation, enum call_result result,
                           const struct call *call);

/* A completion for the last script of an operation, which is `arg`: finishes it with the reply's result. */
void call_operation_on_reply(void *arg, const struct resp_value *reply);

/* Reads the user's claim from the reply. Returns false when there is none; the operation is finished then. */
bool call_operation_read_claim(struct call_operation *operation, const struct resp_value *reply);

/* Marks something as pending that has no operation; its completion calls redis_calls_end(). */
void redis_calls_begin(struct redis_call_backend *calls);
void redis_calls_end(struct redis_call_backend *calls);

/* A completion for scripts whose reply does not matter; `arg` is the store. */
void redis_calls_on_ignored_reply(void *arg, const struct resp_value *reply);

/* ---- scripts ---- */

enum { CALL_ARGUMENTS_MAX = 6 };

/* Runs an operation on the record of a call. */
void redis_call_run(struct redis_call_backend *calls, const char *verb, struct slice id,
                    struct redis_args arguments, redis_reply_done done, void *arg);

/* Runs an operation on the index of a shard. Its first argument is the prefix of the shard's record keys. */
void redis_call_run_shard(struct redis_call_backend *calls, const char *verb, size_t shard,
                          struct redis_args arguments, redis_reply_done done, void *arg);

/* Runs an operation on a user's claim. */
void redis_call_run_claim(struct redis_call_backend *calls, struct slice user,
                          struct redis_args arguments, redis_reply_done done, void *arg);

/* The call in the reply has ended, and this gateway notifies the parties: removes the claims, and removes the call from
 * the reaper's index. */
void redis_call_acknowledge_end(struct redis_call_backend *calls, const struct resp_value *reply);

size_t redis_call_shard_count(const struct redis_call_backend *calls);

/* Writes the key of a shard's index, which has its calls by the time at which the reaper must look at them. */
struct slice redis_call_index_key(const struct redis_call_backend *calls,
                                  char out[REDIS_CALL_INDEX_MAX], size_t shard);
int64_t redis_call_claim_ttl_ms(const struct redis_call_backend *calls);

/* ---- replies ---- */

/* The first item of a reply; SLICE_NONE when the reply is malformed. */
struct slice redis_call_reply_result(const struct resp_value *reply);

/* Reads the call in a reply, pointing into the reply. Returns false when there is none. */
bool redis_call_parse_reply(const struct resp_value *reply, struct call *call);

/* Reads a claim; len is 0 when the user has none. Returns false when the reply is malformed. */
bool redis_call_parse_claim(const struct resp_value *reply, struct call_claim *claim);

struct slice call_claim_value(const struct call_claim *claim);
struct slice call_claim_nonce(const struct call_claim *claim);
struct slice call_claim_call_id(const struct call_claim *claim);

/* ---- the other parts ---- */

void redis_call_request(struct call_operation *operation);

/* The store is being freed: ends the operations that wait only for a timer. */
void redis_call_end_paused(struct redis_call_backend *calls);
void redis_call_renew(struct call_store *store, const struct call_device *devices, size_t count,
                      call_device_lost on_lost, void *arg);
void redis_call_reap(struct call_store *store, size_t max, call_reap_done done, void *arg);

/* ---- redis_call_quiet.c ---- */

void redis_call_quiet_init(struct redis_call_backend *calls);

/* Whether the shard certainly has no call. If that is unknown, asks Redis, for later. */
bool redis_call_shard_is_quiet(struct redis_call_backend *calls, size_t number);

#endif
