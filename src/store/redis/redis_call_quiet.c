/*
 * Shards without calls, which the reaper leaves out. Whether a shard's index exists is read with tracking, and Redis reports
 * when a call begins there (redis_client.h), so a fleet without calls asks nothing. It is read at most once in
 * QUIET_READ_MS, since a shard with calls changes all the time, and again after QUIET_MS, in case a report was missed: nobody
 * reports that a slot without keys has moved, which the client finds when it next fetches the table of slots.
 */
#include "base/container.h"
#include "store/redis/redis_call_internal.h"

enum { QUIET_READ_MS = 5000, QUIET_MS = 300000 };

static int64_t quiet_now_ms(const struct redis_call_backend *calls)
{
    return calls->options.loop->clock.now_ms;
}

static void on_call_index_read(void *arg, const struct resp_value *reply)
{
    struct redis_call_shard *shard = arg;
    struct redis_call_backend *calls = shard->calls;
    bool is_empty = reply && reply->type == RESP_INTEGER && reply->integer == 0;
    if (is_empty && !shard->has_changed) {
        shard->empty_tracking = shard->read_tracking;
        shard->empty_until_ms = quiet_now_ms(calls) + QUIET_MS;
    }
    shard->read_tracking = 0;
    redis_calls_end(calls);
}

/* Finds out whether the shard is empty, for the next pass. */
static void read_call_index(struct redis_call_shard *shard, struct slice key, uint16_t slot)
{
    struct redis_call_backend *calls = shard->calls;
    if (shard->read_tracking || quiet_now_ms(calls) < shard->read_at_ms)
        return;
    shard->read_at_ms = quiet_now_ms(calls) + QUIET_READ_MS;
    shard->read_tracking = redis_tracking(calls->options.client, slot);
    shard->has_changed = false;
    if (!shard->read_tracking)
        return;
    redis_calls_begin(calls);
    if (redis_read_tracked(calls->options.client, slot, REDIS_ARGS(SLICE("EXISTS"), key),
                           on_call_index_read, shard))
        return;
    shard->read_tracking = 0;
    redis_calls_end(calls);
}

bool redis_call_shard_is_quiet(struct redis_call_backend *calls, size_t number)
{
    struct redis_call_shard *shard = &calls->shards[number];
    char text[REDIS_CALL_INDEX_MAX];
    struct slice key = redis_call_index_key(calls, text, number);
    uint16_t slot = redis_slot(key);
    if (shard->empty_tracking &&
        shard->empty_tracking == redis_tracking(calls->options.client, slot) &&
        quiet_now_ms(calls) < shard->empty_until_ms)
        return true;
    shard->empty_tracking = 0;
    read_call_index(shard, key, slot);
    return false;
}

static void on_call_key_invalidated(struct redis_observer *observer, struct slice key)
{
    struct redis_call_backend *calls = CONTAINER_OF(observer, struct redis_call_backend, observer);
    char text[REDIS_CALL_INDEX_MAX];
    if (key.data && !slice_starts_with(key, SLICE("calls:due")))
        return;
    for (size_t i = 0; i < redis_call_shard_count(calls); i++) {
        if (key.data && !slice_equal(key, redis_call_index_key(calls, text, i)))
            continue;
        calls->shards[i].empty_tracking = 0;
        calls->shards[i].has_changed = true;
    }
}

void redis_call_quiet_init(struct redis_call_backend *calls)
{
    for (size_t i = 0; i < REDIS_CALL_SHARDS; i++)
        calls->shards[i].calls = calls;
    calls->observer.on_invalidated = on_call_key_invalidated;
    redis_observe(calls->options.client, &calls->observer);
}
