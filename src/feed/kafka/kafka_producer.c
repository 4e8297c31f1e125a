#include "feed/kafka/kafka_producer.h"

#include "base/container.h"
#include "base/list.h"
#include "feed/kafka/kafka_client.h"
#include "feed/kafka/kafka_event.h"
#include "log/log.h"

#include <stdio.h>
#include <stdlib.h>

struct kafka_producer {
    struct feed_producer feed;
    const struct config *config;
    struct loop *loop;
    struct kafka_client client;
    rd_kafka_topic_t *topic;
    struct list in_flight;
    size_t count;
    struct buffer encoded; /* of the event that is published just now */
    bool stopped;
    bool is_dead; /* after a fatal error */
    bool probing;
    bool answers; /* the last probe was answered */
    int64_t probe_at_ms;
    int64_t failed_at_ms; /* a record failed and none was delivered since; 0: never */
};

/* An event on its way, until its delivery report. */
struct kafka_publish {
    struct list link;
    struct kafka_producer *producer;
    feed_publish_done done; /* NULL: the deadline has passed */
    void *arg;
    struct wheel_timer deadline;
};

/* ---- publishing ---- */

static void complete_publish(struct kafka_publish *publish, bool published)
{
    feed_publish_done done = publish->done;
    publish->done = NULL;
    if (!done)
        return;
    loop_cancel_timer(publish->producer->loop, &publish->deadline);
    done(publish->arg, published);
}

static void free_publish(struct kafka_publish *publish)
{
    publish->producer->count--;
    list_remove(&publish->link);
    free(publish);
}

static void on_publish_deadline(struct wheel_timer *timer)
{
    struct kafka_publish *publish = CONTAINER_OF(timer, struct kafka_publish, deadline);
    feed_publish_done done = publish->done;
    publish->done = NULL;
    done(publish->arg, false);
}

static struct kafka_publish *make_publish(struct kafka_producer *self, int64_t deadline_ms,
                                          feed_publish_done done, void *arg)
{
    struct kafka_publish *publish = calloc(1, sizeof(*publish));
    if (!publish)
        return NULL;
    publish->producer = self;
    publish->done = done;
    publish->arg = arg;
    publish->deadline.fire = on_publish_deadline;
    list_append(&self->in_flight, &publish->link);
    self->count++;
    loop_set_timer(self->loop, &publish->deadline, deadline_ms);
    return publish;
}

static bool produce_event(struct kafka_producer *self, const struct feed_event *event,
                          struct kafka_publish *publish)
{
    buffer_clear(&self->encoded);
    kafka_event_encode(&self->encoded, event);
    if (self->encoded.failed)
        return false;
    if (rd_kafka_produce(self->topic, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY,
                         self->encoded.data, self->encoded.len, event->chat.data, event->chat.len,
                         publish) == 0)
        return true;
    log_warn("kafka_publish_refused", "error=%s",
             log_sentence(slice_of(rd_kafka_err2str(rd_kafka_last_error()))));
    return false;
}

static void kafka_producer_publish(struct feed_producer *feed, const struct feed_event *event,
                                   int64_t deadline_ms, feed_publish_done done, void *arg)
{
    struct kafka_producer *self = CONTAINER_OF(feed, struct kafka_producer, feed);
    bool refused = self->stopped || self->count >= KAFKA_PRODUCER_EVENTS_MAX;
    struct kafka_publish *publish = refused ? NULL : make_publish(self, deadline_ms, done, arg);
    if (!publish) {
        done(arg, false);
    } else if (!produce_event(self, event, publish)) {
        complete_publish(publish, false);
        free_publish(publish);
    }
}

/* ---- events of the client ---- */

static void on_kafka_delivery_reports(struct kafka_producer *self, rd_kafka_event_t *event)
{
    const rd_kafka_message_t *record;
    while ((record = rd_kafka_event_message_next(event)) != NULL) {
        struct kafka_publish *publish = record->_private;
        if (record->err)
            log_warn("kafka_publish_failed", "error=%s",
                     log_sentence(slice_of(rd_kafka_err2str(record->err))));
        self->failed_at_ms = record->err ? self->loop->clock.now_ms : 0;
        self->answers |= !record->err;
        complete_publish(publish, !record->err);
        free_publish(publish);
    }
}

/* The answer matters less than that there is one: an error of the broker's own is an answer too. */
static void on_kafka_probe_answered(struct kafka_producer *self, rd_kafka_event_t *event)
{
    rd_kafka_resp_err_t error = rd_kafka_event_error(event);
    bool answers = error >= 0; /* librdkafka's own errors, such as a timeout, are negative */
    self->probing = false;
    if (self->answers && !answers)
        log_error("kafka_unavailable", "error=%s", log_sentence(slice_of(rd_kafka_err2str(error))));
    else if (!self->answers && answers)
        log_info("kafka_available", "brokers=%s",
                 log_sentence(slice_of(kafka_client_brokers(self->config))));
    self->answers = answers;
}

static void on_kafka_producer_error(struct kafka_producer *self, rd_kafka_event_t *event)
{
    self->is_dead |= rd_kafka_event_error(event) == RD_KAFKA_RESP_ERR__FATAL;
    if (rd_kafka_event_error(event) == RD_KAFKA_RESP_ERR__TRANSPORT)
        return; /* librdkafka's log has it */
    log_warn("kafka_producer_error", "fatal=%d error=%s", self->is_dead,
             log_sentence(slice_of(rd_kafka_event_error_string(event))));
}

static void on_kafka_producer_event(void *arg, rd_kafka_event_t *event)
{
    struct kafka_producer *self = arg;
    switch (rd_kafka_event_type(event)) {
    case RD_KAFKA_EVENT_DR:
        on_kafka_delivery_reports(self, event);
        break;
    case RD_KAFKA_EVENT_DESCRIBECONFIGS_RESULT:
        on_kafka_probe_answered(self, event);
        break;
    case RD_KAFKA_EVENT_ERROR:
        on_kafka_producer_error(self, event);
        break;
    default:
        break;
    }
}

/* ---- health ---- */

static bool kafka_producer_available(const struct feed_producer *feed)
{
    const struct kafka_producer *self = CONTAINER_OF(feed, struct kafka_producer, feed);
    bool failed = self->failed_at_ms &&
                  self->loop->clock.now_ms - self->failed_at_ms < KAFKA_PRODUCER_FAILURE_MS;
    return !self->stopped && self->answers && !failed && self->count < KAFKA_PRODUCER_EVENTS_MAX;
}

/* Asks for the topic's settings, the smallest question that librdkafka can ask without blocking. */
static void probe_kafka_brokers(struct kafka_producer *self)
{
    rd_kafka_t *handle = self->client.handle;
    rd_kafka_ConfigResource_t *topic =
        rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, self->config->durability.kafka.topic);
    rd_kafka_AdminOptions_t *options =
        rd_kafka_AdminOptions_new(handle, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS);
    rd_kafka_AdminOptions_set_request_timeout(options, KAFKA_PRODUCER_PROBE_INTERVAL_MS, NULL, 0);
    self->probing = true;
    self->probe_at_ms = self->loop->clock.now_ms + KAFKA_PRODUCER_PROBE_INTERVAL_MS;
    rd_kafka_DescribeConfigs(handle, &topic, 1, options, self->client.queue);
    rd_kafka_AdminOptions_destroy(options);
    rd_kafka_ConfigResource_destroy(topic);
}

void kafka_producer_tick(struct kafka_producer *self)
{
    if (!self->stopped && !self->probing && self->loop->clock.now_ms >= self->probe_at_ms)
        probe_kafka_brokers(self);
}

/* ---- life ---- */

static void on_kafka_producer_turn(void *arg);

static bool start_kafka_producer(struct kafka_producer *self, char *error)
{
    static const char *const ACKS[] = {
        [KAFKA_ACKS_ALL] = "all", [KAFKA_ACKS_LEADER] = "1", [KAFKA_ACKS_NONE] = "0"};
    char timeout_ms[32], retries[32], backoff_ms[32], events_max[32], kilobytes_max[32];
    bool idempotent = self->config->durability.kafka.producer.acks == KAFKA_ACKS_ALL &&
                      self->config->durability.kafka.producer.retries > 0;
    snprintf(timeout_ms, sizeof(timeout_ms), "%lld",
             (long long)self->config->durability.kafka.producer.timeout_ms);
    snprintf(retries, sizeof(retries), "%u", self->config->durability.kafka.producer.retries);
    snprintf(backoff_ms, sizeof(backoff_ms), "%lld",
             (long long)self->config->durability.kafka.producer.retry_backoff_ms);
    snprintf(events_max, sizeof(events_max), "%d", KAFKA_PRODUCER_EVENTS_MAX);
    snprintf(kilobytes_max, sizeof(kilobytes_max), "%d", KAFKA_PRODUCER_BYTES_MAX / 1024);
    const struct kafka_property properties[] = {
        {"acks", ACKS[self->config->durability.kafka.producer.acks]},
        {"enable.idempotence", idempotent ? "true" : "false"},
        {"message.timeout.ms", timeout_ms},
        {"retries", retries},
        {"retry.backoff.ms", backoff_ms},
        {"linger.ms", "0"},
        {"partitioner", "murmur2_random"},
        {"queue.buffering.max.messages", events_max},
        {"queue.buffering.max.kbytes", kilobytes_max},
        {NULL, NULL},
    };
    struct kafka_client_options options = {
        .config = self->config,
        .loop = self->loop,
        .type = RD_KAFKA_PRODUCER,
        .properties = properties,
        .on_event = on_kafka_producer_event,
        .on_turn = on_kafka_producer_turn,
        .arg = self,
    };
    if (!kafka_client_start(&self->client, &options, error))
        return false;
    self->is_dead = self->probing = self->answers = false;
    self->topic =
        rd_kafka_topic_new(self->client.handle, self->config->durability.kafka.topic, NULL);
    return true;
}

static void drop_publishes(struct kafka_producer *self)
{
    struct list *at = self->in_flight.next;
    while (at != &self->in_flight) {
        struct kafka_publish *publish = CONTAINER_OF(at, struct kafka_publish, link);
        at = at->next;
        complete_publish(publish, false);
        free_publish(publish);
    }
}

/* An idempotent producer gives up when it cannot tell any more what was delivered; a new one can go on. What is in
 * flight fails; senders try again. */
static void on_kafka_producer_turn(void *arg)
{
    struct kafka_producer *self = arg;
    char error[KAFKA_CLIENT_ERROR_TEXT_MAX];
    if (!self->is_dead || self->stopped)
        return;
    self->stopped = true; /* a completion may publish again */
    rd_kafka_topic_destroy(self->topic);
    self->topic = NULL;
    kafka_client_abandon(&self->client);
    drop_publishes(self);
    self->stopped = !start_kafka_producer(self, error);
    if (self->stopped)
        log_error("kafka_producer_failed", "error=%s", log_sentence(slice_of(error)));
    else
        log_warn("kafka_producer_restarted", "topic=%s", self->config->durability.kafka.topic);
}

static const struct feed_producer_operations OPERATIONS = {
    .publish = kafka_producer_publish,
    .available = kafka_producer_available,
};

struct kafka_producer *kafka_producer_make(const struct config *config, struct loop *loop,
                                           char *error)
{
    struct kafka_producer *self = calloc(1, sizeof(*self));
    if (!self) {
        snprintf(error, KAFKA_CLIENT_ERROR_TEXT_MAX, "out of memory");
        return NULL;
    }
    self->feed.operations = &OPERATIONS;
    self->config = config;
    self->loop = loop;
    list_init(&self->in_flight);
    if (start_kafka_producer(self, error))
        return self;
    free(self);
    return NULL;
}

struct feed_producer *kafka_producer_feed(struct kafka_producer *self)
{
    return &self->feed;
}

/* Delivery reports still refer to what is in flight, so kafka_producer_free() frees that. */
void kafka_producer_stop(struct kafka_producer *self)
{
    self->stopped = true;
    for (struct list *at = self->in_flight.next; at != &self->in_flight; at = at->next)
        complete_publish(CONTAINER_OF(at, struct kafka_publish, link), false);
}

void kafka_producer_free(struct kafka_producer **producer)
{
    struct kafka_producer *self = *producer;
    *producer = NULL;
    if (!self)
        return;
    if (self->topic)
        rd_kafka_topic_destroy(self->topic);
    kafka_client_stop(&self->client);
    drop_publishes(self);
    buffer_free(&self->encoded);
    free(self);
}
