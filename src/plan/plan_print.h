/* A plan as text for people and as JSON for programs. */
#ifndef ROLLCALL_PLAN_PRINT_H
#define ROLLCALL_PLAN_PRINT_H

#include "base/buffer.h"
#include "plan/plan.h"

/* Both append to `out`; check out->failed once at the end. */
void plan_print_text(const struct plan *plan, const struct plan_load *load, struct buffer *out);
void plan_print_json(const struct plan *plan, const struct plan_load *load, struct buffer *out);

#endif
