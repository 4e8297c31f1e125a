/*
 * The conformance suite of the state store: what every backend promises (state_store.h). A backend's test
 * describes the backend and runs the suite; each test starts with an empty store.
 *
 * A backend makes several ports of one shared state (several gateways of a fleet), advances time, and runs pending
 * completions. Where it uses real time, times are compared with a tolerance, and tests do less work or let time
 * pass in longer steps.
 */
#ifndef ROLLCALL_TESTS_STATE_STORE_SUITE_H
#define ROLLCALL_TESTS_STATE_STORE_SUITE_H

#include "store/state_store.h"

struct state_store_suite_backend {
    const char *name;
    void *context;
    int64_t lease_window_ms;
    int64_t offline_grace_ms; /* in the tests that have one */
    int64_t tolerance_ms;     /* 0: time passes only in pass() */
    /* Makes an empty store with this window and grace. */
    void (*start)(void *context, int64_t grace_ms);
    /* Makes one more port; never NULL. The suite frees it before stop(). */
    struct state_store *(*port)(void *context);
    void (*stop)(void *context);
    /* Advances both clocks by at least this much. */
    void (*pass)(void *context, int64_t duration_ms);
    int64_t (*wall_ms)(void *context);
    /* Runs the completions that are ready, and may wait a little; NULL where operations complete at once. */
    void (*poll)(void *context);
};

/* Runs all tests. Returns how many failed. */
int state_store_suite_run(const struct state_store_suite_backend *backend);

#endif
