#include "redis/redis_info.h"

#include "base/container.h"

#include <stdlib.h>

/* One poll of all masters. Its last reply frees it, even after the redis_info was freed. */
struct info_poll {
    struct redis_info *info; /* NULL: it was freed */
    size_t answers_left;
    size_t answers_good;
    struct redis_figures figures;
};

struct redis_info {
    struct redis_client *client;
    struct loop *loop;
    struct metrics *metrics;
    struct wheel_timer timer;
    struct info_poll *poll;
};

/* Returns the number after "name:" at the start of a line; 0 when there is none. */
static int64_t info_read_figure(struct slice text, const char *name)
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

void redis_figures_add(struct redis_figures *figures, struct slice text)
{
    int64_t limit = info_read_figure(text, "maxmemory");
    if (limit <= 0)
        limit = info_read_figure(text, "total_system_memory");
    double used = (double)info_read_figure(text, "used_memory");
    int64_t pct_mille = limit > 0 ? (int64_t)(used * 100 * 1000 / (double)limit) : 0;
    if (pct_mille > figures->used_memory_pct_mille)
        figures->used_memory_pct_mille = pct_mille;
    figures->keyspace_hits += info_read_figure(text, "keyspace_hits");
    figures->keyspace_misses += info_read_figure(text, "keyspace_misses");
    figures->expired_keys += info_read_figure(text, "expired_keys");
    figures->evicted_keys += info_read_figure(text, "evicted_keys");
    figures->connected_clients += info_read_figure(text, "connected_clients");
    figures->pubsub_channels +=
        info_read_figure(text, "pubsub_channels") + info_read_figure(text, "pubsubshard_channels");
    figures->pubsub_patterns += info_read_figure(text, "pubsub_patterns");
}

static void on_info_reply(void *arg, const struct resp_value *reply)
{
    struct info_poll *poll = arg;
    if (reply && reply->type == RESP_TEXT) {
        redis_figures_add(&poll->figures, reply->text);
        poll->answers_good++;
    }
    if (--poll->answers_left > 0)
        return;
    struct redis_info *info = poll->info;
    const struct redis_figures *figures = &poll->figures;
    if (info)
        info->poll = NULL;
    if (info && poll->answers_good > 0) {
        metrics_set(info->metrics, METRIC_REDIS_USED_MEMORY_PCT, figures->used_memory_pct_mille);
        metrics_set(info->metrics, METRIC_REDIS_KEYSPACE_HITS, figures->keyspace_hits);
        metrics_set(info->metrics, METRIC_REDIS_KEYSPACE_MISSES, figures->keyspace_misses);
        metrics_set(info->metrics, METRIC_REDIS_EXPIRED_KEYS, figures->expired_keys);
        metrics_set(info->metrics, METRIC_REDIS_EVICTED_KEYS, figures->evicted_keys);
        metrics_set(info->metrics, METRIC_REDIS_CONNECTED_CLIENTS, figures->connected_clients);
        metrics_set(info->metrics, METRIC_REDIS_PUBSUB_CHANNELS, figures->pubsub_channels);
        metrics_set(info->metrics, METRIC_REDIS_PUBSUB_PATTERNS, figures->pubsub_patterns);
    }
    free(poll);
}

static void on_info_timer(struct wheel_timer *timer)
{
    struct redis_info *info = CONTAINER_OF(timer, struct redis_info, timer);
    loop_set_timer(info->loop, timer, info->loop->clock.now_ms + REDIS_INFO_INTERVAL_MS);
    if (info->poll || !redis_available(info->client))
        return;
    size_t masters = redis_master_count(info->client);
    struct info_poll *poll = masters ? calloc(1, sizeof(*poll)) : NULL;
    if (!poll)
        return;
    poll->info = info;
    poll->answers_left = masters;
    info->poll = poll;
    for (size_t i = 0; i < masters; i++)
        redis_command_on(info->client, i, REDIS_ARGS(SLICE("INFO")), on_info_reply, poll);
}

struct redis_info *redis_info_make(struct redis_client *client, struct loop *loop,
                                   struct metrics *metrics)
{
    struct redis_info *info = calloc(1, sizeof(*info));
    if (!info)
        return NULL;
    *info = (struct redis_info){
        .client = client, .loop = loop, .metrics = metrics, .timer = {.fire = on_info_timer}};
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
    if (freed->poll)
        freed->poll->info = NULL;
    free(freed);
}
