#include "store/memory/memory_budget.h"

#include "base/container.h"

#include <pthread.h>
#include <stdlib.h>
#include <xxhash.h>

struct budget_record {
    uint64_t key[2];
    struct rate_limit limit; /* zero: never used */
};

struct budget_bucket {
    struct budget_record records[MEMORY_BUDGET_BUCKET];
};

struct budget_shard {
    pthread_mutex_t lock;
    struct budget_bucket *buckets; /* NULL: none */
    size_t count;                  /* of buckets: 0 or a power of two */
};

struct memory_budget {
    uint64_t seed;
    _Atomic size_t swept; /* shards, since the start */
    struct budget_shard shards[MEMORY_BUDGET_SHARDS];
};

/* One worker's port. */
struct memory_budget_port {
    struct budget_store store;
    struct memory_budget *budget;
    const struct clock *clock;
};

/* ---- records ---- */

/* Returns the record of the key, or else the one in its bucket whose budget is closest to full. */
static struct budget_record *find_budget_record(const struct budget_shard *shard,
                                                const uint64_t key[2])
{
    struct budget_record *records =
        shard->buckets[key[0] / MEMORY_BUDGET_SHARDS & (shard->count - 1)].records;
    struct budget_record *fullest = records;
    for (size_t i = 0; i < MEMORY_BUDGET_BUCKET; i++) {
        if (records[i].key[0] == key[0] && records[i].key[1] == key[1])
            return &records[i];
        if (records[i].limit.due_us < fullest->limit.due_us)
            fullest = &records[i];
    }
    return fullest;
}

static size_t count_live_records(const struct budget_shard *shard, int64_t now_us)
{
    size_t live = 0;
    for (size_t i = 0; i < shard->count; i++)
        for (size_t j = 0; j < MEMORY_BUDGET_BUCKET; j++)
            live += shard->buckets[i].records[j].limit.due_us > now_us;
    return live;
}

/* Changes nothing when out of memory. */
static void resize_budget_shard(struct budget_shard *shard, size_t count, int64_t now_us)
{
    struct budget_shard resized = {.buckets = NULL, .count = count};
    if (count) {
        resized.buckets = calloc(count, sizeof(*resized.buckets));
        if (!resized.buckets)
            return;
    }
    for (size_t i = 0; count && i < shard->count; i++)
        for (size_t j = 0; j < MEMORY_BUDGET_BUCKET; j++) {
            const struct budget_record *record = &shard->buckets[i].records[j];
            if (record->limit.due_us > now_us)
                *find_budget_record(&resized, record->key) = *record;
        }
    free(shard->buckets);
    shard->buckets = resized.buckets;
    shard->count = count;
}

/* Returns the record of the key, which may be one of another user whose budget is full. NULL: out of memory. */
static struct budget_record *claim_budget_record(struct budget_shard *shard, const uint64_t key[2],
                                                 int64_t now_us)
{
    if (shard->count == 0)
        resize_budget_shard(shard, 1, now_us);
    struct budget_record *record = shard->count ? find_budget_record(shard, key) : NULL;
    while (record && record->limit.due_us > now_us &&
           (record->key[0] != key[0] || record->key[1] != key[1])) {
        size_t count = shard->count;
        if (count < MEMORY_BUDGET_BUCKETS_MAX)
            resize_budget_shard(shard, 2 * count, now_us);
        if (shard->count == count)
            break;
        record = find_budget_record(shard, key);
    }
    return record;
}

static struct budget_outcome take_from_shard(struct budget_shard *shard, const uint64_t key[2],
                                             const struct budget_claim *claim, int64_t now_ms)
{
    struct budget_outcome outcome = {.granted = true};
    struct budget_record *record = claim_budget_record(shard, key, now_ms * 1000);
    if (!record)
        return outcome;
    if (record->key[0] != key[0] || record->key[1] != key[1])
        *record = (struct budget_record){.key = {key[0], key[1]}};
    outcome.granted = rate_limit_take(&record->limit, &claim->rate, claim->cost_us, now_ms,
                                      &outcome.retry_after_ms);
    return outcome;
}

/* ---- the port ---- */

static void memory_budget_take(struct budget_store *store, const struct budget_claim *claim,
                               budget_take_done done, void *arg)
{
    struct memory_budget_port *port = CONTAINER_OF(store, struct memory_budget_port, store);
    struct memory_budget *budget = port->budget;
    XXH128_hash_t hash = XXH3_128bits_withSeed(claim->user_id.data, claim->user_id.len,
                                               budget->seed + (uint64_t)claim->budget);
    uint64_t key[2] = {hash.low64, hash.high64};
    struct budget_shard *shard = &budget->shards[key[0] % MEMORY_BUDGET_SHARDS];
    pthread_mutex_lock(&shard->lock);
    struct budget_outcome outcome = take_from_shard(shard, key, claim, port->clock->now_ms);
    pthread_mutex_unlock(&shard->lock);
    done(arg, STATE_OK, &outcome);
}

static void memory_budget_port_free(struct budget_store *store)
{
    free(CONTAINER_OF(store, struct memory_budget_port, store));
}

static const struct budget_store_operations OPERATIONS = {
    .take = memory_budget_take,
    .free = memory_budget_port_free,
};

struct budget_store *memory_budget_store(struct memory_budget *budget, const struct clock *clock)
{
    struct memory_budget_port *port = malloc(sizeof(*port));
    if (!port)
        return NULL;
    *port = (struct memory_budget_port){.store = {&OPERATIONS}, .budget = budget, .clock = clock};
    return &port->store;
}

/* ---- life ---- */

struct memory_budget *memory_budget_make(uint64_t hash_seed)
{
    struct memory_budget *budget = calloc(1, sizeof(*budget));
    if (!budget)
        return NULL;
    budget->seed = hash_seed;
    for (size_t i = 0; i < MEMORY_BUDGET_SHARDS; i++)
        pthread_mutex_init(&budget->shards[i].lock, NULL);
    return budget;
}

void memory_budget_free(struct memory_budget **budget)
{
    struct memory_budget *freed = *budget;
    *budget = NULL;
    for (size_t i = 0; freed && i < MEMORY_BUDGET_SHARDS; i++) {
        pthread_mutex_destroy(&freed->shards[i].lock);
        free(freed->shards[i].buckets);
    }
    free(freed);
}

/* Most records stay free, so that live ones keep finding one in their buckets. */
static size_t fitting_bucket_count(size_t live, size_t count)
{
    while (count > 1 && live <= count / 2)
        count /= 2;
    return live ? count : 0;
}

void memory_budget_sweep(struct memory_budget *budget, int64_t now_ms)
{
    for (size_t i = 0; i < MEMORY_BUDGET_SWEPT_SHARDS; i++) {
        struct budget_shard *shard = &budget->shards[budget->swept++ % MEMORY_BUDGET_SHARDS];
        pthread_mutex_lock(&shard->lock);
        size_t live = count_live_records(shard, now_ms * 1000);
        size_t count = fitting_bucket_count(live, shard->count);
        if (count < shard->count)
            resize_budget_shard(shard, count, now_ms * 1000);
        pthread_mutex_unlock(&shard->lock);
    }
}

size_t memory_budget_bytes(struct memory_budget *budget)
{
    size_t buckets = 0;
    for (size_t i = 0; i < MEMORY_BUDGET_SHARDS; i++) {
        pthread_mutex_lock(&budget->shards[i].lock);
        buckets += budget->shards[i].count;
        pthread_mutex_unlock(&budget->shards[i].lock);
    }
    return buckets * sizeof(struct budget_bucket);
}
