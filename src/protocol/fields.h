/*
 * Decodes and encodes the fields of messages in JSON, which all dialects share. A dialect adds only the
 * envelope (type name and id).
 */
#ifndef ROLLCALL_PROTOCOL_FIELDS_H
#define ROLLCALL_PROTOCOL_FIELDS_H

#include "base/buffer.h"
#include "protocol/message.h"
#include "text/json.h"

#include <stdbool.h>

enum {
    FIELDS_JSON_MEMBERS_MAX = 24, /* of one client message, known or not */
    FIELDS_USERS_MAX = 1000,      /* ids in one list; handlers have tighter bounds */
};

/* Memory for decoding; one per worker, valid until the next decode. */
struct fields_scratch {
    struct fields_json_member {
        struct slice key;
        struct slice raw;
    } json_members[FIELDS_JSON_MEMBERS_MAX];
    size_t count;
    struct slice users[FIELDS_USERS_MAX];
};

/* Reads the next object into JSON members, without decoding their values. Returns false if it is not an
 * object, not JSON, or has too many JSON members; *problem is then a static text that names the fault. */
bool fields_scan(struct fields_scratch *scratch, struct json *json, const char **problem);

/* The raw value of a scanned JSON member, or SLICE_NONE. */
struct slice fields_find(const struct fields_scratch *scratch, const char *key);

/* Reads the string of a raw JSON value. Returns false for another type. Unescapes in place, so only once. */
bool fields_string(struct slice raw, struct slice *out);

/* Fills the fields of message->type from the scanned JSON members. Returns false and names the field in *problem. */
bool fields_decode(struct fields_scratch *scratch, struct message *message, const char **problem);

/* Appends the message's fields as JSON members of an open object. */
void fields_encode(struct buffer *out, const struct message *message);

/* Appends one presence as an object, the same in snapshots, REST and explanations. */
void fields_write_presence(struct buffer *out, const struct presence *presence);

/* Append JSON members to an open object: a presence, an acknowledgement, a page of messages. */
void fields_write_presence_fields(struct buffer *out, const struct presence *presence);
void fields_write_message_ack(struct buffer *out, const struct message_ack *ack);
void fields_write_messages(struct buffer *out, const struct sync_response *page);

#endif
