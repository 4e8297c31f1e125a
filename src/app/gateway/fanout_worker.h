/*
 * A fan-out worker: an event loop on its own thread that consumes persisted messages from the feed and sends them to
 * the gateways that hold their recipients. No client connects to it, and it holds no lease.
 *
 *   feed (Kafka) ──► fan-out ── members: ledger ── routes: state store ──► delivery ──► bus ──► gateways
 *
 *   made ──fanout_worker_run()──► consuming ──fanout_worker_drain()──► draining: what is under way ends, then the
 *   worker commits its offsets and leaves the group ──► run returns ──ledger_close()──► fanout_worker_finish()
 *   ──nothing is pending──► fanout_worker_free()
 *
 * The process makes all workers before the first one runs, and finishes them after all have stopped. Whatever a drain
 * does not finish in time, or a crash leaves, comes to another worker of the group.
 */
#ifndef ROLLCALL_APP_GATEWAY_FANOUT_WORKER_H
#define ROLLCALL_APP_GATEWAY_FANOUT_WORKER_H

#include "app/fleet.h"
#include "bus/mailbox/mailbox_bus.h"
#include "config/config.h"
#include "ledger/ledger.h"
#include "metrics/exposition.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the workers of a process share. Each worker borrows it until it is freed. */
struct fanout_worker_parts {
    const struct config *config;
    struct fleet *fleet;
    struct mailbox_bus_group *bus_group;
    struct ledger *ledger; /* from ledger_choice_open_with_breaker() */
    struct exposition *exposition;
    size_t workers;
    uint64_t hash_seed;
};

enum { FANOUT_WORKER_ERROR_TEXT_MAX = 640 };

struct fanout_worker;

/* Returns NULL and explains in `error` when the worker cannot be made. */
struct fanout_worker *fanout_worker_make(const struct fanout_worker_parts *parts, size_t index,
                                         char error[FANOUT_WORKER_ERROR_TEXT_MAX]);

/* Consumes until the worker is drained. */
void fanout_worker_run(struct fanout_worker *worker);

/* Starts the drain within a second. Any thread may call it; it cannot fail. */
void fanout_worker_drain(struct fanout_worker *worker);

/* Returns why the worker does not consume and deliver now; NULL: it does. Any thread may call it. */
const char *fanout_worker_unready(const struct fanout_worker *worker);

/* Completes what is pending, on the main thread, after all workers have stopped and the ledger is closed. Call it for
 * all of them again until each returns false: then nothing was pending. */
bool fanout_worker_finish(struct fanout_worker *worker);

void fanout_worker_free(struct fanout_worker **worker);

#endif
