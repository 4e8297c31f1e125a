#include "message/fields.h"

bool fields_scan(struct fields_scratch *scratch, struct json *json, const char **problem)
{
    struct slice key;
    scratch->count = 0;
    *problem = "expected a JSON object";
    if (!json_object(json))
        return false;
    while (json_member(json, &key)) {
        if (scratch->count == FIELDS_MEMBERS_MAX) {
            *problem = "too many members";
            return false;
        }
        struct fields_member *member = &scratch->members[scratch->count++];
        member->key = key;
        if (!json_raw(json, &member->raw))
            return false;
    }
    return json->error == NULL;
}

/* The last of several, as JSON.parse would have it. */
struct slice fields_find(const struct fields_scratch *scratch, const char *key)
{
    struct slice name = slice_of(key);
    for (size_t i = scratch->count; i-- > 0;)
        if (slice_equal(scratch->members[i].key, name))
            return scratch->members[i].raw;
    return SLICE_NONE;
}

/* A raw value stands in the payload, which is the decoder's to write to. */
static struct json json_in(struct slice raw)
{
    struct json json;
    json_init(&json, (char *)raw.data, raw.len);
    return json;
}

bool fields_string(struct slice raw, struct slice *out)
{
    struct json json = json_in(raw);
    return raw.len && json_peek(&json) == JSON_STRING && json_string(&json, out);
}

static bool decode_activity(const struct fields_scratch *scratch, enum activity *out,
                            const char **problem)
{
    *out = ACTIVITY_UNSAID;
    struct slice raw = fields_find(scratch, "active");
    if (!raw.data || slice_is(raw, "null"))
        return true;
    struct json json = json_in(raw);
    bool active;
    if (!json_bool(&json, &active)) {
        *problem = "active must be true or false";
        return false;
    }
    *out = active ? ACTIVITY_ACTIVE : ACTIVITY_IDLE;
    return true;
}

static bool decode_users(struct fields_scratch *scratch, struct user_list *out,
                         const char **problem)
{
    struct json json = json_in(fields_find(scratch, "user_ids"));
    size_t count = 0;
    *problem = "user_ids must be a list of user ids (strings of 1 to 128 bytes)";
    if (!json_array(&json))
        return false;
    while (json_element(&json)) {
        if (count == FIELDS_USERS_MAX) {
            *problem = "user_ids has too many items";
            return false;
        }
        struct slice *id = &scratch->users[count++];
        if (!json_string(&json, id) || id->len == 0 || id->len > USER_ID_BYTES_MAX)
            return false;
    }
    *out = (struct user_list){scratch->users, count};
    return json_done(&json);
}

static bool decode_token(const struct fields_scratch *scratch, struct slice *out,
                         const char **problem)
{
    *problem = "token must be a string";
    return fields_string(fields_find(scratch, "token"), out) && out->len > 0;
}

bool fields_decode(struct fields_scratch *scratch, struct message *message, const char **problem)
{
    switch (message->type) {
    case MESSAGE_HEARTBEAT:
        return decode_activity(scratch, &message->heartbeat, problem);
    case MESSAGE_SUBSCRIBE_PRESENCE:
    case MESSAGE_UNSUBSCRIBE_PRESENCE:
    case MESSAGE_QUERY_PRESENCE:
        return decode_users(scratch, &message->users, problem);
    case MESSAGE_REFRESH_TOKEN:
        return decode_token(scratch, &message->token, problem);
    default:
        *problem = "unknown type";
        return false;
    }
}
