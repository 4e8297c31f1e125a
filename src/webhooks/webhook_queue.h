/*
 * One event queue of the ledger on its way to its endpoint, if this process holds it (ledger_events.h).
 *
 *     look at the lease ──taken──► HELD: renew it, list events ──► lane ──► remove them, or bury them
 *            ▲                        │ somebody else has it, or it could not be renewed in time
 *            └────────────────────────┘ what is not in flight is forgotten here, and sent by the other
 *
 * At most WEBHOOK_WINDOW_MAX events are in memory; the others wait in the ledger. One operation of each kind is under way at a time, and
 * never a listing together with a removal, so that what was taken is not listed again.
 *
 * While the endpoint fails, events are listed less often; before the next try what waits is read again if it is old (webhook_lane.h).
 *
 * An event is removed after the endpoint has taken it, so it is sent at least once. One thread.
 */
#ifndef ROLLCALL_WEBHOOKS_WEBHOOK_QUEUE_H
#define ROLLCALL_WEBHOOKS_WEBHOOK_QUEUE_H

#include "store/state_store.h"
#include "webhooks/webhook_lane.h"

enum {
    WEBHOOK_WINDOW_MAX = LEDGER_PAGE_MAX,
    WEBHOOK_LEASE_LOOK_MS = 1000,
    WEBHOOK_LEASE_RENEW_MS = LEDGER_EVENT_LEASE_MS / 3,
    WEBHOOK_LEASE_LOST_MS = LEDGER_EVENT_LEASE_MS * 3 / 4, /* without a renewal */
    WEBHOOK_UNDELIVERED_MS = 2000, /* how long a recipient may have no device */
    WEBHOOK_RESOLUTIONS_MAX = 32,  /* chats whose members are being looked for */
    WEBHOOK_TICK_MS_MAX = 500,
};

/* Borrowed for the life of the queue. */
struct webhook_queue_parts {
    const struct config *config;
    const struct webhook_endpoint *endpoint;
    const char *name;
    struct slice holder; /* this process */
    struct loop *loop;
    struct random *random;
    struct metrics *metrics;
    struct http_client *client;
    struct ledger_client *ledger;
    struct state_store *store; /* for a queue of undelivered messages; NULL: another one */
};

struct webhook_queue {
    struct webhook_queue_parts parts;
    struct webhook_lane lane;
    struct wheel_timer timer;
    bool stopped;
    /* the lease */
    bool is_held;
    bool is_leasing;
    uint64_t lease_version; /* seen last */
    int64_t version_seen_at_ms;
    int64_t lease_asked_at_ms;
    int64_t renewed_at_ms;
    /* events */
    bool is_listing;
    bool is_removing;
    bool has_more;
    int64_t listed_at_ms;
    size_t resolutions;
    /* for the metrics */
    uint64_t event_count; /* in the ledger; UINT64_MAX: not known */
    uint64_t dropped;
    bool knows_dropped;
};

void webhook_queue_init(struct webhook_queue *queue, const struct webhook_queue_parts *parts);

void webhook_queue_start(struct webhook_queue *queue);

/* Nothing is sent, read or written any more. */
void webhook_queue_stop(struct webhook_queue *queue);

/* Call it after the last completion of the ledger, the store and the HTTP client. */
void webhook_queue_free(struct webhook_queue *queue);

/* Returns how many events wait, as far as this process knows; 0 if it does not hold the queue. */
uint64_t webhook_queue_backlog(const struct webhook_queue *queue);

/* ---- for webhook_undelivered.c ---- */

/* Removes what was taken or given up, and lists more. */
void webhook_queue_proceed(struct webhook_queue *queue);

#endif
