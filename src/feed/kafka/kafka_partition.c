#include "feed/kafka/kafka_partition.h"

#include "base/container.h"

#include <stdlib.h>

struct kafka_partition *kafka_partition_make(struct list *partitions, int32_t id,
                                             rd_kafka_queue_t *queue)
{
    struct kafka_partition *made = calloc(1, sizeof(*made));
    if (!made) {
        rd_kafka_queue_destroy(queue);
        return NULL;
    }
    made->id = id;
    made->queue = queue;
    made->committed_offset = -1;
    kafka_watermark_init(&made->watermark);
    list_append(partitions, &made->link);
    return made;
}

struct kafka_partition *kafka_partition_find(const struct list *partitions, int32_t id)
{
    for (struct list *at = partitions->next; at != partitions; at = at->next) {
        struct kafka_partition *partition = CONTAINER_OF(at, struct kafka_partition, link);
        if (partition->id == id)
            return partition;
    }
    return NULL;
}

uint64_t kafka_partition_begin_item(struct kafka_partition *partition, int64_t offset)
{
    partition->under_way++;
    return kafka_watermark_open(&partition->watermark, offset);
}

void kafka_partition_end_item(struct kafka_partition *partition, uint64_t number, bool settled)
{
    partition->under_way--;
    if (partition->queue && settled)
        kafka_watermark_settle(&partition->watermark, number);
    else if (!partition->queue && partition->under_way == 0)
        free(partition);
}

void kafka_partition_revoke(struct kafka_partition *partition)
{
    list_remove(&partition->link);
    rd_kafka_queue_io_event_enable(partition->queue, -1, NULL, 0);
    rd_kafka_queue_destroy(partition->queue);
    partition->queue = NULL;
    if (partition->under_way == 0)
        free(partition);
}

void kafka_partition_collect_offset(struct kafka_partition *partition, const char *topic,
                                    rd_kafka_topic_partition_list_t *offsets)
{
    int64_t offset = partition->watermark.next_offset;
    if (partition->watermark.first == 0 || offset == partition->committed_offset)
        return; /* nothing was settled, or nothing since */
    rd_kafka_topic_partition_list_add(offsets, topic, partition->id)->offset = offset;
    partition->committed_offset = offset;
}
