/* Commands on sets. */
#include "redis_model/model_call.h"

static void run_sadd(struct model_call *call)
{
    int64_t added_count = 0;
    bool ok, added;
    struct model_value *set = model_call_write(call, 1, MODEL_SET, &ok);
    if (!ok)
        return;
    for (size_t i = 2; i < call->count; i++) {
        model_member_add(set, call->args[i], &added);
        added_count += added;
    }
    model_reply_int(call, added_count);
}

static void run_srem(struct model_call *call)
{
    model_call_remove_members(call, MODEL_SET);
}

static void run_sismember(struct model_call *call)
{
    bool ok;
    struct model_value *set = model_call_read(call, 1, MODEL_SET, &ok);
    if (ok)
        model_reply_int(call, set && model_member_find(set, call->args[2]));
}

static void run_smismember(struct model_call *call)
{
    bool ok;
    struct model_value *set = model_call_read(call, 1, MODEL_SET, &ok);
    if (!ok)
        return;
    model_reply_array(call, call->count - 2);
    for (size_t i = 2; i < call->count; i++)
        model_reply_int(call, set && model_member_find(set, call->args[i]));
}

static void run_scard(struct model_call *call)
{
    model_call_count_members(call, MODEL_SET);
}

static void run_smembers(struct model_call *call)
{
    bool ok;
    struct model_value *set = model_call_read(call, 1, MODEL_SET, &ok);
    if (!ok)
        return;
    model_reply_set(call, set ? set->count : 0);
    for (size_t i = 0; set && i < set->count; i++)
        model_reply_bulk(call, set->members[i]->name);
}

/* Returns whether the member is in all sets from the second on. */
static bool is_in_all(struct model_call *call, struct slice name)
{
    for (size_t i = 2; i < call->count; i++) {
        struct model_key *key = model_key_find(call->model, call->args[i]);
        if (!key || !model_member_find(key->value, name))
            return false;
    }
    return true;
}

static void run_sinter(struct model_call *call)
{
    struct model_value *first = NULL;
    bool ok = true;
    for (size_t i = call->count - 1; i > 0 && ok; i--)
        first = model_call_read(call, i, MODEL_SET, &ok);
    if (!ok)
        return;
    size_t count = 0;
    for (size_t i = 0; first && i < first->count; i++)
        count += is_in_all(call, first->members[i]->name);
    model_reply_set(call, count);
    for (size_t i = 0; first && i < first->count; i++)
        if (is_in_all(call, first->members[i]->name))
            model_reply_bulk(call, first->members[i]->name);
}

/* The whole set in one page. */
static void run_sscan(struct model_call *call)
{
    bool ok;
    struct model_value *set = model_call_read(call, 1, MODEL_SET, &ok);
    if (!ok)
        return;
    model_reply_array(call, 2);
    model_reply_bulk(call, SLICE("0"));
    model_reply_array(call, set ? set->count : 0);
    for (size_t i = 0; set && i < set->count; i++)
        model_reply_bulk(call, set->members[i]->name);
}

const struct model_command model_set_commands[] = {
    {"SADD", run_sadd, 3, 0, MODEL_WRITES | MODEL_NEEDS_MEMORY},
    {"SREM", run_srem, 3, 0, MODEL_WRITES},
    {"SISMEMBER", run_sismember, 3, 3, 0},
    {"SMISMEMBER", run_smismember, 3, 0, 0},
    {"SCARD", run_scard, 2, 2, 0},
    {"SMEMBERS", run_smembers, 2, 2, 0},
    {"SINTER", run_sinter, 2, 0, MODEL_ALL_KEYS},
    {"SSCAN", run_sscan, 3, 0, 0},
    {0},
};
