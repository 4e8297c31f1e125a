/*
 * Checks one key of a live Redis: finds its kind and tests the invariants of that kind.
 *
 * A check runs a read-only script (EVAL_RO), so it sees everything that belongs together at one instant, and
 * Redis guarantees that nothing is written. Keys in other slots of a cluster are read afterwards. Checks run
 * concurrently; the caller bounds their number and waits for them (blocking_redis.h).
 */
#ifndef ROLLCALL_CHECK_CHECK_KEY_H
#define ROLLCALL_CHECK_CHECK_KEY_H

#include "base/slice.h"
#include "check/blocking_redis.h"
#include "check/violations.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct check_context {
    struct blocking_redis *redis;
    int64_t window_ms;
    struct violations violations;
    size_t users;
    size_t connections;
    bool failed; /* something could not be checked; `why` has the first reason */
    char why[BLOCKING_REDIS_WHY_MAX];
};

/* Starts the check of a key. Returns false if the key is of no kind that Rollcall uses. */
bool check_key_start(struct check_context *context, struct slice key);

/* Marks the check as incomplete, for the reason in `reply` (NULL: no answer). Only the first reason is kept. */
void check_fail(struct check_context *context, const struct resp_value *reply);

#endif
