#include "redis/protocol/redis_info.h"

#include "base/container.h"

#include <stdlib.h>

/* A round belongs to the answers under way as well: it goes with the last of them. */
struct round {
    struct redis_info *info; /* NULL: nobody waits for it any more */
    size_t answers_left;
    size_t answers_good;
    struct redis_figures figures;
};

struct redis_info {
    struct redis_client *client;
    struct loop *loop;
    struct metrics *metrics;
    struct wheel_timer timer;
    struct round *round;
};

/* The number behind "name:" at the start of a line; 0 when it is not there. */
static int64_t figure(struct slice text, const char *name)
{
    struct slice line;
    struct slice before;
    while (text.data) {
        int64_t value;
        text = slice_split(text, '\n', &line);
        struct slice digits = slice_split(line, ':', &before);
        if (!slice_is(before, name))
            continue;
        if (digits.len && digits.data[digits.len - 1] == '\r')
            digits.len--;
        return resp_parse_integer(digits, &value) ? value : 0;
    }
    return 0;
}

static int64_t memory_pct(struct slice text)
{
    int64_t limit = figure(text, "maxmemory");
    if (limit <= 0)
        limit = figure(text, "total_system_memory");
    return limit > 0 ? figure(text, "used_memory") / (limit / 100 ? limit / 100 : 1) : 0;
}

void redis_figures_add(struct redis_figures *figures, struct slice text)
{
    int64_t pct = memory_pct(text);
    if (pct > figures->used_memory_pct)
        figures->used_memory_pct = pct;
    figures->keyspace_hits += figure(text, "keyspace_hits");
    figures->keyspace_misses += figure(text, "keyspace_misses");
    figures->expired_keys += figure(text, "expired_keys");
    figures->evicted_keys += figure(text, "evicted_keys");
    figures->connected_clients += figure(text, "connected_clients");
    figures->pubsub_channels +=
        figure(text, "pubsub_channels") + figure(text, "pubsubshard_channels");
    figures->pubsub_patterns += figure(text, "pubsub_patterns");
}

static void show(struct metrics *metrics, const struct redis_figures *figures)
{
    metrics_set(metrics, METRIC_REDIS_USED_MEMORY_PCT, figures->used_memory_pct);
    metrics_set(metrics, METRIC_REDIS_KEYSPACE_HITS, figures->keyspace_hits);
    metrics_set(metrics, METRIC_REDIS_KEYSPACE_MISSES, figures->keyspace_misses);
    metrics_set(metrics, METRIC_REDIS_EXPIRED_KEYS, figures->expired_keys);
    metrics_set(metrics, METRIC_REDIS_EVICTED_KEYS, figures->evicted_keys);
    metrics_set(metrics, METRIC_REDIS_CONNECTED_CLIENTS, figures->connected_clients);
    metrics_set(metrics, METRIC_REDIS_PUBSUB_CHANNELS, figures->pubsub_channels);
    metrics_set(metrics, METRIC_REDIS_PUBSUB_PATTERNS, figures->pubsub_patterns);
}

static void finish(struct round *round)
{
    if (round->info) {
        if (round->answers_good > 0)
            show(round->info->metrics, &round->figures);
        round->info->round = NULL;
    }
    free(round);
}

static void take_info(void *arg, const struct resp_value *reply)
{
    struct round *round = arg;
    if (reply && reply->type == RESP_TEXT) {
        redis_figures_add(&round->figures, reply->text);
        round->answers_good++;
    }
    if (--round->answers_left == 0)
        finish(round);
}

static void ask_all(struct redis_info *info)
{
    size_t masters = redis_master_count(info->client);
    struct round *round = masters ? calloc(1, sizeof(*round)) : NULL;
    if (!round)
        return;
    round->info = info;
    round->answers_left = masters;
    info->round = round;
    for (size_t i = 0; i < masters; i++)
        redis_command_on(info->client, i, REDIS_ARGS(SLICE("INFO")), take_info, round);
}

static void fire(struct wheel_timer *timer)
{
    struct redis_info *info = CONTAINER_OF(timer, struct redis_info, timer);
    if (!info->round && redis_available(info->client))
        ask_all(info);
    loop_set_timer(info->loop, timer, info->loop->clock.now_ms + REDIS_INFO_INTERVAL_MS);
}

struct redis_info *redis_info_make(struct redis_client *client, struct loop *loop,
                                   struct metrics *metrics)
{
    struct redis_info *info = calloc(1, sizeof(*info));
    if (!info)
        return NULL;
    *info = (struct redis_info){
        .client = client, .loop = loop, .metrics = metrics, .timer = {.fire = fire}};
    loop_set_timer(loop, &info->timer, loop->clock.now_ms + REDIS_INFO_INTERVAL_MS / 10);
    return info;
}

void redis_info_free(struct redis_info **info)
{
    struct redis_info *freed = *info;
    *info = NULL;
    if (!freed)
        return;
    loop_cancel_timer(freed->loop, &freed->timer);
    if (freed->round)
        freed->round->info = NULL;
    free(freed);
}
