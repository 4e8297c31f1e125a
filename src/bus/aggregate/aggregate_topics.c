#include "bus/aggregate/aggregate_topics.h"

#include "base/container.h"
#include "base/list.h"
#include "base/table.h"
#include "bus/aggregate/aggregate_topic_wire.h"
#include "log/log.h"
#include "redis/redis_pubsub.h"

#include <stdlib.h>

struct aggregate_topics {
    struct redis_client *client;
    struct redis_pubsub *pubsub;
    struct metrics *metrics;
    struct table topics;
    struct buffer body; /* of the notice that is being encoded */
};

/* A topic that at least one gateway has asked for. */
struct shared_topic {
    struct table_node node;
    struct list subscribers;
    size_t len;
    char name[];
};

struct aggregate_topics_session {
    struct aggregate_topics *topics;
    struct aggregate_session *session;
    struct list subscriptions;
    size_t count;
};

/* A gateway that has asked for a topic. */
struct topic_subscription {
    struct list of_topic;
    struct list of_session;
    struct shared_topic *topic;
    struct aggregate_topics_session *session;
};

static struct slice shared_topic_name(const struct shared_topic *topic)
{
    return (struct slice){topic->name, topic->len};
}

static bool shared_topic_matches(const struct table_node *node, struct slice key)
{
    return slice_equal(shared_topic_name(CONTAINER_OF(node, const struct shared_topic, node)), key);
}

static struct shared_topic *find_shared_topic(struct aggregate_topics *topics, struct slice name)
{
    struct table_node *node = table_find(&topics->topics, name);
    return node ? CONTAINER_OF(node, struct shared_topic, node) : NULL;
}

/* ---- events ---- */

static void notify_subscribers(struct aggregate_topics *topics, const struct shared_topic *topic,
                               enum aggregate_notice notice, struct slice body)
{
    for (struct list *at = topic->subscribers.next; at != &topic->subscribers; at = at->next) {
        struct topic_subscription *subscription =
            CONTAINER_OF(at, struct topic_subscription, of_topic);
        aggregate_session_notify(subscription->session->session, notice, body);
        if (notice == AGGREGATE_EVENT)
            metrics_count(topics->metrics, METRIC_AGGREGATE_EVENTS);
    }
}

static void on_topic_message(void *arg, struct slice name, struct slice payload)
{
    struct aggregate_topics *topics = arg;
    const struct shared_topic *topic = find_shared_topic(topics, name);
    if (!topic)
        return;
    buffer_clear(&topics->body);
    struct wire wire = wire_writing(&topics->body);
    aggregate_pass_topic_event(&wire, &name, &payload);
    if (!topics->body.failed)
        notify_subscribers(topics, topic, AGGREGATE_EVENT, buffer_slice(&topics->body));
}

static void on_topic_subscribed(void *arg, struct slice name)
{
    struct aggregate_topics *topics = arg;
    const struct shared_topic *topic = find_shared_topic(topics, name);
    if (topic)
        notify_subscribers(topics, topic, AGGREGATE_LIVE, name);
}

static const struct redis_pubsub_owner PUBSUB_OWNER = {.on_message = on_topic_message,
                                                       .on_subscribed = on_topic_subscribed};

/* ---- subscriptions ---- */

static struct shared_topic *make_shared_topic(struct aggregate_topics *topics, struct slice name)
{
    struct shared_topic *topic = calloc(1, sizeof(*topic) + name.len);
    if (!topic || !redis_pubsub_subscribe(topics->pubsub, name)) {
        free(topic);
        return NULL;
    }
    topic->len = name.len;
    memcpy(topic->name, name.data, name.len);
    list_init(&topic->subscribers);
    table_insert(&topics->topics, &topic->node, shared_topic_name(topic));
    metrics_set(topics->metrics, METRIC_AGGREGATE_TOPICS, (int64_t)topics->topics.size);
    return topic;
}

static void free_topic_if_unused(struct aggregate_topics *topics, struct shared_topic *topic)
{
    if (!list_empty(&topic->subscribers))
        return;
    redis_pubsub_unsubscribe(topics->pubsub, shared_topic_name(topic));
    table_remove(&topics->topics, &topic->node);
    metrics_set(topics->metrics, METRIC_AGGREGATE_TOPICS, (int64_t)topics->topics.size);
    free(topic);
}

static struct topic_subscription *find_subscription(const struct shared_topic *topic,
                                                    const struct aggregate_topics_session *session)
{
    for (struct list *at = topic->subscribers.next; at != &topic->subscribers; at = at->next) {
        struct topic_subscription *subscription =
            CONTAINER_OF(at, struct topic_subscription, of_topic);
        if (subscription->session == session)
            return subscription;
    }
    return NULL;
}

static bool add_subscription(struct aggregate_topics_session *session, struct shared_topic *topic)
{
    if (find_subscription(topic, session))
        return true;
    bool fits = session->count < AGGREGATE_SESSION_TOPICS_MAX;
    struct topic_subscription *subscription = fits ? malloc(sizeof(*subscription)) : NULL;
    if (!subscription)
        return false;
    *subscription = (struct topic_subscription){.topic = topic, .session = session};
    list_append(&topic->subscribers, &subscription->of_topic);
    list_append(&session->subscriptions, &subscription->of_session);
    session->count++;
    return true;
}

static void subscribe_session(struct aggregate_topics_session *session, struct slice name)
{
    struct aggregate_topics *topics = session->topics;
    struct shared_topic *topic = find_shared_topic(topics, name);
    if (!topic)
        topic = make_shared_topic(topics, name);
    if (!topic || !add_subscription(session, topic)) {
        log_error("topic_refused", "gateway=%s topics=%zu",
                  log_quote(aggregate_session_gateway(session->session)), session->count);
        if (topic)
            free_topic_if_unused(topics, topic);
        return;
    }
    if (redis_pubsub_is_live(topics->pubsub, name))
        aggregate_session_notify(session->session, AGGREGATE_LIVE, name);
}

static void remove_subscription(struct topic_subscription *subscription)
{
    struct aggregate_topics_session *session = subscription->session;
    list_remove(&subscription->of_topic);
    list_remove(&subscription->of_session);
    session->count--;
    free_topic_if_unused(session->topics, subscription->topic);
    free(subscription);
}

static void unsubscribe_session(struct aggregate_topics_session *session, struct slice name)
{
    struct shared_topic *topic = find_shared_topic(session->topics, name);
    struct topic_subscription *subscription = topic ? find_subscription(topic, session) : NULL;
    if (subscription)
        remove_subscription(subscription);
}

/* ---- calls ---- */

static bool is_topic_list(struct slice body)
{
    struct slice name;
    struct wire wire = wire_reading(body, NULL, NULL);
    while (aggregate_read_topic(&wire, &name))
        ;
    return wire_end(&wire);
}

static bool serve_topic_list(struct aggregate_topics_session *session,
                             struct aggregate_served *served, struct slice body)
{
    struct slice name;
    struct wire wire = wire_reading(body, NULL, NULL);
    if (!is_topic_list(body))
        return false;
    while (aggregate_read_topic(&wire, &name)) {
        if (served->operation == AGGREGATE_TOPIC_SUBSCRIBE)
            subscribe_session(session, name);
        else
            unsubscribe_session(session, name);
    }
    aggregate_served_answer(served, SLICE_NONE);
    return true;
}

static void on_topic_published(void *arg, const struct resp_value *reply)
{
    int64_t receivers = reply && reply->type == RESP_INTEGER ? reply->integer : -1;
    struct buffer body = BUFFER_INIT;
    struct wire wire = wire_writing(&body);
    wire_signed(&wire, &receivers);
    if (body.failed)
        aggregate_served_undone(arg);
    else
        aggregate_served_answer(arg, buffer_slice(&body));
    buffer_free(&body);
}

bool aggregate_topics_serve(struct aggregate_topics_session *session,
                            struct aggregate_served *served, struct slice body)
{
    struct slice name, payload;
    struct wire wire = wire_reading(body, NULL, NULL);
    if (served->operation == AGGREGATE_TOPIC_SUBSCRIBE ||
        served->operation == AGGREGATE_TOPIC_UNSUBSCRIBE)
        return serve_topic_list(session, served, body);
    if (served->operation != AGGREGATE_TOPIC_PUBLISH)
        return false;
    aggregate_pass_topic_event(&wire, &name, &payload);
    if (!wire_end(&wire))
        return false;
    redis_publish(session->topics->client, name, payload, on_topic_published, served);
    return true;
}

/* ---- life ---- */

struct aggregate_topics_session *aggregate_topics_open(struct aggregate_topics *topics,
                                                       struct aggregate_session *session)
{
    struct aggregate_topics_session *opened = calloc(1, sizeof(*opened));
    if (!opened)
        return NULL;
    opened->topics = topics;
    opened->session = session;
    list_init(&opened->subscriptions);
    return opened;
}

void aggregate_topics_close(struct aggregate_topics_session **session)
{
    struct aggregate_topics_session *closed = *session;
    *session = NULL;
    if (!closed)
        return;
    while (!list_empty(&closed->subscriptions))
        remove_subscription(
            CONTAINER_OF(closed->subscriptions.next, struct topic_subscription, of_session));
    free(closed);
}

struct aggregate_topics *aggregate_topics_make(struct redis_client *client, struct metrics *metrics,
                                               uint64_t hash_seed)
{
    struct aggregate_topics *topics = calloc(1, sizeof(*topics));
    if (!topics)
        return NULL;
    topics->client = client;
    topics->metrics = metrics;
    topics->pubsub = redis_pubsub_make(client, &PUBSUB_OWNER, topics);
    if (!topics->pubsub || !table_init(&topics->topics, hash_seed, shared_topic_matches))
        aggregate_topics_free(&topics);
    return topics;
}

void aggregate_topics_free(struct aggregate_topics **topics)
{
    struct aggregate_topics *freed = *topics;
    *topics = NULL;
    if (!freed)
        return;
    redis_pubsub_free(&freed->pubsub);
    table_free(&freed->topics);
    buffer_free(&freed->body);
    free(freed);
}
