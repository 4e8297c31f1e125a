/*
 * A world for tests: one real gateway, composed as in the program, on virtual time, over socket pairs, with a
 * ledger that the test controls (fake_ledger.h). No threads, no ports, no waiting.
 *
 *   struct world world;
 *   world_open(&world, WORLD_SETS("presence.idle_seconds=60"));
 *   struct client alice;
 *   client_connect(&alice, &world, "alice");
 *   world_advance(&world, 60000);
 *   …
 *   world_close(&world);
 *
 * Only world_advance() moves time. It stops at every timer on the way, so that each fires at its own
 * millisecond. world_settle() lets the gateway finish its current work.
 */
#ifndef ROLLCALL_TESTS_WORLD_H
#define ROLLCALL_TESTS_WORLD_H

#include "api/api_context.h"
#include "app/gateway/gateway.h"
#include "routing/delivery_receiver.h"
#include "session/session.h"
#include "support/fake_ledger.h"

#include <stdbool.h>
#include <stdint.h>

enum { WORLD_TOKEN_BYTES_MAX = 1024 };

struct world {
    struct config config;
    struct fake_ledger ledger;
    struct gateway_parts parts;
    struct gateway *gateway;
    struct jwt_signer *signer;
    /* borrowed from the gateway */
    struct loop *loop;
    struct metrics *metrics;
    struct session_context *sessions;
    struct api_context *rest;
    struct presence_plane *presence;
    struct delivery_receiver *receiver;
};

/* Settings as for --set, terminated by NULL. */
#define WORLD_SETS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define WORLD_DEFAULTS ((const char *const[]){NULL})

void world_open(struct world *world, const char *const *sets);

/* Drains the gateway and frees it. Fails the test if a connection does not end. */
void world_close(struct world *world);

/* Runs one turn of the loop. */
void world_turn(struct world *world);

/* Runs turns until there is nothing left to do at this time. */
void world_settle(struct world *world);

void world_advance(struct world *world, int64_t ms);
int64_t world_now(const struct world *world);

/* Drains as SIGTERM does; world_drained() returns whether the gateway would stop. */
void world_drain(struct world *world);
bool world_drained(const struct world *world);

/* Writes a token, terminated. */
void world_token(struct world *world, const char *user, const char *scope, int64_t valid_ms,
                 char out[WORLD_TOKEN_BYTES_MAX]);

/* The only session of a user; NULL when there is none. */
struct session *world_session(struct world *world, const char *user);

/* A user's presence in the state store. */
struct presence world_presence(struct world *world, const char *user);

/* The number of a user's leases in the state store, and their latest heartbeat. */
size_t world_leases(struct world *world, const char *user, int64_t *last_heartbeat_ms);

/* Queues a message for a user's connection as fan-out does; `key`: see outbound.h. */
void world_push(struct world *world, const char *user, const char *data, uint64_t key);

int64_t world_metric(const struct world *world, enum metric metric);

#endif
