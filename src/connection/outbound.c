#include "connection/outbound.h"

#include <assert.h>
#include <stdlib.h>

enum { OUTBOUND_RING_BITS_MIN = 3 };

/* What `ring.bytes` can count, with space for the reserve. */
#define OUTBOUND_BYTES_MAX (UINT64_C(1) << 31)

static struct outbound_item *outbound_item_at(struct outbound *outbound, uint32_t index)
{
    if (outbound->ring_bits == 0)
        return &outbound->one;
    return &outbound->ring.items[(outbound->ring.head + index) & ((1U << outbound->ring_bits) - 1)];
}

/* Moves to a ring of twice the size; from the single item to the smallest ring. */
static bool outbound_grow_ring(struct outbound *outbound)
{
    uint8_t bits = outbound->ring_bits ? outbound->ring_bits + 1 : OUTBOUND_RING_BITS_MIN;
    if (1U << bits > OUTBOUND_RING_MAX)
        return false;
    struct outbound_item *items = malloc(sizeof(*items) << bits);
    if (!items)
        return false;
    for (uint32_t i = 0; i < outbound->count; i++)
        items[i] = *outbound_item_at(outbound, i);
    uint32_t bytes = outbound_bytes(outbound);
    if (outbound->ring_bits)
        free(outbound->ring.items);
    outbound->ring.items = items;
    outbound->ring.head = 0;
    outbound->ring.bytes = bytes;
    outbound->ring_bits = bits;
    return true;
}

static void outbound_free_ring(struct outbound *outbound)
{
    free(outbound->ring.items);
    outbound->ring_bits = 0;
    outbound->one = (struct outbound_item){0};
}

/* The queued item that a message with this key may replace, or NULL. */
static struct outbound_item *outbound_find_replaceable(struct outbound *outbound, uint64_t key)
{
    uint32_t first_free = outbound->pinned;
    if (outbound->sent && first_free == 0)
        first_free = 1;
    for (uint32_t i = first_free; i < outbound->count; i++) {
        struct outbound_item *item = outbound_item_at(outbound, i);
        if (item->key == key)
            return item;
    }
    return NULL;
}

/* Whether the blob exceeds the bound together with `others` bytes. Alone it never does, because it must be
 * sent somehow. */
static bool outbound_exceeds_bytes(uint64_t others, const struct outbound_limits *limits,
                                   const struct blob *blob)
{
    uint64_t bytes_max =
        limits->bytes_max < OUTBOUND_BYTES_MAX ? limits->bytes_max : OUTBOUND_BYTES_MAX;
    return others && others + blob->len > bytes_max;
}

enum outbound_result outbound_push(struct outbound *outbound, const struct outbound_limits *limits,
                                   struct blob *blob, uint64_t key, bool use_reserve)
{
    if (outbound->count == 0) { /* the usual case; alone it always fits */
        outbound->one = (struct outbound_item){blob, key};
        outbound->count = 1;
        return OUTBOUND_QUEUED;
    }
    struct outbound_item *older = key ? outbound_find_replaceable(outbound, key) : NULL;
    uint32_t bytes = outbound_bytes(outbound);
    if (older && (use_reserve || !outbound_exceeds_bytes(bytes - older->blob->len, limits, blob))) {
        if (outbound->ring_bits)
            outbound->ring.bytes += blob->len - older->blob->len;
        blob_drop(&older->blob);
        older->blob = blob;
        return OUTBOUND_SUPERSEDED;
    }
    uint32_t messages_max = limits->messages_max + (use_reserve ? OUTBOUND_RESERVE_MESSAGES : 0);
    if (older || outbound->count >= messages_max ||
        (!use_reserve && outbound_exceeds_bytes(bytes, limits, blob))) {
        blob_drop(&blob);
        return OUTBOUND_FULL;
    }
    if (outbound->count == 1U << outbound->ring_bits && !outbound_grow_ring(outbound)) {
        blob_drop(&blob);
        return OUTBOUND_NO_MEMORY;
    }
    *outbound_item_at(outbound, outbound->count) = (struct outbound_item){blob, key};
    outbound->count++;
    outbound->ring.bytes += blob->len;
    return OUTBOUND_QUEUED;
}

bool outbound_holds(struct outbound *outbound, uint64_t key)
{
    return outbound->count && outbound_find_replaceable(outbound, key) != NULL;
}

uint32_t outbound_percent(const struct outbound *outbound, const struct outbound_limits *limits)
{
    uint32_t by_count = (uint32_t)(outbound->count * 100ULL / limits->messages_max);
    uint32_t by_bytes = (uint32_t)(outbound_bytes(outbound) * 100ULL / limits->bytes_max);
    return by_count > by_bytes ? by_count : by_bytes;
}

size_t outbound_gather(struct outbound *outbound, struct iovec *out, size_t max, bool pin)
{
    assert(max <= UINT8_MAX);
    size_t count = outbound->count < max ? outbound->count : max;
    for (size_t i = 0; i < count; i++) {
        struct blob *blob = outbound_item_at(outbound, (uint32_t)i)->blob;
        uint32_t from = i == 0 ? outbound->sent : 0;
        out[i] = (struct iovec){blob->bytes + from, blob->len - from};
    }
    if (pin)
        outbound->pinned = (uint8_t)count;
    return count;
}

const struct blob *outbound_first(struct outbound *outbound)
{
    return outbound->count ? outbound_item_at(outbound, 0)->blob : NULL;
}

static void outbound_drop_first(struct outbound *outbound)
{
    struct outbound_item *first = outbound_item_at(outbound, 0);
    outbound->count--;
    if (outbound->ring_bits == 0) {
        blob_drop(&first->blob);
        return;
    }
    assert(first->blob);
    outbound->ring.bytes -= first->blob->len;
    blob_drop(&first->blob);
    outbound->ring.head++;
    if (outbound->count == 0)
        outbound_free_ring(outbound);
}

void outbound_sent(struct outbound *outbound, size_t bytes)
{
    outbound->pinned = 0;
    bytes += outbound->sent;
    outbound->sent = 0;
    for (const struct blob *first; (first = outbound_first(outbound)) && bytes >= first->len;) {
        bytes -= first->len;
        outbound_drop_first(outbound);
    }
    assert(outbound->count || bytes == 0);
    outbound->sent = (uint32_t)bytes;
}

void outbound_drop_unsent(struct outbound *outbound)
{
    uint32_t kept = outbound->pinned;
    if (outbound->sent && kept == 0)
        kept = 1;
    for (uint32_t i = kept; i < outbound->count; i++) {
        struct outbound_item *item = outbound_item_at(outbound, i);
        assert(item->blob);
        if (outbound->ring_bits)
            outbound->ring.bytes -= item->blob->len;
        blob_drop(&item->blob);
    }
    if (outbound->count > kept)
        outbound->count = (uint16_t)kept;
    if (outbound->count == 0 && outbound->ring_bits)
        outbound_free_ring(outbound);
}

void outbound_free(struct outbound *outbound)
{
    while (outbound->count)
        outbound_drop_first(outbound);
    outbound->sent = 0;
    outbound->pinned = 0;
}
