/*
 * Budgets belong to users: what one user may do, over all devices, dialects and REST. Each class of actions has a rate
 * and a burst (limits.* settings); what is beyond is refused with RATE_LIMITED and when to retry.
 *
 *   budget_take()  for frequent actions (messages, REST, reads, signals, calls): the budget of this process
 *   budget_ask()   for rare actions (contact requests, chats, settings): the budget of this process first, so that a
 *                  flood never reaches Redis, and then that of the fleet. If the fleet's store cannot tell, the
 *                  budget of this process decides.
 *
 * Refusals are counted by class, and logged with the user. One `struct budgets` per worker, which borrows its stores;
 * store/memory/memory_budget.h has the memory that workers share. docs/LIMITS.md lists every budget.
 */
#ifndef ROLLCALL_LIMITS_BUDGET_H
#define ROLLCALL_LIMITS_BUDGET_H

#include "config/config.h"
#include "metrics/metrics.h"
#include "store/budget_store.h"

/* The cost of a usual action; costs are given in hundredths of it. */
enum { BUDGET_ONE = 100, BUDGET_USERS_PER_READ = 25 };

struct budgets {
    struct budget_store *local; /* completes before it returns */
    struct budget_store *fleet; /* NULL: this process is alone */
    struct metrics *metrics;
    struct rate rates[BUDGET_CLASS_COUNT];
};

typedef void (*budget_asked)(void *arg, const struct budget_outcome *outcome);

/* Sets the rates; the owner sets the other fields. */
void budgets_init(struct budgets *budgets, const struct config_limits *limits);

/* Pays for an action. Returns false when it is beyond the budget; *retry_after_ms is then the time until it is not. */
bool budget_take(struct budgets *budgets, enum budget_class budget, struct slice user_id,
                 unsigned cost, int64_t *retry_after_ms);

/* The same in the whole fleet. `done` runs exactly once, possibly before this returns. */
void budget_ask(struct budgets *budgets, enum budget_class budget, struct slice user_id,
                unsigned cost, budget_asked done, void *arg);

/* Gives back what an action cost that changed nothing, here and in the fleet; never beyond a full budget. */
void budget_refund(struct budgets *budgets, enum budget_class budget, struct slice user_id,
                   unsigned cost);

/* Fills all budgets of a user, here and in the fleet: nothing is remembered of the user then. */
void budgets_forget(struct budgets *budgets, struct slice user_id);

/* What a client is told when an action is refused. */
const char *budget_refusal_text(enum budget_class budget);

/* The cost of a query for so many users. */
static inline unsigned budget_cost_of_users(size_t count)
{
    return BUDGET_ONE + (unsigned)(count / BUDGET_USERS_PER_READ) * BUDGET_ONE;
}

#endif
