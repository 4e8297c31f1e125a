/*
 * The events about a user that gateways publish on the topic `presence:<user>`, in the JSON of the native
 * dialect:
 *
 *   {"type":"presence_changed", "user_id", "status", "in_call", "last_seen", "version", "timestamp",
 *    "news":"online|offline|in_call|out_of_call" (only if the change announces something)}
 *   {"type":"privacy_changed", "user_id"}    settings, contacts or blocks changed: gateways review who may see
 */
#ifndef ROLLCALL_PRESENCE_PRESENCE_EVENT_H
#define ROLLCALL_PRESENCE_PRESENCE_EVENT_H

#include "base/buffer.h"
#include "base/hash_key.h"
#include "base/id_list.h"
#include "protocol/message.h"
#include "text/json.h"

#include <stdbool.h>

enum { PRESENCE_EVENT_BYTES_MAX = 4096 };

enum presence_event_kind { PRESENCE_EVENT_CHANGED, PRESENCE_EVENT_PRIVACY };

struct presence_event {
    enum presence_event_kind kind;
    struct presence_change change; /* PRIVACY sets only user_id */
};

void presence_event_write(struct buffer *out, const struct presence_event *event);

/* Writes the fields of a change into an open JSON object: those that clients see, and the announcement. */
void presence_event_write_change(struct buffer *out, const struct presence_change *change);

/* Reads an event; its slices point into `text`, which is written to. Returns false if it is no event. */
bool presence_event_parse(char *text, size_t len, struct presence_event *out);

/* Reads the value of one field of an event; skips an unknown field. */
bool presence_event_read_field(struct json *json, struct slice key, struct slice *type,
                               struct presence_change *change);

/* Reads an array of ids, which point into the text, and replaces those in `out`. The caller frees `out->ids`
 * with free(), also after a failure. Returns false if it is no array of strings, or when out of memory. */
bool presence_event_read_ids(struct json *json, struct id_list *out);

/* Returns a hash of the change, by which an endpoint recognises one that it was told before. */
uint64_t presence_change_hash(const struct hash_key *key, const struct presence_change *change);

/* Writes "presence:<user>" to `out`, which has ROUTER_TOPIC_BYTES_MAX bytes, and returns it. */
struct slice presence_topic(char *out, struct slice user_id);

/* Returns the user of such a topic; SLICE_NONE for other topics. */
struct slice presence_topic_user(struct slice topic);

#endif
