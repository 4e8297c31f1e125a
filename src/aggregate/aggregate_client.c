#include "aggregate/aggregate_client_internal.h"
#include "base/container.h"
#include "log/log.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum { PLACE_BITS = 16, NO_PLACE = UINT32_MAX };

/* ---- places of calls ---- */

static uint32_t take_call_place(struct aggregate_client *client)
{
    uint32_t index = client->first_free;
    if (index != NO_PLACE)
        client->first_free = client->pending[index].next_free;
    else if (client->used_end < AGGREGATE_CALLS_MAX)
        index = client->used_end++;
    client->pending_count += index != NO_PLACE;
    return index;
}

static void free_call_place(struct aggregate_client *client, struct aggregate_pending *pending)
{
    list_remove(&pending->place);
    pending->link = NULL;
    pending->generation++;
    pending->next_free = client->first_free;
    client->first_free = (uint32_t)(pending - client->pending);
    client->pending_count--;
    if (pending->has_slot)
        client->slots[pending->slot].unanswered--;
}

static uint64_t call_id(const struct aggregate_client *client, uint32_t index)
{
    return (uint64_t)client->pending[index].generation << PLACE_BITS | index;
}

/* ---- answers ---- */

static void answer_call(struct aggregate_client *client, struct aggregate_pending *pending,
                        enum aggregate_result result, struct slice body)
{
    aggregate_answered done = pending->done;
    void *arg = pending->arg;
    free_call_place(client, pending);
    if (result == AGGREGATE_LOST)
        metrics_count(client->options.metrics, METRIC_AGGREGATE_CALLS_LOST);
    done(arg, result, body);
}

void aggregate_client_lose_calls(struct aggregate_link *link)
{
    while (!list_empty(&link->calls))
        answer_call(link->client, CONTAINER_OF(link->calls.next, struct aggregate_pending, place),
                    AGGREGATE_LOST, SLICE_NONE);
}

/* An answer to a call that was given up finds no place. */
void aggregate_client_take_answer(struct aggregate_link *link, uint64_t id,
                                  enum aggregate_result result, struct slice body)
{
    struct aggregate_client *client = link->client;
    uint32_t index = (uint32_t)(id & ((1U << PLACE_BITS) - 1));
    if (index < client->used_end && client->pending[index].link == link &&
        call_id(client, index) == id)
        answer_call(client, &client->pending[index], result, body);
}

/* ---- calls ---- */

static void refuse_call(struct aggregate_client *client, aggregate_answered done, void *arg)
{
    metrics_count(client->options.metrics, METRIC_AGGREGATE_CALLS_REFUSED);
    done(arg, AGGREGATE_REFUSED, SLICE_NONE);
}

/* Sends a call on a link. `slot` is negative for a call that belongs to none. */
static void send_call(struct aggregate_link *link, int slot, enum aggregate_operation operation,
                      struct slice body, aggregate_answered done, void *arg)
{
    struct aggregate_client *client = link->client;
    int64_t now_ms = client->options.links.loop->clock.now_ms;
    uint32_t index = take_call_place(client);
    if (index == NO_PLACE) {
        refuse_call(client, done, arg);
        return;
    }
    struct aggregate_pending *pending = &client->pending[index];
    *pending = (struct aggregate_pending){.link = link,
                                          .done = done,
                                          .arg = arg,
                                          .sent_ms = now_ms,
                                          .generation = pending->generation,
                                          .slot = (uint16_t)(slot < 0 ? 0 : slot),
                                          .has_slot = slot >= 0};
    list_append(&link->calls, &pending->place);
    if (slot >= 0) {
        client->slots[slot].unanswered++;
        client->slots[slot].aggregator = (uint16_t)aggregate_link_index(link);
    }
    struct aggregate_frame frame = {.kind = AGGREGATE_CALL,
                                    .id = call_id(client, index),
                                    .operation = operation,
                                    .sent_ms = now_ms,
                                    .body = body};
    metrics_count(client->options.metrics, METRIC_AGGREGATE_CALLS);
    if (aggregate_link_send(link, &frame))
        return;
    free_call_place(client, pending);
    refuse_call(client, done, arg);
}

size_t aggregate_client_route(const struct aggregate_client *client, uint16_t slot)
{
    const struct aggregate_slot *at = &client->slots[slot];
    return at->unanswered ? at->aggregator : at->owner;
}

void aggregate_client_call(struct aggregate_client *client, uint16_t slot,
                           enum aggregate_operation operation, struct slice body,
                           aggregate_answered done, void *arg)
{
    size_t aggregator = aggregate_client_route(client, slot);
    if (aggregator == AGGREGATE_NONE || client->is_closed)
        refuse_call(client, done, arg);
    else
        send_call(&client->links[aggregator], slot, operation, body, done, arg);
}

void aggregate_client_call_at(struct aggregate_client *client, size_t aggregator,
                              enum aggregate_operation operation, struct slice body,
                              aggregate_answered done, void *arg)
{
    if (aggregator >= client->options.address_count || client->is_closed ||
        client->links[aggregator].state != AGGREGATE_LINK_READY)
        refuse_call(client, done, arg);
    else
        send_call(&client->links[aggregator], -1, operation, body, done, arg);
}

/* ---- what others may know ---- */

uint64_t aggregate_client_session(const struct aggregate_client *client, size_t aggregator)
{
    return client->links[aggregator].sessions;
}

bool aggregate_client_is_usable(const struct aggregate_client *client, size_t aggregator)
{
    return client->usable[aggregator];
}

size_t aggregate_client_usable(const struct aggregate_client *client)
{
    size_t count = 0;
    for (size_t i = 0; i < client->options.address_count; i++)
        count += client->usable[i];
    return count;
}

size_t aggregate_client_pending(const struct aggregate_client *client)
{
    return client->pending_count;
}

size_t aggregate_client_count(const struct aggregate_client *client)
{
    return client->options.address_count;
}

void aggregate_client_listen(struct aggregate_client *client, struct aggregate_listener *listener)
{
    list_append(&client->listeners, &listener->place);
}

void aggregate_client_unlisten(struct aggregate_listener *listener)
{
    list_remove(&listener->place);
}

void aggregate_client_tell_changed(struct aggregate_client *client)
{
    metrics_set(client->options.metrics, METRIC_AGGREGATORS_USABLE,
                (int64_t)aggregate_client_usable(client));
    for (struct list *at = client->listeners.next; at != &client->listeners;) {
        struct aggregate_listener *listener = CONTAINER_OF(at, struct aggregate_listener, place);
        at = at->next;
        if (listener->on_changed)
            listener->on_changed(listener);
    }
}

void aggregate_client_tell_notice(struct aggregate_link *link, enum aggregate_notice notice,
                                  struct slice body)
{
    struct aggregate_client *client = link->client;
    for (struct list *at = client->listeners.next; at != &client->listeners;) {
        struct aggregate_listener *listener = CONTAINER_OF(at, struct aggregate_listener, place);
        at = at->next;
        if (listener->on_notice)
            listener->on_notice(listener, aggregate_link_index(link), notice, body);
    }
}

/* ---- life ---- */

static void free_aggregate_client(struct aggregate_client *client)
{
    aggregate_ring_free(&client->ring);
    buffer_free(&client->frame);
    free(client->links);
    free(client->usable);
    free(client->slots);
    free(client->pending);
    free(client);
}

static bool allocate_aggregate_client(struct aggregate_client *client)
{
    size_t count = client->options.address_count;
    client->links = calloc(count + 1, sizeof(*client->links));
    client->usable = calloc(count + 1, sizeof(*client->usable));
    client->slots = calloc(AGGREGATE_SLOTS, sizeof(*client->slots));
    client->pending = calloc(AGGREGATE_CALLS_MAX, sizeof(*client->pending));
    return client->links && client->usable && client->slots && client->pending &&
           aggregate_ring_init(&client->ring, client->options.addresses, count);
}

struct aggregate_client *aggregate_client_make(const struct aggregate_client_options *options)
{
    assert(options->address_count <= AGGREGATORS_MAX);
    struct random *random = options->links.random;
    struct aggregate_client *client = calloc(1, sizeof(*client));
    if (!client)
        return NULL;
    client->options = *options;
    client->first_free = NO_PLACE;
    list_init(&client->listeners);
    snprintf(client->instance, sizeof(client->instance), "%016llx%016llx",
             (unsigned long long)random_u64(random), (unsigned long long)random_u64(random));
    if (!allocate_aggregate_client(client) || !aggregate_links_start(client)) {
        if (client->links)
            aggregate_links_drop(client);
        free_aggregate_client(client);
        return NULL;
    }
    return client;
}

void aggregate_client_close(struct aggregate_client *client)
{
    if (client->is_closed)
        return;
    client->is_closed = true;
    aggregate_links_drop(client);
}

void aggregate_client_free(struct aggregate_client **client)
{
    struct aggregate_client *freed = *client;
    *client = NULL;
    if (!freed)
        return;
    aggregate_client_close(freed);
    free_aggregate_client(freed);
}
