#include "ledger/dynamodb/dynamodb_event_bound.h"

#include "base/id_list.h"
#include "ledger/dynamodb/client/dynamodb_parallel.h"
#include "ledger/dynamodb/dynamodb_events.h"

/* Where the eight digits of chance end in "TIME#SEQUENCE#TYPE#RANDOM#HASH". */
enum { CHANCE_AT = 15 + 1 + 19 + 1 + 2 + 1, CHANCE_END = CHANCE_AT + 8 };

static unsigned read_hex_digit(char digit)
{
    return (unsigned)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
}

bool dynamodb_event_has_sample(struct slice position)
{
    if (position.len <= CHANCE_END)
        return false;
    unsigned chance = read_hex_digit(position.data[CHANCE_END - 2]) * 16 +
                      read_hex_digit(position.data[CHANCE_END - 1]);
    return chance % DYNAMODB_EVENT_SAMPLE == 0;
}

struct dynamodb_key dynamodb_event_sample_key(struct dynamodb_task *task, struct slice queue,
                                              struct slice position)
{
    return (struct dynamodb_key){DYNAMODB_QUEUES, dynamodb_join(task, "event_samples#", queue),
                                 position, 0};
}

/* What is too much: events up to a position. */
struct surplus {
    struct slice queue;
    struct slice last; /* position; SLICE_NONE: there is no surplus */
    int64_t dropped;
    bool is_more; /* a shard has more than DYNAMODB_EVENT_DROPS_MAX of them */
};

static struct slice find_surplus_end(struct dynamodb_task *task, struct slice queue,
                                     uint32_t count_max)
{
    size_t kept = count_max / DYNAMODB_EVENT_SAMPLE + 1;
    struct dynamodb_query query = {.table = DYNAMODB_QUEUES,
                                   .partition =
                                       dynamodb_event_sample_key(task, queue, SLICE_NONE).partition,
                                   .limit = (uint32_t)(kept + DYNAMODB_EVENT_SAMPLES_SURPLUS),
                                   .attributes = "item_position"};
    struct ledger_request_array samples = {0};
    struct dynamodb_item item;
    while (dynamodb_query_next(task, &query, &item)) {
        struct slice *position =
            ledger_request_array_push(task->request, &samples, sizeof(*position));
        if (position)
            *position = dynamodb_item_text(&item, "item_position");
    }
    const struct slice *positions = samples.items;
    return samples.count > kept ? positions[samples.count - kept - 1] : SLICE_NONE;
}

static void drop_surplus_of_shard(struct dynamodb_task *task, size_t shard, void *arg)
{
    struct surplus *surplus = arg;
    struct dynamodb_query query = {.table = DYNAMODB_QUEUES,
                                   .partition =
                                       dynamodb_event_shard(task, surplus->queue, (unsigned)shard),
                                   .limit = DYNAMODB_EVENT_DROPS_MAX,
                                   .attributes = "item_position"};
    struct ledger_request_array entries = {0};
    struct dynamodb_item item;
    size_t dropped = 0;
    while (dynamodb_query_next(task, &query, &item)) {
        struct slice position = dynamodb_item_text(&item, "item_position");
        if (id_list_compare(position, surplus->last) > 0)
            break;
        struct dynamodb_key keys[] = {{DYNAMODB_QUEUES, query.partition, position, 0},
                                      dynamodb_event_sample_key(task, surplus->queue, position)};
        for (size_t i = 0; i < (dynamodb_event_has_sample(position) ? 2u : 1u); i++) {
            struct dynamodb_put_entry *entry =
                ledger_request_array_push(task->request, &entries, sizeof(*entry));
            if (entry)
                *entry = (struct dynamodb_put_entry){.key = keys[i], .is_delete = true};
        }
        dropped++;
    }
    if (entries.count == 0 ||
        dynamodb_put_many(task, entries.items, entries.count) != DYNAMODB_DONE)
        return;
    surplus->dropped += (int64_t)dropped;
    surplus->is_more |= dropped == DYNAMODB_EVENT_DROPS_MAX;
}

void dynamodb_event_bound_hold(struct dynamodb_task *task, struct slice queue, uint32_t count_max,
                               const struct dynamodb_item *lease)
{
    bool was_more = dynamodb_item_number(lease, "has_surplus") != 0;
    bool is_time =
        dynamodb_item_number(lease, "lease_version") % DYNAMODB_EVENT_BOUND_RENEWALS == 0;
    struct surplus surplus = {.queue = queue};
    if (count_max == 0 || !(is_time || was_more))
        return;
    surplus.last = find_surplus_end(task, queue, count_max);
    if (surplus.last.data)
        dynamodb_parallel(task, DYNAMODB_EVENT_SHARDS, drop_surplus_of_shard, &surplus);
    if (surplus.dropped || was_more)
        dynamodb_update(task, dynamodb_event_lease_key(queue),
                        "SET has_surplus = :more ADD dropped_count :dropped", NULL,
                        DYNAMODB_VALUES(DYNAMODB_NUMBER(":more", surplus.is_more),
                                        DYNAMODB_NUMBER(":dropped", surplus.dropped)));
}
