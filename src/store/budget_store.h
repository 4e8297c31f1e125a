/*
 * The budget store: the port to what users have left of their budgets.
 *
 * A user has one budget in each class of actions (limits/budget.h has their rates), over all devices. A budget that is
 * full is no record: a user who has done nothing for a while costs nothing.
 *
 * Contract of take(): it is asynchronous and never blocks. The completion runs exactly once, on the calling worker's
 * thread, possibly before the operation returns; the backend in memory always completes before it returns. Arguments
 * are borrowed until the operation returns. When the status is not STATE_OK, the store cannot tell and the caller
 * decides. There is one `struct budget_store` per worker.
 *
 * The suite in tests/conformance/budget_store_suite.c tests all of this for every backend.
 */
#ifndef ROLLCALL_STORE_BUDGET_STORE_H
#define ROLLCALL_STORE_BUDGET_STORE_H

#include "base/rate_limit.h"
#include "base/slice.h"
#include "store/state_store.h"

enum budget_class {
    BUDGET_NONE, /* of actions that no budget of their own limits */
    BUDGET_MESSAGES,
    BUDGET_REST,
    BUDGET_CONTACT_REQUESTS,
    BUDGET_CHATS,
    BUDGET_SETTINGS,
    BUDGET_READS,
    BUDGET_SIGNALS,
    BUDGET_CALLS,
    BUDGET_EVENTS,
    BUDGET_SERVICE,  /* of an API key, or of a token with scope `service` */
    BUDGET_REFUSALS, /* refusals over HTTP that are answered without delay */
    BUDGET_CLASS_COUNT
};

/* One action to be paid for. */
struct budget_claim {
    enum budget_class budget;
    struct slice user_id;
    struct rate rate;
    int64_t cost_us; /* as in rate_limit_take(); negative: gives back, never beyond a full budget */
};

struct budget_outcome {
    bool granted;
    int64_t retry_after_ms; /* if not granted */
};

struct budget_store;

typedef void (*budget_take_done)(void *arg, enum state_status status,
                                 const struct budget_outcome *outcome);

struct budget_store_operations {
    void (*take)(struct budget_store *store, const struct budget_claim *claim,
                 budget_take_done done, void *arg);
    void (*free)(struct budget_store *store);
};

struct budget_store {
    const struct budget_store_operations *operations;
};

/* The name of a class in keys, logs and errors. */
const char *budget_class_name(enum budget_class budget);

/* Pays for an action, if the user's budget suffices; otherwise changes nothing. */
static inline void budget_store_take(struct budget_store *store, const struct budget_claim *claim,
                                     budget_take_done done, void *arg)
{
    store->operations->take(store, claim, done, arg);
}

static inline void budget_store_free(struct budget_store **store)
{
    struct budget_store *freed = *store;
    *store = NULL;
    if (freed)
        freed->operations->free(freed);
}

#endif
