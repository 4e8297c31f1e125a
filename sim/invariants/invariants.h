/*
 * What must always hold. Each invariant is a name with the sentence that it checks (invariants.c has the table); the first
 * that does not hold ends the run, which then names it.
 *
 * "Bound" is what decision 17 allows: the lease window and five seconds, after the last fault is over and after the user
 * changed.
 */
#ifndef ROLLCALL_SIM_INVARIANTS_INVARIANTS_H
#define ROLLCALL_SIM_INVARIANTS_INVARIANTS_H

#include "rollcall.h"
#include "world/population.h"

enum { INVARIANTS_GRACE_US = 5 * 1000 * 1000, INVARIANTS_SAMPLES = 512 };

struct world;
struct server_node;

enum invariant {
    PRESENCE_NEVER_LIES_FOR_GOOD,
    VERSIONS_GO_FORWARD,
    ACKNOWLEDGED_IS_KEPT,
    SEQUENCE_IS_DENSE,
    SEQUENCE_IS_UNIQUE,
    QUIET_FLEET_IS_CONNECTED,
    EVERYTHING_IS_ANSWERED,
    REDIS_IS_CONSISTENT,
    NO_MEMORY_IS_LEFT,
    PROCESSES_KEEP_RUNNING,
    INVARIANT_COUNT,
};

/* How long the truth took to reach a viewer, in tenths of a second. */
struct delays {
    uint64_t counts[INVARIANTS_SAMPLES];
    uint64_t total;
    int64_t worst_us;
};

const char *invariant_name(enum invariant invariant);
const char *invariant_sentence(enum invariant invariant);

/* Ends the run, unless it has failed already. */
void invariants_violate(struct world *world, enum invariant invariant, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What a device is told. */
void invariants_on_presence(struct world *world, struct device *device,
                            const struct rollcall_event *event);
void invariants_on_acknowledged(struct world *world, struct device *device,
                                const struct rollcall_event *event);
void invariants_on_message(struct world *world, struct device *device,
                           const struct rollcall_event *event);

/* A process has ended by itself. */
void invariants_on_exit(struct world *world, const struct process *process);
void invariants_on_server_ended(struct server_node *node, const struct process *process);

/* Once a virtual second. */
void invariants_check(struct world *world);

/* After the quiet period. */
void invariants_check_end(struct world *world);

#endif
