#include "app/gateway/gateway_feed.h"

#include "app/ledger_choice.h"
#include "feed/kafka/kafka_client.h"
#include "log/log.h"

static bool make_local_feed(struct gateway_feed *feed, const struct gateway_feed_parts *parts,
                            feed_item_handler on_item, void *arg)
{
    struct local_feed_options options = {
        .ledger = parts->client,
        .metrics = parts->metrics,
        .random = parts->random,
        .replays = parts->replays,
        .shared =
            ledger_choice_is_remote(parts->config) || ledger_choice_is_dynamodb(parts->config),
        .replay_page = parts->config->fanout.kafka.consumer.max_poll_records,
        .started_at_ms = parts->started_at_ms,
    };
    feed->local = local_feed_make(&options, on_item, arg);
    if (!feed->local)
        return false;
    feed->producer = local_feed_producer(feed->local);
    feed->consumer = local_feed_consumer(feed->local);
    return true;
}

static bool fail_kafka_feed(const char *half, const char *error)
{
    log_error("kafka_feed_failed", "half=%s error=%s", half, log_sentence(slice_of(error)));
    return false;
}

static bool make_kafka_feed(struct gateway_feed *feed, const struct gateway_feed_parts *parts,
                            feed_item_handler on_item, void *arg)
{
    char error[KAFKA_CLIENT_ERROR_TEXT_MAX];
    struct kafka_consumer_options options = {
        .config = parts->config, .loop = parts->loop, .metrics = parts->metrics};
    feed->kafka_producer = kafka_producer_make(parts->config, parts->loop, error);
    if (!feed->kafka_producer)
        return fail_kafka_feed("producer", error);
    feed->producer = kafka_producer_feed(feed->kafka_producer);
    if (!parts->config->fanout.in_gateway)
        return true;
    feed->kafka_consumer = kafka_consumer_make(&options, on_item, arg, error);
    if (!feed->kafka_consumer)
        return fail_kafka_feed("consumer", error);
    feed->consumer = kafka_consumer_feed(feed->kafka_consumer);
    return true;
}

bool gateway_feed_make(struct gateway_feed *feed, const struct gateway_feed_parts *parts,
                       feed_item_handler on_item, void *arg)
{
    *feed = (struct gateway_feed){.config = parts->config, .metrics = parts->metrics};
    bool made = kafka_client_brokers(parts->config) ? make_kafka_feed(feed, parts, on_item, arg)
                                                    : make_local_feed(feed, parts, on_item, arg);
    if (made)
        parts->client->skips_outbox = !feed->producer->uses_outbox;
    return made;
}

void gateway_feed_tick(struct gateway_feed *feed)
{
    if (feed->local)
        local_feed_tick(feed->local);
    if (feed->kafka_producer)
        kafka_producer_tick(feed->kafka_producer);
}

void gateway_feed_sample(const struct gateway_feed *feed)
{
    bool available = feed_available(feed->producer);
    metrics_set(feed->metrics, METRIC_FEED_AVAILABLE, available);
    metrics_set(feed->metrics, METRIC_KAFKA_CONFIGURED, feed->kafka_producer != NULL);
    metrics_set(feed->metrics, METRIC_KAFKA_AVAILABLE, feed->kafka_producer && available);
    metrics_set(feed->metrics, METRIC_FANOUT_CONSUMER_LAG,
                feed->consumer ? (int64_t)feed_lag(feed->consumer) : 0);
    metrics_set(feed->metrics, METRIC_FANOUT_DLQ_THRESHOLD,
                feed->config->fanout.dlq.alert_threshold_per_hour);
}

bool gateway_feed_leave(struct gateway_feed *feed)
{
    if (feed->kafka_consumer)
        return kafka_consumer_leave(feed->kafka_consumer);
    return !feed->consumer || feed->consumer->under_way == 0;
}

void gateway_feed_stop(struct gateway_feed *feed)
{
    if (feed->local)
        local_feed_stop(feed->local);
    if (feed->kafka_producer)
        kafka_producer_stop(feed->kafka_producer);
    if (feed->kafka_consumer)
        kafka_consumer_stop(feed->kafka_consumer);
}

void gateway_feed_free(struct gateway_feed *feed)
{
    local_feed_free(&feed->local);
    kafka_producer_free(&feed->kafka_producer);
    kafka_consumer_free(&feed->kafka_consumer);
}
