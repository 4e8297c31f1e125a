/*
 * The event on a chat's typing topic (routing/chat_topic.h), in the JSON of the native dialect:
 *
 *   {"type":"typing_changed", "chat_id", "user_id", "typing", "timestamp"}
 */
#ifndef ROLLCALL_TYPING_TYPING_EVENT_H
#define ROLLCALL_TYPING_TYPING_EVENT_H

#include "base/buffer.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TYPING_EVENT_BYTES_MAX = 4096 };

struct typing_event {
    struct slice user_id;
    bool typing;
    int64_t timestamp_ms; /* wall clock */
};

void typing_event_write(struct buffer *out, struct slice chat_id, struct slice user_id, bool typing,
                        int64_t timestamp_ms);

/* Reads an event; its slices point into `text`, which is written to. Returns false if it is no event. */
bool typing_event_parse(char *text, size_t len, struct typing_event *out);

#endif
