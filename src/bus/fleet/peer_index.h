/*
 * An index of names for one pass over the registry of gateways: texts and what each stands for, in one block of memory. It
 * borrows the texts. One thread.
 */
#ifndef ROLLCALL_BUS_FLEET_PEER_INDEX_H
#define ROLLCALL_BUS_FLEET_PEER_INDEX_H

#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>

struct peer_index_place {
    struct slice text; /* data NULL: free */
    void *value;
};

struct peer_index {
    struct peer_index_place *places;
    size_t place_count; /* a power of two */
};

/* Makes space for this many texts. Returns false when out of memory. */
bool peer_index_init(struct peer_index *index, size_t count);
void peer_index_free(struct peer_index *index);

/* Adds a text that is not empty; of equal texts the first stays. No more than there is space for. */
void peer_index_add(struct peer_index *index, struct slice text, void *value);

/* Returns the text's place, or NULL. */
const struct peer_index_place *peer_index_find(const struct peer_index *index, struct slice text);

#endif
