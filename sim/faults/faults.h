/*
 * What goes wrong, drawn from the seed: one fault at a time or, if the options say so, often two, each with a beginning and an end, and
 * enough time after it for the fleet to be right again, which the invariants check.
 *
 * A fault is a row of a table (faults.c): how it begins and what ends it.
 */
#ifndef ROLLCALL_SIM_FAULTS_FAULTS_H
#define ROLLCALL_SIM_FAULTS_FAULTS_H

#include "kernel/event_queue.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct redis_server;
struct world;

enum fault_kind {
    FAULT_GATEWAY_KILLED,
    FAULT_GATEWAY_POWER,
    FAULT_GATEWAY_DRAINED,
    FAULT_GATEWAY_PAUSED,
    FAULT_REDIS_EMPTY,
    FAULT_REDIS_RESTARTED,
    FAULT_REDIS_PAUSED,
    FAULT_REDIS_UNREACHABLE,
    FAULT_REDIS_CUT,
    FAULT_REDIS_FULL,
    FAULT_REDIS_LOADING,
    FAULT_REDIS_EVICTS,
    FAULT_REDIS_FAILOVER,
    FAULT_REDIS_RESHARDED,
    FAULT_AGGREGATOR_KILLED,
    FAULT_AGGREGATOR_PAUSED,
    FAULT_LEDGER_KILLED,
    FAULT_LEDGER_POWER,
    FAULT_LEDGER_DISK,
    FAULT_LINK_ONE_WAY,
    FAULT_LINKS_CUT,
    FAULT_CLOCK_STEP,
    FAULT_CLOCK_DRIFT,
    FAULT_DEVICES_VANISH,
    FAULT_DEVICES_STALL,
    FAULT_KIND_COUNT,
};

enum { FAULTS_AT_ONCE_MAX = 2 };

struct fault {
    struct event ends;
    struct faults *faults;
    enum fault_kind kind;
    size_t target;
    struct redis_server *redis; /* one of its masters */
    uint64_t chance;            /* for details */
    bool is_active;
};

struct faults {
    struct world *world;
    struct event begins;
    struct fault slots[FAULTS_AT_ONCE_MAX];
    unsigned active;
    unsigned drawn;
    int64_t over_us;          /* when the last one ended */
    int64_t presence_over_us; /* the same of those that are not of the ledger alone */
    int64_t last_us;          /* none begins after it */
    uint64_t counts[FAULT_KIND_COUNT];
};

const char *fault_name(enum fault_kind kind);

/* Returns FAULT_KIND_COUNT for an unknown name. */
enum fault_kind fault_find(const char *name);

/* Faults happen from now on. */
void faults_plan(struct faults *faults, struct world *world, int64_t last_us);

/* Whether there are active ones, and the ledger alone has them. */
bool faults_are_of_ledger(const struct faults *faults);

/* Ends those that last, and draws no more. */
void faults_end(struct faults *faults);

#endif
