/* Commands on sorted sets. */
#include "redis_model/model_call.h"

#include <math.h>

struct zadd_options {
    bool only_new;
    bool only_existing;
    bool only_greater;
    bool only_less;
    bool counts_changes;
    size_t first; /* argument of the first score */
};

static struct zadd_options read_zadd_options(struct model_call *call)
{
    struct zadd_options options = {.first = 2};
    for (; options.first < call->count; options.first++) {
        struct slice word = call->args[options.first];
        if (model_slice_is_word(word, "NX"))
            options.only_new = true;
        else if (model_slice_is_word(word, "XX"))
            options.only_existing = true;
        else if (model_slice_is_word(word, "GT"))
            options.only_greater = true;
        else if (model_slice_is_word(word, "LT"))
            options.only_less = true;
        else if (model_slice_is_word(word, "CH"))
            options.counts_changes = true;
        else
            break;
    }
    return options;
}

/* Returns what ZADD counts for this member. */
static int add_scored(struct model_value *set, struct slice name, double score,
                      const struct zadd_options *options)
{
    struct model_member *member = model_member_find(set, name);
    bool added;
    if (!member) {
        if (options->only_existing)
            return 0;
        member = model_member_add(set, name, &added);
        model_member_set_score(set, member, score);
        return 1;
    }
    bool changes = member->score != score && !options->only_new &&
                   (!options->only_greater || score > member->score) &&
                   (!options->only_less || score < member->score);
    if (changes)
        model_member_set_score(set, member, score);
    return changes && options->counts_changes;
}

static void run_zadd(struct model_call *call)
{
    struct zadd_options options = read_zadd_options(call);
    int64_t counted = 0;
    double score;
    bool ok;
    if (options.first >= call->count || (call->count - options.first) % 2) {
        model_reply_error(call, MODEL_SYNTAX);
        return;
    }
    for (size_t i = options.first; i < call->count; i += 2)
        if (!model_call_double(call, i, &score))
            return;
    struct model_value *set = model_call_write(call, 1, MODEL_SORTED_SET, &ok);
    if (!ok)
        return;
    for (size_t i = options.first; i < call->count; i += 2) {
        model_parse_double(call->args[i], &score);
        counted += add_scored(set, call->args[i + 1], score, &options);
    }
    model_call_drop_if_empty(call, 1);
    model_reply_int(call, counted);
}

static void run_zrem(struct model_call *call)
{
    model_call_remove_members(call, MODEL_SORTED_SET);
}

static void run_zscore(struct model_call *call)
{
    bool ok;
    struct model_value *set = model_call_read(call, 1, MODEL_SORTED_SET, &ok);
    struct model_member *member = set ? model_member_find(set, call->args[2]) : NULL;
    if (member)
        model_reply_score(call, member->score);
    else if (ok)
        model_reply_null(call);
}

static void run_zcard(struct model_call *call)
{
    model_call_count_members(call, MODEL_SORTED_SET);
}

/* ---- ranges ---- */

/* Members from `first` on, in steps of 1 or, in reverse, -1. */
static void reply_range(struct model_call *call, const struct model_value *set, size_t first,
                        size_t count, bool in_reverse, bool with_scores)
{
    bool in_pairs = with_scores && call->resp == 3;
    model_reply_array(call, with_scores && !in_pairs ? 2 * count : count);
    for (size_t i = 0; i < count; i++) {
        const struct model_member *member = set->by_score[in_reverse ? first - i : first + i];
        if (in_pairs)
            model_reply_array(call, 2);
        model_reply_bulk(call, member->name);
        if (with_scores)
            model_reply_score(call, member->score);
    }
}

static void reply_rank_range(struct model_call *call, bool in_reverse)
{
    int64_t start, stop;
    bool ok, with_scores = call->count == 5;
    if (!model_call_int(call, 2, &start) || !model_call_int(call, 3, &stop))
        return;
    if (with_scores && !model_slice_is_word(call->args[4], "WITHSCORES")) {
        model_reply_error(call, MODEL_SYNTAX);
        return;
    }
    struct model_value *set = model_call_read(call, 1, MODEL_SORTED_SET, &ok);
    if (!ok)
        return;
    int64_t held = set ? (int64_t)set->count : 0;
    start = start < 0 ? start + held : start;
    stop = stop < 0 ? stop + held : stop;
    start = start < 0 ? 0 : start;
    stop = stop >= held ? held - 1 : stop;
    size_t count = start > stop ? 0 : (size_t)(stop - start + 1);
    size_t first = in_reverse ? (size_t)(held - 1 - start) : (size_t)start;
    reply_range(call, set, first, count, in_reverse, with_scores);
}

static void run_zrange(struct model_call *call)
{
    reply_rank_range(call, false);
}

static void run_zrevrange(struct model_call *call)
{
    reply_rank_range(call, true);
}

struct score_range {
    size_t first;
    size_t end; /* behind the last */
};

/* Replies the error and returns false. */
static bool read_score_range(struct model_call *call, const struct model_value *set,
                             struct score_range *range)
{
    double low, high;
    bool low_exclusive, high_exclusive;
    if (!model_parse_bound(call->args[2], &low, &low_exclusive) ||
        !model_parse_bound(call->args[3], &high, &high_exclusive)) {
        model_reply_error(call, "ERR min or max is not a float");
        return false;
    }
    *range = (struct score_range){0};
    if (!set)
        return true;
    range->first = model_score_index(set, low, low_exclusive);
    range->end = model_score_index(set, high, !high_exclusive);
    if (range->end < range->first)
        range->end = range->first;
    return true;
}

static void run_zcount(struct model_call *call)
{
    struct score_range range;
    bool ok;
    struct model_value *set = model_call_read(call, 1, MODEL_SORTED_SET, &ok);
    if (ok && read_score_range(call, set, &range))
        model_reply_int(call, (int64_t)(range.end - range.first));
}

static void run_zremrangebyscore(struct model_call *call)
{
    struct score_range range;
    bool ok;
    struct model_value *set = model_call_read(call, 1, MODEL_SORTED_SET, &ok);
    if (!ok || !read_score_range(call, set, &range))
        return;
    for (size_t i = range.first; i < range.end; i++)
        model_member_remove(set, set->by_score[range.first]);
    model_call_drop_if_empty(call, 1);
    model_reply_int(call, (int64_t)(range.end - range.first));
}

static void run_zrangebyscore(struct model_call *call)
{
    struct score_range range;
    bool ok, with_scores = false;
    int64_t offset = 0, limit = -1;
    for (size_t i = 4; i < call->count; i++) {
        if (model_slice_is_word(call->args[i], "WITHSCORES")) {
            with_scores = true;
        } else if (model_slice_is_word(call->args[i], "LIMIT") && i + 2 < call->count) {
            if (!model_call_int(call, i + 1, &offset) || !model_call_int(call, i + 2, &limit))
                return;
            i += 2;
        } else {
            model_reply_error(call, MODEL_SYNTAX);
            return;
        }
    }
    struct model_value *set = model_call_read(call, 1, MODEL_SORTED_SET, &ok);
    if (!ok || !read_score_range(call, set, &range))
        return;
    size_t held = range.end - range.first;
    size_t skipped = offset < 0 || (size_t)offset > held ? held : (size_t)offset;
    size_t count = held - skipped;
    if (limit >= 0 && (size_t)limit < count)
        count = (size_t)limit;
    reply_range(call, set, range.first + skipped, count, false, with_scores);
}

const struct model_command model_sorted_set_commands[] = {
    {"ZADD", run_zadd, 4, 0, MODEL_WRITES | MODEL_NEEDS_MEMORY},
    {"ZREM", run_zrem, 3, 0, MODEL_WRITES},
    {"ZSCORE", run_zscore, 3, 3, 0},
    {"ZCARD", run_zcard, 2, 2, 0},
    {"ZRANGE", run_zrange, 4, 5, 0},
    {"ZREVRANGE", run_zrevrange, 4, 5, 0},
    {"ZCOUNT", run_zcount, 4, 4, 0},
    {"ZRANGEBYSCORE", run_zrangebyscore, 4, 0, 0},
    {"ZREMRANGEBYSCORE", run_zremrangebyscore, 4, 4, MODEL_WRITES},
    {0},
};
