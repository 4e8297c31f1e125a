/*
 * The aggregator's half of the stores: runs what gateways forward (aggregate_state.h, aggregate_stores.h) on the stores in
 * Redis, through their ports, and sends back what they say.
 *
 * All gateways share the aggregator's Redis client, its graph, typing, call, budget and recovery stores, and one state store
 * for what is not written as a gateway: reads, routes, lists. Each session has a state store of its own beside it,
 * with the gateway's id and instance, which writes its leases; the home of a gateway has another one that keeps its record.
 *
 * Requests are answered exactly once. When the owner frees the Redis client (redis_client_close()), all are. One thread,
 * that of the loop.
 */
#ifndef ROLLCALL_STORE_AGGREGATE_AGGREGATE_SERVE_H
#define ROLLCALL_STORE_AGGREGATE_AGGREGATE_SERVE_H

#include "aggregate/aggregate_service.h"
#include "base/random.h"
#include "net/loop.h"
#include "redis/redis_client.h"
#include "store/aggregate/aggregate_codec.h"

struct aggregate_stores_options {
    struct redis_client *client; /* these four are borrowed for the stores' life */
    struct loop *loop;
    struct random *random;
    struct metrics *metrics;
    struct slice id; /* of this aggregator; outlives the stores */
    struct aggregate_terms terms;
    uint64_t hash_seed;               /* random */
    const struct clock *script_clock; /* NULL: Redis's own (redis_store.h) */
};

struct aggregate_stores;
struct aggregate_stores_session;

/* Returns NULL when out of memory. */
struct aggregate_stores *aggregate_stores_make(const struct aggregate_stores_options *options);

/* After all sessions were closed, and before the Redis client is freed. */
void aggregate_stores_free(struct aggregate_stores **stores);

/* Returns NULL when out of memory. */
struct aggregate_stores_session *aggregate_stores_open(struct aggregate_stores *stores,
                                                       struct aggregate_session *session,
                                                       const struct aggregate_frame *hello);
void aggregate_stores_close(struct aggregate_stores_session **session);

/* Takes a call about a store (aggregate_codec_has()). Returns false, having taken nothing, when the body is none of the
 * operation's. */
bool aggregate_stores_serve(struct aggregate_stores_session *session,
                            struct aggregate_served *served, struct slice body);

#endif
