/*
 * Memory pressure: above the limit a worker refuses new connections and closes some; their clients are
 * told when to reconnect. Connections with queued messages are closed first. The pressure is over below nine
 * tenths of the limit. Every worker calls this once a second.
 */
#ifndef ROLLCALL_APP_MEMORY_PRESSURE_H
#define ROLLCALL_APP_MEMORY_PRESSURE_H

#include "api/api_context.h"

enum {
    MEMORY_SHED_SHARE = 20,    /* close one in this many connections per second, */
    MEMORY_SHED_MAX = 256,     /* but at most this many */
    MEMORY_RECONNECT_MS = 5000 /* spread reconnects over this time */
};

void memory_pressure_check(struct api_context *context);

#endif
