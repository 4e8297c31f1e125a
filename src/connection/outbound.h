/*
 * The outbound queue of one connection: framed blobs that wait for the socket.
 *
 * The queue is bounded in messages and in bytes; a single message may exceed the bytes. A message with a key
 * replaces a queued one with the same key (the newest state of something replaces the older), unless the
 * socket may have part of that one already. One message, the usual case, needs no allocation; more go to a
 * ring that grows up to the bound and is freed when it is empty.
 *
 * The queue only measures itself; connection_send.c decides what follows from a level. No I/O.
 */
#ifndef ROLLCALL_CONNECTION_OUTBOUND_H
#define ROLLCALL_CONNECTION_OUTBOUND_H

#include "base/blob.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum {
    OUTBOUND_RING_MAX = 1 << 15,   /* messages, whatever the limit */
    OUTBOUND_RESERVE_MESSAGES = 8, /* beyond the bound, for errors and closing messages */
};

struct outbound_item {
    struct blob *blob;
    uint64_t key; /* 0: never superseded */
};

struct outbound_limits {
    uint32_t messages_max;
    size_t bytes_max;
};

struct outbound {
    union {
        struct outbound_item one; /* ring_bits == 0 */
        struct {
            struct outbound_item *items;
            uint32_t head;
            uint32_t bytes; /* of all queued blobs, including what was sent of the first */
        } ring;
    };
    uint32_t sent; /* bytes of the first blob that were sent */
    uint16_t count;
    uint8_t ring_bits; /* the ring has space for 1 << ring_bits items; 0: there is no ring */
    uint8_t pinned;    /* items at the front that the socket may have read */
};

enum outbound_result {
    OUTBOUND_QUEUED,
    OUTBOUND_SUPERSEDED, /* replaced an older one */
    OUTBOUND_FULL,       /* not queued: the bound is reached */
    OUTBOUND_NO_MEMORY,  /* not queued */
};

/* Takes the reference in every case. With `use_reserve` it may go into the reserve. */
enum outbound_result outbound_push(struct outbound *outbound, const struct outbound_limits *limits,
                                   struct blob *blob, uint64_t key, bool use_reserve);

/* The bytes of a queue of more than one message; a single message is on its way to the socket. */
static inline uint32_t outbound_held(const struct outbound *outbound)
{
    return outbound->ring_bits ? outbound->ring.bytes : 0;
}

/* The bytes of all queued messages, including what was sent of the first. */
static inline uint32_t outbound_bytes(const struct outbound *outbound)
{
    if (outbound->ring_bits)
        return outbound->ring.bytes;
    return outbound->count ? outbound->one.blob->len : 0;
}

/* Drops what the socket has not begun to send. */
void outbound_drop_unsent(struct outbound *outbound);

/* Whether a message with this key would replace a queued one. */
bool outbound_holds(struct outbound *outbound, uint64_t key);

/* How full the queue is, in per cent of the nearer bound. */
uint32_t outbound_percent(const struct outbound *outbound, const struct outbound_limits *limits);

/* Lists up to `max` (at most 255) pieces to send. With `pin` none of them is replaced before outbound_sent(); a transport
 * needs that if it reports later how much it sent, or must repeat a write with the same bytes. */
size_t outbound_gather(struct outbound *outbound, struct iovec *out, size_t max, bool pin);

/* The first queued blob, borrowed; NULL: none. */
const struct blob *outbound_first(struct outbound *outbound);

/* Removes `bytes` bytes of the gathered pieces: they were sent. */
void outbound_sent(struct outbound *outbound, size_t bytes);

void outbound_free(struct outbound *outbound);

#endif
