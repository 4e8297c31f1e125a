/*
 * The state store of a gateway behind aggregators: every operation is forwarded to the aggregator of its user's slot, which
 * has the connections to Redis and runs it there (aggregate_service_stores.h). Reads of many users go to the aggregator of
 * the first, which can read them all.
 *
 * Renewals are gathered: they wait for at most `renewal_delay_ms` for others, and go in calls of AGGREGATE_RENEWALS_MAX, one
 * after the other for each aggregator. The delay is a small share of the window (aggregate_renewal_delay_ms()), since a lease
 * is renewed at three quarters of it and a lost answer must leave time for another try. What else is said about a lease
 * passes at once; a renewal of the same lease that still waits goes first, so that the order holds.
 *
 * The gateway's record is kept by one aggregator, that of the slot of the gateway's id, its home. It claims the id there, and
 * again after every new link and at every new home, always with the same instance (redis_state.h). The store writes only
 * while the record is known to be in Redis: for a window from the last put that reached it. So a gateway that was stopped,
 * or that has no aggregator, writes nothing until it has its record again, and one whose id another process has taken
 * never writes again.
 *
 * An operation without an answer is STATE_UNKNOWN, one that no aggregator took STATE_UNAVAILABLE; reads are never unknown.
 * One per worker, on its loop's thread.
 */
#ifndef ROLLCALL_STORE_AGGREGATE_AGGREGATE_STATE_H
#define ROLLCALL_STORE_AGGREGATE_AGGREGATE_STATE_H

#include "aggregate/aggregate_client.h"
#include "net/loop.h"
#include "store/redis/state/redis_state.h"
#include "store/state_store.h"

enum {
    AGGREGATE_RENEWAL_DELAY_MAX_MS = 5000,
    AGGREGATE_RENEWAL_DELAY_SHARE = 32, /* of the window */
    AGGREGATE_GATHERED_MAX = 8192,      /* renewals; more go at once */
    AGGREGATE_CLAIM_REACH_MS = 3000,    /* how long a claim waits for an aggregator */
};

struct aggregate_state_options {
    struct aggregate_client *client; /* borrowed for the store's life */
    struct loop *loop;               /* likewise */
    struct slice gateway_id;         /* outlives the store */
    int64_t lease_window_ms;
    int64_t renewal_delay_ms;
    /* As in redis_state.h. */
    bool (*is_process_gone)(void *arg, struct slice process);
    void (*on_fenced)(void *arg);
    void (*on_forgotten)(void *arg);
    void (*on_server_returned)(void *arg);
    void *arg;
};

/* How long renewals of leases with this window may wait for others. */
static inline int64_t aggregate_renewal_delay_ms(int64_t lease_window_ms)
{
    int64_t share_ms = lease_window_ms / AGGREGATE_RENEWAL_DELAY_SHARE;
    return share_ms < AGGREGATE_RENEWAL_DELAY_MAX_MS ? share_ms : AGGREGATE_RENEWAL_DELAY_MAX_MS;
}

/* Creates one worker's store. Returns NULL when out of memory. Free it before the client; what is pending then completes
 * when the client is closed. */
struct state_store *aggregate_state_make(const struct aggregate_state_options *options);

/* As redis_state_claim(), redis_state_release() and redis_state_pending(). */
void aggregate_state_claim(struct state_store *store, const struct gateway_info *info,
                           redis_claim_done done, void *arg);
void aggregate_state_release(struct state_store *store, redis_release_done done, void *arg);
size_t aggregate_state_pending(const struct state_store *store);

#endif
