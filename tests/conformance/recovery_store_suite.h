/*
 * What every backend of the recovery store must do. A backend's test describes the backend and runs the
 * suite; each test starts with an empty store.
 */
#ifndef ROLLCALL_TESTS_RECOVERY_STORE_SUITE_H
#define ROLLCALL_TESTS_RECOVERY_STORE_SUITE_H

#include "store/recovery_store.h"

struct recovery_store_suite_backend {
    const char *name;
    void *context;
    int64_t window_ms;
    void (*start)(void *context);
    /* One more port of it; never NULL. The suite frees it before stop(). */
    struct recovery_store *(*port)(void *context);
    void (*stop)(void *context);
    /* Time moves on by so much. */
    void (*pass)(void *context, int64_t duration_ms);
    /* Until all that was asked is done; NULL where it is within the call. */
    void (*settle)(void *context);
};

/* Runs all tests; the number of those that failed. */
int recovery_store_suite_run(const struct recovery_store_suite_backend *backend);

#endif
