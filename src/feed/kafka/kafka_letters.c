#include "feed/kafka/kafka_letters.h"

#include "feed/kafka/kafka_client.h"

#include <stdio.h>
#include <stdlib.h>

enum { POLL_MS = 100 };

struct letters_partition {
    int64_t first;          /* offset of the oldest letter */
    int64_t end;            /* behind the newest */
    int64_t next;           /* to be read */
    int64_t replayed_until; /* all before were put back or dropped */
};

struct kafka_letters {
    const struct config *config;
    rd_kafka_t *reader;
    rd_kafka_t *producer; /* NULL: nothing was put back */
    struct letters_partition *partitions;
    int32_t partition_count;
    size_t unreported;           /* put back, and not reported yet */
    rd_kafka_resp_err_t failure; /* of the last one that the brokers refused */
};

static bool explain_letters_failure(char error[KAFKA_LETTERS_ERROR_TEXT_MAX], const char *what,
                                    rd_kafka_resp_err_t code)
{
    snprintf(error, KAFKA_LETTERS_ERROR_TEXT_MAX, "%s: %s", what, rd_kafka_err2str(code));
    return false;
}

/* ---- opening ---- */

static rd_kafka_t *make_letters_client(const struct config *config, rd_kafka_type_t type,
                                       const struct kafka_property *properties,
                                       void (*on_report)(rd_kafka_t *, const rd_kafka_message_t *,
                                                         void *),
                                       void *arg, char error[KAFKA_LETTERS_ERROR_TEXT_MAX])
{
    rd_kafka_conf_t *settings = kafka_client_configure(config, properties, error);
    if (!settings)
        return NULL;
    rd_kafka_conf_set_opaque(settings, arg);
    if (on_report)
        rd_kafka_conf_set_dr_msg_cb(settings, on_report);
    rd_kafka_t *client = rd_kafka_new(type, settings, error, KAFKA_LETTERS_ERROR_TEXT_MAX);
    if (!client)
        rd_kafka_conf_destroy(settings);
    return client;
}

static bool read_letters_watermarks(struct kafka_letters *letters,
                                    char error[KAFKA_LETTERS_ERROR_TEXT_MAX])
{
    const char *topic = letters->config->fanout.dlq.topic;
    for (int32_t i = 0; i < letters->partition_count; i++) {
        struct letters_partition *partition = &letters->partitions[i];
        rd_kafka_resp_err_t failed = rd_kafka_query_watermark_offsets(
            letters->reader, topic, i, &partition->first, &partition->end, KAFKA_LETTERS_LIMIT_MS);
        if (failed)
            return explain_letters_failure(error, topic, failed);
        partition->next = partition->replayed_until = partition->first;
    }
    return true;
}

static bool find_letters_partitions(struct kafka_letters *letters,
                                    char error[KAFKA_LETTERS_ERROR_TEXT_MAX])
{
    const char *name = letters->config->fanout.dlq.topic;
    const struct rd_kafka_metadata *metadata = NULL;
    rd_kafka_topic_t *topic = rd_kafka_topic_new(letters->reader, name, NULL);
    rd_kafka_resp_err_t failed =
        topic ? rd_kafka_metadata(letters->reader, 0, topic, &metadata, KAFKA_LETTERS_LIMIT_MS)
              : rd_kafka_last_error();
    if (!failed)
        failed = metadata && metadata->topic_cnt == 1 ? metadata->topics[0].err
                                                      : RD_KAFKA_RESP_ERR_UNKNOWN;
    if (!failed) {
        letters->partition_count = metadata->topics[0].partition_cnt;
        letters->partitions =
            calloc((size_t)letters->partition_count, sizeof(letters->partitions[0]));
    }
    if (metadata)
        rd_kafka_metadata_destroy(metadata);
    if (topic)
        rd_kafka_topic_destroy(topic);
    if (failed)
        return explain_letters_failure(error, name, failed);
    return letters->partitions || explain_letters_failure(error, name, RD_KAFKA_RESP_ERR__FAIL);
}

struct kafka_letters *kafka_letters_open(const struct config *config,
                                         char error[KAFKA_LETTERS_ERROR_TEXT_MAX])
{
    static const struct kafka_property READER[] = {{"group.id", "rollcall-dead-letters"},
                                                   {"enable.auto.commit", "false"},
                                                   {"enable.partition.eof", "false"},
                                                   {NULL, NULL}};
    struct kafka_letters *letters = calloc(1, sizeof(*letters));
    snprintf(error, KAFKA_LETTERS_ERROR_TEXT_MAX, "out of memory");
    if (!letters)
        return NULL;
    letters->config = config;
    letters->reader = make_letters_client(config, RD_KAFKA_CONSUMER, READER, NULL, letters, error);
    if (!letters->reader || !find_letters_partitions(letters, error) ||
        !read_letters_watermarks(letters, error))
        kafka_letters_close(&letters);
    return letters;
}

void kafka_letters_close(struct kafka_letters **letters)
{
    struct kafka_letters *closed = *letters;
    *letters = NULL;
    if (closed->producer)
        rd_kafka_destroy(closed->producer);
    if (closed->reader)
        rd_kafka_destroy(closed->reader);
    free(closed->partitions);
    free(closed);
}

/* ---- reading ---- */

int64_t kafka_letters_count(struct kafka_letters *letters, char error[KAFKA_LETTERS_ERROR_TEXT_MAX])
{
    int64_t count = 0;
    if (!read_letters_watermarks(letters, error))
        return -1;
    for (int32_t i = 0; i < letters->partition_count; i++)
        count += letters->partitions[i].end - letters->partitions[i].first;
    return count;
}

static int64_t count_unread_letters(const struct kafka_letters *letters)
{
    int64_t unread = 0;
    for (int32_t i = 0; i < letters->partition_count; i++)
        unread += letters->partitions[i].end - letters->partitions[i].next;
    return unread;
}

static bool assign_letters_partitions(struct kafka_letters *letters,
                                      char error[KAFKA_LETTERS_ERROR_TEXT_MAX])
{
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new(letters->partition_count);
    for (int32_t i = 0; i < letters->partition_count; i++) {
        struct letters_partition *partition = &letters->partitions[i];
        partition->next = partition->first;
        rd_kafka_topic_partition_list_add(list, letters->config->fanout.dlq.topic, i)->offset =
            partition->first;
    }
    rd_kafka_resp_err_t failed = rd_kafka_assign(letters->reader, list);
    rd_kafka_topic_partition_list_destroy(list);
    return !failed || explain_letters_failure(error, "assign", failed);
}

static struct kafka_letter letter_of_record(const rd_kafka_message_t *record)
{
    struct kafka_letter letter = {
        .partition = record->partition,
        .offset = record->offset,
        .stored_at_ms = rd_kafka_message_timestamp(record, NULL),
        .reason = SLICE("unknown"),
        .key = {record->key, record->key_len},
        .value = {record->payload, record->len},
    };
    rd_kafka_headers_t *headers = NULL;
    const void *text;
    size_t len;
    if (rd_kafka_message_headers(record, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR &&
        rd_kafka_header_get_last(headers, "reason", &text, &len) == RD_KAFKA_RESP_ERR_NO_ERROR)
        letter.reason = (struct slice){text, len};
    return letter;
}

/* Returns whether it was a letter that had not been read. */
static bool visit_letter_record(struct kafka_letters *letters, const rd_kafka_message_t *record,
                                kafka_letter_visitor visit, void *arg)
{
    if (record->err || record->partition < 0 || record->partition >= letters->partition_count)
        return false;
    struct letters_partition *partition = &letters->partitions[record->partition];
    if (record->offset >= partition->end)
        return false;
    struct kafka_letter letter = letter_of_record(record);
    partition->next = record->offset + 1;
    visit(arg, &letter);
    return true;
}

int64_t kafka_letters_each(struct kafka_letters *letters, kafka_letter_visitor visit, void *arg,
                           char error[KAFKA_LETTERS_ERROR_TEXT_MAX])
{
    int visited = 0, silent_ms = 0;
    if (!assign_letters_partitions(letters, error))
        return -1;
    while (visited < KAFKA_LETTERS_MAX && count_unread_letters(letters) > 0) {
        rd_kafka_message_t *record = rd_kafka_consumer_poll(letters->reader, POLL_MS);
        bool is_letter = record && visit_letter_record(letters, record, visit, arg);
        if (record)
            rd_kafka_message_destroy(record);
        visited += is_letter;
        silent_ms = is_letter ? 0 : silent_ms + POLL_MS;
        if (silent_ms > KAFKA_LETTERS_LIMIT_MS) {
            explain_letters_failure(error, "read", RD_KAFKA_RESP_ERR__TIMED_OUT);
            return -1;
        }
    }
    return count_unread_letters(letters);
}

/* ---- putting back ---- */

static void on_letter_report(rd_kafka_t *producer, const rd_kafka_message_t *record, void *arg)
{
    struct kafka_letters *letters = arg;
    (void)producer;
    letters->unreported--;
    if (record->err)
        letters->failure = record->err;
}

/* Returns false, with a sentence, if there is no client that writes. */
static bool ensure_letters_producer(struct kafka_letters *letters,
                                    char error[KAFKA_LETTERS_ERROR_TEXT_MAX])
{
    static const struct kafka_property PRODUCER[] = {{"acks", "all"},
                                                     {"enable.idempotence", "true"},
                                                     {"message.timeout.ms", "10000"},
                                                     {NULL, NULL}};
    if (!letters->producer)
        letters->producer = make_letters_client(letters->config, RD_KAFKA_PRODUCER, PRODUCER,
                                                on_letter_report, letters, error);
    return letters->producer != NULL;
}

bool kafka_letters_drop(struct kafka_letters *letters, const struct kafka_letter *letter,
                        char error[KAFKA_LETTERS_ERROR_TEXT_MAX])
{
    struct letters_partition *partition = &letters->partitions[letter->partition];
    if (!ensure_letters_producer(letters, error))
        return false;
    if (partition->replayed_until != letter->offset) {
        snprintf(error, KAFKA_LETTERS_ERROR_TEXT_MAX,
                 "drop: Kafka removes from the front only: first replay or drop %d:%lld",
                 letter->partition, (long long)partition->replayed_until);
        return false;
    }
    partition->replayed_until = letter->offset + 1;
    return true;
}

bool kafka_letters_replay(struct kafka_letters *letters, const struct kafka_letter *letter,
                          char error[KAFKA_LETTERS_ERROR_TEXT_MAX])
{
    const char *topic = letters->config->durability.kafka.topic;
    if (!ensure_letters_producer(letters, error))
        return false;
    rd_kafka_resp_err_t failed = rd_kafka_producev(
        letters->producer, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
        RD_KAFKA_V_KEY((void *)letter->key.data, letter->key.len),
        RD_KAFKA_V_VALUE((void *)letter->value.data, letter->value.len), RD_KAFKA_V_END);
    if (failed)
        return explain_letters_failure(error, topic, failed);
    struct letters_partition *partition = &letters->partitions[letter->partition];
    letters->unreported++;
    if (partition->replayed_until == letter->offset)
        partition->replayed_until = letter->offset + 1;
    return true;
}

/* Removes what was put back from the front of each partition. */
static bool remove_replayed_letters(struct kafka_letters *letters,
                                    char error[KAFKA_LETTERS_ERROR_TEXT_MAX])
{
    const char *topic = letters->config->fanout.dlq.topic;
    rd_kafka_topic_partition_list_t *before =
        rd_kafka_topic_partition_list_new(letters->partition_count);
    for (int32_t i = 0; i < letters->partition_count; i++)
        if (letters->partitions[i].replayed_until > letters->partitions[i].first)
            rd_kafka_topic_partition_list_add(before, topic, i)->offset =
                letters->partitions[i].replayed_until;
    rd_kafka_resp_err_t failed = RD_KAFKA_RESP_ERR_NO_ERROR;
    if (before->cnt > 0) {
        rd_kafka_DeleteRecords_t *removal = rd_kafka_DeleteRecords_new(before);
        rd_kafka_queue_t *queue = rd_kafka_queue_new(letters->producer);
        rd_kafka_DeleteRecords(letters->producer, &removal, 1, NULL, queue);
        rd_kafka_event_t *answer = rd_kafka_queue_poll(queue, KAFKA_LETTERS_LIMIT_MS);
        failed = answer ? rd_kafka_event_error(answer) : RD_KAFKA_RESP_ERR__TIMED_OUT;
        if (answer)
            rd_kafka_event_destroy(answer);
        rd_kafka_queue_destroy(queue);
        rd_kafka_DeleteRecords_destroy(removal);
    }
    rd_kafka_topic_partition_list_destroy(before);
    return !failed || explain_letters_failure(error, "put back, but not removed", failed);
}

bool kafka_letters_flush(struct kafka_letters *letters, char error[KAFKA_LETTERS_ERROR_TEXT_MAX])
{
    if (!letters->producer)
        return true;
    rd_kafka_resp_err_t failed = rd_kafka_flush(letters->producer, 2 * KAFKA_LETTERS_LIMIT_MS);
    if (!failed && letters->unreported)
        failed = RD_KAFKA_RESP_ERR__TIMED_OUT;
    if (!failed)
        failed = letters->failure;
    if (failed)
        return explain_letters_failure(error, letters->config->durability.kafka.topic, failed);
    return remove_replayed_letters(letters, error);
}
