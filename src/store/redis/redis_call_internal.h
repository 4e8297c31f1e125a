/*
 * What the parts of the call store on Redis share: the port, errands and how they run scripts.
 *
 * An errand is one call of the port under way. It goes from script to script, each with a step that takes the
 * reply, and ends with exactly one answer. The port outlives its errands: freed before, it makes them end at
 * their next step, unavailable.
 */
#ifndef ROLLCALL_STORE_REDIS_REDIS_CALL_INTERNAL_H
#define ROLLCALL_STORE_REDIS_REDIS_CALL_INTERNAL_H

#include "base/list.h"
#include "net/loop.h"
#include "store/redis/redis_call.h"
#include "store/redis/redis_keys.h"

enum {
    REDIS_CALL_CLAIM_BYTES_MAX = ULID_TEXT_LEN + CALL_ID_BYTES_MAX,
};

struct call_port {
    struct call_store store;
    struct redis_call_options options;
    struct redis_keys keys;
    struct redis_script calls;
    struct redis_script claims;
    size_t errands;
    struct list paused; /* errands between two looks */
    bool reaps;         /* one pass at a time */
    bool is_freed;
};

/* What a user's claim says: the random part, and the call's id behind it. */
struct call_claim {
    size_t len; /* 0: nothing */
    char bytes[REDIS_CALL_CLAIM_BYTES_MAX];
};

enum { CALL_SIDES = 2 }; /* caller, callee */

/* Slices point behind the struct. */
struct call_errand {
    struct call_port *port;
    call_answer_done done;
    call_device_lost lost; /* of a renewal, instead */
    void *arg;
    const char *operation; /* of the script */
    struct slice id;       /* SLICE_NONE: the one the user is in */
    struct slice user;
    struct slice device;
    struct slice callee;
    struct ulid conn_id;
    char conn[ULID_TEXT_LEN];
    struct call_claim claim; /* the errand's own, or the user's */
    /* Of requests: */
    struct call_claim found;            /* stands in the way */
    struct call_claim dead[CALL_SIDES]; /* was found to be nothing */
    size_t order[CALL_SIDES];           /* the lesser user's side first */
    size_t side_count;
    size_t next_side; /* in `order` */
    size_t looks;
    bool prepared;
    struct list place;        /* of those paused */
    struct wheel_timer pause; /* until the next look */
};

/* ---- errands ---- */

/* A copy, ids included; NULL when memory is short. */
struct call_errand *call_errand_make(struct call_port *port, const struct call_errand *plan);

/* Answers, and frees. */
void call_errand_end(struct call_errand *errand, enum call_result result, const struct call *call);

/* The same with what a script's reply says. */
void call_errand_end_with(struct call_errand *errand, const struct resp_value *reply);

/* Something is under way for the port without an errand; its completion calls call_port_let_go(). */
void call_port_hold(struct call_port *port);
void call_port_let_go(struct call_port *port);

/* ---- scripts ---- */

enum { CALL_WORDS_OWN_MAX = 6 };

/* Runs an operation on the record of a call. */
void call_run(struct call_port *port, const char *operation, struct slice id, struct redis_args own,
              void (*done)(void *arg, const struct resp_value *reply), void *arg);

/* Runs an operation on the index of a shard, with what stands before its calls' ids as first word. */
void call_run_shard(struct call_port *port, const char *operation, size_t shard,
                    struct redis_args own, void (*done)(void *arg, const struct resp_value *reply),
                    void *arg);

/* Runs an operation on a user's claim. */
void call_run_claim(struct call_port *port, struct slice user, struct redis_args words,
                    void (*done)(void *arg, const struct resp_value *reply), void *arg);

/* A call ended and this gateway knows: neither claims nor the reaper need to think of it any more. */
void call_settle(struct call_port *port, const struct resp_value *shown);

size_t call_shard_count(const struct call_port *port);
int64_t call_claim_ttl_ms(const struct call_port *port);

/* ---- replies ---- */

/* The first word of a reply; SLICE_NONE for what makes no sense. */
struct slice call_reply_result(const struct resp_value *reply);

/* The call a reply shows, pointing into it. False: it shows none. */
bool call_reply_show(const struct resp_value *reply, struct call *call);

/* A claim as a reply has it: false for what makes no sense; with len 0 there is none. */
bool call_reply_claim(const struct resp_value *reply, struct call_claim *claim);

/* Takes the claim that was read for an errand; false: there is none, and the errand has been ended. */
bool call_errand_take_claim(struct call_errand *errand, const struct resp_value *reply);

struct slice call_claim_text(const struct call_claim *claim);
struct slice call_claim_key(const struct call_claim *claim); /* the random part */
struct slice call_claim_id(const struct call_claim *claim);

/* ---- what the port does ---- */

void call_request_start(struct call_errand *errand);

/* The port is being freed: those that wait for nothing but time end now. */
void call_request_end_paused(struct call_port *port);
void call_renew_start(struct call_port *port, const struct call_device *devices, size_t count,
                      call_device_lost lost, void *arg);
void call_reap_start(struct call_port *port, size_t max, call_reap_done done, void *arg);

#endif
