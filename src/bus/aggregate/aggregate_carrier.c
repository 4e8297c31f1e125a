#include "bus/aggregate/aggregate_carrier.h"

#include "base/container.h"
#include "base/list.h"
#include "base/table.h"
#include "bus/aggregate/aggregate_topic_wire.h"
#include "redis/protocol/redis_slot.h"

#include <stdlib.h>

enum topic_state { TOPIC_WANTED, TOPIC_ASKED, TOPIC_LIVE };

struct carried_topic {
    struct table_node node;
    struct list place; /* in `wanted`, while it is WANTED */
    enum topic_state state;
    size_t aggregator; /* that was asked */
    uint64_t session;  /* the link on which it was */
    uint16_t slot;
    size_t len;
    char name[];
};

struct aggregate_carrier {
    struct bus_carrier carrier;
    struct aggregate_client *client;
    struct loop *loop;
    struct aggregate_listener listener;
    struct table topics;
    struct list wanted;
    size_t live_count;
    size_t unanswered; /* calls that ask for topics */
    struct wheel_timer retry;
    bool is_freed; /* by its owner; the last answer frees the memory */
};

static struct aggregate_carrier *aggregate_carrier_of(const struct bus_carrier *carrier)
{
    return (struct aggregate_carrier *)CONTAINER_OF(carrier, const struct aggregate_carrier,
                                                    carrier);
}

static struct slice carried_topic_name(const struct carried_topic *topic)
{
    return (struct slice){topic->name, topic->len};
}

static bool carried_topic_matches(const struct table_node *node, struct slice key)
{
    return slice_equal(carried_topic_name(CONTAINER_OF(node, const struct carried_topic, node)),
                       key);
}

static struct carried_topic *find_topic(const struct aggregate_carrier *carrier, struct slice name)
{
    struct table_node *node = table_find(&carrier->topics, name);
    return node ? CONTAINER_OF(node, struct carried_topic, node) : NULL;
}

/* All changes of a topic's state go through here. */
static void set_topic_state(struct aggregate_carrier *carrier, struct carried_topic *topic,
                            enum topic_state state)
{
    carrier->live_count -= topic->state == TOPIC_LIVE;
    carrier->live_count += state == TOPIC_LIVE;
    list_remove(&topic->place);
    topic->state = state;
    if (state == TOPIC_WANTED)
        list_append(&carrier->wanted, &topic->place);
}

static void on_ignored_answer(void *arg, enum aggregate_result result, struct slice body)
{
    (void)arg;
    (void)result;
    (void)body;
}

/* A lost one is repeated when an event of the topic arrives. */
static void end_subscription(struct aggregate_carrier *carrier, size_t aggregator,
                             struct slice name)
{
    struct buffer body = BUFFER_INIT;
    struct wire wire = wire_writing(&body);
    aggregate_pass_topic(&wire, &name);
    if (!body.failed)
        aggregate_client_call_at(carrier->client, aggregator, AGGREGATE_TOPIC_UNSUBSCRIBE,
                                 buffer_slice(&body), on_ignored_answer, NULL);
    buffer_free(&body);
}

/* ---- asking ---- */

static void ask_for_topics(struct aggregate_carrier *carrier);

static void want_unasked(struct table_node *node, void *arg)
{
    struct aggregate_carrier *carrier = arg;
    struct carried_topic *topic = CONTAINER_OF(node, struct carried_topic, node);
    if (topic->state == TOPIC_ASKED)
        set_topic_state(carrier, topic, TOPIC_WANTED);
}

static void free_carrier_if_done(struct aggregate_carrier *carrier)
{
    if (carrier->is_freed && !carrier->unanswered)
        free(carrier);
}

/* What was not taken is asked for again after a pause; asking twice does no harm. */
static void on_topics_asked(void *arg, enum aggregate_result result, struct slice body)
{
    struct aggregate_carrier *carrier = arg;
    (void)body;
    carrier->unanswered--;
    if (carrier->is_freed) {
        free_carrier_if_done(carrier);
    } else if (result == AGGREGATE_DONE) {
        ask_for_topics(carrier);
    } else {
        table_each(&carrier->topics, want_unasked, carrier);
        if (!wheel_is_set(&carrier->retry))
            loop_set_timer(carrier->loop, &carrier->retry,
                           carrier->loop->clock.now_ms + AGGREGATE_TOPIC_RETRY_MS);
    }
}

/* Asks one aggregator for the first topics that wait. Returns false when none can be asked for. */
static bool ask_one_call(struct aggregate_carrier *carrier)
{
    struct buffer body = BUFFER_INIT;
    struct wire wire = wire_writing(&body);
    size_t aggregator = AGGREGATE_NONE, count = 0;
    for (struct list *at = carrier->wanted.next;
         at != &carrier->wanted && count < AGGREGATE_TOPICS_PER_CALL;) {
        struct carried_topic *topic = CONTAINER_OF(at, struct carried_topic, place);
        size_t owner = aggregate_client_route(carrier->client, topic->slot);
        at = at->next;
        if (owner == AGGREGATE_NONE || (count && owner != aggregator))
            break;
        struct slice name = carried_topic_name(topic);
        aggregate_pass_topic(&wire, &name);
        aggregator = topic->aggregator = owner;
        topic->session = aggregate_client_session(carrier->client, owner);
        set_topic_state(carrier, topic, TOPIC_ASKED);
        count++;
    }
    if (count) {
        carrier->unanswered++;
        aggregate_client_call_at(carrier->client, aggregator, AGGREGATE_TOPIC_SUBSCRIBE,
                                 body.failed ? SLICE_NONE : buffer_slice(&body), on_topics_asked,
                                 carrier);
    }
    buffer_free(&body);
    return count > 0;
}

static void ask_for_topics(struct aggregate_carrier *carrier)
{
    while (carrier->unanswered < AGGREGATE_TOPIC_CALLS_MAX && !wheel_is_set(&carrier->retry) &&
           ask_one_call(carrier))
        ;
}

static void on_topics_retry(struct wheel_timer *timer)
{
    ask_for_topics(CONTAINER_OF(timer, struct aggregate_carrier, retry));
}

/* ---- what aggregators say ---- */

static void recheck_topic(struct table_node *node, void *arg)
{
    struct aggregate_carrier *carrier = arg;
    struct carried_topic *topic = CONTAINER_OF(node, struct carried_topic, node);
    if (topic->state == TOPIC_WANTED)
        return;
    size_t owner = aggregate_client_route(carrier->client, topic->slot);
    bool same_link =
        aggregate_client_session(carrier->client, topic->aggregator) == topic->session &&
        aggregate_client_is_usable(carrier->client, topic->aggregator);
    if (owner == topic->aggregator && same_link)
        return;
    if (same_link)
        end_subscription(carrier, topic->aggregator, carried_topic_name(topic));
    set_topic_state(carrier, topic, TOPIC_WANTED);
}

static void on_carrier_links_changed(struct aggregate_listener *listener)
{
    struct aggregate_carrier *carrier = CONTAINER_OF(listener, struct aggregate_carrier, listener);
    table_each(&carrier->topics, recheck_topic, carrier);
    ask_for_topics(carrier);
}

static void on_topic_event(struct aggregate_carrier *carrier, size_t aggregator, struct slice body)
{
    struct slice name, payload;
    struct wire wire = wire_reading(body, NULL, NULL);
    aggregate_pass_topic_event(&wire, &name, &payload);
    if (!wire_end(&wire))
        return;
    struct carried_topic *topic = find_topic(carrier, name);
    if (topic && topic->aggregator == aggregator && topic->state != TOPIC_WANTED)
        carrier->carrier.on_event(carrier->carrier.arg, name, payload);
    else
        end_subscription(carrier, aggregator, name);
}

static void on_topic_live(struct aggregate_carrier *carrier, size_t aggregator, struct slice name)
{
    struct carried_topic *topic = find_topic(carrier, name);
    if (!topic || topic->aggregator != aggregator || topic->state == TOPIC_WANTED)
        return;
    set_topic_state(carrier, topic, TOPIC_LIVE);
    carrier->carrier.on_live(carrier->carrier.arg, name);
}

static void on_carrier_notice(struct aggregate_listener *listener, size_t aggregator,
                              enum aggregate_notice notice, struct slice body)
{
    struct aggregate_carrier *carrier = CONTAINER_OF(listener, struct aggregate_carrier, listener);
    if (notice == AGGREGATE_EVENT)
        on_topic_event(carrier, aggregator, body);
    else if (notice == AGGREGATE_LIVE)
        on_topic_live(carrier, aggregator, body);
}

/* ---- the carrier's operations ---- */

static bool aggregate_carrier_subscribe(struct bus_carrier *port, struct slice name)
{
    struct aggregate_carrier *carrier = aggregate_carrier_of(port);
    if (find_topic(carrier, name))
        return true;
    bool fits = name.len > 0 && name.len <= AGGREGATE_TOPIC_NAME_MAX &&
                carrier->topics.size < AGGREGATE_TOPICS_MAX;
    struct carried_topic *topic = fits ? calloc(1, sizeof(*topic) + name.len) : NULL;
    if (!topic)
        return false;
    topic->slot = redis_slot(name);
    topic->len = name.len;
    memcpy(topic->name, name.data, name.len);
    list_init(&topic->place);
    table_insert(&carrier->topics, &topic->node, carried_topic_name(topic));
    set_topic_state(carrier, topic, TOPIC_WANTED);
    ask_for_topics(carrier);
    return true;
}

static void aggregate_carrier_unsubscribe(struct bus_carrier *port, struct slice name)
{
    struct aggregate_carrier *carrier = aggregate_carrier_of(port);
    struct carried_topic *topic = find_topic(carrier, name);
    if (!topic)
        return;
    if (topic->state != TOPIC_WANTED)
        end_subscription(carrier, topic->aggregator, name);
    set_topic_state(carrier, topic, TOPIC_ASKED);
    table_remove(&carrier->topics, &topic->node);
    free(topic);
}

static bool aggregate_carrier_reaches(const struct bus_carrier *port, struct slice name)
{
    return aggregate_client_route(aggregate_carrier_of(port)->client, redis_slot(name)) !=
           AGGREGATE_NONE;
}

static void on_event_published(void *arg, enum aggregate_result result, struct slice body)
{
    struct bus_carriage *carriage = arg;
    int64_t receivers = -1;
    struct wire wire = wire_reading(body, NULL, NULL);
    if (result == AGGREGATE_DONE) {
        wire_signed(&wire, &receivers);
        if (!wire_end(&wire))
            receivers = -1;
    }
    carriage->on_carried(carriage, receivers);
}

static void aggregate_carrier_publish(struct bus_carrier *port, struct slice name,
                                      struct slice payload, struct bus_carriage *carriage)
{
    struct buffer body = BUFFER_INIT;
    struct wire wire = wire_writing(&body);
    aggregate_pass_topic_event(&wire, &name, &payload);
    if (body.failed)
        carriage->on_carried(carriage, -1);
    else
        aggregate_client_call(aggregate_carrier_of(port)->client, redis_slot(name),
                              AGGREGATE_TOPIC_PUBLISH, buffer_slice(&body), on_event_published,
                              carriage);
    buffer_free(&body);
}

static bool aggregate_carrier_is_live(const struct bus_carrier *port, struct slice name)
{
    struct carried_topic *topic = find_topic(aggregate_carrier_of(port), name);
    return topic && topic->state == TOPIC_LIVE;
}

static bool aggregate_carrier_is_settled(const struct bus_carrier *port)
{
    const struct aggregate_carrier *carrier = aggregate_carrier_of(port);
    return carrier->live_count == carrier->topics.size;
}

/* ---- life ---- */

static void free_topic(struct table_node *node, void *arg)
{
    struct aggregate_carrier *carrier = arg;
    table_remove(&carrier->topics, node);
    free(CONTAINER_OF(node, struct carried_topic, node));
}

static void aggregate_carrier_free(struct bus_carrier *port)
{
    struct aggregate_carrier *carrier = aggregate_carrier_of(port);
    aggregate_client_unlisten(&carrier->listener);
    loop_cancel_timer(carrier->loop, &carrier->retry);
    table_each(&carrier->topics, free_topic, carrier);
    table_free(&carrier->topics);
    carrier->is_freed = true;
    free_carrier_if_done(carrier);
}

static const struct bus_carrier_operations OPERATIONS = {
    .reaches = aggregate_carrier_reaches,
    .publish = aggregate_carrier_publish,
    .subscribe = aggregate_carrier_subscribe,
    .unsubscribe = aggregate_carrier_unsubscribe,
    .is_live = aggregate_carrier_is_live,
    .is_settled = aggregate_carrier_is_settled,
    .free = aggregate_carrier_free,
};

struct bus_carrier *aggregate_carrier_make(struct aggregate_client *client, struct loop *loop,
                                           uint64_t hash_seed)
{
    struct aggregate_carrier *carrier = calloc(1, sizeof(*carrier));
    if (!carrier)
        return NULL;
    carrier->carrier.operations = &OPERATIONS;
    carrier->client = client;
    carrier->loop = loop;
    carrier->retry.fire = on_topics_retry;
    list_init(&carrier->wanted);
    if (!table_init(&carrier->topics, hash_seed, carried_topic_matches)) {
        free(carrier);
        return NULL;
    }
    carrier->listener = (struct aggregate_listener){.on_changed = on_carrier_links_changed,
                                                    .on_notice = on_carrier_notice};
    aggregate_client_listen(client, &carrier->listener);
    return &carrier->carrier;
}
