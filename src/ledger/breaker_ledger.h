/*
 * A ledger with a circuit breaker in front: a decorator of another ledger, whose writes it stops while
 * that one fails, so that a gateway fails fast.
 *
 * Writes go through the breaker. UNAVAILABLE and TIMEOUT are failures, any other answer of the store is
 * a success, BUSY is neither: a full queue refuses at once anyway. While the breaker is OPEN, or a probe
 * is under way, a write is answered UNAVAILABLE at once and ledger_retry_after_ms() says when to come
 * back. Reads always pass and never count: history must not stop because writing does.
 *
 * One for all workers; calls come from any thread. The breaker is guarded by a mutex that is held for a
 * few instructions.
 */
#ifndef ROLLCALL_LEDGER_BREAKER_LEDGER_H
#define ROLLCALL_LEDGER_BREAKER_LEDGER_H

#include "ledger/breaker.h"
#include "ledger/ledger.h"

/* A monotonic clock that any thread may read. */
typedef int64_t (*breaker_ledger_clock)(void);

/* Takes `inner`, which is closed with it, and a monotonic clock that may be read from any thread. NULL
 * when memory is short; `inner` is then still the caller's. */
struct ledger *breaker_ledger_make(struct ledger *inner, const struct breaker_limits *limits,
                                   breaker_ledger_clock now_ms);

/* The state of what breaker_ledger_make() made. Any thread. */
enum breaker_state breaker_ledger_state(struct ledger *ledger);

#endif
