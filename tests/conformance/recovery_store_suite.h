/*
 * The conformance suite of the recovery store: what every backend promises (recovery_store.h). A backend's test
 * describes the backend and runs the suite; each test starts with an empty store.
 */
#ifndef ROLLCALL_TESTS_RECOVERY_STORE_SUITE_H
#define ROLLCALL_TESTS_RECOVERY_STORE_SUITE_H

#include "store/recovery_store.h"

struct recovery_store_suite_backend {
    const char *name;
    void *context;
    int64_t recovery_ms; /* how long a session stays parked */
    void (*start)(void *context);
    /* Makes one more port; never NULL. The suite frees it before stop(). */
    struct recovery_store *(*port)(void *context);
    void (*stop)(void *context);
    /* Advances the clock. */
    void (*pass)(void *context, int64_t duration_ms);
    /* Runs until no operation is pending; NULL where operations complete at once. */
    void (*settle)(void *context);
};

/* Runs all tests. Returns how many failed. */
int recovery_store_suite_run(const struct recovery_store_suite_backend *backend);

#endif
