/* Commands on hashes. */
#include "redis_model/model_call.h"

#include <stdio.h>

static void run_hset(struct model_call *call)
{
    int64_t added_count = 0;
    bool ok, added;
    if (call->count % 2) {
        model_reply_error(call, "ERR wrong number of arguments for 'hset' command");
        return;
    }
    struct model_value *hash = model_call_write(call, 1, MODEL_HASH, &ok);
    if (!ok)
        return;
    for (size_t i = 2; i < call->count; i += 2) {
        model_member_set_text(model_member_add(hash, call->args[i], &added), call->args[i + 1]);
        added_count += added;
    }
    model_reply_int(call, added_count);
}

static void run_hsetnx(struct model_call *call)
{
    bool ok, added;
    struct model_value *hash = model_call_write(call, 1, MODEL_HASH, &ok);
    if (!ok)
        return;
    struct model_member *field = model_member_add(hash, call->args[2], &added);
    if (added)
        model_member_set_text(field, call->args[3]);
    model_reply_int(call, added);
}

static void reply_field(struct model_call *call, const struct model_value *hash, struct slice name)
{
    struct model_member *field = hash ? model_member_find(hash, name) : NULL;
    if (field)
        model_reply_bulk(call, field->text);
    else
        model_reply_null(call);
}

static void run_hget(struct model_call *call)
{
    bool ok;
    struct model_value *hash = model_call_read(call, 1, MODEL_HASH, &ok);
    if (ok)
        reply_field(call, hash, call->args[2]);
}

static void run_hmget(struct model_call *call)
{
    bool ok;
    struct model_value *hash = model_call_read(call, 1, MODEL_HASH, &ok);
    if (!ok)
        return;
    model_reply_array(call, call->count - 2);
    for (size_t i = 2; i < call->count; i++)
        reply_field(call, hash, call->args[i]);
}

static void run_hgetall(struct model_call *call)
{
    bool ok;
    struct model_value *hash = model_call_read(call, 1, MODEL_HASH, &ok);
    if (!ok)
        return;
    size_t count = hash ? hash->count : 0;
    model_reply_map(call, count);
    for (size_t i = 0; i < count; i++) {
        model_reply_bulk(call, hash->members[i]->name);
        model_reply_bulk(call, hash->members[i]->text);
    }
}

static void run_hkeys(struct model_call *call)
{
    bool ok;
    struct model_value *hash = model_call_read(call, 1, MODEL_HASH, &ok);
    if (!ok)
        return;
    model_reply_array(call, hash ? hash->count : 0);
    for (size_t i = 0; hash && i < hash->count; i++)
        model_reply_bulk(call, hash->members[i]->name);
}

static void run_hdel(struct model_call *call)
{
    model_call_remove_members(call, MODEL_HASH);
}

static void run_hlen(struct model_call *call)
{
    model_call_count_members(call, MODEL_HASH);
}

static void run_hexists(struct model_call *call)
{
    bool ok;
    struct model_value *hash = model_call_read(call, 1, MODEL_HASH, &ok);
    if (ok)
        model_reply_int(call, hash && model_member_find(hash, call->args[2]));
}

static void run_hincrby(struct model_call *call)
{
    int64_t by, before = 0;
    char text[32];
    bool ok, added;
    if (!model_call_int(call, 3, &by))
        return;
    struct model_value *hash = model_call_read(call, 1, MODEL_HASH, &ok);
    if (!ok)
        return;
    struct model_member *field = hash ? model_member_find(hash, call->args[2]) : NULL;
    if (field && !resp_parse_integer(field->text, &before)) {
        model_reply_error(call, "ERR hash value is not an integer");
        return;
    }
    if (__builtin_add_overflow(before, by, &before)) {
        model_reply_error(call, "ERR increment or decrement would overflow");
        return;
    }
    hash = model_call_write(call, 1, MODEL_HASH, &ok);
    field = model_member_add(hash, call->args[2], &added);
    snprintf(text, sizeof(text), "%lld", (long long)before);
    model_member_set_text(field, slice_of(text));
    model_reply_int(call, before);
}

/* A positive count asks for different fields: from a random one on, in order. */
static void run_hrandfield(struct model_call *call)
{
    int64_t wanted;
    bool ok, with_values = call->count == 4;
    if (!model_call_int(call, 2, &wanted))
        return;
    if (wanted < 0 || (with_values && !model_slice_is_word(call->args[3], "WITHVALUES"))) {
        model_reply_error(call, MODEL_SYNTAX);
        return;
    }
    struct model_value *hash = model_call_read(call, 1, MODEL_HASH, &ok);
    if (!ok)
        return;
    size_t held = hash ? hash->count : 0;
    size_t count = (size_t)wanted < held ? (size_t)wanted : held;
    call->model->random = call->model->random * 6364136223846793005u + 1442695040888963407u;
    size_t first = held ? (size_t)(call->model->random >> 33) % held : 0;
    bool in_pairs = with_values && call->resp == 3;
    model_reply_array(call, with_values && !in_pairs ? 2 * count : count);
    for (size_t i = 0; i < count; i++) {
        struct model_member *field = hash->members[(first + i) % held];
        if (in_pairs)
            model_reply_array(call, 2);
        model_reply_bulk(call, field->name);
        if (with_values)
            model_reply_bulk(call, field->text);
    }
}

const struct model_command model_hash_commands[] = {
    {"HSET", run_hset, 4, 0, MODEL_WRITES | MODEL_NEEDS_MEMORY},
    {"HSETNX", run_hsetnx, 4, 4, MODEL_WRITES | MODEL_NEEDS_MEMORY},
    {"HGET", run_hget, 3, 3, 0},
    {"HMGET", run_hmget, 3, 0, 0},
    {"HGETALL", run_hgetall, 2, 2, 0},
    {"HKEYS", run_hkeys, 2, 2, 0},
    {"HDEL", run_hdel, 3, 0, MODEL_WRITES},
    {"HLEN", run_hlen, 2, 2, 0},
    {"HEXISTS", run_hexists, 3, 3, 0},
    {"HINCRBY", run_hincrby, 4, 4, MODEL_WRITES | MODEL_NEEDS_MEMORY},
    {"HRANDFIELD", run_hrandfield, 3, 4, 0},
    {0},
};
