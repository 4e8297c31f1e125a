/*
 * Revocations: from when on a user's tokens count. A part of the ledger port; ledger.h has its promises.
 *
 * A user has at most one revocation, the latest. Revocations are listed in the order in which they were stored, each
 * with a position that only grows, so that a gateway that has read all of them reads only the new ones later.
 */
#ifndef ROLLCALL_LEDGER_LEDGER_REVOCATIONS_H
#define ROLLCALL_LEDGER_LEDGER_REVOCATIONS_H

#include "ledger/ledger.h"

/* Users with a revocation. Every gateway keeps all of them in memory, so there is a bound; beyond it: LIMIT. */
enum { LEDGER_REVOCATIONS_MAX = 200000 };

struct ledger_revoke_outcome {
    enum ledger_status status;
    int64_t revoked_at_s; /* as it is stored now */
};

typedef void (*ledger_revoke_done)(void *arg, const struct ledger_revoke_outcome *outcome);

/* Refuses the user's tokens that were issued up to the client's current second (wall clock). A repeated revocation
 * moves the time forward, never back. */
void ledger_revoke(struct ledger_client *client, struct slice user, ledger_revoke_done done,
                   void *arg);

struct ledger_revocation {
    struct slice user;
    int64_t revoked_at_s; /* tokens issued in this second, or before, are refused */
    uint64_t position;
};

struct ledger_revocations_outcome {
    enum ledger_status status;
    const struct ledger_revocation *revocations; /* sorted by position */
    size_t count;
    bool has_more; /* continue after the last position */
};

typedef void (*ledger_revocations_done)(void *arg,
                                        const struct ledger_revocations_outcome *outcome);

/* Lists revocations with a position greater than `after`. */
void ledger_revocations_list(struct ledger_client *client, uint64_t after, uint32_t limit,
                             ledger_revocations_done done, void *arg);

#endif
