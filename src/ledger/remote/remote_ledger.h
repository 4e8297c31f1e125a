/*
 * A ledger that is another process (`rollcall ledger`), reached over one peer link by a thread of its own.
 *
 *     workers ──submit──▶ inbox ──▶ slots ──frames──▶ link ──▶ the other process
 *                                     └──◀── answers, in any order ──┘──▶ post
 *
 *   UNTRIED ── link opens ──► UP ── link breaks ──► DOWN ── link opens ──► UP
 *      └──── REMOTE_LEDGER_FIRST_LINK_MS ─────────────▲
 *
 * UP: requests are sent as they come. DOWN: new ones are answered UNAVAILABLE at once, so that the breaker
 * in front of it opens; those in flight when the link broke are sent again over the next one, since every
 * request is idempotent, unless that takes longer than REMOTE_LEDGER_RESEND_MS or was tried
 * REMOTE_LEDGER_SENDS_MAX times: UNAVAILABLE then. UNTRIED, at the start, they wait for the first link.
 * So a request is answered exactly once, whatever happens to links and to the other process, and a start
 * without it serves.
 *
 * Bounds: LEDGER_QUEUE_MAX requests, more is BUSY; the time limit is the client's own, as with every
 * backend. ledger_close() waits for what is in flight, REMOTE_LEDGER_CLOSE_MS at most.
 */
#ifndef ROLLCALL_LEDGER_REMOTE_REMOTE_LEDGER_H
#define ROLLCALL_LEDGER_REMOTE_REMOTE_LEDGER_H

#include "base/slice.h"
#include "ledger/ledger.h"

enum {
    REMOTE_LEDGER_FIRST_LINK_MS = 1000,
    REMOTE_LEDGER_RESEND_MS = 2000,
    REMOTE_LEDGER_SENDS_MAX = 3,
    REMOTE_LEDGER_CLOSE_MS = LEDGER_TIME_LIMIT_MS,
};

struct tls_context;

struct remote_ledger_options {
    const char *address;     /* HOST:PORT; copied */
    struct slice secret;     /* never empty; borrowed for the ledger's life */
    struct slice name;       /* ours, for the other side's log; borrowed likewise */
    struct tls_context *tls; /* a client's; shared; NULL: plain */
};

/* Starts the thread, which dials. NULL when there is no memory, descriptor or thread. */
struct ledger *remote_ledger_open(const struct remote_ledger_options *options);

#endif
