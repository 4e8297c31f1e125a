/*
 * The requests that a remote ledger has in flight, each in a slot. A request's id names its slot and is used
 * once, so that a late answer to a finished request finds nothing. The slots in use are linked in the order in
 * which their requests came, so that a new link gets them in that order. LEDGER_QUEUE_MAX slots. One thread.
 */
#ifndef ROLLCALL_LEDGER_REMOTE_REMOTE_SLOTS_H
#define ROLLCALL_LEDGER_REMOTE_REMOTE_SLOTS_H

#include "base/list.h"
#include "ledger/ledger_request.h"

enum { REMOTE_SLOTS = LEDGER_QUEUE_MAX };

struct remote_slot {
    struct list place;              /* in `in_flight` */
    struct ledger_request *request; /* NULL: free */
    uint32_t generation;            /* grows each time the slot is freed */
    uint32_t next_free;
    uint32_t sends;
};

struct remote_slots {
    struct remote_slot slots[REMOTE_SLOTS];
    uint32_t first_free;
    uint32_t used_end;     /* no slot at or above it was ever used */
    struct list in_flight; /* slots in use, the oldest request first */
    size_t count;
};

/* Initialises zeroed memory. It does not touch the slots, so that unused ones cost no memory. */
void remote_slots_init(struct remote_slots *slots);

/* Puts a request into a free slot, which must exist. Returns the index of the slot. */
uint32_t remote_slots_put(struct remote_slots *slots, struct ledger_request *request);

/* Takes the request out and frees the slot. */
struct ledger_request *remote_slots_take(struct remote_slots *slots, uint32_t index);

/* Returns the index of the slot at this place of `in_flight`. */
uint32_t remote_slots_index(const struct remote_slots *slots, const struct list *place);

uint64_t remote_slots_id(const struct remote_slots *slots, uint32_t index);

/* Returns false when no request in flight has this id. */
bool remote_slots_find(const struct remote_slots *slots, uint64_t id, uint32_t *index);

#endif
