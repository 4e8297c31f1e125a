/*
 * Finds the name that a user probably meant. The caller offers every existing name; this keeps the
 * one with the fewest edits (insert, delete, replace, swap of neighbours). A name that ends in the
 * given one counts as one edit, so that a setting typed without its section is found.
 */
#ifndef ROLLCALL_CONFIG_NEAREST_H
#define ROLLCALL_CONFIG_NEAREST_H

#include "base/slice.h"

/* Longer names are not compared. */
enum { NEAREST_NAME_MAX = 96 };

struct nearest {
    struct slice wanted;
    struct slice best; /* SLICE_NONE if nothing is near enough */
    size_t best_edits;
};

struct nearest nearest_to(struct slice wanted);
void nearest_offer(struct nearest *nearest, struct slice candidate);

#endif
