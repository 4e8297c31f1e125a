/*
 * The graph, typing, call, budget and recovery stores of a gateway behind aggregators: each operation is forwarded
 * (aggregate_forward.h) to the aggregator of its user's or chat's slot, which runs it on Redis.
 *
 * Without an answer an operation has the result that its port gives to that: STATE_UNKNOWN, CALL_UNKNOWN and so on. A drop of
 * a graph that no aggregator took is repeated until one does, for at most AGGREGATE_FAILED_DROPS_MAX users; beyond them the
 * age of a graph makes up for it (graph_store.h). What the recovery store knows of this gateway alone, who was parked here a
 * moment ago and what arrived while a session is taken, stays here (recovery_local.h).
 *
 * One of each per worker, on its loop's thread. Free them before the client; what is pending completes when the client is
 * closed.
 */
#ifndef ROLLCALL_STORE_AGGREGATE_AGGREGATE_STORES_H
#define ROLLCALL_STORE_AGGREGATE_AGGREGATE_STORES_H

#include "aggregate/aggregate_client.h"
#include "net/loop.h"
#include "store/budget_store.h"
#include "store/call_store.h"
#include "store/graph_store.h"
#include "store/recovery_store.h"
#include "store/typing_store.h"

enum { AGGREGATE_FAILED_DROPS_MAX = 4096, AGGREGATE_DROP_RETRY_MS = 500 };

/* Each borrows the client for its life, and returns NULL when out of memory. */
struct graph_store *aggregate_graph_make(struct aggregate_client *client, struct loop *loop);
struct typing_store *aggregate_typing_make(struct aggregate_client *client);
struct call_store *aggregate_call_make(struct aggregate_client *client);
struct budget_store *aggregate_budget_make(struct aggregate_client *client);

/* `clock` is the worker's, `hash_seed` random. */
struct recovery_store *aggregate_recovery_make(struct aggregate_client *client,
                                               const struct clock *clock, uint64_t hash_seed);

#endif
