/*
 * Write-behind for last seen: what a worker notes about its users is held back for a moment, one
 * entry per user however often it changes, and goes to the ledger in batches, one batch on its way
 * at a time. So a gateway that loses fifty thousand connections at once writes fifty batches, not
 * fifty thousand transactions.
 *
 * What is lost when the process is killed: the notes of the last LAST_SEEN_HOLD_MS. A presence
 * version must not go back all the same, so whoever draws versions starts above the stored one by
 * more than could be drawn in that time (or draws them from the wall clock).
 *
 * A batch that fails is noted again and retried after LAST_SEEN_RETRY_MS. Over LAST_SEEN_USERS_MAX
 * users waiting, new ones are dropped and counted: a ledger that is down must not eat the memory.
 *
 * Belongs to one worker and its thread. last_seen_note() and last_seen_tick() never call back.
 */
#ifndef ROLLCALL_LEDGER_LAST_SEEN_H
#define ROLLCALL_LEDGER_LAST_SEEN_H

#include "base/table.h"
#include "ledger/ledger.h"

enum {
    LAST_SEEN_HOLD_MS = 100,
    LAST_SEEN_RETRY_MS = 2000,
    LAST_SEEN_USERS_MAX = 200000,
};

struct last_seen {
    struct ledger_client *client; /* borrowed */
    struct table entries;         /* by user; waiting and on their way */
    struct list waiting;          /* in the order they were noted */
    struct list sent;             /* the batch on its way; empty when there is none */
    int64_t due_ms;               /* when to send next, if something waits */
    bool backlog;                 /* more waited than the last batch could hold */
    bool flushing;
    uint64_t dropped;
};

/* False when memory is short. `seed` is the table's. */
bool last_seen_init(struct last_seen *last_seen, struct ledger_client *client, uint64_t seed);

/* Forgets what waits; call last_seen_flush() and wait for idle first. No batch may be on its way.
 */
void last_seen_free(struct last_seen *last_seen);

/* Notes that a user was last seen then (0: only the version changed). */
void last_seen_note(struct last_seen *last_seen, struct slice user, int64_t last_seen_ms,
                    uint64_t presence_version);

/* Sends what is due by the client's clock; call it every turn or at last_seen_due_ms(). */
void last_seen_tick(struct last_seen *last_seen);

/* When there will be something to send (monotonic); INT64_MAX: nothing waits or a batch is on its
 * way. */
int64_t last_seen_due_ms(const struct last_seen *last_seen);

/* Makes all that waits due at once (draining). Done when last_seen_idle(). */
void last_seen_flush(struct last_seen *last_seen);

bool last_seen_idle(const struct last_seen *last_seen);

#endif
