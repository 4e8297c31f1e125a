/*
 * MessagePersisted as the value of a Kafka record: one JSON object, whose key is the chat. docs/PROTOCOL.md
 * describes it for other readers of the topic.
 *
 *   {"version":1,"type":"message_persisted","chat_id":"c","message_id":"01…","sequence":7,"sender_id":"alice",
 *    "body":"hello","sent_at_ms":1800000000000,"members_version":3,"except":"01…"}
 *
 * `members_version` and `except` may be missing; unknown members are ignored. A reader refuses another version.
 * A change that old readers would misunderstand needs a new KAFKA_EVENT_VERSION.
 */
#ifndef ROLLCALL_FEED_KAFKA_KAFKA_EVENT_H
#define ROLLCALL_FEED_KAFKA_KAFKA_EVENT_H

#include "base/buffer.h"
#include "feed/feed_event.h"

enum { KAFKA_EVENT_VERSION = 1 };

/* Appends the event; check out->failed. */
void kafka_event_encode(struct buffer *out, const struct feed_event *event);

/* Reads an event in place: the event's slices point into `data`. Returns NULL, or static text that says what is wrong
 * with it. */
const char *kafka_event_decode(char *data, size_t len, struct feed_event *event);

#endif
