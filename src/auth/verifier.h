/*
 * Verifies tokens at a bounded rate: at most `per_turn` in a turn of the loop, in the order of
 * submission, so that a storm of reconnects cannot stall established connections. The queue is
 * bounded too: a token that does not fit is refused at once, and the client is told to retry.
 *
 * One per worker. Its owner calls verifier_run() once a turn while it returns true.
 */
#ifndef ROLLCALL_AUTH_VERIFIER_H
#define ROLLCALL_AUTH_VERIFIER_H

#include "auth/jwt.h"
#include "base/clock.h"

#include <stdbool.h>
#include <stddef.h>

struct verification;

/* Receives the result; `identity` is NULL unless jwt_result_names_user(). */
typedef void (*verifier_done)(void *arg, enum jwt_result result, const struct identity *identity);

struct verifier {
    struct key_set *keys; /* one reference; verifier_use() replaces it */
    struct jwt_policy policy;
    size_t per_turn;
    size_t pending_max;
    size_t pending;
    struct verification *first;
    struct verification **end;
};

/* Takes the reference to `keys`. Borrows the slices of the policy until verifier_free(). */
void verifier_init(struct verifier *verifier, struct key_set *keys, const struct jwt_policy *policy,
                   size_t per_turn, size_t pending_max);

/* Completes pending verifications with JWT_UNKNOWN_KEY and releases the keys. */
void verifier_free(struct verifier *verifier);

/* Takes a reference to new keys, for all later verifications (key rotation). */
void verifier_use(struct verifier *verifier, struct key_set *keys);

/* Copies the token. `done` runs exactly once, in a later verifier_run(). Returns false if the queue
 * is full or when out of memory; `done` then never runs. */
bool verifier_submit(struct verifier *verifier, struct slice token, verifier_done done, void *arg);

/* Verifies up to `per_turn` tokens. Returns whether more are pending. */
bool verifier_run(struct verifier *verifier, const struct clock *clock);

#endif
