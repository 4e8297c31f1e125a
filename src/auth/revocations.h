/*
 * The users whose tokens were revoked, and when: a token counts only if it was issued in a later second. A token
 * without an issue time does not count once its user was revoked.
 *
 * Each worker has one, on its own thread, with all revocations of the ledger, so that a check costs no operation of
 * the ledger: none at all while nobody was revoked, one search in a table otherwise. LEDGER_REVOCATIONS_MAX bounds it.
 *
 *   LOADING ──► LOADED
 *      └──► UNKNOWN (the ledger did not answer) ──► LOADED
 *
 * Tokens wait while it is LOADING, because a restart must not bring back a revoked token. While it is UNKNOWN, which
 * takes a start during an outage of the ledger, they are accepted, so that presence works; the sessions of revoked
 * users end as soon as the ledger answers.
 */
#ifndef ROLLCALL_AUTH_REVOCATIONS_H
#define ROLLCALL_AUTH_REVOCATIONS_H

#include "base/slice.h"
#include "base/table.h"

#include <stdbool.h>
#include <stdint.h>

enum revocations_state { REVOCATIONS_LOADING, REVOCATIONS_UNKNOWN, REVOCATIONS_LOADED };

struct revocations {
    enum revocations_state state;
    struct table users;
};

/* Returns false when out of memory. */
bool revocations_init(struct revocations *revocations, uint64_t seed);
void revocations_free(struct revocations *revocations);

/* Notes a revocation; an earlier one than the one known changes nothing. Returns false when out of memory. */
bool revocations_put(struct revocations *revocations, struct slice user, int64_t revoked_at_s);

/* Returns when the user was revoked; -1: never, as far as is known. */
int64_t revocations_find(const struct revocations *revocations, struct slice user);

/* Returns whether a token of this user is refused. `issued_at_s` is 0 if the token does not say when. */
bool revocations_refuse(const struct revocations *revocations, struct slice user,
                        int64_t issued_at_s);

#endif
