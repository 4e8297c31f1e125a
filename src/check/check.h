/*
 * Checks the invariants of the design (routing, presence, privacy) on a live Redis, or on every master of a
 * cluster, without disturbing it: SCAN in pages of CHECK_PAGE_KEYS, so many keys a second at most, read-only
 * scripts, and nothing kept of what is in order.
 *
 * Suspicions are looked at again, CHECK_ROUNDS times in all, until the patience ends, or none is left. What a
 * crash leaves behind may stand for a lease window and a second, so the patience is a little longer than that.
 * What is found every time is a violation. Of more suspicions than can be kept (violations.h) none can be called
 * in order: where all that were kept have passed, the check was not completed.
 */
#ifndef ROLLCALL_CHECK_CHECK_H
#define ROLLCALL_CHECK_CHECK_H

#include "check/check_key.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CHECK_PAGE_KEYS = 100,
    CHECK_ROUNDS = 6,
    CHECK_PATIENCE_EXTRA_MS = 2000, /* beyond the window, unless told otherwise */
    CHECK_KEYS_A_SECOND = 5000,     /* likewise */
    CHECK_WINDOW_MS = 15000,        /* where no gateway says it */
    CHECK_WINDOW_MS_MAX = 3600000,
    CHECK_GATEWAYS_MAX = 1024, /* that are asked */
};

struct check {
    struct check_context context;
    size_t keys_a_second;
    int64_t patience_ms; /* 0: a little longer than the window */
    size_t keys;         /* ours */
    size_t foreign;      /* keys of no kind of ours */
    char cursor[24];
    size_t page_keys;
};

/* Looks at everything. The caller has set context.errand and keys_a_second, and where it knows them
 * context.window_ms (else it is the longest that a living gateway has in its record) and patience_ms; the
 * rest is zero. False: it could not be completed, context.why says why. */
bool check_run(struct check *check);

#endif
