/*
 * A ledger in another process (`rollcall ledger`), which a thread of its own reaches over one peer link.
 *
 *     workers ──submit──▶ inbox ──▶ slots ──frames──▶ link ──▶ the other process
 *                                     └──◀── answers, in any order ──┘──▶ post
 *
 *   UNTRIED ── link opens ──► UP ── link breaks ──► DOWN ── link opens ──► UP
 *      └──── REMOTE_LEDGER_FIRST_LINK_MS ─────────────▲
 *
 * UP: requests are sent as they come. DOWN: new requests are answered UNAVAILABLE at once, so that the breaker
 * in front opens. Requests that were in flight when the link broke are sent again over the next link, since
 * every request is idempotent; they are answered UNAVAILABLE if that takes longer than REMOTE_LEDGER_RESEND_MS
 * or after REMOTE_LEDGER_SENDS_MAX attempts. UNTRIED, at the start: requests wait for the first link. So each
 * request is answered exactly once, whatever happens to links and to the other process, and a gateway starts
 * and serves without it.
 *
 * Bounds: LEDGER_QUEUE_MAX requests; further ones are BUSY. The client keeps the time limit, as with every
 * backend. ledger_close() waits for the requests in flight, at most REMOTE_LEDGER_CLOSE_MS.
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
    struct slice name;       /* of this process, for the other side's log; borrowed likewise */
    struct tls_context *tls; /* a client's; shared; NULL: no TLS */
};

/* Starts the thread, which dials. Returns NULL when there is no memory, descriptor or thread. */
struct ledger *remote_ledger_open(const struct remote_ledger_options *options);

#endif
