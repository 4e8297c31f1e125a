/*
 * The recovery store on Redis, for the files it is made of:
 *
 *   redis_recovery.c         parking, appending, life
 *   redis_recovery_taking.c  sessions that are being taken, and what arrives meanwhile
 */
#ifndef ROLLCALL_STORE_REDIS_REDIS_RECOVERY_INTERNAL_H
#define ROLLCALL_STORE_REDIS_REDIS_RECOVERY_INTERNAL_H

#include "base/list.h"
#include "store/redis/redis_keys.h"
#include "store/redis/redis_recovery.h"

/* In Redis a number is so many hexadecimal digits, and an event its offset, its id and its frames. */
enum { REDIS_RECOVERY_HEX_DIGITS = 16, REDIS_RECOVERY_EVENT_HEAD = 2 * REDIS_RECOVERY_HEX_DIGITS };

struct redis_recovery_hex {
    char text[REDIS_RECOVERY_HEX_DIGITS + 1];
};

/* A user of whom late events may come. */
struct redis_recovery_lately {
    uint64_t user_hash;
    int64_t until_ms;
};

struct redis_recovery {
    struct recovery_store store;
    struct redis_recovery_options options;
    struct redis_keys keys;
    struct redis_script script; /* of what is under way too: see `errands` */
    struct redis_observer listener;
    size_t errands;
    bool is_freed;
    int64_t disturbed_at_ms; /* -1: never */
    int64_t lately_until_ms; /* when the last of them has passed */
    struct redis_recovery_lately lately[REDIS_RECOVERY_LATELY_MAX];
    struct list takings; /* redis_recovery_taking.c */
};

struct redis_recovery *redis_recovery_of(struct recovery_store *store);

int64_t redis_recovery_now_ms(const struct redis_recovery *recovery);

/* Runs an operation of the script on a user's sessions. `done` calls redis_recovery_end(), after which the store
 * may be gone. */
void redis_recovery_run(struct redis_recovery *recovery, struct slice user_id,
                        struct redis_args words,
                        void (*done)(void *arg, const struct resp_value *reply), void *arg);
void redis_recovery_end(struct redis_recovery *recovery);

/* Late events of this user may come from now on. */
void redis_recovery_note_lately(struct redis_recovery *recovery, struct slice user_id);

struct slice redis_recovery_write_hex(struct redis_recovery_hex *hex, uint64_t number);

/* ---- redis_recovery_taking.c ---- */

void redis_recovery_take(struct recovery_store *store, struct slice user_id, struct slice pid,
                         uint64_t offset, recovery_take_done done, void *arg);

/* An event arrived for a user: it joins what is being taken. */
void redis_recovery_hold(struct redis_recovery *recovery, struct slice user_id,
                         const struct recovery_event *event);

/* Tells whoever waits that there is nothing to recover. */
void redis_recovery_give_up(struct redis_recovery *recovery);

#endif
