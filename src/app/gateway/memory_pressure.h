/*
 * Memory pressure: when the process uses more than its budget, a worker refuses new connections. Parked sessions give
 * way first, since their clients are not there, then the largest holders: clients with the longest queues or unfinished messages, and requests with the largest unfinished
 * bodies. Clients are told when to reconnect. What counts is what all workers hold for clients (base/memory_account.h), or
 * the resident memory if that is more. If holders do not make up for the excess, some other connections are closed.
 * The pressure is over below nine tenths of the limit.
 *
 * Every worker calls this once a second, and soon after it has come to hold much more. A worker leaves the closing to
 * another one whose largest holder is larger by far.
 */
#ifndef ROLLCALL_APP_GATEWAY_MEMORY_PRESSURE_H
#define ROLLCALL_APP_GATEWAY_MEMORY_PRESSURE_H

#include "api/api_context.h"
#include "store/recovery_store.h"

#include <stdatomic.h>

enum {
    MEMORY_SHED_SHARE = 20,    /* close one in this many connections per second, */
    MEMORY_SHED_MAX = 256,     /* but at most this many */
    MEMORY_HOLDERS_MAX = 64,   /* the largest, that one check may close */
    MEMORY_RECONNECT_MS = 5000 /* spread reconnects over this time */
};

/* What the workers of a process tell each other; zeroed at the start. */
struct memory_budget {
    _Atomic int64_t held; /* by all workers, as of their last checks */
    _Atomic int64_t largest[METRICS_WORKERS_MAX];
};

/* One worker's share in it. */
struct memory_pressure {
    struct recovery_store *recovery; /* parked sessions; NULL: none */
    struct memory_budget *budget;    /* NULL: there is one worker */
    size_t worker;
    size_t workers;
    int64_t published; /* what `held` has of this worker */
};

void memory_pressure_check(struct memory_pressure *pressure, struct api_context *context);

/* Returns the default limit: three quarters of the memory that the cgroup, or else the machine, has; 0 if that is unknown. `root` is
 * where /sys/fs/cgroup and /proc are, "" outside of tests. */
size_t memory_pressure_default_limit(const char *root);

#endif
