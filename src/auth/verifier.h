/*
 * Verifies tokens at a bounded rate: at most `per_turn` in a turn of the loop, in the order of
 * submission, so that a storm of reconnects cannot stall established connections. The queue is
 * bounded too: a token that does not fit is refused at once, and the client is told to retry.
 *
 * A token with an unknown `kid` may be the first one after the issuer's key rotation. If `ask_for_keys` says that
 * new keys may come, the token waits for them: until verifier_use(), VERIFIER_KEYS_WAIT_MS at most. Few tokens may
 * wait like that, and they do not count as pending, because anybody can invent a `kid`.
 *
 * A token that comes again and again is verified once (verified_tokens.h), until it ends, its key is removed or its user
 * revoked.
 *
 * One per worker. Its owner calls verifier_run() once a turn while it returns true, and verifier_end_waits() about once
 * a second.
 */
#ifndef ROLLCALL_AUTH_VERIFIER_H
#define ROLLCALL_AUTH_VERIFIER_H

#include "auth/jwt.h"
#include "auth/revocations.h"
#include "auth/verified_tokens.h"
#include "base/clock.h"

#include <stdbool.h>
#include <stddef.h>

enum { VERIFIER_WAITING_MAX = 256, VERIFIER_KEYS_WAIT_MS = 6000 };

struct verification;

/* Asks the issuer for new keys. Returns whether verifier_use() will follow. */
typedef bool (*verifier_ask_for_keys)(void *arg);

/* Verifications in the order of submission. */
struct verifier_queue {
    struct verification *first;
    struct verification **end;
    size_t count;
};

/* Receives the result; `identity` is NULL unless jwt_result_names_user(). */
typedef void (*verifier_done)(void *arg, enum jwt_result result, const struct identity *identity);

struct verifier {
    struct key_set *keys; /* one reference; verifier_use() replaces it; NULL: none yet */
    const struct revocations *revocations; /* borrowed; NULL: nobody was revoked */
    verifier_ask_for_keys ask_for_keys;    /* NULL: there is no issuer to ask */
    void *ask_arg;
    struct jwt_policy policy;
    size_t per_turn;
    size_t pending_max;
    struct verifier_queue pending;
    struct verifier_queue waiting;   /* for new keys */
    struct verified_tokens verified; /* tokens that come again */
};

/* Takes the reference to `keys`. Borrows the slices of the policy until verifier_free(). */
void verifier_init(struct verifier *verifier, struct key_set *keys, const struct jwt_policy *policy,
                   size_t per_turn, size_t pending_max);

/* Completes pending verifications with JWT_UNKNOWN_KEY and releases the keys. */
void verifier_free(struct verifier *verifier);

/* Takes a reference to new keys, for all later verifications and those that wait (key rotation). */
void verifier_use(struct verifier *verifier, struct key_set *keys);

/* Makes tokens pending again that have waited long enough for new keys. Returns whether any are pending. */
bool verifier_end_waits(struct verifier *verifier, const struct clock *clock);

/* Returns whether a token that was verified a moment ago still counts: its key was not removed, its user not revoked. */
bool verifier_accepts(const struct verifier *verifier, const struct identity *identity);

/* Copies the token. `done` runs exactly once, in a later verifier_run(). Returns false if the queue
 * is full or when out of memory; `done` then never runs. */
bool verifier_submit(struct verifier *verifier, struct slice token, verifier_done done, void *arg);

/* Verifies up to `per_turn` tokens; none while the revocations are being loaded. Returns whether it has more to do. */
bool verifier_run(struct verifier *verifier, const struct clock *clock);

#endif
