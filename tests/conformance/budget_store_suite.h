/*
 * The conformance suite of the budget store: what every backend promises (budget_store.h). A backend's test describes
 * the backend and runs the suite; each test starts with an empty store.
 */
#ifndef ROLLCALL_TESTS_BUDGET_STORE_SUITE_H
#define ROLLCALL_TESTS_BUDGET_STORE_SUITE_H

#include "store/budget_store.h"

struct budget_store_suite_backend {
    const char *name;
    void *context;
    void (*start)(void *context);
    /* Makes one more port; never NULL. The suite frees it before stop(). */
    struct budget_store *(*port)(void *context);
    void (*stop)(void *context);
    /* Advances the clock. */
    void (*pass)(void *context, int64_t duration_ms);
    /* Runs the completions that are ready, and may wait a little; NULL where operations complete at once. */
    void (*poll)(void *context);
};

/* Runs all tests. Returns how many failed. */
int budget_store_suite_run(const struct budget_store_suite_backend *backend);

#endif
