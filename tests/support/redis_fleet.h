/*
 * Redis, one server or a cluster, with the clients of several gateways on one loop: what tests of stores
 * run on. Started once for a program; each test empties it first.
 *
 * Those that take a `void *` are hooks of a conformance suite, whose context the fleet is; its clock is the
 * one that the stores are given.
 */
#ifndef ROLLCALL_TESTS_REDIS_FLEET_H
#define ROLLCALL_TESTS_REDIS_FLEET_H

#include "redis/redis_client.h"
#include "support/redis_server.h"
#include "support/worker_loop.h"

#include <stdbool.h>

enum { REDIS_FLEET_CLIENTS = 2 };

struct redis_fleet {
    bool cluster;
    struct worker_loop worker;
    struct redis_server servers[REDIS_CLUSTER_SERVERS]; /* of a single server the first */
    struct redis_client *clients[REDIS_FLEET_CLIENTS];
    struct clock clock;
    size_t turn; /* whose client is next */
    size_t awaited;
};

/* Starts the servers and waits until every client reaches them. */
void redis_fleet_open(struct redis_fleet *fleet, bool cluster);
void redis_fleet_close(struct redis_fleet *fleet);

/* Forgets everything that is stored, and begins a time of its own. */
void redis_fleet_empty(void *fleet);

/* One turn, waiting a little for something to happen. */
void redis_fleet_poll(void *fleet);

/* Lets the clock go on. */
void redis_fleet_pass(void *fleet, int64_t duration_ms);

/* The clients, one after the other and round again: who asks twice has two gateways. */
size_t redis_fleet_next_client(struct redis_fleet *fleet);

/* Turns until all that was sent is answered, and what those answers led to (`rounds` of it). */
void redis_fleet_settle(struct redis_fleet *fleet, int rounds);

/* Sends a command to the master that has the key; the reply as redis_server_ask() gives it. */
const char *redis_fleet_ask(struct redis_fleet *fleet, struct slice key, struct redis_args words);

/* The name of the one key that fits the pattern, on whatever master; it must be there. */
struct slice redis_fleet_find(const struct redis_fleet *fleet, const char *pattern,
                              char out[REDIS_SERVER_REPLY_MAX]);

/* Asks every master, past the clients, and counts those who reply so. */
size_t redis_fleet_count(const struct redis_fleet *fleet, const char *expected, const char *command,
                         const char *one, const char *two, const char *three);

/* Kills every server. */
void redis_fleet_kill(struct redis_fleet *fleet);

#endif
