/*
 * The ports of one worker, gateway or fan-out worker, that reach other workers: leases and routes, parked sessions and
 * the bus. Here they are made for a worker of a fleet, on Redis, directly or through aggregators, and on peer links; a single process has them in memory
 * (gateway_backends.c). A part of the composition root.
 */
#ifndef ROLLCALL_APP_GATEWAY_WORKER_PORTS_H
#define ROLLCALL_APP_GATEWAY_WORKER_PORTS_H

#include "aggregate/aggregate_client.h"
#include "app/fleet.h"
#include "bus/bus.h"
#include "bus/mailbox/mailbox_bus.h"
#include "config/config.h"
#include "net/mailbox.h"
#include "redis/redis_client.h"
#include "redis/redis_info.h"
#include "store/recovery_store.h"
#include "store/redis/state/redis_state.h"
#include "store/state_store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Everything that it points to outlives the ports. */
struct worker_ports_options {
    struct fleet *fleet;
    const struct config *config;
    struct loop *loop;
    struct stream_set *streams;
    struct random *random;
    struct metrics *metrics;
    struct mailbox *mailbox;
    struct mailbox_bus_group *bus_group;
    size_t index; /* of the worker; the first one owns the peer hub of the process */
    size_t workers;
    const char *id; /* of the worker; a gateway's own id */
    uint64_t hash_seed;
    bus_on_event on_event;
    bus_on_gap on_gap;         /* these four may be NULL */
    void (*on_fenced)(void *); /* redis_state.h */
    void (*on_forgotten)(void *);
    void (*on_server_returned)(void *);
    void *arg;
};

struct worker_ports {
    struct bus *bus;
    struct state_store *store;
    struct recovery_store *recovery; /* NULL: no session is parked (socketio.recovery_seconds) */
    struct aggregate_client *aggregators; /* with state.aggregators, else NULL */
    struct redis_client *redis;           /* these two in a fleet without aggregators, else NULL */
    struct redis_info *redis_info;        /* the first worker has it */
};

/* Makes the ports of a worker of a fleet. Returns false when out of memory; the process gives up then, so nothing is
 * undone. */
bool worker_ports_make(struct worker_ports *ports, const struct worker_ports_options *options);

/* The settings on which a gateway and its aggregators should agree. */
struct aggregate_terms worker_ports_terms(const struct config *config);

/* Whether Redis answers, as far as the worker knows; false without Redis. */
bool worker_ports_reach_redis(const struct worker_ports *ports);

/* As redis_state_claim(), redis_state_release() and redis_state_pending(), for both kinds of a fleet's state store. */
void worker_ports_claim(struct worker_ports *ports, const struct gateway_info *info,
                        redis_claim_done done, void *arg);
void worker_ports_release(struct worker_ports *ports, redis_release_done done, void *arg);
size_t worker_ports_pending(const struct worker_ports *ports);

/* Ends the connections of a fleet: pending operations complete without an answer, and later ones at once. Only while the
 * loop makes no turn. */
void worker_ports_close(struct worker_ports *ports);

/* Completes pending operations, so their receivers must still exist. The peer hub is freed before. */
void worker_ports_free(struct worker_ports *ports);

/* Tells the peer hub, if there is one, which gateways the state store lists. */
void worker_ports_learn(struct fleet *fleet, const struct gateway_info *gateways, size_t count);

#endif
