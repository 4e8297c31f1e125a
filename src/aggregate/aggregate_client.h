/*
 * A gateway's half of the aggregators: one link to each of them, and calls that go to the one whose slot it is.
 *
 *   link:  DOWN ──dialled──► GREETING (hello sent) ──welcome──► READY ──lost, silent, overdue──► DOWN
 *
 * An aggregator is usable while its link is READY, it has said that Redis answers it, and it is not leaving. A call goes to
 * the usable aggregator that the ring gives its slot (aggregate_ring.h); without one it is refused at once. While calls of
 * a slot are unanswered, later calls of that slot follow them to the same link, so that they take effect in the order in
 * which they were made, also when the owner of the slot changes meanwhile.
 *
 * Every call is answered exactly once, with one of:
 *
 *   AGGREGATE_DONE     the aggregator's answer; `body` is its outcome
 *   AGGREGATE_REFUSED  certainly nothing was done: no aggregator is usable, AGGREGATE_CALLS_MAX calls are unanswered, the
 *                      queue of the link is full, or the aggregator says that it did nothing
 *   AGGREGATE_LOST     the link broke before an answer came: it may have been done
 *
 * Time: the client pings every AGGREGATE_PING_MS. A link on which nothing arrives for AGGREGATE_SILENCE_MS, or with a call
 * that is unanswered for AGGREGATE_CALL_LIMIT_MS, is cut and dialled again, so that a stopped aggregator holds nobody for
 * longer. A process that stood still itself gives its links that time anew. The aggregator does not execute calls that
 * arrive later than their caller waits (aggregate_service.h).
 *
 * Listeners hear which aggregators are usable, and what they say without being asked. Completions and callbacks run on the
 * loop's thread and may make calls; they must not free the client. One per worker.
 */
#ifndef ROLLCALL_AGGREGATE_AGGREGATE_CLIENT_H
#define ROLLCALL_AGGREGATE_AGGREGATE_CLIENT_H

#include "aggregate/aggregate_frame.h"
#include "aggregate/aggregate_ring.h"
#include "base/list.h"
#include "metrics/metrics.h"
#include "peer/peer_link.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    AGGREGATE_CALLS_MAX = 16384,          /* unanswered ones of one client */
    AGGREGATE_QUEUE_BYTES_MAX = 16 << 20, /* of one link */
    AGGREGATE_PING_MS = 500,
    AGGREGATE_SILENCE_MS = 2000,
    AGGREGATE_CALL_LIMIT_MS = 6000, /* longer than Redis may take (redis_client.h) */
    AGGREGATE_INSTANCE_LEN = 32,
};

enum aggregate_result { AGGREGATE_DONE, AGGREGATE_REFUSED, AGGREGATE_LOST };

typedef void (*aggregate_answered)(void *arg, enum aggregate_result result, struct slice body);

struct aggregate_client;

/* The caller owns the memory; it must outlive the client or be removed. */
struct aggregate_listener {
    struct list place;
    /* Other aggregators are usable than before, or the same ones after a new link. May be NULL. */
    void (*on_changed)(struct aggregate_listener *listener);
    /* May be NULL. `aggregator` is an index into the addresses. */
    void (*on_notice)(struct aggregate_listener *listener, size_t aggregator,
                      enum aggregate_notice notice, struct slice body);
};

struct aggregate_client_options {
    struct peer_link_options links; /* outlive the client, and so does what they point to */
    const char *const *addresses;   /* outlive the client; at most AGGREGATORS_MAX */
    size_t address_count;
    struct slice gateway_id; /* outlives the client, and so does `process` */
    struct slice process;
    struct aggregate_terms terms;
    struct metrics *metrics;
};

/* Starts to dial. Returns NULL when out of memory. */
struct aggregate_client *aggregate_client_make(const struct aggregate_client_options *options);

/* Ends the links and answers all calls as lost, and later ones as refused. Only while the loop makes no turn, and while
 * the receivers of the answers exist. */
void aggregate_client_close(struct aggregate_client *client);

/* Closes and frees. */
void aggregate_client_free(struct aggregate_client **client);

/* Makes a call; `body` is copied. A completion may run before this returns. */
void aggregate_client_call(struct aggregate_client *client, uint16_t slot,
                           enum aggregate_operation operation, struct slice body,
                           aggregate_answered done, void *arg);

/* The same to this aggregator, whoever has the slot. */
void aggregate_client_call_at(struct aggregate_client *client, size_t aggregator,
                              enum aggregate_operation operation, struct slice body,
                              aggregate_answered done, void *arg);

/* Where a call of this slot would go now; AGGREGATE_NONE: nowhere. */
size_t aggregate_client_route(const struct aggregate_client *client, uint16_t slot);

/* Counts the links that were made to this aggregator: another number is another session there. */
uint64_t aggregate_client_session(const struct aggregate_client *client, size_t aggregator);

bool aggregate_client_is_usable(const struct aggregate_client *client, size_t aggregator);

/* Returns how many aggregators are usable. */
size_t aggregate_client_usable(const struct aggregate_client *client);

/* Returns how many calls are unanswered. */
size_t aggregate_client_pending(const struct aggregate_client *client);

size_t aggregate_client_count(const struct aggregate_client *client);

void aggregate_client_listen(struct aggregate_client *client, struct aggregate_listener *listener);
void aggregate_client_unlisten(struct aggregate_listener *listener);

#endif
