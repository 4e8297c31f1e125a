/*
 * The bus between the workers of one process.
 *
 * The exchange is shared: for each worker its mailbox and a filter of the topics it is interested in.
 * A filter is an array of counters indexed by the topic's hash: a publisher skips workers whose counter
 * is zero; a collision costs a mail that the receiver drops: by its own tables, but for a gateway's topic,
 * of which each worker has one and the bus lets no other pass. Only its own worker writes a filter, so
 * there are no locks. The counters are sequentially consistent: "subscribe, then read the state" and
 * "change the state, then look who is subscribed" cannot miss each other.
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

struct mailbox_bus_group *mailbox_bus_group_make(size_t workers, uint64_t hash_seed);

/* After the last bus of it is gone. */
void mailbox_bus_group_free(struct mailbox_bus_group **exchange);

/* The port of worker number `index`. All workers' ports must exist before the first publish, and all
 * workers have stopped before the first is freed. NULL when memory is short. */
struct bus *mailbox_bus_make(struct mailbox_bus_group *exchange, size_t index,
                             struct mailbox *mailbox, struct metrics *metrics,
                             bus_on_event on_event, void *arg);

#endif
