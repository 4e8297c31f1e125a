#include "protocol/fields.h"

#include "auth/user_id.h"

#define UNKNOWN_TYPE_TEXT "unknown type"

bool fields_scan(struct fields_scratch *scratch, struct json *json, const char **problem)
{
    struct slice key;
    scratch->count = 0;
    *problem = "expected a JSON object";
    if (!json_object(json))
        return false;
    while (json_member(json, &key)) {
        if (scratch->count == FIELDS_JSON_MEMBERS_MAX) {
            *problem = "too many JSON members";
            return false;
        }
        struct fields_json_member *member = &scratch->json_members[scratch->count++];
        member->key = key;
        if (!json_raw(json, &member->raw))
            return false;
    }
    return json->error == NULL;
}

/* The last of several JSON members with that key, as in JSON.parse. */
struct slice fields_find(const struct fields_scratch *scratch, const char *key)
{
    struct slice name = slice_of(key);
    for (size_t i = scratch->count; i-- > 0;)
        if (slice_equal(scratch->json_members[i].key, name))
            return scratch->json_members[i].raw;
    return SLICE_NONE;
}

/* A raw value is part of the payload, which the decoder may write to. */
static struct json fields_json(struct slice raw)
{
    struct json json;
    json_init(&json, (char *)raw.data, raw.len);
    return json;
}

bool fields_string(struct slice raw, struct slice *out)
{
    struct json json = fields_json(raw);
    return raw.len && json_peek(&json) == JSON_STRING && json_string(&json, out);
}

/* ---- readers: each reads the raw value of one JSON member into its field ---- */

static bool read_activity_field(struct fields_scratch *scratch, struct slice raw, void *out)
{
    (void)scratch;
    struct json json = fields_json(raw);
    bool active;
    if (!json_bool(&json, &active))
        return false;
    *(enum activity *)out = active ? ACTIVITY_ACTIVE : ACTIVITY_IDLE;
    return true;
}

static bool read_id_field(struct fields_scratch *scratch, struct slice raw, void *out)
{
    (void)scratch;
    struct slice *id = out;
    return fields_string(raw, id) && id->len > 0 && id->len <= USER_ID_BYTES_MAX;
}

/* No user has an invalid id, because a token with one is refused. */
static bool read_user_field(struct fields_scratch *scratch, struct slice raw, void *out)
{
    (void)scratch;
    return fields_string(raw, out) && user_id_valid(*(struct slice *)out);
}

/* The handler checks the length of a body, because that has an error code of its own. */
static bool read_text_field(struct fields_scratch *scratch, struct slice raw, void *out)
{
    (void)scratch;
    return fields_string(raw, out) && ((struct slice *)out)->len > 0;
}

/* A value that is passed on must still be readable when it is wrapped for transport. */
static bool read_raw_field(struct fields_scratch *scratch, struct slice raw, void *out)
{
    (void)scratch;
    *(struct slice *)out = raw;
    return json_can_be_wrapped(raw);
}

static bool read_count_field(struct fields_scratch *scratch, struct slice raw, void *out)
{
    (void)scratch;
    struct json json = fields_json(raw);
    return json_int(&json, out) && *(int64_t *)out >= 0;
}

static bool read_users_field(struct fields_scratch *scratch, struct slice raw, void *out)
{
    struct json json = fields_json(raw);
    size_t count = 0;
    if (!json_array(&json))
        return false;
    while (json_element(&json)) {
        if (count == FIELDS_USERS_MAX)
            return false;
        struct slice *id = &scratch->users[count++];
        if (!json_string(&json, id) || !user_id_valid(*id))
            return false;
    }
    *(struct id_list *)out = (struct id_list){scratch->users, count};
    return json_done(&json);
}

/* ---- the fields of each message ---- */

struct field {
    const char *name;
    size_t offset; /* in struct message */
    bool (*read)(struct fields_scratch *scratch, struct slice raw, void *out);
    bool required;
    const char *problem;
};

enum { FIELDS_PER_MESSAGE_MAX = 3 };

#define AT(field) offsetof(struct message, field)
#define USERS                                                                                      \
    {                                                                                              \
        "user_ids", AT(users), read_users_field, true,                                             \
            "user_ids must be a list of user ids (strings of 1 to 128 bytes)"                      \
    }
#define CHAT(field)                                                                                \
    {                                                                                              \
        "chat_id", AT(field), read_id_field, true, "chat_id must be a string of 1 to 128 bytes"    \
    }
/* Clients choose call ids, and other clients and logs show them, so they follow the rules of user ids. */
#define CALL(needed)                                                                               \
    {                                                                                              \
        "call_id", AT(call.call_id), read_user_field, needed,                                      \
            "call_id must be a string of 1 to 128 bytes without control characters"                \
    }

static const struct field FIELDS[MESSAGE_CONNECTION_ESTABLISHED][FIELDS_PER_MESSAGE_MAX] = {
    [MESSAGE_HEARTBEAT] = {{"active", AT(heartbeat), read_activity_field, false,
                            "active must be true or false"}},
    [MESSAGE_SUBSCRIBE_PRESENCE] = {USERS},
    [MESSAGE_UNSUBSCRIBE_PRESENCE] = {USERS},
    [MESSAGE_QUERY_PRESENCE] = {USERS},
    [MESSAGE_OPEN_CHAT] = {CHAT(chat_id)},
    [MESSAGE_CLOSE_CHAT] = {CHAT(chat_id)},
    [MESSAGE_TYPING_START] = {CHAT(chat_id)},
    [MESSAGE_TYPING_STOP] = {CHAT(chat_id)},
    [MESSAGE_SEND_MESSAGE] = {{"client_message_id", AT(send.client_message_id), read_id_field, true,
                               "client_message_id must be a string of 1 to 128 bytes"},
                              CHAT(send.chat_id),
                              {"body", AT(send.body), read_text_field, true,
                               "body must be a string of 1 to 4096 bytes"}},
    [MESSAGE_ACK] = {CHAT(ack.chat_id),
                     {"sequence", AT(ack.sequence), read_count_field, true,
                      "sequence must be a whole number, 0 or more"}},
    [MESSAGE_SYNC_REQUEST] = {CHAT(sync.chat_id),
                              {"after_sequence", AT(sync.after_sequence), read_count_field, true,
                               "after_sequence must be a whole number, 0 or more"},
                              {"limit", AT(sync.limit), read_count_field, false,
                               "limit must be a whole number, 0 or more"}},
    [MESSAGE_CALL_REQUEST] = {{"to", AT(call.to), read_user_field, true, "to must be a user id"},
                              CALL(false)},
    [MESSAGE_CALL_ACCEPT] = {CALL(true)},
    [MESSAGE_CALL_REJECT] = {CALL(true)},
    [MESSAGE_CALL_END] = {CALL(true)},
    [MESSAGE_CALL_SIGNAL] = {CALL(true),
                             {"data", AT(call.data), read_raw_field, true,
                              "data is missing or nested too deep"}},
    [MESSAGE_REFRESH_TOKEN] = {{"token", AT(token), read_text_field, true,
                                "token must be a string"}},
};

/* Without an application to ask, an event is an unknown type whatever its fields are, so the handler checks them. */
static void read_client_event(const struct fields_scratch *scratch, struct custom_event *out)
{
    struct slice data = fields_find(scratch, "data");
    *out = (struct custom_event){.name = SLICE_NONE, .unknown_text = UNKNOWN_TYPE_TEXT};
    fields_string(fields_find(scratch, "name"), &out->name);
    out->data = out->args = data;
}

bool fields_decode(struct fields_scratch *scratch, struct message *message, const char **problem)
{
    struct message empty = {.type = message->type, .id = message->id};
    *message = empty;
    if (message->type == MESSAGE_INVALID) {
        *problem = UNKNOWN_TYPE_TEXT;
        return false;
    }
    if (message->type == MESSAGE_EVENT) {
        read_client_event(scratch, &message->event);
        return true;
    }
    const struct field *fields = FIELDS[message->type];
    for (int i = 0; i < FIELDS_PER_MESSAGE_MAX && fields[i].name; i++) {
        struct slice raw = fields_find(scratch, fields[i].name);
        bool missing = !raw.data || (!fields[i].required && slice_is(raw, "null"));
        if (missing ? fields[i].required
                    : !fields[i].read(scratch, raw, (char *)message + fields[i].offset)) {
            *problem = fields[i].problem;
            return false;
        }
    }
    return true;
}
