/*
 * Redis for tests of stores: a single server or a cluster, with the clients of several gateways on one loop. A test
 * program starts it once, and each test empties it first.
 *
 * The functions that take a `void *` are hooks of a conformance suite whose context is the fleet. The stores under test
 * are given the fleet's clock.
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
    struct redis_server servers[REDIS_CLUSTER_SERVERS]; /* a single server is the first */
    struct redis_client *clients[REDIS_FLEET_CLIENTS];
    struct clock clock;
    size_t next_client; /* an index into `clients` */
    size_t awaited;
};

/* Starts the servers and waits until every client is connected. */
void redis_fleet_open(struct redis_fleet *fleet, bool cluster);
void redis_fleet_close(struct redis_fleet *fleet);

/* Removes all data and sets the clock to its start. */
void redis_fleet_empty(void *fleet);

/* Runs one turn of the loop, which waits a little for events. */
void redis_fleet_poll(void *fleet);

/* Advances the clock. */
void redis_fleet_pass(void *fleet, int64_t duration_ms);

/* Returns the index of the next client, in rotation, so that two stores are on two gateways. */
size_t redis_fleet_next_client(struct redis_fleet *fleet);

/* Runs the loop until all commands sent so far are answered; `rounds` times, for commands that answers cause. */
void redis_fleet_settle(struct redis_fleet *fleet, int rounds);

/* Sends a command to the master that has the key. Returns the reply in the form of redis_server_ask(). */
const char *redis_fleet_ask(struct redis_fleet *fleet, struct slice key, struct redis_args command);

/* Returns the one key, on any master, that matches the pattern. It must exist. */
struct slice redis_fleet_find(const struct redis_fleet *fleet, const char *pattern,
                              char out[REDIS_SERVER_REPLY_MAX]);

/* Sends a command to every master directly. Returns how many give the expected reply. */
size_t redis_fleet_count(const struct redis_fleet *fleet, const char *expected, const char *command,
                         const char *one, const char *two, const char *three);

/* Kills every server. */
void redis_fleet_kill(struct redis_fleet *fleet);

#endif
