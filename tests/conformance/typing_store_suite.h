/*
 * What every backend of the typing store must do. A backend's test describes the backend and runs the
 * suite; each test starts with an empty store.
 */
#ifndef ROLLCALL_TESTS_TYPING_STORE_SUITE_H
#define ROLLCALL_TESTS_TYPING_STORE_SUITE_H

#include "store/typing_store.h"

struct typing_store_suite_backend {
    const char *name;
    void *context;
    int64_t ttl_ms;      /* at least four times the interval */
    int64_t interval_ms; /* between two updates that are taken */
    void (*start)(void *context);
    /* One more port of it; never NULL. The suite frees it before stop(). */
    struct typing_store *(*port)(void *context);
    void (*stop)(void *context);
    /* Time moves on by so much. */
    void (*pass)(void *context, int64_t duration_ms);
    /* Runs completions that are ready, waiting a little for one; NULL where all come within the call. */
    void (*poll)(void *context);
};

/* Runs all tests; the number of those that failed. */
int typing_store_suite_run(const struct typing_store_suite_backend *backend);

#endif
