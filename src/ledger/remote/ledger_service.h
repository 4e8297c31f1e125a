/*
 * Serves a ledger to other processes over peer links: the other end of remote_ledger.h.
 *
 *     links ──frames──▶ requests ──submit──▶ the ledger's own threads
 *       ▲                                        │
 *       └──── answers, in any order ◀── inbox ◀──┘
 *
 * Bounds: LEDGER_SERVICE_LINKS_MAX links, and LEDGER_SERVICE_STRANGERS_MAX that have not proved themselves,
 * of whom the oldest give way to newcomers (pending_peers.h). A link with LEDGER_SERVICE_LINK_REQUESTS_MAX
 * requests unanswered, or LEDGER_SERVICE_LINK_BYTES_MAX of answers it has not read, is not read until both have
 * halved; one that goes on not reading is cut by peer_link.h. The ledger bounds its own queues (BUSY). What
 * nobody waits for any more (LEDGER_TIME_LIMIT_MS) and has not begun is skipped.
 *
 * A frame that is no request ends its link, with a line in the log; nothing of it reaches the ledger. A
 * link that ends does not take back what it asked: that is carried out and the answer dropped. The asker
 * asks again, as every write is idempotent.
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
    LEDGER_SERVICE_STRANGERS_MAX = 256,
    LEDGER_SERVICE_LINK_REQUESTS_MAX = 4096,
    LEDGER_SERVICE_LINK_BYTES_MAX = 8 << 20,
};

struct ledger_service;

/* What it has seen so far, and what there is now. */
struct ledger_service_counts {
    size_t links; /* that have proved themselves */
    size_t strangers;
    size_t unanswered; /* requests */
    uint64_t links_opened;
    uint64_t links_refused;       /* ended before they were open, those displaced included */
    uint64_t strangers_displaced; /* by newcomers */
    uint64_t frames_refused;      /* that were no requests */
    uint64_t answers[LEDGER_OPERATION_COUNT][LEDGER_STATUS_COUNT];
};

/* Listens on `address` (HOST:PORT; port 0: any). `ledger` and the options' parts are borrowed for the
 * service's life. NULL with a sentence in `error`. */
struct ledger_service *ledger_service_open(const struct peer_link_options *options,
                                           struct ledger *ledger, const char *address,
                                           char error[LISTENER_ERROR_TEXT_MAX]);

/* The port it listens on. */
uint16_t ledger_service_port(const struct ledger_service *service);

struct ledger_service_counts ledger_service_counts(const struct ledger_service *service);

/* Takes no more links and requests; what was taken is answered. */
void ledger_service_drain(struct ledger_service *service);

/* All that was taken has been answered, and the answers have been sent. */
bool ledger_service_is_drained(const struct ledger_service *service);

/* After ledger_close(), while the loop makes no turn. Cuts the links. */
void ledger_service_free(struct ledger_service **service);

#endif
