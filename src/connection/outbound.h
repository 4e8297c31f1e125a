/*
 * The outbound queue of one connection: framed blobs that wait for the socket.
 *
 * Bounded in messages and in bytes, but for a message that is
 * alone. A message with a key takes the place of a queued one with the same key (the newest state of
 * something replaces the older), unless that one may already be partly with the socket. One message,
 * the usual case, needs no memory of its own; more go to a ring that grows to the bound and is freed
 * when drained.
 *
 * The queue only measures itself; what a level means is connection.c's business. No I/O here.
 */
#ifndef ROLLCALL_CONNECTION_OUTBOUND_H
#define ROLLCALL_CONNECTION_OUTBOUND_H

#include "base/blob.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum {
    OUTBOUND_RING_MAX = 1 << 15, /* messages, whatever the limit */
    OUTBOUND_RESERVE_MESSAGES =
        8, /* room beyond the bound for last words: errors and closing messages */
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
        struct outbound_item one; /* cap == 0 */
        struct {
            struct outbound_item *items; /* a ring of cap */
            uint32_t head;
        } ring;
    };
    uint32_t bytes; /* of all queued blobs, what was sent of the first included */
    uint32_t sent;  /* bytes of the first blob that are out */
    uint16_t count;
    uint16_t cap;
    uint16_t pinned; /* items at the front the socket may have seen */
};

enum outbound_result {
    OUTBOUND_QUEUED,
    OUTBOUND_SUPERSEDED, /* took the place of an older one */
    OUTBOUND_FULL,       /* not queued: the bound is reached */
    OUTBOUND_NO_MEMORY,  /* not queued */
};

/* Takes the reference in every case. With `last_words` the reserve may be used. */
enum outbound_result outbound_push(struct outbound *outbound, const struct outbound_limits *limits,
                                   struct blob *blob, uint64_t key, bool last_words);

/* Whether a message with this key would take the place of a queued one. */
bool outbound_holds(struct outbound *outbound, uint64_t key);

/* How full it is, in per cent of the nearer bound. */
uint32_t outbound_percent(const struct outbound *outbound, const struct outbound_limits *limits);

/* Names up to `max` pieces to send. With `pin` none of these will be superseded before outbound_sent():
 * a transport asks for that which says later how much went, or must repeat a write with the same bytes. */
size_t outbound_gather(struct outbound *outbound, struct iovec *out, size_t max, bool pin);

/* The first that waits, borrowed; NULL: none. */
const struct blob *outbound_first(struct outbound *outbound);

/* So many bytes of what was gathered are out. */
void outbound_sent(struct outbound *outbound, size_t bytes);

void outbound_free(struct outbound *outbound);

#endif
