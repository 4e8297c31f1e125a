/*
 * What every backend of the state store must do, whatever it is made of. A backend's test describes the
 * backend and runs the suite; each test starts with an empty store.
 *
 * A backend gives several ports of one shared state (several gateways of a fleet), lets time pass, and
 * lets completions run that come later than the call. Where its time is the machine's, durations are
 * compared with a tolerance, and the tests that need exact moments are left out.
 */
#ifndef ROLLCALL_TESTS_STATE_STORE_SUITE_H
#define ROLLCALL_TESTS_STATE_STORE_SUITE_H

#include "store/state_store.h"

struct state_store_suite_backend {
    const char *name;
    void *context;
    int64_t lease_window_ms;
    int64_t offline_grace_ms; /* in the tests that have one */
    int64_t tolerance_ms;     /* 0: time passes only when it is told to */
    /* An empty store whose windows are `lease_window_ms` and `grace_ms`. */
    void (*start)(void *context, int64_t grace_ms);
    /* One more port of it; never NULL. The suite frees it before stop(). */
    struct state_store *(*port)(void *context);
    void (*stop)(void *context);
    /* Both clocks move on by at least so much. */
    void (*pass)(void *context, int64_t duration_ms);
    int64_t (*wall_ms)(void *context);
    /* Runs completions that are ready, waiting a little for one; NULL where all come within the call. */
    void (*poll)(void *context);
};

/* Runs all tests; the number of those that failed. */
int state_store_suite_run(const struct state_store_suite_backend *backend);

#endif
