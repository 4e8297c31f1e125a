/*
 * A partition that is assigned to a consumer, and the items of its records that are under way.
 *
 *   ASSIGNED ── taken away ──► REVOKED ── the last item is settled ──► freed
 *
 * One thread. Items point to their partition, so it outlives its assignment until the last one is settled.
 */
#ifndef ROLLCALL_FEED_KAFKA_KAFKA_PARTITION_H
#define ROLLCALL_FEED_KAFKA_KAFKA_PARTITION_H

#include "base/list.h"
#include "feed/kafka/kafka_watermark.h"

#include <librdkafka/rdkafka.h>
#include <stddef.h>

struct kafka_partition {
    struct list link;
    int32_t id;
    rd_kafka_queue_t *queue;  /* of its records; NULL: revoked */
    size_t under_way;         /* items */
    int64_t committed_offset; /* what was asked to be committed last; -1: nothing */
    struct kafka_watermark watermark;
};

/* Makes an assigned partition and appends it to `partitions`. `queue` is taken. Returns NULL when out of memory. */
struct kafka_partition *kafka_partition_make(struct list *partitions, int32_t id,
                                             rd_kafka_queue_t *queue);

/* Returns NULL if the partition is not assigned. */
struct kafka_partition *kafka_partition_find(const struct list *partitions, int32_t id);

/* Begins and ends an item; the number names it. Ending the last item of a revoked partition frees the partition. */
uint64_t kafka_partition_begin_item(struct kafka_partition *partition, int64_t offset);
void kafka_partition_end_item(struct kafka_partition *partition, uint64_t number, bool settled);

/* Takes the partition out of its list; it is freed with its last item. */
void kafka_partition_revoke(struct kafka_partition *partition);

/* Adds what is settled and not committed to `offsets`. */
void kafka_partition_collect_offset(struct kafka_partition *partition, const char *topic,
                                    rd_kafka_topic_partition_list_t *offsets);

#endif
