/* The state store in Redis as the suite for every backend sees it: real servers, real time. */
#ifndef ROLLCALL_TESTS_REDIS_STATE_BACKEND_H
#define ROLLCALL_TESTS_REDIS_STATE_BACKEND_H

#include "conformance/state_store_suite.h"
#include "support/redis_fleet.h"

/* Runs the suite; the number of tests that failed. */
int redis_state_backend_suite(struct redis_fleet *fleet, const char *name);

#endif
