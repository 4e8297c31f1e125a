#include "feed/kafka/kafka_dead_letters.h"

#include "base/container.h"
#include "log/log.h"

#include <stdio.h>
#include <stdlib.h>

enum { RETRY_MS = 1000 };

/* A dead letter until it is stored. */
struct stored_letter {
    struct list link;
    struct kafka_dead_letters *letters;
    struct wheel_timer retry;
    kafka_dead_letter_done done;
    void *arg;
    struct slice key;
    struct slice value;
    struct slice reason;
    int32_t partition;
    int64_t offset;
    char bytes[];
};

void kafka_dead_letters_init(struct kafka_dead_letters *letters)
{
    list_init(&letters->letters);
}

static void retry_letter_later(struct stored_letter *letter, const char *why)
{
    struct loop *loop = letter->letters->loop;
    log_error("dead_letter_not_stored", "error=%s", log_sentence(slice_of(why)));
    loop_set_timer(loop, &letter->retry, loop->clock.now_ms + RETRY_MS);
}

static void on_letter_reports(rd_kafka_event_t *event)
{
    const rd_kafka_message_t *record;
    while ((record = rd_kafka_event_message_next(event)) != NULL) {
        struct stored_letter *letter = record->_private;
        if (record->err) {
            retry_letter_later(letter, rd_kafka_err2str(record->err));
            continue;
        }
        list_remove(&letter->link);
        letter->done(letter->arg, true);
        free(letter);
    }
}

static void on_letters_event(void *arg, rd_kafka_event_t *event)
{
    (void)arg;
    if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_DR)
        on_letter_reports(event);
    else if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_ERROR)
        log_warn("kafka_dead_letters_error", "error=%s",
                 log_sentence(slice_of(rd_kafka_event_error_string(event))));
}

static bool start_letters_client(struct kafka_dead_letters *letters,
                                 char error[KAFKA_CLIENT_ERROR_TEXT_MAX])
{
    static const struct kafka_property PROPERTIES[] = {
        {"acks", "all"}, {"message.timeout.ms", "10000"}, {"linger.ms", "0"}, {NULL, NULL}};
    struct kafka_client_options options = {
        .config = letters->config,
        .loop = letters->loop,
        .type = RD_KAFKA_PRODUCER,
        .properties = PROPERTIES,
        .on_event = on_letters_event,
        .arg = letters,
    };
    return letters->client.handle || kafka_client_start(&letters->client, &options, error);
}

static void produce_letter(struct stored_letter *letter)
{
    struct kafka_dead_letters *letters = letter->letters;
    const struct config *config = letters->config;
    char error[KAFKA_CLIENT_ERROR_TEXT_MAX], partition[16], offset[32];
    if (!start_letters_client(letters, error)) {
        retry_letter_later(letter, error);
        return;
    }
    int partition_len = snprintf(partition, sizeof(partition), "%d", letter->partition);
    int offset_len = snprintf(offset, sizeof(offset), "%lld", (long long)letter->offset);
    rd_kafka_resp_err_t refused = rd_kafka_producev(
        letters->client.handle, RD_KAFKA_V_TOPIC(config->fanout.dlq.topic),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
        RD_KAFKA_V_KEY((void *)letter->key.data, letter->key.len),
        RD_KAFKA_V_VALUE((void *)letter->value.data, letter->value.len),
        RD_KAFKA_V_HEADER("reason", letter->reason.data, (ssize_t)letter->reason.len),
        RD_KAFKA_V_HEADER("topic", config->durability.kafka.topic, -1),
        RD_KAFKA_V_HEADER("partition", partition, partition_len),
        RD_KAFKA_V_HEADER("offset", offset, offset_len), RD_KAFKA_V_OPAQUE(letter), RD_KAFKA_V_END);
    if (refused)
        retry_letter_later(letter, rd_kafka_err2str(refused));
}

static void on_letter_retry_due(struct wheel_timer *timer)
{
    produce_letter(CONTAINER_OF(timer, struct stored_letter, retry));
}

bool kafka_dead_letters_put(struct kafka_dead_letters *letters,
                            const struct kafka_dead_letter *letter, kafka_dead_letter_done done,
                            void *arg)
{
    struct slice reason = slice_of(letter->reason);
    struct stored_letter *made =
        calloc(1, sizeof(*made) + letter->key.len + letter->value.len + reason.len);
    if (!made)
        return false;
    char *at = made->bytes;
    made->letters = letters;
    made->retry.fire = on_letter_retry_due;
    made->done = done;
    made->arg = arg;
    made->key = slice_copy_to(&at, letter->key);
    made->value = slice_copy_to(&at, letter->value);
    made->reason = slice_copy_to(&at, reason);
    made->partition = letter->partition;
    made->offset = letter->offset;
    list_append(&letters->letters, &made->link);
    produce_letter(made);
    return true;
}

void kafka_dead_letters_free(struct kafka_dead_letters *letters)
{
    kafka_client_stop(&letters->client);
    struct list *at = letters->letters.next;
    while (at != &letters->letters) {
        struct stored_letter *letter = CONTAINER_OF(at, struct stored_letter, link);
        at = at->next;
        loop_cancel_timer(letters->loop, &letter->retry);
        list_remove(&letter->link);
        letter->done(letter->arg, false);
        free(letter);
    }
}
