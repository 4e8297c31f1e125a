/*
 * Changes of many relations between two users in one request, made by the application and not by one of the two: nobody
 * is asked for consent. A part of the ledger port; ledger.h has its promises.
 *
 * A request is as many operations as it has pairs: each pair changes completely or not at all, in the order of the
 * pairs, and has a result of its own. So a request that failed is repeated as a whole.
 */
#ifndef ROLLCALL_LEDGER_LEDGER_RELATIONS_H
#define ROLLCALL_LEDGER_LEDGER_RELATIONS_H

#include "ledger/ledger.h"

/* Pairs of one request: a slice of the SQLite writer (SQLITE_LEDGER_SLICE_IDS), so that others' writes come between two
 * requests. */
enum { LEDGER_RELATIONS_MAX = 128 };

enum ledger_relation_change {
    LEDGER_CONTACT_MAKE, /* FORBIDDEN while one blocks the other; ends contact requests between the two */
    LEDGER_CONTACT_END,
    LEDGER_BLOCK_MAKE, /* the first blocks the second, as ledger_block_put() does */
    LEDGER_RELATION_CHANGES,
};

struct ledger_relation_result {
    enum ledger_status status;
    bool changed; /* false: nothing was left to change */
    bool contact_removed;
};

struct ledger_relations_outcome {
    enum ledger_status status;
    const struct ledger_relation_result *results; /* one per pair */
    size_t count;
};

typedef void (*ledger_relations_done)(void *arg, const struct ledger_relations_outcome *outcome);

/* Changes `pair_count` pairs: ids[0] and ids[1], ids[2] and ids[3], … `actor` names whoever asks; requests of one actor
 * share a place among those of the users. INVALID when a pair is twice the same user; LIMIT beyond LEDGER_RELATIONS_MAX. */
void ledger_relations_change(struct ledger_client *client, struct slice actor,
                             enum ledger_relation_change change, const struct slice *ids,
                             size_t pair_count, ledger_relations_done done, void *arg);

#endif
