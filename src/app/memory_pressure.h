/*
 * Memory pressure: above the limit nobody new is taken and some connections are sent
 * away, told to come back; those that hold queued messages first. Below nine tenths of it all is well
 * again. Called once a second by every worker.
 */
#ifndef ROLLCALL_APP_MEMORY_PRESSURE_H
#define ROLLCALL_APP_MEMORY_PRESSURE_H

#include "api/api_context.h"

enum {
    MEMORY_SHED_SHARE = 20,    /* one in so many connections a second */
    MEMORY_SHED_MAX = 256,     /* but not more than these */
    MEMORY_RECONNECT_MS = 5000 /* reconnects are spread over so long */
};

void memory_pressure_check(struct api_context *context);

#endif
