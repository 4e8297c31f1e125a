/* The state store in Redis as the suite for every backend sees it: real servers, real time. */
#ifndef ROLLCALL_STORE_REDIS_STATE_TESTING_H
#define ROLLCALL_STORE_REDIS_STATE_TESTING_H

#include "conformance/state_store_suite.h"
#include "support/redis_fleet.h"

/* Runs the suite; the number of tests that failed. */
int redis_state_testing_suite(struct redis_fleet *fleet, const char *name);

/* A store of a gateway on one of the fleet's clients; hooks may be NULL. */
struct state_store *redis_state_testing_store(struct redis_fleet *fleet, size_t client,
                                              const char *gateway, int64_t window_ms,
                                              int64_t grace_ms);

#endif
