/*
 * The requests a remote ledger has in flight, each in a slot that its id names. An id is used once: a late
 * answer to a request that is over finds nothing. LEDGER_QUEUE_MAX slots. One thread.
 */
#ifndef ROLLCALL_LEDGER_REMOTE_REMOTE_SLOTS_H
#define ROLLCALL_LEDGER_REMOTE_REMOTE_SLOTS_H

#include "ledger/ledger_request.h"

enum { REMOTE_SLOTS = LEDGER_QUEUE_MAX };

struct remote_slot {
    struct ledger_request *request; /* NULL: free */
    uint32_t generation;            /* grows each time it is freed */
    uint32_t next_free;
    uint32_t sends;
};

struct remote_slots {
    struct remote_slot slots[REMOTE_SLOTS];
    uint32_t first_free;
    uint32_t used_end; /* none at or above it was ever used */
    size_t count;
};

/* Of zeroed memory, which is too much to be touched before it is used. */
void remote_slots_init(struct remote_slots *slots);

/* There must be one free. Answers its index. */
uint32_t remote_slots_put(struct remote_slots *slots, struct ledger_request *request);

/* Moves the request out. */
struct ledger_request *remote_slots_take(struct remote_slots *slots, uint32_t index);

uint64_t remote_slots_id(const struct remote_slots *slots, uint32_t index);

/* False: no request in flight has this id. */
bool remote_slots_find(const struct remote_slots *slots, uint64_t id, uint32_t *index);

#endif
