/*
 * Write-behind for last-seen times. A worker's notes about its users wait for a moment, one entry per user
 * however often it changes, and go to the ledger in batches, one batch in flight at a time. So a gateway
 * that loses fifty thousand connections at once writes fifty batches, not fifty thousand transactions.
 *
 * A process that is killed loses the notes of the last LAST_SEEN_HOLD_MS. Presence versions must still never
 * decrease, so a store that assigns versions starts above the stored one by more than could be assigned in
 * that time (or takes them from the wall clock).
 *
 * A batch that fails waits again and is retried after LAST_SEEN_RETRY_MS. While LAST_SEEN_USERS_MAX users
 * wait, new ones are dropped and counted, so that a ledger that is down does not exhaust the memory.
 *
 * Belongs to one worker and its thread. last_seen_note() and last_seen_tick() never run a completion.
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
    struct table entries;         /* by user: waiting or in flight */
    struct list waiting;          /* in the order in which they were noted */
    struct list sent;             /* the batch in flight; empty when there is none */
    int64_t due_ms;               /* when to send the next batch, if something waits */
    bool has_more;                /* more entries waited than the last batch could hold */
    bool flushing;
    uint64_t dropped;
};

/* `seed` is the table's. Returns false when out of memory. */
bool last_seen_init(struct last_seen *last_seen, struct ledger_client *client, uint64_t seed);

/* Drops the waiting entries; call last_seen_flush() and wait for last_seen_idle() first. No batch may be in
 * flight. */
void last_seen_free(struct last_seen *last_seen);

/* Notes when a user was last seen (0: only the version changed). */
void last_seen_note(struct last_seen *last_seen, struct slice user, int64_t last_seen_ms,
                    uint64_t presence_version);

/* Sends a batch if one is due by the client's clock. Call it every turn or at last_seen_due_ms(). */
void last_seen_tick(struct last_seen *last_seen);

/* Returns when a batch will be due (monotonic); INT64_MAX when nothing waits or a batch is in flight. */
int64_t last_seen_due_ms(const struct last_seen *last_seen);

/* Makes all waiting entries due at once, for draining. It is done when last_seen_idle() is true. */
void last_seen_flush(struct last_seen *last_seen);

bool last_seen_idle(const struct last_seen *last_seen);

#endif
