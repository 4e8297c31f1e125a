/*
 * What every backend of the call store must do, whatever it is made of. A backend's test describes the
 * backend and runs the suite; each test starts with an empty store and two gateways.
 */
#ifndef ROLLCALL_TESTS_CALL_STORE_SUITE_H
#define ROLLCALL_TESTS_CALL_STORE_SUITE_H

#include "store/call_store.h"

struct call_store_suite_backend {
    const char *name;
    void *context;
    int64_t ring_timeout_ms; /* different from each other, so that a test can tell them apart */
    int64_t reconnect_grace_ms;
    int64_t lease_window_ms; /* the longest of the three */
    /* An empty store with these times. */
    void (*start)(void *context);
    /* One more port of it; never NULL. The suite frees it before stop(). */
    struct call_store *(*port)(void *context);
    void (*stop)(void *context);
    /* Both clocks move on by so much. */
    void (*pass)(void *context, int64_t duration_ms);
    int64_t (*wall_ms)(void *context);
    /* Runs completions that are ready, waiting a little for one; NULL where all come within the call. */
    void (*poll)(void *context);
    /* Runs all completions there will be; NULL likewise. */
    void (*settle)(void *context);
};

/* Runs all tests; the number of those that failed. */
int call_store_suite_run(const struct call_store_suite_backend *backend);

#endif
