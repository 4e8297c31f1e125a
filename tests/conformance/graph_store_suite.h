/*
 * What every backend of the graph store must do. A backend's test describes the backend and runs the
 * suite; each test starts with empty stores.
 *
 * Presence comes the way it does in a gateway: a lease in the state store makes a transition, whose
 * version goes to graph_set_online().
 */
#ifndef ROLLCALL_TESTS_GRAPH_STORE_SUITE_H
#define ROLLCALL_TESTS_GRAPH_STORE_SUITE_H

#include "store/graph_store.h"

struct graph_store_suite_backend {
    const char *name;
    void *context;
    /* Empty stores; then two ports of the one and one of the other, freed by stop(). */
    void (*start)(void *context);
    struct graph_store *(*port)(void *context, size_t index);
    struct state_store *(*state)(void *context);
    void (*stop)(void *context);
    /* Both clocks move on by so much; NULL where time is the machine's (tests of time are left out). */
    void (*pass)(void *context, int64_t duration_ms);
    /* Runs completions that are ready; NULL where all come within the call. */
    void (*poll)(void *context);
};

enum { GRAPH_STORE_SUITE_PORTS = 2 };

/* Runs all tests; the number of those that failed. */
int graph_store_suite_run(const struct graph_store_suite_backend *backend);

#endif
