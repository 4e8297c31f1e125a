/*
 * What a check found, and what of it stays: a live system is always in the middle of something, so what is
 * seen once is a suspicion. Each is looked at again; only what is found every time is a violation.
 *
 *   SEARCHING    violations_add() takes down what is new
 *   CONFIRMING   it marks what is known; violations_drop_unseen() forgets what was not found again
 *
 * Texts are copied. Bounded by VIOLATIONS_MAX; what is beyond is only counted. One thread.
 */
#ifndef ROLLCALL_CHECK_VIOLATIONS_H
#define ROLLCALL_CHECK_VIOLATIONS_H

#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { VIOLATIONS_MAX = 1000, VIOLATION_TEXT_BYTES_MAX = 1024 };

struct violation {
    char *key; /* what was looked at, and must be looked at again; `key_len` bytes */
    size_t key_len;
    char *text; /* "invariant: what is wrong", for a terminal */
    bool seen;
};

struct violations {
    struct violation items[VIOLATIONS_MAX];
    size_t count;
    size_t more; /* beyond the bound, or when memory was short */
    bool confirming;
};

/* `key` was being looked at when `what` was found to break the invariant. */
void violations_add(struct violations *violations, struct slice key, struct slice invariant,
                    struct slice what);

/* Begins a round: nothing is seen yet. */
void violations_confirm(struct violations *violations);
void violations_drop_unseen(struct violations *violations);

/* One line for each of the first `limit`, and one for the rest. */
void violations_print(const struct violations *violations, size_t limit, FILE *out);

void violations_free(struct violations *violations);

#endif
