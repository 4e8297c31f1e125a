#include "base/container.h"
#include "store/aggregate/aggregate_forward.h"
#include "store/aggregate/aggregate_stores.h"

#include <stdlib.h>

struct aggregate_budget {
    struct budget_store store;
    struct aggregate_client *client;
};

static void complete_budget_take(const struct aggregate_forwarded *forwarded,
                                 const union aggregate_outcome *outcome)
{
    struct budget_outcome nothing = {0};
    ((budget_take_done)forwarded->done)(forwarded->arg,
                                        outcome ? outcome->status : forwarded->status,
                                        outcome ? &outcome->budget.outcome : &nothing);
}

static void aggregate_budget_take(struct budget_store *store, const struct budget_claim *claim,
                                  budget_take_done done, void *arg)
{
    struct aggregate_budget *budget = CONTAINER_OF(store, struct aggregate_budget, store);
    aggregate_forward(budget->client, claim->user_id, AGGREGATE_BUDGET_TAKE,
                      &(union aggregate_arguments){.claim = *claim}, SLICE_NONE,
                      complete_budget_take, (aggregate_any_done)done, arg);
}

static void aggregate_budget_free(struct budget_store *store)
{
    free(CONTAINER_OF(store, struct aggregate_budget, store));
}

static const struct budget_store_operations OPERATIONS = {
    .take = aggregate_budget_take,
    .free = aggregate_budget_free,
};

struct budget_store *aggregate_budget_make(struct aggregate_client *client)
{
    struct aggregate_budget *budget = calloc(1, sizeof(*budget));
    if (!budget)
        return NULL;
    budget->store.operations = &OPERATIONS;
    budget->client = client;
    return &budget->store;
}
