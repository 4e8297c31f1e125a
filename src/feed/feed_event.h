/*
 * The feed carries MessagePersisted events from the message plane to fan-out, one way. It is a port with two
 * halves, so that a process may have one without the other:
 *
 *   message plane ── feed_producer.h ──► the ledger's outbox (feed/local) or Kafka ── feed_consumer.h ──► fan-out
 *
 * An event that was published reaches a consumer at least once, even if a process crashes; consumers tolerate
 * duplicates. No order is promised: `sequence` orders the messages of a chat.
 */
#ifndef ROLLCALL_FEED_FEED_EVENT_H
#define ROLLCALL_FEED_FEED_EVENT_H

#include "base/slice.h"
#include "base/ulid.h"

#include <stdbool.h>
#include <stdint.h>

/* MessagePersisted */
struct feed_event {
    struct slice chat;
    struct slice message_id;
    struct slice sender;
    struct slice body;
    uint64_t sequence;
    uint64_t members_version; /* of the chat when the message was stored; 0: unknown */
    int64_t sent_at_ms;
    bool has_except;
    struct ulid except; /* the sender's connection, which receives an acknowledgement instead */
};

#endif
