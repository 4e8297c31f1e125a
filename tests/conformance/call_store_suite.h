/*
 * The conformance suite of the call store: what every backend promises (call_store.h). A backend's test
 * describes the backend and runs the suite; each test starts with an empty store and two gateways.
 */
#ifndef ROLLCALL_TESTS_CALL_STORE_SUITE_H
#define ROLLCALL_TESTS_CALL_STORE_SUITE_H

#include "store/call_store.h"

struct call_store_suite_backend {
    const char *name;
    void *context;
    int64_t ring_timeout_ms; /* different from each other, so that tests can distinguish them */
    int64_t reconnect_grace_ms;
    int64_t lease_window_ms; /* the longest of the three */
    /* Makes an empty store with these times. */
    void (*start)(void *context);
    /* Makes one more port; never NULL. The suite frees it before stop(). */
    struct call_store *(*port)(void *context);
    void (*stop)(void *context);
    /* Advances both clocks. */
    void (*pass)(void *context, int64_t duration_ms);
    int64_t (*wall_ms)(void *context);
    /* Runs the completions that are ready, and may wait a little; NULL where operations complete at once. */
    void (*poll)(void *context);
    /* Runs all pending completions; NULL likewise. */
    void (*settle)(void *context);
};

/* Runs all tests. Returns how many failed. */
int call_store_suite_run(const struct call_store_suite_backend *backend);

#endif
