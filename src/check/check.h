/*
 * Checks the invariants of the design (routing, presence, privacy) on a live Redis server, or on every master of
 * a cluster, without disturbing it: it scans pages of CHECK_PAGE_KEYS keys at a limited rate, runs read-only
 * scripts, and keeps only what looks wrong.
 *
 * A key that breaks an invariant is only suspicious at first: it is checked again, CHECK_ROUNDS times in all,
 * until the patience ends or no suspicion is left. A crash may leave things behind for a lease window and a
 * second, so the patience is a little longer than that. A finding of every round is a violation. Suspicions
 * beyond the bound (violations.h) are never checked again, so if all kept ones pass, the check is incomplete.
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
    CHECK_PATIENCE_EXTRA_MS = 2000, /* beyond the window, by default */
    CHECK_KEYS_A_SECOND = 5000,     /* by default */
    CHECK_WINDOW_MS = 15000,        /* if no gateway reports one */
    CHECK_WINDOW_MS_MAX = 3600000,
    CHECK_GATEWAYS_MAX = 1024, /* whose window is read */
};

struct check {
    struct check_context context;
    size_t keys_a_second;
    int64_t patience_ms;    /* 0: CHECK_PATIENCE_EXTRA_MS longer than the window */
    size_t keys;            /* of a kind that Rollcall uses */
    size_t foreign;         /* keys of other applications */
    char scan_position[24]; /* where the next SCAN continues */
    size_t page_keys;
};

/* Runs the whole check. The caller sets context.redis and keys_a_second, and context.window_ms and patience_ms if
 * they are known; everything else is zero. The default window is the longest one in a living gateway's record.
 * Returns false if the check could not be completed; context.why has the reason. */
bool check_run(struct check *check);

#endif
