/*
 * Call losses: parties that this gateway held and the call store no longer has.
 *
 * Mostly their call has ended, which another gateway has told; the store remembers such a call for a while. A call that the
 * store does not know at all was lost with the store's data (it came back empty, or an older copy took over). Nobody
 * else would ever end it, so the gateway does, for both sides, as `disconnected`; a declared call, which only its device
 * can end, is declared again.
 *
 *   lost ──► waiting ──call_losses_run()──► get ──found: it ended, or goes on without this device──► done
 *             ▲                               │ not found
 *             ├── a caller's, once ───────────┤
 *             │                               ▼
 *             │                            declare ──taken: the other side's gateway was first──► done
 *             │                               │ done
 *             │                               ▼
 *             └── no answer to any of them   end ──► tell both sides, `in_call`, history
 *
 * A device that was not told that its call ended (call_told.h) is told with each run, until the event has passed.
 *
 * The call's id is declared so that of the two sides' gateways one ends the call. The callee's goes first, since it knows
 * that the call was answered; a caller's waits for one run more. Nothing is told while the gateways register their
 * leases again (presence/resync.h), since the parties would have no routes.
 *
 * A loss is the binding itself, so that none fails for want of memory. At most CALL_LOSSES_MAX wait.
 * Part of the call plane, on its thread.
 */
#ifndef ROLLCALL_CALLS_CALL_LOSSES_H
#define ROLLCALL_CALLS_CALL_LOSSES_H

#include "base/list.h"
#include "calls/call_bindings.h"

enum {
    CALL_LOSSES_MAX = 65536,
    CALL_LOSSES_PER_RUN = 4096,
    CALL_LOSS_TELLINGS_MAX =
        16, /* runs within which a device has its route again, with all profiles */
};

struct call_plane;

struct call_losses {
    struct list waiting;
    size_t count; /* of those that wait */
};

void call_losses_init(struct call_losses *losses);

/* No operation may be pending. */
void call_losses_free(struct call_losses *losses);

/* Takes over a binding that was taken out of the bindings. */
void call_losses_add(struct call_plane *plane, struct call_binding *binding);

/* Checks those that wait, at most CALL_LOSSES_PER_RUN, unless the state store is being filled again. */
void call_losses_run(struct call_plane *plane);

#endif
