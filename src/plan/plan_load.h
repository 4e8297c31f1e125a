/* The options of `rollcall plan`: each names a field of the load, with bounds, a default and a help line. */
#ifndef ROLLCALL_PLAN_LOAD_H
#define ROLLCALL_PLAN_LOAD_H

#include "plan/plan.h"

#include <stdio.h>

enum { PLAN_LOAD_ERROR_MAX = 160 };

/* Sets the field that `option` names ("users", "edge-memory", …) from a text such as 100M, 1.5 or 16GiB. On failure
 * returns false and explains in `error`. */
bool plan_load_set(struct plan_load *load, const char *option, const char *text,
                   char error[PLAN_LOAD_ERROR_MAX]);

/* Returns whether all fields that have no default are set; if not, explains in `error`. */
bool plan_load_is_complete(const struct plan_load *load, char error[PLAN_LOAD_ERROR_MAX]);

/* Prints one line for each option. */
void plan_load_print_help(FILE *out);

#endif
