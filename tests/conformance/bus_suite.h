/*
 * The conformance suite of the bus: what every backend promises (bus.h). A backend's test describes the backend
 * and runs the suite; each test starts with BUS_SUITE_PORTS gateways without subscriptions.
 */
#ifndef ROLLCALL_TESTS_BUS_SUITE_H
#define ROLLCALL_TESTS_BUS_SUITE_H

#include "bus/bus.h"

#include <stddef.h>

enum { BUS_SUITE_PORTS = 3 };

/* The hooks with which the backend makes a port. */
struct bus_suite_subscriber {
    bus_on_event on_event;
    bus_on_gap on_gap;
    void *arg;
};

struct bus_suite_backend {
    const char *name;
    void *context;
    void (*start)(void *context, const struct bus_suite_subscriber hooks[BUS_SUITE_PORTS]);
    struct bus *(*port)(void *context, size_t index);
    void (*stop)(void *context);
    /* Returns when all subscriptions and unsubscriptions so far have taken effect. */
    void (*settle)(void *context);
    /* Runs one turn of every gateway, which may wait a little for events. */
    void (*poll)(void *context);
};

/* Runs all tests. Returns how many failed. */
int bus_suite_run(const struct bus_suite_backend *backend);

#endif
