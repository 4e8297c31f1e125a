/*
 * Measures how long Kafka takes to acknowledge one record, without the server: one record after the other, each produced with
 * acks=all and idempotence when the one before is reported as delivered.
 *
 *   kafka_bench HOST:PORT TOPIC SECONDS
 *
 * Prints one line of JSON. The first fifth of the time is not counted.
 */
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>

#include "cost.h"
#include "latency.h"

enum {
    RECORD_BYTES = 300, /* as an event of a short message */
    REPORT_MS = 10000,
    LATENCY_UNIT = 10, /* a bucket of the histogram is 10 µs here, so it reaches to a second */
};

static rd_kafka_t *open_producer(const char *brokers)
{
    const char *const properties[][2] = {{"bootstrap.servers", brokers},
                                         {"acks", "all"},
                                         {"enable.idempotence", "true"},
                                         {"linger.ms", "0"},
                                         {"socket.nagle.disable", "true"}};
    char error[512];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    for (size_t i = 0; i < sizeof(properties) / sizeof(*properties); i++)
        if (rd_kafka_conf_set(conf, properties[i][0], properties[i][1], error, sizeof(error)))
            cost_fail("%s", error);
    rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_DR);
    rd_kafka_t *producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, error, sizeof(error));
    if (!producer)
        cost_fail("%s", error);
    return producer;
}

/* Produces a record and waits for its delivery report. */
static void produce_one(rd_kafka_topic_t *topic, rd_kafka_queue_t *queue)
{
    static char record[RECORD_BYTES];
    if (rd_kafka_produce(topic, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY, record, sizeof(record),
                         "bench", 5, NULL) != 0)
        cost_fail("cannot produce: %s", rd_kafka_err2str(rd_kafka_last_error()));
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, REPORT_MS);
    const rd_kafka_message_t *report = event ? rd_kafka_event_message_next(event) : NULL;
    if (!report || report->err)
        cost_fail("not delivered: %s", report ? rd_kafka_err2str(report->err) : "no report");
    rd_kafka_event_destroy(event);
}

int main(int argc, char **argv)
{
    static struct latency latencies;
    if (argc != 4)
        cost_fail("usage: kafka_bench HOST:PORT TOPIC SECONDS");
    rd_kafka_t *producer = open_producer(argv[1]);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(producer, argv[2], NULL);
    rd_kafka_queue_t *queue = rd_kafka_queue_get_main(producer);
    uint64_t started_ns = cost_now_ns(), length_ns = (uint64_t)(strtod(argv[3], NULL) * 1e9);
    for (uint64_t now_ns = started_ns; now_ns < started_ns + length_ns;) {
        produce_one(topic, queue);
        uint64_t done_ns = cost_now_ns();
        if (done_ns > started_ns + length_ns / 5)
            latency_add(&latencies, (done_ns - now_ns) / LATENCY_UNIT);
        now_ns = done_ns;
    }
    printf("{\"step\":\"produce\",\"p50_ms\":%.2f,\"p99_ms\":%.2f}\n",
           (double)latency_quantile_us(&latencies, 0.5) * LATENCY_UNIT / 1000,
           (double)latency_quantile_us(&latencies, 0.99) * LATENCY_UNIT / 1000);
    rd_kafka_queue_destroy(queue);
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(producer);
    return 0;
}
