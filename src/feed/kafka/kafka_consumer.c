#include "feed/kafka/kafka_consumer.h"

#include "base/backoff.h"
#include "base/container.h"
#include "feed/kafka/kafka_client.h"
#include "feed/kafka/kafka_dead_letters.h"
#include "feed/kafka/kafka_event.h"
#include "feed/kafka/kafka_partition.h"
#include "log/log.h"

#include <stdio.h>
#include <stdlib.h>

struct kafka_consumer {
    struct feed_consumer feed;
    struct kafka_consumer_options options;
    struct kafka_client client;
    struct list partitions; /* assigned ones */
    struct kafka_dead_letters dead_letters;
    struct wheel_timer tick;
    size_t items_max;
    bool is_joined; /* the group has said which partitions it has */
    bool is_full;   /* records wait until fewer items are under way */
    bool leaving;
    bool stopped;
    bool is_dead; /* after a fatal error, which `reason` names */
    char reason[KAFKA_CLIENT_ERROR_TEXT_MAX];
    uint32_t restarts; /* since a record arrived */
};

/* A record under way; its bytes are those that the event points into. */
struct kafka_item {
    struct feed_item item;
    struct kafka_partition *partition;
    int64_t offset;
    uint64_t number;   /* in the partition's watermark */
    bool is_uncounted; /* its end does not move the watermark */
    char bytes[];
};

static struct kafka_consumer *kafka_consumer_of(const struct kafka_item *item)
{
    return CONTAINER_OF(item->item.consumer, struct kafka_consumer, feed);
}

static const char *kafka_topic(const struct kafka_consumer *self)
{
    return self->options.config->durability.kafka.topic;
}

/* The client is given up at the end of its turn. */
static void condemn_kafka_consumer(struct kafka_consumer *self, const char *reason)
{
    if (self->is_dead)
        return;
    self->is_dead = true;
    snprintf(self->reason, sizeof(self->reason), "%s", reason);
    log_error("kafka_consumer_fatal", "group=%s error=%s",
              self->options.config->fanout.kafka.consumer.group_id, log_sentence(slice_of(reason)));
}

/* ---- items ---- */

static void end_kafka_item(struct kafka_item *ended)
{
    struct kafka_consumer *self = kafka_consumer_of(ended);
    kafka_partition_end_item(ended->partition, ended->number,
                             !self->stopped && !ended->is_uncounted);
    free(ended);
    self->feed.under_way--;
    if (self->is_full && self->feed.under_way <= self->items_max / 2 && self->client.handle) {
        self->is_full = false;
        kafka_client_wake(&self->client);
    }
}

/* A dead letter that is not stored leaves its event in the partition, for another consumer. */
static void on_kafka_dead_letter_done(void *arg, bool stored)
{
    struct kafka_item *item = arg;
    if (stored)
        metrics_count(kafka_consumer_of(item)->options.metrics, METRIC_FANOUT_DEAD_LETTERS);
    item->is_uncounted |= !stored;
    end_kafka_item(item);
}

static void bury_kafka_item(struct kafka_item *item, struct slice key, struct slice value,
                            const char *reason)
{
    struct kafka_consumer *self = kafka_consumer_of(item);
    struct kafka_dead_letter letter = {.key = key,
                                       .value = value,
                                       .reason = reason,
                                       .partition = item->partition->id,
                                       .offset = item->offset};
    log_error("poison_event", "partition=%d offset=%lld reason=%s", letter.partition,
              (long long)letter.offset, log_sentence(slice_of(reason)));
    if (kafka_dead_letters_put(&self->dead_letters, &letter, on_kafka_dead_letter_done, item))
        return;
    condemn_kafka_consumer(self, "out of memory");
    kafka_client_wake(&self->client);
    on_kafka_dead_letter_done(item, false);
}

static void kafka_consumer_settle(struct feed_item *settled, enum feed_result result,
                                  const char *reason)
{
    struct kafka_item *item = CONTAINER_OF(settled, struct kafka_item, item);
    struct kafka_consumer *self = kafka_consumer_of(item);
    struct buffer value = BUFFER_INIT;
    list_remove(&settled->link);
    if (result != FEED_POISON || self->stopped || !item->partition->queue) {
        end_kafka_item(item);
        return;
    }
    kafka_event_encode(&value, &settled->event);
    bury_kafka_item(item, settled->event.chat, buffer_slice(&value), reason);
    buffer_free(&value);
}

static void take_kafka_record(struct kafka_consumer *self, struct kafka_partition *partition,
                              const rd_kafka_message_t *record)
{
    struct kafka_item *item = calloc(1, sizeof(*item) + record->len);
    if (!item) {
        condemn_kafka_consumer(self, "out of memory");
        return;
    }
    item->item.consumer = &self->feed;
    list_init(&item->item.link);
    item->partition = partition;
    item->offset = record->offset;
    item->number = kafka_partition_begin_item(partition, record->offset);
    self->feed.under_way++;
    self->restarts = 0;
    if (self->options.config->fanout.kafka.consumer.enable_auto_commit) {
        kafka_watermark_settle(&partition->watermark, item->number);
        item->is_uncounted = true;
    }
    if (record->len)
        memcpy(item->bytes, record->payload, record->len);
    const char *wrong = kafka_event_decode(item->bytes, record->len, &item->item.event);
    if (wrong)
        bury_kafka_item(item, (struct slice){record->key, record->key_len},
                        (struct slice){record->payload, record->len}, wrong);
    else
        self->feed.on_item(self->feed.on_item_arg, &item->item);
}

/* ---- errors ---- */

static bool is_fatal_kafka_error(rd_kafka_resp_err_t error)
{
    return error == RD_KAFKA_RESP_ERR__FATAL || error == RD_KAFKA_RESP_ERR__AUTHENTICATION ||
           error == RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED ||
           error == RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED ||
           error == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
}

static void on_kafka_consumer_error(struct kafka_consumer *self, rd_kafka_resp_err_t error,
                                    const char *text)
{
    if (is_fatal_kafka_error(error))
        condemn_kafka_consumer(self, text);
    else if (error != RD_KAFKA_RESP_ERR__TRANSPORT) /* librdkafka's log has it */
        log_warn("kafka_consumer_error", "error=%s text=%s", rd_kafka_err2name(error),
                 log_sentence(slice_of(text)));
}

/* ---- taking records ---- */

static bool has_capacity(const struct kafka_consumer *self)
{
    return self->feed.under_way < self->items_max;
}

/* Takes one event of the partition's queue. Returns false when there is none. */
static bool poll_kafka_partition(struct kafka_consumer *self, struct kafka_partition *partition)
{
    rd_kafka_event_t *event = rd_kafka_queue_poll(partition->queue, 0);
    const rd_kafka_message_t *record;
    if (!event)
        return false;
    if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_FETCH) {
        while ((record = rd_kafka_event_message_next(event)) != NULL)
            if (record->err)
                on_kafka_consumer_error(self, record->err, rd_kafka_message_errstr(record));
            else
                take_kafka_record(self, partition, record);
    } else if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_ERROR) {
        on_kafka_consumer_error(self, rd_kafka_event_error(event),
                                rd_kafka_event_error_string(event));
    }
    rd_kafka_event_destroy(event);
    return true;
}

/* One record of each partition at a time, so that a busy partition does not keep the others waiting. */
static void take_kafka_records(struct kafka_consumer *self)
{
    bool took = true;
    int taken = 0;
    while (took && has_capacity(self) && !self->is_dead && taken < KAFKA_CLIENT_EVENTS_PER_TURN) {
        took = false;
        for (struct list *at = self->partitions.next; at != &self->partitions && has_capacity(self);
             at = at->next) {
            struct kafka_partition *partition = CONTAINER_OF(at, struct kafka_partition, link);
            if (kafka_watermark_is_full(&partition->watermark) ||
                !poll_kafka_partition(self, partition))
                continue;
            took = true;
            taken++;
        }
    }
    if (!has_capacity(self))
        self->is_full = true;
    else if (took)
        kafka_client_wake(&self->client);
}

/* ---- offsets ---- */

static void commit_kafka_offsets(struct kafka_consumer *self)
{
    rd_kafka_topic_partition_list_t *offsets = rd_kafka_topic_partition_list_new(0);
    for (struct list *at = self->partitions.next; at != &self->partitions; at = at->next)
        kafka_partition_collect_offset(CONTAINER_OF(at, struct kafka_partition, link),
                                       kafka_topic(self), offsets);
    if (offsets->cnt > 0)
        rd_kafka_commit(self->client.handle, offsets, true);
    rd_kafka_topic_partition_list_destroy(offsets);
}

/* What could not be committed is committed again with the next tick. */
static void on_kafka_offsets_committed(struct kafka_consumer *self, rd_kafka_event_t *event)
{
    rd_kafka_topic_partition_list_t *offsets = rd_kafka_event_topic_partition_list(event);
    rd_kafka_resp_err_t error = rd_kafka_event_error(event);
    if (!error || error == RD_KAFKA_RESP_ERR__NO_OFFSET)
        return;
    log_warn("kafka_commit_failed", "error=%s",
             log_sentence(slice_of(rd_kafka_event_error_string(event))));
    for (int i = 0; offsets && i < offsets->cnt; i++) {
        struct kafka_partition *partition =
            kafka_partition_find(&self->partitions, offsets->elems[i].partition);
        if (partition)
            partition->committed_offset = -1;
    }
}

static size_t kafka_consumer_lag(const struct feed_consumer *feed)
{
    const struct kafka_consumer *self = CONTAINER_OF(feed, struct kafka_consumer, feed);
    size_t lag = 0;
    for (struct list *at = self->partitions.next; at != &self->partitions; at = at->next) {
        struct kafka_partition *partition = CONTAINER_OF(at, struct kafka_partition, link);
        int64_t low, high, next = partition->watermark.next_offset;
        if (next >= 0 && rd_kafka_get_watermark_offsets(self->client.handle, kafka_topic(self),
                                                        partition->id, &low, &high) == 0)
            lag += high > next ? (size_t)(high - next) : 0;
    }
    return lag;
}

/* ---- rebalancing ---- */

static void forget_kafka_error(rd_kafka_error_t *error)
{
    if (!error)
        return;
    log_warn("kafka_rebalance_failed", "error=%s",
             log_sentence(slice_of(rd_kafka_error_string(error))));
    rd_kafka_error_destroy(error);
}

/* The records of a partition come to a queue of its own, so that a partition can be paused without losing what was
 * fetched. Taking that queue before the assignment keeps librdkafka from forwarding it to the consumer's. */
static void assign_kafka_partitions(struct kafka_consumer *self,
                                    rd_kafka_topic_partition_list_t *assigned)
{
    for (int i = 0; i < assigned->cnt; i++) {
        int32_t id = assigned->elems[i].partition;
        rd_kafka_queue_t *queue =
            rd_kafka_queue_get_partition(self->client.handle, kafka_topic(self), id);
        rd_kafka_queue_forward(queue, NULL);
        kafka_client_watch(&self->client, queue);
        if (!kafka_partition_make(&self->partitions, id, queue)) {
            condemn_kafka_consumer(self, "out of memory");
            return;
        }
    }
    forget_kafka_error(rd_kafka_incremental_assign(self->client.handle, assigned));
}

static void revoke_kafka_partitions(struct kafka_consumer *self,
                                    rd_kafka_topic_partition_list_t *revoked)
{
    if (!rd_kafka_assignment_lost(self->client.handle))
        commit_kafka_offsets(self);
    for (int i = 0; i < revoked->cnt; i++) {
        struct kafka_partition *partition =
            kafka_partition_find(&self->partitions, revoked->elems[i].partition);
        if (partition)
            kafka_partition_revoke(partition);
    }
    forget_kafka_error(rd_kafka_incremental_unassign(self->client.handle, revoked));
}

static void on_kafka_rebalance(struct kafka_consumer *self, rd_kafka_event_t *event)
{
    rd_kafka_topic_partition_list_t *changed = rd_kafka_event_topic_partition_list(event);
    bool assigned = rd_kafka_event_error(event) == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
    log_info("kafka_rebalanced", "group=%s change=%s partitions=%d",
             self->options.config->fanout.kafka.consumer.group_id,
             assigned ? "assigned" : "revoked", changed->cnt);
    self->is_joined = assigned || !rd_kafka_assignment_lost(self->client.handle);
    if (assigned)
        assign_kafka_partitions(self, changed);
    else
        revoke_kafka_partitions(self, changed);
}

static void on_kafka_consumer_event(void *arg, rd_kafka_event_t *event)
{
    struct kafka_consumer *self = arg;
    switch (rd_kafka_event_type(event)) {
    case RD_KAFKA_EVENT_REBALANCE:
        on_kafka_rebalance(self, event);
        break;
    case RD_KAFKA_EVENT_OFFSET_COMMIT:
        on_kafka_offsets_committed(self, event);
        break;
    case RD_KAFKA_EVENT_ERROR:
        on_kafka_consumer_error(self, rd_kafka_event_error(event),
                                rd_kafka_event_error_string(event));
        break;
    default:
        break;
    }
}

/* ---- life ---- */

static void revoke_all_kafka_partitions(struct kafka_consumer *self)
{
    while (!list_empty(&self->partitions))
        kafka_partition_revoke(CONTAINER_OF(self->partitions.next, struct kafka_partition, link));
}

/* Gives the client up; on_kafka_consumer_tick() starts a new one. */
static void end_dead_kafka_client(struct kafka_consumer *self)
{
    struct loop *loop = self->options.loop;
    revoke_all_kafka_partitions(self);
    kafka_client_abandon(&self->client);
    if (self->options.on_fatal) {
        loop_cancel_timer(loop, &self->tick);
        self->options.on_fatal(self->options.on_fatal_arg, self->reason);
        return;
    }
    int64_t wait_ms = backoff_without_jitter_ms(self->restarts++, KAFKA_CONSUMER_RESTART_MIN_MS,
                                                KAFKA_CONSUMER_RESTART_MAX_MS);
    loop_set_timer(loop, &self->tick, loop->clock.now_ms + wait_ms);
}

static void on_kafka_consumer_turn(void *arg)
{
    struct kafka_consumer *self = arg;
    if (!self->is_dead && !self->leaving && !self->stopped)
        take_kafka_records(self);
    if (self->is_dead)
        end_dead_kafka_client(self);
}

static bool subscribe_kafka_consumer(struct kafka_consumer *self, char *error)
{
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, kafka_topic(self), RD_KAFKA_PARTITION_UA);
    rd_kafka_resp_err_t refused = rd_kafka_subscribe(self->client.handle, topics);
    rd_kafka_topic_partition_list_destroy(topics);
    if (!refused)
        return true;
    snprintf(error, KAFKA_CLIENT_ERROR_TEXT_MAX, "cannot subscribe to %s: %s", kafka_topic(self),
             rd_kafka_err2str(refused));
    kafka_client_stop(&self->client);
    return false;
}

static bool start_kafka_consumer(struct kafka_consumer *self, char *error)
{
    const struct config *config = self->options.config;
    long long session_ms = config->fanout.kafka.consumer.session_timeout_ms;
    char session[32], heartbeat[32], poll[32], kilobytes[32];
    snprintf(session, sizeof(session), "%lld", session_ms);
    snprintf(heartbeat, sizeof(heartbeat), "%lld", session_ms / 4);
    snprintf(poll, sizeof(poll), "%lld", session_ms > 300000 ? session_ms : 300000);
    snprintf(kilobytes, sizeof(kilobytes), "%d", KAFKA_CONSUMER_QUEUE_KILOBYTES);
    const struct kafka_property properties[] = {
        {"group.id", config->fanout.kafka.consumer.group_id},
        {"partition.assignment.strategy", "cooperative-sticky"},
        {"enable.auto.commit", "false"},
        {"enable.auto.offset.store", "false"},
        {"auto.offset.reset", "earliest"},
        {"session.timeout.ms", session},
        {"heartbeat.interval.ms", heartbeat},
        {"max.poll.interval.ms", poll},
        {"queued.min.messages", "10000"},
        {"queued.max.messages.kbytes", kilobytes},
        {"fetch.message.max.bytes", "262144"},
        {"fetch.max.bytes", "4194304"},
        {"fetch.error.backoff.ms", "100"},
        {NULL, NULL},
    };
    struct kafka_client_options options = {
        .config = config,
        .loop = self->options.loop,
        .type = RD_KAFKA_CONSUMER,
        .properties = properties,
        .on_event = on_kafka_consumer_event,
        .on_turn = on_kafka_consumer_turn,
        .arg = self,
    };
    self->is_dead = self->is_full = self->is_joined = false;
    return kafka_client_start(&self->client, &options, error) &&
           subscribe_kafka_consumer(self, error);
}

/* Also polls, which shows the group that the consumer is alive. */
static void on_kafka_consumer_tick(struct wheel_timer *timer)
{
    struct kafka_consumer *self = CONTAINER_OF(timer, struct kafka_consumer, tick);
    struct loop *loop = self->options.loop;
    char error[KAFKA_CLIENT_ERROR_TEXT_MAX];
    loop_set_timer(loop, timer, loop->clock.now_ms + KAFKA_CONSUMER_COMMIT_INTERVAL_MS);
    if (self->client.handle) {
        commit_kafka_offsets(self);
        kafka_client_wake(&self->client);
    } else if (!self->leaving && !self->stopped) {
        metrics_count(self->options.metrics, METRIC_FANOUT_CONSUMER_RESTARTS);
        if (!start_kafka_consumer(self, error))
            log_error("kafka_consumer_failed", "error=%s", log_sentence(slice_of(error)));
    }
}

static const struct feed_consumer_operations OPERATIONS = {
    .settle = kafka_consumer_settle,
    .lag = kafka_consumer_lag,
};

struct kafka_consumer *kafka_consumer_make(const struct kafka_consumer_options *options,
                                           feed_item_handler on_item, void *arg, char *error)
{
    struct kafka_consumer *self = calloc(1, sizeof(*self));
    if (!self) {
        snprintf(error, KAFKA_CLIENT_ERROR_TEXT_MAX, "out of memory");
        return NULL;
    }
    self->feed =
        (struct feed_consumer){.operations = &OPERATIONS, .on_item = on_item, .on_item_arg = arg};
    self->options = *options;
    self->items_max = options->config->fanout.kafka.consumer.max_poll_records;
    self->dead_letters =
        (struct kafka_dead_letters){.config = options->config, .loop = options->loop};
    kafka_dead_letters_init(&self->dead_letters);
    list_init(&self->partitions);
    self->tick.fire = on_kafka_consumer_tick;
    if (!start_kafka_consumer(self, error)) {
        free(self);
        return NULL;
    }
    loop_set_timer(options->loop, &self->tick,
                   options->loop->clock.now_ms + KAFKA_CONSUMER_COMMIT_INTERVAL_MS);
    return self;
}

struct feed_consumer *kafka_consumer_feed(struct kafka_consumer *self)
{
    return &self->feed;
}

bool kafka_consumer_is_joined(const struct kafka_consumer *self)
{
    return self->client.handle && self->is_joined;
}

bool kafka_consumer_leave(struct kafka_consumer *self)
{
    self->leaving = true;
    if (!self->client.handle)
        return true;
    if (self->feed.under_way > 0)
        return false;
    commit_kafka_offsets(self);
    return kafka_client_leave_group(&self->client);
}

void kafka_consumer_stop(struct kafka_consumer *self)
{
    self->stopped = true;
}

void kafka_consumer_free(struct kafka_consumer **consumer)
{
    struct kafka_consumer *self = *consumer;
    *consumer = NULL;
    if (!self)
        return;
    loop_cancel_timer(self->options.loop, &self->tick);
    revoke_all_kafka_partitions(self);
    kafka_dead_letters_free(&self->dead_letters);
    kafka_client_stop(&self->client);
    free(self);
}
