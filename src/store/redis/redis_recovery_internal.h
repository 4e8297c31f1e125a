/*
 * The parts of the recovery store on Redis:
 *
 *   redis_recovery.c       parking and appending; making and freeing the store
 *   redis_recovery_take.c  taking a session
 */
#ifndef ROLLCALL_STORE_REDIS_REDIS_RECOVERY_INTERNAL_H
#define ROLLCALL_STORE_REDIS_REDIS_RECOVERY_INTERNAL_H

#include "store/recovery_local.h"
#include "store/redis/redis_keys.h"
#include "store/redis/redis_recovery.h"
#include "store/redis/redis_store.h"

/* In Redis a number has this many hexadecimal digits. An event is its offset, its id and its frames. */
enum { REDIS_RECOVERY_HEX_DIGITS = 16, REDIS_RECOVERY_EVENT_HEAD = 2 * REDIS_RECOVERY_HEX_DIGITS };

struct redis_recovery_hex {
    char text[REDIS_RECOVERY_HEX_DIGITS + 1];
};

struct redis_recovery {
    struct recovery_store store;
    struct redis_recovery_options options;
    struct redis_keys keys;
    struct redis_script script;
    struct redis_observer observer;
    size_t pending; /* scripts; the last one frees a store that its owner has freed */
    bool is_freed;
    int64_t invalidated_at_ms; /* events may have been missed until then; -1: never */
    struct recovery_local local;
};

struct redis_recovery *redis_recovery_of(struct recovery_store *store);

int64_t redis_recovery_now_ms(const struct redis_recovery *recovery);

/* Runs an operation of the script on a user's sessions. `done` must call redis_recovery_end(), which may free the
 * store. */
void redis_recovery_run(struct redis_recovery *recovery, struct slice user_id,
                        struct redis_args arguments, redis_reply_done done, void *arg);
void redis_recovery_end(struct redis_recovery *recovery);

struct slice redis_recovery_write_hex(struct redis_recovery_hex *hex, uint64_t number);

/* ---- redis_recovery_take.c ---- */

void redis_recovery_take(struct recovery_store *store, struct slice user_id, struct slice pid,
                         uint64_t offset, recovery_take_done done, void *arg);

#endif
