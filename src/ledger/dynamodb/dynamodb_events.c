/*
 * Queues of events for the application, and dead letters among them, in the table `queues`:
 *
 *   queue_name            item_position                     what it is
 *   event#SHARD#QUEUE     TIME#SEQUENCE#TYPE#RANDOM#HASH    an event; HASH is that of its subject, which also chooses the shard
 *   dead_event#QUEUE      the same                          a dead letter
 *   dead_event_queues     QUEUE                             there are, or were, dead letters of this queue
 *   event_samples#QUEUE   the same as of some events        for the bound of the queue (dynamodb_event_bound.h)
 *   event_leases          QUEUE                             who holds the queue, and how many events were dropped
 */
#include "ledger/dynamodb/dynamodb_events.h"

#include "base/id_list.h"
#include "ledger/dynamodb/client/dynamodb_parallel.h"
#include "ledger/dynamodb/dynamodb_event_bound.h"
#include "ledger/dynamodb/dynamodb_message.h"
#include "ledger/dynamodb/dynamodb_operations.h"

#include <stdio.h>
#include <stdlib.h>

enum { HASH_DIGITS = 16, POSITION_BYTES = 80, DEAD_SURPLUS_MAX = 1000 };

#define REPLAYED_SEQUENCE UINT64_C(9000000000000000000) /* behind all messages of its millisecond */

/* ---- keys ---- */

/* FNV-1a: the same in every process. */
static uint64_t hash_event_subject(struct slice subject)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < subject.len; i++)
        hash = (hash ^ (unsigned char)subject.data[i]) * 1099511628211u;
    return hash;
}

struct slice dynamodb_event_shard(struct dynamodb_task *task, struct slice queue, unsigned shard)
{
    char prefix[32];
    snprintf(prefix, sizeof(prefix), "event#%u#", shard);
    return dynamodb_join(task, prefix, queue);
}

static struct slice write_position_of_event(struct dynamodb_task *task,
                                            const struct ledger_event *event,
                                            struct dynamodb_event_order order)
{
    char text[POSITION_BYTES];
    snprintf(text, sizeof(text), "%015lld#%019llu#%02u#%08x#%016llx", (long long)order.time_ms,
             (unsigned long long)order.sequence, (unsigned)event->type,
             (unsigned)random_u64(task->client->random),
             (unsigned long long)hash_event_subject(event->subject));
    return ledger_request_copy(task->request, slice_of(text));
}

/* A position names its shard by the hash at its end. */
static struct dynamodb_key get_key_of_position(struct dynamodb_task *task, struct slice queue,
                                               struct slice position)
{
    char digits[HASH_DIGITS + 1] = "0";
    if (position.len > HASH_DIGITS)
        memcpy(digits, position.data + position.len - HASH_DIGITS, HASH_DIGITS);
    unsigned shard = (unsigned)(strtoull(digits, NULL, 16) % DYNAMODB_EVENT_SHARDS);
    return (struct dynamodb_key){DYNAMODB_QUEUES, dynamodb_event_shard(task, queue, shard),
                                 position, 0};
}

static struct dynamodb_key get_dead_event_key(struct dynamodb_task *task, struct slice queue,
                                              struct slice position)
{
    return (struct dynamodb_key){DYNAMODB_QUEUES, dynamodb_join(task, "dead_event#", queue),
                                 position, 0};
}

struct dynamodb_key dynamodb_event_lease_key(struct slice queue)
{
    return (struct dynamodb_key){DYNAMODB_QUEUES, SLICE("event_leases"), queue, 0};
}

/* ---- writing ---- */

enum { EVENT_ATTRIBUTES = 6 };

/* The attributes of an event; the last one only of a dead letter. */
static struct dynamodb_values describe_event(struct dynamodb_task *task,
                                             const struct ledger_event *event)
{
    struct dynamodb_value *values =
        ledger_request_alloc(task->request, EVENT_ATTRIBUTES * sizeof(*values));
    if (!values)
        return DYNAMODB_NO_VALUES;
    values[0] = DYNAMODB_TEXT("event_type", slice_of(ledger_event_type_name(event->type)));
    values[1] = DYNAMODB_TEXT("event_subject", event->subject);
    values[2] = DYNAMODB_NUMBER("time_ms", event->time_ms);
    values[3] = DYNAMODB_TEXT("event_data", event->data);
    values[4] = DYNAMODB_NUMBER("message_sequence", event->sequence);
    values[5] = DYNAMODB_TEXT("dead_reason", event->reason);
    return (struct dynamodb_values){values, EVENT_ATTRIBUTES - (event->reason.len ? 0 : 1)};
}

unsigned dynamodb_events_of_message(const struct ledger_request *request)
{
    static const uint32_t types =
        1u << LEDGER_EVENT_MESSAGE_CREATED | 1u << LEDGER_EVENT_MESSAGE_UNDELIVERED;
    unsigned count = 0;
    for (size_t i = 0; i < request->input.queue_count; i++)
        count += (unsigned)__builtin_popcount(request->input.queues[i].types & types);
    return count * DYNAMODB_EVENT_ITEMS_MAX;
}

void dynamodb_events_add(struct dynamodb_transaction *transaction, struct ledger_request *request,
                         struct dynamodb_event_order order)
{
    struct dynamodb_task *task = transaction->task;
    struct ledger_event events[LEDGER_EVENTS_OF_REQUEST_MAX];
    size_t count = ledger_event_derive(request, events);
    for (size_t i = 0; i < count * request->input.queue_count; i++) {
        const struct ledger_event *event = &events[i % count];
        const struct ledger_event_queue *queue = &request->input.queues[i / count];
        if (!(queue->types & (1u << event->type)))
            continue;
        struct slice position = write_position_of_event(task, event, order);
        dynamodb_transaction_put(transaction, get_key_of_position(task, queue->name, position),
                                 describe_event(task, event), NULL, DYNAMODB_NO_VALUES);
        if (dynamodb_event_has_sample(position))
            dynamodb_transaction_put(transaction,
                                     dynamodb_event_sample_key(task, queue->name, position),
                                     DYNAMODB_VALUES(DYNAMODB_NUMBER("time_ms", event->time_ms)),
                                     NULL, DYNAMODB_NO_VALUES);
    }
}

enum ledger_status dynamodb_events_call(struct dynamodb_task *task)
{
    struct dynamodb_transaction transaction;
    task->request->outcome.change.changed = true;
    dynamodb_transaction_begin(&transaction, task);
    dynamodb_events_add_now(&transaction);
    if (transaction.count)
        dynamodb_transaction_commit(&transaction);
    return LEDGER_OK;
}

/* ---- reading ---- */

/* Returns false for an event of a type that this program does not know, which a newer one wrote. */
static bool read_event_item(const struct dynamodb_item *item, struct ledger_event *event)
{
    *event =
        (struct ledger_event){.position = dynamodb_item_text(item, "item_position"),
                              .subject = dynamodb_item_text(item, "event_subject"),
                              .time_ms = dynamodb_item_number(item, "time_ms"),
                              .data = dynamodb_item_text(item, "event_data"),
                              .reason = dynamodb_item_text(item, "dead_reason"),
                              .sequence = (uint64_t)dynamodb_item_number(item, "message_sequence")};
    return ledger_event_type_parse(dynamodb_item_text(item, "event_type"), &event->type);
}

static void push_event_item(struct dynamodb_task *task, struct ledger_request_array *events,
                            const struct dynamodb_item *item, struct slice queue)
{
    struct ledger_event event, *kept;
    if (!read_event_item(item, &event))
        return;
    event.queue = queue;
    if ((kept = ledger_request_array_push(task->request, events, sizeof(*kept))))
        *kept = event;
}

struct event_listing {
    struct slice queue;
    uint32_t shard_max; /* events of one shard */
    struct ledger_request_array events;
};

static void read_event_shard(struct dynamodb_task *task, size_t shard, void *arg)
{
    struct event_listing *listing = arg;
    struct dynamodb_query query = {.table = DYNAMODB_QUEUES,
                                   .partition =
                                       dynamodb_event_shard(task, listing->queue, (unsigned)shard),
                                   .limit = listing->shard_max};
    struct dynamodb_item item;
    while (dynamodb_query_next(task, &query, &item))
        push_event_item(task, &listing->events, &item, SLICE_NONE);
}

static int compare_event_positions(const void *a, const void *b)
{
    return id_list_compare(((const struct ledger_event *)a)->position,
                           ((const struct ledger_event *)b)->position);
}

static int compare_events_by_message(const void *a, const void *b)
{
    const struct ledger_event *first = *(struct ledger_event *const *)a;
    const struct ledger_event *second = *(struct ledger_event *const *)b;
    if (first->sequence != second->sequence)
        return first->sequence < second->sequence ? -1 : 1;
    return id_list_compare(first->subject, second->subject);
}

/* Reads the bodies of the messages that events are about. Several events may be about one, which is read once. */
static void read_event_bodies(struct dynamodb_task *task, struct ledger_event *events, size_t count)
{
    struct ledger_event **sorted =
        ledger_request_alloc(task->request, count * sizeof(struct ledger_event *) + 1);
    struct dynamodb_key *keys = ledger_request_alloc(task->request, count * sizeof(*keys) + 1);
    struct dynamodb_item *items = ledger_request_alloc(task->request, count * sizeof(*items) + 1);
    size_t about_messages = 0, messages = 0;
    if (!sorted || !keys || !items)
        return;
    for (size_t i = 0; i < count; i++)
        if (events[i].sequence)
            sorted[about_messages++] = &events[i];
    if (about_messages == 0)
        return;
    qsort(sorted, about_messages, sizeof(struct ledger_event *), compare_events_by_message);
    for (size_t i = 0; i < about_messages; i++)
        if (i == 0 || compare_events_by_message(&sorted[i - 1], &sorted[i]) != 0)
            keys[messages++] =
                dynamodb_message_key(sorted[i]->subject, (int64_t)sorted[i]->sequence);
    dynamodb_get_many(task, keys, messages, items);
    for (size_t i = 0, at = 0; i < about_messages; i++) {
        at += i && compare_events_by_message(&sorted[i - 1], &sorted[i]) != 0;
        sorted[i]->body = dynamodb_item_text(&items[at], "body_text");
    }
}

/* Answers with as many events as a page holds. */
static void answer_event_page(struct ledger_request *request,
                              const struct ledger_request_array *events, bool has_more)
{
    struct ledger_events_outcome *outcome = &request->outcome.events;
    size_t bytes = 0;
    outcome->events = events->items;
    while (outcome->count < events->count && outcome->count < request->input.limit) {
        const struct ledger_event *event = &outcome->events[outcome->count];
        bytes += event->data.len + event->body.len;
        if (outcome->count && bytes > LEDGER_EVENTS_PAGE_BYTES_MAX)
            break;
        outcome->count++;
    }
    outcome->has_more = has_more || outcome->count < events->count;
}

enum ledger_status dynamodb_events_list(struct dynamodb_task *task)
{
    const struct ledger_request_input *input = &task->request->input;
    struct event_listing listing = {.queue = input->id, .shard_max = input->limit + 1};
    dynamodb_parallel(task, DYNAMODB_EVENT_SHARDS, read_event_shard, &listing);
    if (listing.events.count)
        qsort(listing.events.items, listing.events.count, sizeof(struct ledger_event),
              compare_event_positions);
    read_event_bodies(task, listing.events.items,
                      listing.events.count < input->limit ? listing.events.count : input->limit);
    answer_event_page(task->request, &listing.events, false);
    return LEDGER_OK;
}

static void read_dead_events_of(struct dynamodb_task *task, struct slice queue, struct slice after,
                                struct ledger_request_array *events)
{
    struct dynamodb_key key = get_dead_event_key(task, queue, SLICE_NONE);
    struct dynamodb_query query = {.table = DYNAMODB_QUEUES,
                                   .partition = key.partition,
                                   .after = after,
                                   .limit =
                                       (uint32_t)(task->request->input.limit + 1 - events->count)};
    struct dynamodb_item item;
    while (dynamodb_query_next(task, &query, &item))
        push_event_item(task, events, &item, queue);
}

enum ledger_status dynamodb_events_list_dead(struct dynamodb_task *task)
{
    const struct ledger_request_input *input = &task->request->input;
    struct dynamodb_query queues = {
        .table = DYNAMODB_QUEUES, .partition = SLICE("dead_event_queues"), .after = input->id};
    struct ledger_request_array events = {0};
    struct dynamodb_item item;
    if (input->id.len)
        read_dead_events_of(task, input->id, input->after, &events);
    while (events.count <= input->limit && dynamodb_query_next(task, &queues, &item))
        read_dead_events_of(task, dynamodb_item_text(&item, "item_position"), SLICE_NONE, &events);
    answer_event_page(task->request, &events, false);
    return LEDGER_OK;
}

/* ---- moving ---- */

/* Makes one entry for each position of the request. */
typedef struct dynamodb_key (*event_key_of)(struct dynamodb_task *task, struct slice queue,
                                            struct slice position);

/* Adds an event's item, and that of its sample if it waits in its queue and has one. */
static void add_event_entries(struct dynamodb_task *task, struct ledger_request_array *entries,
                              event_key_of get_key, struct slice position,
                              const struct ledger_event *event)
{
    struct slice queue = task->request->input.id;
    bool has_sample = get_key == get_key_of_position && dynamodb_event_has_sample(position);
    for (unsigned i = 0; i < (has_sample ? 2u : 1u); i++) {
        struct dynamodb_put_entry *entry =
            ledger_request_array_push(task->request, entries, sizeof(*entry));
        if (!entry)
            return;
        entry->key =
            i ? dynamodb_event_sample_key(task, queue, position) : get_key(task, queue, position);
        entry->is_delete = !event;
        if (event)
            entry->attributes = describe_event(task, event);
    }
}

static void delete_events(struct dynamodb_task *task, event_key_of get_key)
{
    const struct ledger_request_input *input = &task->request->input;
    struct ledger_request_array entries = {0};
    for (size_t i = 0; i < input->id_count; i++)
        add_event_entries(task, &entries, get_key, input->ids[i], NULL);
    if (entries.count)
        dynamodb_put_many(task, entries.items, entries.count);
}

enum ledger_status dynamodb_events_remove(struct dynamodb_task *task)
{
    delete_events(task, get_key_of_position);
    return LEDGER_OK;
}

/* Reads the events that the request names. */
static struct ledger_request_array read_named_events(struct dynamodb_task *task,
                                                     event_key_of get_key)
{
    const struct ledger_request_input *input = &task->request->input;
    size_t count = input->id_count;
    struct ledger_request_array events = {0};
    struct dynamodb_key *keys = ledger_request_alloc(task->request, count * sizeof(*keys) + 1);
    struct dynamodb_item *items = ledger_request_alloc(task->request, count * sizeof(*items) + 1);
    if (!keys || !items || count == 0)
        return events;
    for (size_t i = 0; i < count; i++)
        keys[i] = get_key(task, input->id, input->ids[i]);
    dynamodb_get_many(task, keys, count, items);
    for (size_t i = 0; i < count; i++)
        if (dynamodb_item_exists(&items[i]))
            push_event_item(task, &events, &items[i], SLICE_NONE);
    return events;
}

/* Of too many dead letters the oldest go. */
static void bound_dead_events(struct dynamodb_task *task, size_t added)
{
    struct slice queue = task->request->input.id;
    struct dynamodb_key key = {DYNAMODB_QUEUES, SLICE("dead_event_queues"), queue, 0};
    struct dynamodb_key letters = get_dead_event_key(task, queue, SLICE_NONE);
    dynamodb_update(task, key, "ADD letter_count :added", NULL,
                    DYNAMODB_VALUES(DYNAMODB_NUMBER(":added", added)));
    struct dynamodb_item item = dynamodb_get(task, key);
    int64_t surplus = dynamodb_item_number(&item, "letter_count") - LEDGER_DEAD_EVENTS_MAX;
    if (surplus <= 0)
        return;
    struct dynamodb_query query = {
        .table = DYNAMODB_QUEUES,
        .partition = letters.partition,
        .limit = (uint32_t)(surplus < DEAD_SURPLUS_MAX ? surplus : DEAD_SURPLUS_MAX)};
    int64_t removed = 0;
    while (dynamodb_query_next(task, &query, &item)) {
        letters.sort = dynamodb_item_text(&item, "item_position");
        removed += dynamodb_delete(task, letters) == DYNAMODB_DONE;
    }
    dynamodb_update(task, key, "ADD letter_count :less", NULL,
                    DYNAMODB_VALUES(DYNAMODB_NUMBER(":less", -removed)));
}

static void put_events(struct dynamodb_task *task, const struct ledger_request_array *events,
                       event_key_of get_key)
{
    const struct ledger_event *moved = events->items;
    struct ledger_request_array entries = {0};
    for (size_t i = 0; i < events->count; i++)
        add_event_entries(task, &entries, get_key, moved[i].position, &moved[i]);
    if (entries.count)
        dynamodb_put_many(task, entries.items, entries.count);
}

/* Stored first and removed afterwards: what is interrupted in between is moved again, to the same place. */
enum ledger_status dynamodb_events_bury(struct dynamodb_task *task)
{
    struct slice reason = task->request->input.text;
    struct ledger_request_array events = read_named_events(task, get_key_of_position);
    struct ledger_event *moved = events.items;
    if (events.count == 0)
        return LEDGER_OK;
    for (size_t i = 0; i < events.count; i++)
        moved[i].reason = reason.len ? reason : SLICE("given up");
    put_events(task, &events, get_dead_event_key);
    if (task->failed)
        return LEDGER_UNAVAILABLE;
    bound_dead_events(task, events.count);
    return dynamodb_events_remove(task);
}

enum ledger_status dynamodb_events_replay(struct dynamodb_task *task)
{
    struct ledger_request *request = task->request;
    struct ledger_request_array events = read_named_events(task, get_dead_event_key);
    struct ledger_event *moved = events.items;
    if (events.count == 0)
        return LEDGER_OK;
    for (size_t i = 0; i < events.count; i++) {
        moved[i].reason = SLICE_NONE;
        moved[i].position = write_position_of_event(
            task, &moved[i],
            (struct dynamodb_event_order){request->wall_ms, REPLAYED_SEQUENCE + i});
    }
    put_events(task, &events, get_key_of_position);
    if (task->failed)
        return LEDGER_UNAVAILABLE;
    delete_events(task, get_dead_event_key);
    dynamodb_update(
        task,
        (struct dynamodb_key){DYNAMODB_QUEUES, SLICE("dead_event_queues"), request->input.id, 0},
        "ADD letter_count :less", NULL,
        DYNAMODB_VALUES(DYNAMODB_NUMBER(":less", -(int64_t)events.count)));
    request->outcome.change.changed = true;
    return LEDGER_OK;
}

/* ---- holding ---- */

static void answer_event_lease(struct dynamodb_task *task, const struct dynamodb_item *item)
{
    task->request->outcome.event_queue = (struct ledger_event_queue_outcome){
        .holder = dynamodb_item_text(item, "holder_id"),
        .lease_version = (uint64_t)dynamodb_item_number(item, "lease_version"),
        .event_count = UINT64_MAX,
        .dropped = (uint64_t)dynamodb_item_number(item, "dropped_count"),
    };
}

enum ledger_status dynamodb_events_queue_get(struct dynamodb_task *task)
{
    struct dynamodb_item item =
        dynamodb_get(task, dynamodb_event_lease_key(task->request->input.id));
    answer_event_lease(task, &item);
    return LEDGER_OK;
}

static uint32_t find_queue_bound(const struct ledger_request_input *input)
{
    for (size_t i = 0; i < input->queue_count; i++)
        if (slice_equal(input->queues[i].name, input->id))
            return input->queues[i].count_max;
    return 0;
}

enum ledger_status dynamodb_events_lease(struct dynamodb_task *task)
{
    const struct ledger_request_input *input = &task->request->input;
    dynamodb_update(
        task, dynamodb_event_lease_key(input->id), "SET holder_id = :holder ADD lease_version :one",
        "attribute_not_exists(holder_id) OR holder_id = :holder OR lease_version = :seen",
        DYNAMODB_VALUES(DYNAMODB_TEXT(":holder", input->device), DYNAMODB_NUMBER(":one", 1),
                        DYNAMODB_NUMBER(":seen", input->sequence)));
    struct dynamodb_item lease = dynamodb_get(task, dynamodb_event_lease_key(input->id));
    answer_event_lease(task, &lease);
    if (slice_equal(dynamodb_item_text(&lease, "holder_id"), input->device))
        dynamodb_event_bound_hold(task, input->id, find_queue_bound(input), &lease);
    return LEDGER_OK;
}
