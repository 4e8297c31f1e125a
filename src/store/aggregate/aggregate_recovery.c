#include "base/clock.h"
#include "base/container.h"
#include "store/aggregate/aggregate_forward.h"
#include "store/aggregate/aggregate_stores.h"
#include "store/recovery_local.h"

#include <stdlib.h>

struct aggregate_recovery {
    struct recovery_store store;
    struct aggregate_client *client;
    const struct clock *clock;
    struct aggregate_listener listener;
    struct recovery_local local;
    size_t usable;             /* aggregators, when they last changed */
    int64_t invalidated_at_ms; /* events may have been missed until then; -1: never */
    size_t pending;            /* forwarded appends and takes */
    bool is_freed;             /* by its owner; the last answer frees the memory */
};

/* A take under way. */
struct forwarded_take {
    struct aggregate_recovery *recovery;
    struct recovery_taking *taking;
};

static struct aggregate_recovery *recovery_of(struct recovery_store *store)
{
    return CONTAINER_OF(store, struct aggregate_recovery, store);
}

static void end_recovery_call(struct aggregate_recovery *recovery)
{
    if (--recovery->pending == 0 && recovery->is_freed)
        free(recovery);
}

/* ---- parking ---- */

static void aggregate_recovery_park(struct recovery_store *store,
                                    const struct parked_session *session)
{
    struct aggregate_recovery *recovery = recovery_of(store);
    union aggregate_arguments arguments = {.park = *session};
    if (arguments.park.topic_count > RECOVERY_TOPICS_MAX)
        arguments.park.topic_count = RECOVERY_TOPICS_MAX;
    recovery_local_note(&recovery->local, session->user_id, recovery->clock->now_ms);
    aggregate_forward(recovery->client, session->user_id, AGGREGATE_RECOVERY_PARK, &arguments,
                      SLICE_NONE, NULL, NULL, NULL);
}

/* Parked sessions are in Redis alone, and the state store reports all of them. */
static bool aggregate_recovery_is_empty(struct recovery_store *store)
{
    (void)store;
    return true;
}

static bool aggregate_recovery_expects(struct recovery_store *store, struct slice user_id)
{
    struct aggregate_recovery *recovery = recovery_of(store);
    return recovery_local_expects(&recovery->local, user_id, recovery->clock->now_ms);
}

/* ---- events ---- */

static void aggregate_recovery_invalidate(struct recovery_store *store)
{
    struct aggregate_recovery *recovery = recovery_of(store);
    recovery->invalidated_at_ms = recovery->clock->now_ms;
}

static void complete_recovery_append(const struct aggregate_forwarded *forwarded,
                                     const union aggregate_outcome *outcome)
{
    struct aggregate_recovery *recovery = forwarded->arg;
    if (!outcome || outcome->status != STATE_OK)
        aggregate_recovery_invalidate(&recovery->store);
    end_recovery_call(recovery);
}

static void aggregate_recovery_append(struct recovery_store *store, const struct slice *user_ids,
                                      size_t count, const struct recovery_event *event)
{
    struct aggregate_recovery *recovery = recovery_of(store);
    if (count == 0)
        return;
    for (size_t i = 0; i < count; i++)
        recovery_local_add(&recovery->local, user_ids[i], event);
    recovery->pending++;
    aggregate_forward(recovery->client, user_ids[0], AGGREGATE_RECOVERY_APPEND,
                      &(union aggregate_arguments){.append = {{user_ids, count}, *event}},
                      SLICE_NONE, complete_recovery_append, NULL, recovery);
}

/* ---- taking ---- */

static void complete_recovery_take(const struct aggregate_forwarded *forwarded,
                                   const union aggregate_outcome *outcome)
{
    struct forwarded_take take = *(struct forwarded_take *)forwarded->arg;
    free(forwarded->arg);
    recovery_taking_finish(&take.taking,
                           outcome && outcome->taken.is_there ? &outcome->taken.session : NULL);
    end_recovery_call(take.recovery);
}

static void aggregate_recovery_take(struct recovery_store *store, struct slice user_id,
                                    struct slice pid, uint64_t offset, recovery_take_done done,
                                    void *arg)
{
    struct aggregate_recovery *recovery = recovery_of(store);
    struct forwarded_take *take = malloc(sizeof(*take));
    struct recovery_taking *taking =
        take ? recovery_local_take(&recovery->local, user_id, pid, done, arg) : NULL;
    int64_t missed_ms = recovery->invalidated_at_ms < 0
                            ? -1
                            : recovery->clock->now_ms - recovery->invalidated_at_ms;
    if (!taking) {
        free(take);
        done(arg, NULL);
        return;
    }
    *take = (struct forwarded_take){recovery, taking};
    recovery->pending++;
    recovery_local_note(&recovery->local, user_id, recovery->clock->now_ms);
    aggregate_forward(recovery->client, user_id, AGGREGATE_RECOVERY_TAKE,
                      &(union aggregate_arguments){.take = {user_id, pid, offset, missed_ms}},
                      SLICE_NONE, complete_recovery_take, NULL, take);
}

/* ---- life ---- */

/* Without any aggregator events are missed; the first one invalidates nothing, since none was missed before it. */
static void on_recovery_links_changed(struct aggregate_listener *listener)
{
    struct aggregate_recovery *recovery =
        CONTAINER_OF(listener, struct aggregate_recovery, listener);
    size_t usable = aggregate_client_usable(recovery->client);
    bool were_missed = usable == 0 || (recovery->usable == 0 && recovery->invalidated_at_ms >= 0);
    recovery->usable = usable;
    if (were_missed)
        aggregate_recovery_invalidate(&recovery->store);
}

static void aggregate_recovery_free(struct recovery_store *store)
{
    struct aggregate_recovery *recovery = recovery_of(store);
    aggregate_client_unlisten(&recovery->listener);
    recovery_local_end(&recovery->local);
    recovery->is_freed = true;
    if (recovery->pending == 0)
        free(recovery);
}

static const struct recovery_store_operations OPERATIONS = {
    .park = aggregate_recovery_park,
    .is_empty = aggregate_recovery_is_empty,
    .expects = aggregate_recovery_expects,
    .append = aggregate_recovery_append,
    .take = aggregate_recovery_take,
    .invalidate = aggregate_recovery_invalidate,
    .free = aggregate_recovery_free,
};

struct recovery_store *aggregate_recovery_make(struct aggregate_client *client,
                                               const struct clock *clock, uint64_t hash_seed)
{
    struct aggregate_recovery *recovery = calloc(1, sizeof(*recovery));
    if (!recovery)
        return NULL;
    recovery->store = (struct recovery_store){.operations = &OPERATIONS, .is_shared = true};
    recovery->client = client;
    recovery->clock = clock;
    recovery->invalidated_at_ms = -1;
    recovery_local_init(&recovery->local, hash_seed);
    recovery->listener.on_changed = on_recovery_links_changed;
    aggregate_client_listen(client, &recovery->listener);
    return &recovery->store;
}
