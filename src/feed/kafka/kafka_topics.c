#include "feed/kafka/kafka_topics.h"

#include <string.h>
#include <unistd.h>

enum { TOPIC_COUNT = 2, DEAD_LETTER_PARTITIONS = 1, KNOWN_POLL_MS = 100 };

/* What a topic must be like. */
struct topic_wish {
    const char *name;
    int partitions;
    int replication;
};

static void describe_topics(const struct config *config, struct topic_wish wishes[TOPIC_COUNT])
{
    int replication = (int)config->durability.kafka.replication;
    wishes[0] = (struct topic_wish){config->durability.kafka.topic,
                                    (int)config->durability.kafka.partitions, replication};
    wishes[1] = (struct topic_wish){config->fanout.dlq.topic, DEAD_LETTER_PARTITIONS, replication};
}

static rd_kafka_t *open_topics_handle(const struct config *config,
                                      char error[KAFKA_CLIENT_ERROR_TEXT_MAX])
{
    static const struct kafka_property PROPERTIES[] = {
        {"log.queue", "false"}, {"log_level", "0"}, {NULL, NULL}};
    rd_kafka_conf_t *conf = kafka_client_configure(config, PROPERTIES, error);
    if (!conf)
        return NULL;
    rd_kafka_t *handle = rd_kafka_new(RD_KAFKA_PRODUCER, conf, error, KAFKA_CLIENT_ERROR_TEXT_MAX);
    if (!handle)
        rd_kafka_conf_destroy(conf);
    return handle;
}

/* ---- checking ---- */

/* Returns whether the topic is usable. Other partitions or replicas than wished are shown, but may be meant so. */
static bool check_topic(const struct topic_wish *wish, const struct rd_kafka_metadata_topic *topic,
                        FILE *out, char error[KAFKA_CLIENT_ERROR_TEXT_MAX])
{
    if (topic->err || topic->partition_cnt == 0) {
        snprintf(error, KAFKA_CLIENT_ERROR_TEXT_MAX,
                 "the topic %s cannot be used: %s. `rollcall topics create` makes it", wish->name,
                 rd_kafka_err2str(topic->err));
        if (out)
            fprintf(out, "%s: %s\n", wish->name, rd_kafka_err2str(topic->err));
        return false;
    }
    if (out)
        fprintf(out, "%s: %d partitions, %d replicas\n", wish->name, topic->partition_cnt,
                topic->partitions[0].replica_cnt);
    return true;
}

static enum kafka_topics_result check_topic_of(rd_kafka_t *handle, const struct topic_wish *wish,
                                               FILE *out, char error[KAFKA_CLIENT_ERROR_TEXT_MAX])
{
    rd_kafka_topic_t *topic = rd_kafka_topic_new(handle, wish->name, NULL);
    const struct rd_kafka_metadata *metadata = NULL;
    enum kafka_topics_result result = KAFKA_TOPICS_NO_BROKERS;
    rd_kafka_resp_err_t refused =
        rd_kafka_metadata(handle, 0, topic, &metadata, KAFKA_TOPICS_TIMEOUT_MS);
    if (refused)
        snprintf(error, KAFKA_CLIENT_ERROR_TEXT_MAX, "the brokers do not answer: %s",
                 rd_kafka_err2str(refused));
    else
        result = check_topic(wish, &metadata->topics[0], out, error) ? KAFKA_TOPICS_OK
                                                                     : KAFKA_TOPICS_WRONG;
    if (metadata)
        rd_kafka_metadata_destroy(metadata);
    rd_kafka_topic_destroy(topic);
    return result;
}

enum kafka_topics_result kafka_topics_check(const struct config *config, FILE *out,
                                            char error[KAFKA_CLIENT_ERROR_TEXT_MAX])
{
    struct topic_wish wishes[TOPIC_COUNT];
    enum kafka_topics_result result = KAFKA_TOPICS_OK;
    rd_kafka_t *handle = open_topics_handle(config, error);
    if (!handle)
        return KAFKA_TOPICS_WRONG;
    describe_topics(config, wishes);
    for (int i = 0; i < TOPIC_COUNT && result == KAFKA_TOPICS_OK; i++)
        result = check_topic_of(handle, &wishes[i], out, error);
    rd_kafka_destroy(handle);
    return result;
}

/* ---- creating ---- */

static rd_kafka_NewTopic_t *make_new_topic(const struct topic_wish *wish,
                                           char error[KAFKA_CLIENT_ERROR_TEXT_MAX])
{
    rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new(
        wish->name, wish->partitions, wish->replication, error, KAFKA_CLIENT_ERROR_TEXT_MAX);
    char insync[16];
    snprintf(insync, sizeof(insync), "%d",
             wish->replication > KAFKA_TOPICS_INSYNC_MIN ? KAFKA_TOPICS_INSYNC_MIN : 1);
    if (topic)
        rd_kafka_NewTopic_set_config(topic, "min.insync.replicas", insync);
    return topic;
}

/* Returns whether every topic exists now. */
static bool read_created_topics(rd_kafka_event_t *event, char error[KAFKA_CLIENT_ERROR_TEXT_MAX])
{
    size_t count = 0;
    if (!event || rd_kafka_event_error(event)) {
        snprintf(error, KAFKA_CLIENT_ERROR_TEXT_MAX, "%s",
                 event ? rd_kafka_event_error_string(event) : "the brokers do not answer");
        return false;
    }
    const rd_kafka_topic_result_t **results =
        rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count);
    for (size_t i = 0; i < count; i++) {
        rd_kafka_resp_err_t refused = rd_kafka_topic_result_error(results[i]);
        if (!refused || refused == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS)
            continue;
        snprintf(error, KAFKA_CLIENT_ERROR_TEXT_MAX, "%s: %s",
                 rd_kafka_topic_result_name(results[i]),
                 rd_kafka_topic_result_error_string(results[i]));
        return false;
    }
    return true;
}

static bool create_topics(rd_kafka_t *handle, rd_kafka_NewTopic_t **topics,
                          char error[KAFKA_CLIENT_ERROR_TEXT_MAX])
{
    rd_kafka_queue_t *queue = rd_kafka_queue_new(handle);
    rd_kafka_AdminOptions_t *options =
        rd_kafka_AdminOptions_new(handle, RD_KAFKA_ADMIN_OP_CREATETOPICS);
    rd_kafka_AdminOptions_set_request_timeout(options, KAFKA_TOPICS_TIMEOUT_MS, NULL, 0);
    rd_kafka_AdminOptions_set_operation_timeout(options, KAFKA_TOPICS_TIMEOUT_MS, NULL, 0);
    rd_kafka_CreateTopics(handle, topics, TOPIC_COUNT, options, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, 2 * KAFKA_TOPICS_TIMEOUT_MS);
    bool created = read_created_topics(event, error);
    if (event)
        rd_kafka_event_destroy(event);
    rd_kafka_AdminOptions_destroy(options);
    rd_kafka_queue_destroy(queue);
    return created;
}

/* The broker that made a topic may answer before every broker knows it. */
static bool wait_until_topics_are_known(const struct config *config,
                                        char error[KAFKA_CLIENT_ERROR_TEXT_MAX])
{
    enum kafka_topics_result result = kafka_topics_check(config, NULL, error);
    for (int waited_ms = 0; result == KAFKA_TOPICS_WRONG && waited_ms < KAFKA_TOPICS_TIMEOUT_MS;
         waited_ms += KNOWN_POLL_MS) {
        usleep(KNOWN_POLL_MS * 1000);
        result = kafka_topics_check(config, NULL, error);
    }
    return result == KAFKA_TOPICS_OK;
}

bool kafka_topics_create(const struct config *config, char error[KAFKA_CLIENT_ERROR_TEXT_MAX])
{
    struct topic_wish wishes[TOPIC_COUNT];
    rd_kafka_NewTopic_t *topics[TOPIC_COUNT] = {NULL};
    rd_kafka_t *handle = open_topics_handle(config, error);
    bool created = handle != NULL;
    describe_topics(config, wishes);
    for (int i = 0; i < TOPIC_COUNT && created; i++) {
        topics[i] = make_new_topic(&wishes[i], error);
        created = topics[i] != NULL;
    }
    created = created && create_topics(handle, topics, error);
    for (int i = 0; i < TOPIC_COUNT; i++)
        if (topics[i])
            rd_kafka_NewTopic_destroy(topics[i]);
    if (handle)
        rd_kafka_destroy(handle);
    return created && wait_until_topics_are_known(config, error);
}
