/*
 * Finds the name a user probably meant. Offer it every name there is; it keeps the one that takes
 * the fewest edits (insert, delete, replace, swap of neighbours), or that ends in the given name,
 * so that a setting typed without its section is found as well.
 */
#ifndef ROLLCALL_CONFIG_NEAREST_H
#define ROLLCALL_CONFIG_NEAREST_H

#include "base/slice.h"

/* Longer names are not compared. */
enum { NEAREST_NAME_MAX = 96 };

struct nearest {
    struct slice wanted;
    struct slice best; /* SLICE_NONE while nothing was near enough */
    size_t best_edits;
};

struct nearest nearest_to(struct slice wanted);
void nearest_offer(struct nearest *nearest, struct slice candidate);

#endif
