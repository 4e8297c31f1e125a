/*
 * Verifies tokens at a bounded rate: at most `per_turn` a turn of the loop, in the order they came, so
 * that a storm of reconnects cannot stall those who are connected. The queue is bounded too; what does
 * not fit is refused at once and the peer told to come back.
 *
 * One per worker. The owner calls verifier_run() once a turn while verifier_pending().
 */
#ifndef ROLLCALL_AUTH_VERIFIER_H
#define ROLLCALL_AUTH_VERIFIER_H

#include "auth/jwt.h"
#include "base/clock.h"

#include <stdbool.h>
#include <stddef.h>

struct verification;

struct verifier {
    struct key_set *keys; /* one reference; replaced by verifier_use() */
    struct jwt_policy policy;
    size_t per_turn;
    size_t pending_max;
    size_t pending;
    struct verification *first;
    struct verification **end;
};

/* Takes the reference to `keys`. The policy's slices are borrowed for the verifier's life. */
void verifier_init(struct verifier *verifier, struct key_set *keys, const struct jwt_policy *policy,
                   size_t per_turn, size_t pending_max);

/* Answers what is pending with JWT_UNKNOWN_KEY and lets the keys go. */
void verifier_free(struct verifier *verifier);

/* Rotation: takes a reference to other keys for all that comes after. */
void verifier_use(struct verifier *verifier, struct key_set *keys);

/* Copies the token; `done` runs in a later verifier_run(), exactly once; it gets an identity if
 * jwt_result_names_user(). False: the queue is full or memory is short, and `done` never runs. */
bool verifier_submit(struct verifier *verifier, struct slice token,
                     void (*done)(void *arg, enum jwt_result result,
                                  const struct identity *identity),
                     void *arg);

/* Verifies some. True when more wait. */
bool verifier_run(struct verifier *verifier, const struct clock *clock);

#endif
