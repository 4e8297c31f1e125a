/*
 * What gateways tell each other about a user, on the topic `presence:<user>`: JSON in the words of the
 * native dialect.
 *
 *   {"type":"presence_changed", "user_id", "status", "in_call", "last_seen", "version", "timestamp",
 *    "news":"online|offline|in_call|out_of_call", where the change is one of these to those who wait for it}
 *   {"type":"privacy_changed", "user_id"}                 settings, contacts or blocks: look again
 */
#ifndef ROLLCALL_PRESENCE_PRESENCE_EVENT_H
#define ROLLCALL_PRESENCE_PRESENCE_EVENT_H

#include "base/buffer.h"
#include "protocol/message.h"
#include "text/json.h"

#include <stdbool.h>

enum { PRESENCE_EVENT_BYTES_MAX = 4096 };

enum presence_event_kind { PRESENCE_EVENT_CHANGED, PRESENCE_EVENT_PRIVACY };

struct presence_event {
    enum presence_event_kind kind;
    struct presence_change change; /* of PRIVACY only user_id is set */
};

void presence_event_write(struct buffer *out, const struct presence_event *event);

/* The members of a change inside an open object: as clients see it, and what only gateways tell. */
void presence_event_write_change(struct buffer *out, const struct presence_change *change);

/* Reads an event; its slices point into `text`, which is written to. False for anything else. */
bool presence_event_parse(char *text, size_t len, struct presence_event *out);

/* Reads the value of one member of an event, or skips it when it is none of its. */
bool presence_event_read_member(struct json *json, struct slice key, struct slice *type,
                                struct presence_change *change);

/* Writes "presence:<user>" and returns it; `out` has room for ROUTER_TOPIC_BYTES_MAX. */
struct slice presence_topic(char *out, struct slice user_id);

/* The user of such a topic; SLICE_NONE for other topics. */
struct slice presence_topic_user(struct slice topic);

#endif
