/*
 * A decorator that puts a circuit breaker in front of another ledger. It stops writes while that ledger
 * fails, so that a gateway fails fast.
 *
 * Writes pass through the breaker. It counts what the ledger fails at, not what was too much to ask: UNAVAILABLE is a
 * failure, and so is a TIMEOUT if no write took effect while the request waited. A TIMEOUT while other writes took
 * effect is load, such as a user's own queue, and counts as neither, like BUSY; every other answer is a success. While the breaker is
 * OPEN, or while its probes are under way, a write is answered UNAVAILABLE at once, and
 * ledger_retry_after_ms() returns when to try again. Reads always pass and never count: history must not stop
 * because writes fail.
 *
 * All workers share one breaker ledger. Any thread may use it. A mutex guards the breaker and is held for
 * a few instructions.
 */
#ifndef ROLLCALL_LEDGER_BREAKER_LEDGER_H
#define ROLLCALL_LEDGER_BREAKER_LEDGER_H

#include "ledger/breaker.h"
#include "ledger/ledger.h"

/* A monotonic clock that any thread may read. */
typedef int64_t (*breaker_ledger_clock)(void);

/* Takes `inner`, which it closes when it is closed itself. Returns NULL when out of memory; the caller then
 * still owns `inner`. */
struct ledger *breaker_ledger_make(struct ledger *inner, const struct breaker_limits *limits,
                                   breaker_ledger_clock now_ms);

/* Returns the state of a ledger that breaker_ledger_make() made. Any thread. */
enum breaker_state breaker_ledger_state(struct ledger *ledger);

#endif
