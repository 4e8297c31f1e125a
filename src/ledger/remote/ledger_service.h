/*
 * Serves a ledger to other processes over peer links: the other end of remote_ledger.h.
 *
 *     links ──frames──▶ requests ──submit──▶ the ledger's own threads
 *       ▲                                        │
 *       └──── answers, in any order ◀── inbox ◀──┘
 *
 * Bounds: LEDGER_SERVICE_LINKS_MAX links, and LEDGER_SERVICE_PENDING_MAX links that have not authenticated,
 * of which the oldest make way for newer ones (pending_peers.h). The service stops reading a link with
 * LEDGER_SERVICE_LINK_REQUESTS_MAX unanswered requests, or with LEDGER_SERVICE_LINK_BYTES_MAX of answers
 * that the link has not read, until both have halved. peer_link.h closes a link that keeps not reading. The
 * ledger bounds its own queues (BUSY). A request whose client has stopped waiting (LEDGER_TIME_LIMIT_MS) is
 * skipped if it has not started.
 *
 * A frame that is no request closes its link and is logged; nothing of it reaches the ledger. A link that
 * closes does not cancel its requests: they are executed and their answers dropped. The client repeats
 * them, since every write is idempotent.
 *
 * One thread, that of the loop.
 */
#ifndef ROLLCALL_LEDGER_REMOTE_LEDGER_SERVICE_H
#define ROLLCALL_LEDGER_REMOTE_LEDGER_SERVICE_H

#include "ledger/ledger_request.h"
#include "net/listener.h"
#include "peer/peer_link.h"

enum {
    LEDGER_SERVICE_LINKS_MAX = 256,
    LEDGER_SERVICE_PENDING_MAX = 256,
    LEDGER_SERVICE_LINK_REQUESTS_MAX = 4096,
    LEDGER_SERVICE_LINK_BYTES_MAX = 8 << 20,
};

struct ledger_service;

/* Totals since the start, and the present numbers. */
struct ledger_service_counts {
    size_t links;      /* authenticated */
    size_t pending;    /* links that have not authenticated */
    size_t unanswered; /* requests */
    uint64_t links_opened;
    uint64_t links_refused;     /* closed before they opened, including the displaced ones */
    uint64_t pending_displaced; /* by newer links */
    uint64_t frames_refused;    /* frames that were no requests */
    uint64_t answers[LEDGER_OPERATION_COUNT][LEDGER_STATUS_COUNT];
};

/* Listens on `address` (HOST:PORT; port 0: any). `ledger` and what the options point to are borrowed for the
 * service's life. Returns NULL with a reason in `error`. */
struct ledger_service *ledger_service_open(const struct peer_link_options *options,
                                           struct ledger *ledger, const char *address,
                                           char error[LISTENER_ERROR_TEXT_MAX]);

/* Returns the TCP port on which it listens. */
uint16_t ledger_service_port(const struct ledger_service *service);

struct ledger_service_counts ledger_service_counts(const struct ledger_service *service);

/* Accepts no more links and requests; accepted requests are still answered. */
void ledger_service_drain(struct ledger_service *service);

/* Returns whether all accepted requests have been answered and the answers sent. */
bool ledger_service_is_drained(const struct ledger_service *service);

/* Closes the links. Call it after ledger_close() and while the loop makes no turn. */
void ledger_service_free(struct ledger_service **service);

#endif
