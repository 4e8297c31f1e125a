#include "feed/kafka/kafka_watermark.h"

#include <assert.h>

_Static_assert((KAFKA_WATERMARK_WINDOW & (KAFKA_WATERMARK_WINDOW - 1)) == 0, "a power of two");

static uint64_t watermark_slot(uint64_t number)
{
    return number & (KAFKA_WATERMARK_WINDOW - 1);
}

void kafka_watermark_init(struct kafka_watermark *watermark)
{
    watermark->next_offset = -1;
    watermark->first = watermark->end = 0;
}

uint64_t kafka_watermark_open(struct kafka_watermark *watermark, int64_t offset)
{
    assert(!kafka_watermark_is_full(watermark));
    uint64_t number = watermark->end++;
    watermark->offsets[watermark_slot(number)] = offset;
    watermark->settled[watermark_slot(number)] = false;
    if (watermark->next_offset < 0)
        watermark->next_offset = offset;
    return number;
}

bool kafka_watermark_settle(struct kafka_watermark *watermark, uint64_t number)
{
    assert(number >= watermark->first && number < watermark->end);
    assert(!watermark->settled[watermark_slot(number)]);
    watermark->settled[watermark_slot(number)] = true;
    bool moved = false;
    for (;
         watermark->first < watermark->end && watermark->settled[watermark_slot(watermark->first)];
         watermark->first++, moved = true)
        watermark->next_offset = watermark->offsets[watermark_slot(watermark->first)] + 1;
    return moved;
}
