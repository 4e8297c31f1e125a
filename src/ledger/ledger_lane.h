/*
 * A lane: waiting requests, fair among users. Each user has a flow of their own, first in, first out. The flows
 * take turns, weighted by cost (ledger_request_cost()): at its turn a flow earns LEDGER_LANE_QUANTUM, and its
 * first request leaves once the flow has earned its cost. So whoever asks for ten thousand rows at a time lets
 * others pass in between, and whoever is alone never waits.
 *
 *   put ──► flow of the user ──┐
 *   put ──► flow of another ───┼── turns ──► take
 *
 * A request that costs more than `slice_cost` is executed in slices. At its turn it pays for one slice; then it is put
 * back, as the first of its flow, until its last slice is done.
 *
 * A user has at most `count_max` requests and LEDGER_LANE_USER_COST_MAX of cost waiting, and all users together
 * LEDGER_LANE_COST_MAX of cost; the first request of a user always fits the user's own share. A request without a
 * user is the server's own; the server has one flow, without bounds of its own.
 *
 * A flow exists only while it has requests, so the memory of a lane is bounded by its requests. No locks: the
 * queue that contains the lane has one.
 */
#ifndef ROLLCALL_LEDGER_LEDGER_LANE_H
#define ROLLCALL_LEDGER_LEDGER_LANE_H

#include "base/list.h"
#include "base/table.h"
#include "ledger/ledger_request.h"

enum {
    LEDGER_LANE_QUANTUM = 64,
    LEDGER_LANE_USER_COST_MAX = 4 * (LEDGER_CHAT_MEMBERS_MAX + 1),
    LEDGER_LANE_COST_MAX = 16 * LEDGER_LANE_USER_COST_MAX,
};

struct ledger_lane {
    struct table flows; /* by user */
    struct list turns;  /* flows, the next one first */
    size_t count;       /* requests */
    uint64_t cost;
    size_t user_count_max;
    uint64_t slice_cost;
};

enum ledger_lane_refusal { LEDGER_LANE_TAKEN, LEDGER_LANE_OVER_SHARE, LEDGER_LANE_FULL };

/* Returns false when out of memory. */
bool ledger_lane_init(struct ledger_lane *lane, size_t user_count_max, uint64_t slice_cost,
                      uint64_t seed);

/* The lane must be empty. */
void ledger_lane_free(struct ledger_lane *lane);

/* Adds a request to its user's flow. OVER_SHARE: the user has too much waiting. FULL: all users together have, or
 * there is no memory. */
enum ledger_lane_refusal ledger_lane_put(struct ledger_lane *lane, struct ledger_request *request);

/* Adds a request that was taken and is not finished: as the first of its flow if a slice of it is done, else as the
 * last. No bound applies. Returns false when there is no memory. */
bool ledger_lane_put_back(struct ledger_lane *lane, struct ledger_request *request);

/* Returns what the request pays at its turn. */
uint64_t ledger_lane_price(const struct ledger_lane *lane, const struct ledger_request *request);

/* Detaches the request whose turn it is; NULL when the lane is empty. */
struct ledger_request *ledger_lane_take(struct ledger_lane *lane);

#endif
