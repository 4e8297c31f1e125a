/*
 * Reads a user's social graph (settings, contacts that are online, blocks, chats): from the graph store,
 * or from the ledger where the store misses.
 *
 * Reads of one user are answered in the order they were made; while a graph is being loaded from the
 * ledger, all reads of that user wait for the same load. An aged graph is used while it is loaded again.
 * When the store misses and the ledger does not answer, the read fails.
 *
 * A graph that was loaded may be outdated when it arrives, so the store keeps it only under the ticket of
 * the miss (store/graph_store.h). An empty graph (no contacts, blocks or chats) is never stored: every
 * user without contacts would occupy memory, and loading it again costs one ledger query. It answers the
 * reads that waited for it, if their next miss has the same ticket, that is, if nothing changed meanwhile.
 *
 * One per gateway, on its thread.
 */
#ifndef ROLLCALL_CONTACTS_GRAPH_READER_H
#define ROLLCALL_CONTACTS_GRAPH_READER_H

#include "base/slice.h"
#include "base/table.h"
#include "ledger/ledger.h"
#include "metrics/metrics.h"
#include "store/graph_store.h"

#include <stdbool.h>

enum {
    GRAPH_READER_LOADS_MAX = 8192, /* users whose graphs are being loaded; reads of more fail */
    GRAPH_READER_WAITING_MAX = 64, /* reads that wait for one load; beyond, the oldest fails */
    GRAPH_READER_ATTEMPTS_MAX = 3, /* a graph that changes during every load is given up */
    GRAPH_READER_CHATS_MAX =
        1000, /* chats of one user, accepted ones first; others get no presence events */
};

struct graph_reader {
    struct graph_store *store; /* NULL: every read fails */
    struct ledger_client *ledger;
    struct metrics *metrics;
    struct table loads; /* by user */
    size_t pending;     /* operations of the graph store that have not completed */
};

/* `graph` is borrowed for the completion; NULL: it cannot be read now. */
typedef void (*graph_reader_done)(void *arg, const struct social_graph *graph);

/* Takes the store; the ledger and the metrics are borrowed. Returns false when out of memory. */
bool graph_reader_init(struct graph_reader *reader, struct graph_store *store,
                       struct ledger_client *ledger, struct metrics *metrics, uint64_t hash_seed);

/* Frees the store too. No read may be pending. */
void graph_reader_free(struct graph_reader *reader);

/* Returns whether no operation of the ledger or the graph store is pending. */
bool graph_reader_is_idle(const struct graph_reader *reader);

/* Reads a user's graph with the contacts that are online. `done` runs exactly once, possibly before this
 * function returns. */
void graph_reader_read(struct graph_reader *reader, struct slice user_id, graph_reader_done done,
                       void *arg);

/* Drops the cached graph, because the user's contacts, blocks, chats or settings changed. */
void graph_reader_drop(struct graph_reader *reader, struct slice user_id);

#endif
