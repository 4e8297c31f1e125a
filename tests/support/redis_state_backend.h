/* Runs the conformance suite of state stores on the Redis backend, with real servers and in real time. */
#ifndef ROLLCALL_TESTS_REDIS_STATE_BACKEND_H
#define ROLLCALL_TESTS_REDIS_STATE_BACKEND_H

#include "conformance/state_store_suite.h"
#include "support/redis_fleet.h"

/* Returns the number of tests that failed. */
int redis_state_backend_suite(struct redis_fleet *fleet, const char *name);

#endif
