/*
 * The parts of the state store behind aggregators:
 *
 *   aggregate_state.c          making and freeing; operations that are forwarded as they are
 *   aggregate_state_renew.c    gathered renewals
 *   aggregate_state_gateway.c  the gateway's record: claims, puts, fencing
 */
#ifndef ROLLCALL_STORE_AGGREGATE_AGGREGATE_STATE_INTERNAL_H
#define ROLLCALL_STORE_AGGREGATE_AGGREGATE_STATE_INTERNAL_H

#include "store/aggregate/aggregate_forward.h"
#include "store/aggregate/aggregate_state.h"

enum { AGGREGATE_FILTER_BITS = 1 << 16 };

struct renew_operation;

/* One renewal that waits. */
struct gathered_renewal {
    struct renew_operation *operation;
    size_t index; /* in the operation */
    size_t aggregator;
};

struct aggregate_state {
    struct state_store store;
    struct aggregate_state_options options;
    struct aggregate_listener listener;
    /* aggregate_state_renew.c */
    struct gathered_renewal *gathered; /* AGGREGATE_GATHERED_MAX */
    struct gathered_renewal *sending;  /* likewise, while a flush runs */
    size_t gathered_count;
    bool is_flushing;
    struct wheel_timer gather_timer;
    uint8_t filter[AGGREGATE_FILTER_BITS / 8]; /* of the connections that are gathered */
    /* aggregate_state_gateway.c */
    bool is_claimed;
    bool is_fenced;
    bool is_released;
    bool is_known;   /* Redis had our record when we last heard of it */
    bool is_granted; /* the claim at `home` succeeded */
    size_t home;
    uint64_t home_session; /* of the claim */
    int64_t registered_until_ms;
    redis_claim_done claim_done; /* of the gateway's claim, until it is decided */
    void *claim_arg;
    struct wheel_timer claim_timer;
    struct gateway_info info;
    char peer_address[STATE_PEER_ADDRESS_MAX];
};

static inline int64_t aggregate_state_now_ms(const struct aggregate_state *state)
{
    return state->options.loop->clock.now_ms;
}

struct aggregate_state *aggregate_state_of(struct state_store *store);

/* Whether this process may write as its gateway. */
bool aggregate_state_may_write(const struct aggregate_state *state);

/* ---- aggregate_state_renew.c ---- */

void aggregate_state_renew(struct state_store *store, struct lease_renewal *renewals, size_t count,
                           state_renewals_done done, void *arg);

/* Sends what waits, if a renewal of this connection may be among it. */
void aggregate_state_flush_before(struct aggregate_state *state, const struct ulid *conn_id);

bool aggregate_state_renew_init(struct aggregate_state *state);

/* Answers what waits as failed. */
void aggregate_state_renew_stop(struct aggregate_state *state);

/* ---- aggregate_state_gateway.c ---- */

void aggregate_state_put_gateway(struct state_store *store, const struct gateway_info *info);
void aggregate_state_gateway_init(struct aggregate_state *state);
void aggregate_state_gateway_stop(struct aggregate_state *state);

#endif
