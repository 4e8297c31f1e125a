/*
 * The bus between the workers of one process.
 *
 * A group is shared by all of them: for each worker its bus and a filter of the topics it subscribes to. A
 * filter is an array of counters indexed by the topic's hash. A publisher skips workers whose counter is
 * zero. A collision costs a mail that the receiver drops: by its own tables, or, for a gateway's topic, by
 * the bus, which passes on only the topic of its own gateway. Only its own worker writes a filter, so there
 * are no locks. The counters are sequentially consistent: a worker that subscribes and then reads the state,
 * and one that changes the state and then reads the filters, cannot miss each other.
 */
#ifndef ROLLCALL_BUS_MAILBOX_MAILBOX_BUS_H
#define ROLLCALL_BUS_MAILBOX_MAILBOX_BUS_H

#include "bus/bus.h"
#include "metrics/metrics.h"
#include "net/mailbox.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { MAILBOX_BUS_FILTER_SLOTS = 4096, MAILBOX_BUS_OWN_BYTES_MAX = 256 };

struct mailbox_bus_group;

/* Returns NULL when out of memory. */
struct mailbox_bus_group *mailbox_bus_group_make(size_t workers, uint64_t hash_seed);

/* Frees the group, after its last bus was freed. */
void mailbox_bus_group_free(struct mailbox_bus_group **group);

/* Makes the bus of worker number `index`. All workers' buses must exist before the first publish, and all
 * workers have stopped before the first is freed. Returns NULL when out of memory. */
struct bus *mailbox_bus_make(struct mailbox_bus_group *group, size_t index, struct mailbox *mailbox,
                             struct metrics *metrics, bus_on_event on_event, void *arg);

#endif
