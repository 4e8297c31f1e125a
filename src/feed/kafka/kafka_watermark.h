/*
 * The watermark of one Kafka partition: the offset below which every event is settled. Events are opened in the order
 * of their offsets and settled in any order; only the watermark may be committed, so that a crash loses nothing that
 * was not settled.
 *
 *   offsets   10 11 12 13 14 15        10, 11 and 13 are settled: the watermark is 12
 *              ✓  ✓  ·  ✓  ·  ·
 *
 * Bound: KAFKA_WATERMARK_WINDOW events from the oldest open one. One thread, no I/O.
 */
#ifndef ROLLCALL_FEED_KAFKA_KAFKA_WATERMARK_H
#define ROLLCALL_FEED_KAFKA_KAFKA_WATERMARK_H

#include <stdbool.h>
#include <stdint.h>

enum { KAFKA_WATERMARK_WINDOW = 4096 }; /* a power of two */

struct kafka_watermark {
    int64_t next_offset; /* the watermark; -1 before the first event */
    uint64_t first;      /* number of the oldest event in the window */
    uint64_t end;        /* number of the next event to be opened */
    int64_t offsets[KAFKA_WATERMARK_WINDOW];
    bool settled[KAFKA_WATERMARK_WINDOW];
};

void kafka_watermark_init(struct kafka_watermark *watermark);

/* Returns whether no further event may be opened. */
static inline bool kafka_watermark_is_full(const struct kafka_watermark *watermark)
{
    return watermark->end - watermark->first == KAFKA_WATERMARK_WINDOW;
}

/* Opens the event at `offset`, which follows the one before (the brokers may start again at an older one). Returns its
 * number for kafka_watermark_settle(). */
uint64_t kafka_watermark_open(struct kafka_watermark *watermark, int64_t offset);

/* Settles an open event. Returns whether the watermark moved. */
bool kafka_watermark_settle(struct kafka_watermark *watermark, uint64_t number);

#endif
