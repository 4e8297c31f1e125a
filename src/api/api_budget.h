/*
 * The budgets of users over REST (limits/budget.h): each request of a user takes from the budget for REST, and what it
 * does from that of its class, which the route names.
 *
 *   token verified ──api_budget_serve()──► paid for ──► the route's handler
 *                                      └─► 429 with Retry-After, at once, or after API_BUDGET_HOLD_MS for a user who
 *                                          keeps on: meanwhile the connection is not read
 *
 * A POST that returns an existing chat is given back its cost, because clients send it whenever they open one.
 *
 * Requests to /v1/service take from the budget of their key. Other routes that need a scope belong to operators and have no
 * budget. A held answer costs what its
 * exchange costs, so connections bound their number. One thread.
 */
#ifndef ROLLCALL_API_API_BUDGET_H
#define ROLLCALL_API_API_BUDGET_H

#include "api/api_context.h"

enum { API_BUDGET_HOLD_MS = 1000 };

/* Lets the route's handler answer, or refuses. The user is known. */
void api_budget_serve(struct exchange *exchange);

/* Takes from another budget of the same user or key. Returns false after refusing the request. */
bool api_budget_charge(struct exchange **exchange, enum budget_class budget, unsigned cost);

/* Gives back what the request took from the budget of its route: there was nothing to do. */
void api_budget_refund(struct exchange *exchange);

/* Answers what is held back: the gateway ends. */
void api_budget_release(struct api_context *context);

#endif
