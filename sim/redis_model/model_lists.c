/* Commands on lists. */
#include "redis_model/model_call.h"

static void push(struct model_call *call, bool to_the_left)
{
    bool ok;
    struct model_value *list = model_call_write(call, 1, MODEL_LIST, &ok);
    if (!ok)
        return;
    for (size_t i = 2; i < call->count; i++)
        model_list_insert(list, to_the_left ? 0 : list->count, call->args[i]);
    model_reply_int(call, (int64_t)list->count);
}

static void run_lpush(struct model_call *call)
{
    push(call, true);
}

static void run_rpush(struct model_call *call)
{
    push(call, false);
}

static void run_llen(struct model_call *call)
{
    model_call_count_members(call, MODEL_LIST);
}

static void run_lpop(struct model_call *call)
{
    int64_t wanted = 1;
    bool ok, has_count = call->count == 3;
    if (has_count && (!model_call_int(call, 2, &wanted) || wanted < 0)) {
        if (wanted < 0)
            model_reply_error(call, "ERR value is out of range, must be positive");
        return;
    }
    struct model_value *list = model_call_read(call, 1, MODEL_LIST, &ok);
    if (!ok)
        return;
    if (!list) {
        if (has_count)
            model_reply_null_array(call);
        else
            model_reply_null(call);
        return;
    }
    size_t count = (size_t)wanted < list->count ? (size_t)wanted : list->count;
    if (has_count)
        model_reply_array(call, count);
    for (size_t i = 0; i < count; i++)
        model_reply_bulk(call, list->members[i]->name);
    model_list_remove(list, 0, count);
    model_call_drop_if_empty(call, 1);
}

/* Replies the error and returns false. Otherwise the range is [*first, *first + *count). */
static bool read_index_range(struct model_call *call, size_t held, size_t *first, size_t *count)
{
    int64_t start, stop, len = (int64_t)held;
    if (!model_call_int(call, 2, &start) || !model_call_int(call, 3, &stop))
        return false;
    start = start < 0 ? start + len : start;
    stop = stop < 0 ? stop + len : stop;
    start = start < 0 ? 0 : start;
    stop = stop >= len ? len - 1 : stop;
    *count = start > stop ? 0 : (size_t)(stop - start + 1);
    *first = *count ? (size_t)start : 0;
    return true;
}

static void run_lrange(struct model_call *call)
{
    size_t first, count;
    bool ok;
    struct model_value *list = model_call_read(call, 1, MODEL_LIST, &ok);
    if (!ok || !read_index_range(call, list ? list->count : 0, &first, &count))
        return;
    model_reply_array(call, count);
    for (size_t i = 0; i < count; i++)
        model_reply_bulk(call, list->members[first + i]->name);
}

static void run_ltrim(struct model_call *call)
{
    size_t first, count;
    bool ok;
    struct model_value *list = model_call_read(call, 1, MODEL_LIST, &ok);
    if (!ok || !read_index_range(call, list ? list->count : 0, &first, &count))
        return;
    if (list) {
        model_list_remove(list, first + count, list->count - first - count);
        model_list_remove(list, 0, first);
    }
    model_call_drop_if_empty(call, 1);
    model_reply_ok(call);
}

const struct model_command model_list_commands[] = {
    {"LPUSH", run_lpush, 3, 0, MODEL_WRITES | MODEL_NEEDS_MEMORY},
    {"RPUSH", run_rpush, 3, 0, MODEL_WRITES | MODEL_NEEDS_MEMORY},
    {"LLEN", run_llen, 2, 2, 0},
    {"LPOP", run_lpop, 2, 3, MODEL_WRITES},
    {"LRANGE", run_lrange, 4, 4, 0},
    {"LTRIM", run_ltrim, 4, 4, MODEL_WRITES},
    {0},
};
