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
    /* of the design, in its words */
    ROUTING_TTL_BOUNDED,
    ZOMBIE_PREVENTION,
    CONN_ID_UNIQUENESS,
    ROUTING_DENORMALIZATION_CONSISTENT,
    PRESENCE_DERIVES_FROM_CONNECTIONS,
    PRESENCE_STALENESS_BOUNDED,
    PRIVACY_ENFORCED,
    MULTI_DEVICE_DELIVERY,
    NO_SILENT_MESSAGE_LOSS,
    FAILFAST_PERSISTENCE,
    RECONNECT_HEALS,
    ISOLATION_HOLDS,
    BOUNDED_BUFFER,
    /* beyond it */
    VERSIONS_GO_FORWARD,
    TRANSITION_IS_TOLD_ONCE,
    SEQUENCE_IS_DENSE,
    SEQUENCE_IS_UNIQUE,
    MESSAGE_IS_STORED_ONCE,
    REQUEST_IS_ANSWERED_ONCE,
    CALLS_END,
    REDIS_IS_CONSISTENT,
    NO_MEMORY_IS_LEFT,
    PROCESSES_KEEP_RUNNING,
    INVARIANT_COUNT,
};

/* What was wrong until the truth came. */
enum lie { LIE_GHOST, LIE_FALSE_OFFLINE, LIE_COUNT };

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

/* Whether the bound has passed since then. */
bool invariants_is_settled(const struct world *world, int64_t since_us);

/* Whether no fault is active, and the last one is over for so long that all must be right. */
bool invariants_is_calm(const struct world *world);

/* What a device is told. */
void invariants_on_presence(struct world *world, struct device *device,
                            const struct rollcall_event *event);
void invariants_on_acknowledged(struct world *world, struct device *device,
                                const struct rollcall_event *event);
void invariants_on_refused(struct world *world, struct device *device,
                           const struct rollcall_event *event);
void invariants_on_message(struct world *world, struct device *device,
                           const struct rollcall_event *event);
void invariants_on_answer(struct world *world, struct device *device, unsigned id);

/* A process has ended by itself. */
void invariants_on_exit(struct world *world, const struct process *process);
void invariants_on_server_ended(struct server_node *node, const struct process *process);

/* Once a virtual second. */
void invariants_check(struct world *world);

/* After the quiet period. */
void invariants_check_end(struct world *world);

/* ---- of each subject: invariants_check() and invariants_check_end() call these ---- */

void presence_invariants_check(struct world *world);
void request_invariants_check(struct world *world);
void routing_invariants_check(struct world *world);
void memory_invariants_check(struct world *world);
void message_invariants_check_end(struct world *world);
void call_invariants_check_end(struct world *world);

#endif
