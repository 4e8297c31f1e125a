#include "store/redis/redis_budget.h"

#include "base/container.h"
#include "store/redis/redis_keys.h"
#include "store/redis/redis_lua.h"
#include "store/redis/redis_store.h"

#include <stdlib.h>

enum { BUDGET_PREFIX_BYTES_MAX = 64 };

struct redis_budget {
    struct budget_store store;
    struct redis_budget_options options;
    struct redis_keys keys;
    struct redis_script script;
    size_t pending; /* operations; the last one frees a store that its owner has freed */
    bool is_freed;
};

/* One pending operation. */
struct budget_operation {
    struct redis_budget *budget;
    budget_take_done done;
    void *arg;
};

static struct redis_budget *redis_budget_of(struct budget_store *store)
{
    return CONTAINER_OF(store, struct redis_budget, store);
}

static void on_budget_taken(void *arg, const struct resp_value *reply)
{
    struct budget_operation operation = *(struct budget_operation *)arg;
    struct budget_outcome outcome = {0};
    enum state_status status = reply ? STATE_UNAVAILABLE : STATE_UNKNOWN;
    free(arg);
    if (--operation.budget->pending == 0 && operation.budget->is_freed)
        free(operation.budget);
    if (redis_store_is_array(reply, 2) && redis_store_is_integer(&reply->items[0])) {
        status = STATE_OK;
        outcome = (struct budget_outcome){reply->items[0].integer == 1,
                                          redis_store_integer(&reply->items[1])};
    }
    operation.done(operation.arg, status, &outcome);
}

static void redis_budget_take(struct budget_store *store, const struct budget_claim *claim,
                              budget_take_done done, void *arg)
{
    struct redis_budget *budget = redis_budget_of(store);
    struct budget_operation *operation = malloc(sizeof(*operation));
    char prefix[BUDGET_PREFIX_BYTES_MAX], key[REDIS_KEY_BYTES_MAX];
    struct redis_store_number time, full, cost;
    if (!operation) {
        done(arg, STATE_UNAVAILABLE, &(struct budget_outcome){0});
        return;
    }
    *operation = (struct budget_operation){budget, done, arg};
    budget->pending++;
    snprintf(prefix, sizeof(prefix), "budget:%s:", budget_class_name(claim->budget));
    redis_eval(budget->options.client, &budget->script,
               REDIS_ARGS(redis_key_user(&budget->keys, key, prefix, claim->user_id, "")),
               REDIS_ARGS(redis_store_time(&time, budget->options.clock),
                          redis_store_number(&full, claim->rate.full_us),
                          redis_store_number(&cost, claim->cost_us)),
               on_budget_taken, operation);
}

static void redis_budget_free(struct budget_store *store)
{
    struct redis_budget *budget = redis_budget_of(store);
    budget->is_freed = true;
    if (budget->pending == 0)
        free(budget);
}

static const struct budget_store_operations OPERATIONS = {
    .take = redis_budget_take,
    .free = redis_budget_free,
};

struct budget_store *redis_budget_make(const struct redis_budget_options *options)
{
    struct redis_budget *budget = malloc(sizeof(*budget));
    if (!budget)
        return NULL;
    *budget = (struct redis_budget){.store = {&OPERATIONS},
                                    .options = *options,
                                    .keys.cluster = redis_is_cluster(options->client)};
    if (!redis_script_init(&budget->script, slice_of(REDIS_LUA_BUDGET))) {
        free(budget);
        return NULL;
    }
    return &budget->store;
}
