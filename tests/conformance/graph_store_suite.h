/*
 * The conformance suite of the graph store: what every backend promises (graph_store.h). A backend's test
 * describes the backend and runs the suite; each test starts with empty stores.
 *
 * Presence changes as in a gateway: a lease in the state store makes a transition, and its version is passed to
 * graph_set_online().
 */
#ifndef ROLLCALL_TESTS_GRAPH_STORE_SUITE_H
#define ROLLCALL_TESTS_GRAPH_STORE_SUITE_H

#include "store/graph_store.h"

struct graph_store_suite_backend {
    const char *name;
    void *context;
    /* Makes empty stores, and two ports of the graph store and one of the state store, which stop() frees. */
    void (*start)(void *context);
    struct graph_store *(*port)(void *context, size_t index);
    struct state_store *(*state)(void *context);
    void (*stop)(void *context);
    /* Advances both clocks; NULL where the store uses real time (tests of time are skipped). */
    void (*pass)(void *context, int64_t duration_ms);
    /* Runs the completions that are ready; NULL where operations complete at once. */
    void (*poll)(void *context);
};

enum { GRAPH_STORE_SUITE_PORTS = 2 };

/* Runs all tests. Returns how many failed. */
int graph_store_suite_run(const struct graph_store_suite_backend *backend);

#endif
