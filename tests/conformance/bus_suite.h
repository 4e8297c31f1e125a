/*
 * What every backend of the bus must do. A backend's test describes the backend and runs the suite; each
 * test starts with BUS_SUITE_PORTS gateways that have subscribed to nothing.
 */
#ifndef ROLLCALL_TESTS_BUS_SUITE_H
#define ROLLCALL_TESTS_BUS_SUITE_H

#include "bus/bus.h"

#include <stddef.h>

enum { BUS_SUITE_PORTS = 3 };

/* What a port is made with. */
struct bus_suite_subscriber {
    bus_on_event on_event;
    bus_on_gap on_gap;
    void *arg;
};

struct bus_suite_backend {
    const char *name;
    void *context;
    void (*start)(void *context, const struct bus_suite_subscriber ears[BUS_SUITE_PORTS]);
    struct bus *(*port)(void *context, size_t index);
    void (*stop)(void *context);
    /* Returns when everything subscribed or unsubscribed so far is so. */
    void (*settle)(void *context);
    /* A turn of every gateway, which may wait a little for something to happen. */
    void (*poll)(void *context);
};

/* Runs all tests; the number of those that failed. */
int bus_suite_run(const struct bus_suite_backend *backend);

#endif
