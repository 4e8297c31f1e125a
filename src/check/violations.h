/*
 * The findings of a check. A live system changes while it is checked, so a finding is only a suspicion at
 * first. Each is checked again, and only what is found every time is a violation.
 *
 *   SEARCHING    violations_add() keeps what is new
 *   CONFIRMING   violations_add() marks what is known; violations_drop_unseen() drops what was not found again
 *
 * Texts are copied. At most VIOLATIONS_MAX are kept; more are only counted. One thread.
 */
#ifndef ROLLCALL_CHECK_VIOLATIONS_H
#define ROLLCALL_CHECK_VIOLATIONS_H

#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { VIOLATIONS_MAX = 1000, VIOLATION_TEXT_BYTES_MAX = 1024 };

struct violation {
    char *key; /* the checked key, to be checked again; `key_len` bytes */
    size_t key_len;
    char *text; /* "invariant: what is wrong", safe to print on a terminal */
    bool seen;
};

struct violations {
    struct violation items[VIOLATIONS_MAX];
    size_t count;
    size_t more; /* not kept: beyond the bound or out of memory */
    bool confirming;
};

/* Adds that the check of `key` found `what` to break the invariant. */
void violations_add(struct violations *violations, struct slice key, struct slice invariant,
                    struct slice what);

/* Begins a round of confirming, in which nothing is seen yet. */
void violations_confirm(struct violations *violations);
void violations_drop_unseen(struct violations *violations);

/* Prints one line for each of the first `limit`, and one line for the rest. */
void violations_print(const struct violations *violations, size_t limit, FILE *out);

void violations_free(struct violations *violations);

#endif
