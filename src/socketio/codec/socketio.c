#include "socketio/codec/socketio.h"

#include "text/json.h"

/* Event names that Socket.IO uses itself; the reference server refuses them. */
static const char *const RESERVED[] = {"connect",       "connect_error", "disconnect",
                                       "disconnecting", "newListener",   "removeListener"};

enum { RESERVED_COUNT = sizeof(RESERVED) / sizeof(RESERVED[0]) };

/* Takes the digits off the front of *rest. */
static struct slice take_packet_digits(struct slice *rest)
{
    size_t count = 0;
    while (count < rest->len && rest->data[count] >= '0' && rest->data[count] <= '9')
        count++;
    struct slice digits = count ? slice_first(*rest, count) : SLICE_NONE;
    *rest = (struct slice){rest->data + count, rest->len - count};
    return digits;
}

static bool take_packet_attachments(struct slice *rest, unsigned *count)
{
    struct slice digits = take_packet_digits(rest);
    *count = 0;
    for (size_t i = 0; i < digits.len && *count <= SOCKETIO_ATTACHMENTS_MAX; i++)
        *count = *count * 10 + (unsigned)(digits.data[i] - '0');
    if (*count < 1 || *count > SOCKETIO_ATTACHMENTS_MAX || rest->len == 0 || rest->data[0] != '-')
        return false;
    *rest = (struct slice){rest->data + 1, rest->len - 1};
    return true;
}

/* A namespace begins with a slash and ends at a comma or at the packet's end. */
static bool take_packet_namespace(struct slice *rest, struct slice *name)
{
    *name = SLICE("/");
    if (rest->len == 0 || rest->data[0] != '/')
        return true;
    const char *comma = memchr(rest->data, ',', rest->len);
    size_t len = comma ? (size_t)(comma - rest->data) : rest->len;
    *name = (struct slice){rest->data, len};
    size_t used = comma ? len + 1 : len;
    *rest = (struct slice){rest->data + used, rest->len - used};
    return len <= SOCKETIO_NAMESPACE_BYTES_MAX;
}

/* ---- the JSON after the head ---- */

/* Whether each placeholder in the next value names one of the packet's attachments. The JSON parser limits the depth
 * of the recursion. */
static bool check_packet_placeholders(struct json *json, unsigned attachments);

static bool check_object_placeholders(struct json *json, unsigned attachments)
{
    struct slice key;
    int64_t number = -1;
    bool is_placeholder = false;
    json_object(json);
    while (json_member(json, &key)) {
        bool read;
        if (slice_is(key, "_placeholder") && json_peek(json) == JSON_TRUE)
            read = is_placeholder = json_skip(json);
        else if (slice_is(key, "num") && json_peek(json) == JSON_NUMBER)
            read = json_int(json, &number);
        else
            read = check_packet_placeholders(json, attachments);
        if (!read)
            return false;
    }
    return !json->error && (!is_placeholder || (number >= 0 && number < attachments));
}

static bool check_packet_placeholders(struct json *json, unsigned attachments)
{
    enum json_type type = json_peek(json);
    if (type == JSON_OBJECT)
        return check_object_placeholders(json, attachments);
    if (type != JSON_ARRAY)
        return json_skip(json);
    json_array(json);
    while (json_element(json))
        if (!check_packet_placeholders(json, attachments))
            return false;
    return !json->error;
}

static bool read_event_name(struct json *json, struct slice *name)
{
    enum json_type type = json_element(json) ? json_peek(json) : JSON_INVALID;
    *name = SLICE_NONE;
    if (type == JSON_NUMBER)
        return json_skip(json);
    if (type != JSON_STRING || !json_string(json, name))
        return false;
    for (size_t i = 0; i < RESERVED_COUNT; i++)
        if (slice_is(*name, RESERVED[i]))
            return false;
    return true;
}

/* ["name", argument, …]. The argument of a binary event is not exposed, since it is
 * incomplete without its attachments. */
static bool read_event_array(struct json *json, struct socketio_packet *out)
{
    json_array(json);
    if (!read_event_name(json, &out->event))
        return false;
    if (out->type == SOCKETIO_BINARY_EVENT) {
        while (json_element(json))
            if (!check_packet_placeholders(json, out->attachments))
                return false;
    } else if (json_element(json) && json_raw(json, &out->argument)) {
        struct slice last = out->argument;
        while (json_element(json))
            json_raw(json, &last);
        const char *first = out->argument.data;
        out->arguments = (struct slice){first, (size_t)(last.data + last.len - first)};
    }
    return json_done(json);
}

static bool read_packet_data(struct json *json, struct socketio_packet *out)
{
    switch (out->type) {
    case SOCKETIO_CONNECT:
        return json_peek(json) == JSON_OBJECT && json_raw(json, &out->argument) && json_done(json);
    case SOCKETIO_EVENT:
    case SOCKETIO_BINARY_EVENT:
        return json_peek(json) == JSON_ARRAY && read_event_array(json, out);
    case SOCKETIO_ACK:
        return json_peek(json) == JSON_ARRAY && json_skip(json) && json_done(json);
    case SOCKETIO_BINARY_ACK:
        return json_peek(json) == JSON_ARRAY && check_packet_placeholders(json, out->attachments) &&
               json_done(json);
    case SOCKETIO_CONNECT_ERROR:
        return json_skip(json) && json_done(json);
    default:
        return false;
    }
}

bool socketio_parse_head(const char *text, size_t len, struct socketio_packet *out,
                         struct slice *data, const char **problem)
{
    struct slice rest = {text + 1, len ? len - 1 : 0};
    *out = (struct socketio_packet){0};
    *problem = "unknown packet type";
    if (len == 0 || text[0] < '0' || text[0] >= '0' + SOCKETIO_TYPE_COUNT)
        return false;
    out->type = (enum socketio_type)(text[0] - '0');
    *problem = "a binary packet has 1 to 10 attachments";
    bool is_binary = out->type == SOCKETIO_BINARY_EVENT || out->type == SOCKETIO_BINARY_ACK;
    if (is_binary && !take_packet_attachments(&rest, &out->attachments))
        return false;
    *problem = "the namespace is too long";
    if (!take_packet_namespace(&rest, &out->name_space))
        return false;
    *problem = "the acknowledgement id has at most 15 digits";
    out->ack_id = take_packet_digits(&rest);
    *data = rest;
    out->empty = rest.len == 0;
    return out->ack_id.len <= SOCKETIO_ACK_ID_DIGITS_MAX;
}

bool socketio_parse(char *text, size_t len, struct socketio_packet *out, const char **problem)
{
    struct slice data;
    struct json json;
    if (!socketio_parse_head(text, len, out, &data, problem))
        return false;
    *problem = "the packet's data is not what its type has";
    if (out->empty)
        return true;
    json_init(&json, (char *)data.data, data.len);
    bool read = read_packet_data(&json, out);
    out->unreadable = json.beyond && out->type == SOCKETIO_EVENT;
    return read || out->unreadable;
}

/* ---- writing ---- */

void socketio_write_connected(struct buffer *out, struct slice sid, struct slice pid)
{
    buffer_append_text(out, "40{");
    json_write_key_string(out, SLICE("sid"), sid);
    if (pid.data)
        json_write_key_string(out, SLICE("pid"), pid);
    json_write_object_end(out);
}

void socketio_write_refused(struct buffer *out, struct slice name_space, const char *message,
                            struct slice data)
{
    buffer_append_text(out, "44");
    if (name_space.len > 1) {
        buffer_append_slice(out, name_space);
        buffer_append_byte(out, ',');
    }
    buffer_append_byte(out, '{');
    json_write_key_string(out, SLICE("message"), slice_of(message));
    if (data.data) {
        json_write_key(out, SLICE("data"));
        json_write_raw(out, data);
    }
    json_write_object_end(out);
}

void socketio_write_disconnect(struct buffer *out)
{
    buffer_append_text(out, "41");
}
