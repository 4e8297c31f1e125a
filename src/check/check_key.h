/*
 * A look at one key of a live Redis: which kind of key it is, what must hold for it, and whether that does.
 *
 * A look is a script that writes nothing (EVAL_RO), so that what belongs together is seen at one instant and
 * Redis itself vouches that nothing is disturbed. What lies in other slots of a cluster is asked afterwards.
 * Looks run side by side; the caller bounds how many and waits for them (blocking_redis.h).
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
    struct blocking_redis *errand;
    int64_t window_ms;
    struct violations violations;
    size_t users;
    size_t connections;
    bool failed; /* something could not be looked at; `why` says what came first */
    char why[BLOCKING_REDIS_WHY_MAX];
};

/* Starts a look. False: the key is of no kind of ours. */
bool check_key_start(struct check_context *context, struct slice key);

/* The check cannot be completed. Only the first reason is kept. */
void check_fail(struct check_context *context, const struct resp_value *reply);

#endif
