/*
 * The Socket.IO dialect: messages as events.
 *
 * Incoming: an event is a native command under its own name with an object of its fields, or an event that is
 * customary among users of Socket.IO (CUSTOMARY_COMMANDS), with customary field names (roomId, callId).
 * Outgoing: a message is an event under its own name; if there is a customary event for it, that follows
 * (write_customary_event()). A delivery with an event's name is that event. The reply to an event that requests an
 * acknowledgement is the acknowledgement, one object with `type`. An event of any other name is for the application
 * (MESSAGE_EVENT), with all its arguments.
 *
 * The message id of such an event is its digits after ACK_MARK, with which no id in JSON begins.
 */
#include "socketio/codec/socketio_dialect.h"
#include "socketio/codec/engineio.h"
#include "socketio/codec/socketio.h"
#include "socketio/codec/socketio_offset.h"

#define ACK_MARK '#'

/* ---- incoming ---- */

/* A customary event and its command; `fields`: the argument is read. */
struct customary_command {
    const char *name;
    enum message_type type;
    bool fields;
};

static const struct customary_command CUSTOMARY_COMMANDS[] = {
    {"HEARTBEAT", MESSAGE_HEARTBEAT, true},
    {"typing:start", MESSAGE_TYPING_START, true},
    {"typing:stop", MESSAGE_TYPING_STOP, true},
    {"call:request", MESSAGE_CALL_REQUEST, true},
    {"call:accept", MESSAGE_CALL_ACCEPT, true},
    {"call:accepted", MESSAGE_CALL_ACCEPT, true},
    {"call:reject", MESSAGE_CALL_REJECT, true},
    {"call:rejected", MESSAGE_CALL_REJECT, true},
    /* always for the user of the connection; the argument is ignored */
    {"call:start", MESSAGE_CALL_DECLARE_START, false},
    {"call:end", MESSAGE_CALL_DECLARE_END, false},
    {"user:connect", MESSAGE_USER_CONNECT, false},
    {"user:disconnect", MESSAGE_USER_DISCONNECT, false},
};

enum { CUSTOMARY_COMMAND_COUNT = sizeof(CUSTOMARY_COMMANDS) / sizeof(CUSTOMARY_COMMANDS[0]) };

/* Lists the fields of an event's argument; an event without one has none. */
static bool scan_event_argument(struct fields_scratch *scratch, struct slice argument,
                                const char **problem)
{
    struct json json;
    scratch->count = 0;
    if (!argument.data || slice_is(argument, "null"))
        return true;
    json_init(&json, (char *)argument.data, argument.len);
    if (fields_scan(scratch, &json, problem))
        return true;
    *problem = "the event's argument must be an object";
    return false;
}

static bool decode_customary_command(struct fields_scratch *scratch,
                                     const struct customary_command *command, struct slice argument,
                                     struct message *out, const char **problem)
{
    *out = (struct message){.type = command->type, .id = out->id};
    if (!command->fields)
        return true;
    if (!scan_event_argument(scratch, argument, problem))
        return false;
    for (size_t i = 0; i < scratch->count; i++) {
        struct slice *key = &scratch->json_members[i].key;
        if (slice_is(*key, "roomId"))
            *key = SLICE("chat_id");
        else if (slice_is(*key, "callId"))
            *key = SLICE("call_id");
    }
    if (command->type != MESSAGE_CALL_ACCEPT && command->type != MESSAGE_CALL_REJECT)
        return fields_decode(scratch, out, problem);
    /* A call may be answered by its caller instead of its id: the ringing call from that user is meant. */
    struct slice from = fields_find(scratch, "from");
    if (fields_find(scratch, "call_id").data && !fields_decode(scratch, out, problem))
        return false;
    *problem = "from must be a user id";
    return !from.data || (fields_string(from, &out->call.from) && user_id_valid(out->call.from));
}

static bool socketio_decode_text(struct fields_scratch *scratch, char *data, size_t len,
                                 struct message *out, const char **problem)
{
    struct socketio_packet packet;
    *out = (struct message){.type = MESSAGE_INVALID, .id = SLICE_NONE};
    if (!socketio_parse(data, len, &packet, problem))
        return false;
    return socketio_decode(scratch, &packet, out, problem);
}

bool socketio_decode(struct fields_scratch *scratch, const struct socketio_packet *packet,
                     struct message *out, const char **problem)
{
    *out = (struct message){.type = MESSAGE_INVALID, .id = SLICE_NONE};
    if (packet->ack_id.data) {
        /* the mark replaces the byte before the digits: it belongs to the packet's head, which was read */
        char *marked = (char *)packet->ack_id.data - 1;
        *marked = ACK_MARK;
        out->id = (struct slice){marked, packet->ack_id.len + 1};
    }
    *problem = "binary events are not part of this protocol";
    if (packet->type != SOCKETIO_EVENT)
        return false;
    *problem = "the event is nested too deeply, or holds binary or half a character";
    if (packet->unreadable)
        return false;
    for (size_t i = 0; i < CUSTOMARY_COMMAND_COUNT; i++)
        if (slice_is(packet->event, CUSTOMARY_COMMANDS[i].name))
            return decode_customary_command(scratch, &CUSTOMARY_COMMANDS[i], packet->argument, out,
                                            problem);
    out->type = message_type_from_client(packet->event);
    if (out->type != MESSAGE_INVALID && out->type != MESSAGE_EVENT)
        return scan_event_argument(scratch, packet->argument, problem) &&
               fields_decode(scratch, out, problem);
    *out = (struct message){
        .type = MESSAGE_EVENT,
        .id = out->id,
        .event = {packet->event, packet->argument, packet->arguments, "unknown event"}};
    return true;
}

/* ---- outgoing ---- */

static void begin_socketio_event(struct buffer *out, struct slice name)
{
    if (out->len)
        buffer_append_byte(out, ENGINEIO_SEPARATOR);
    buffer_append_text(out, "42[");
    json_write_string(out, name);
    json_write_object(out);
}

static void end_socketio_event(struct buffer *out)
{
    json_write_object_end(out);
    buffer_append_byte(out, ']');
}

static const char *const CONTACT_EVENTS[PRESENCE_ANNOUNCEMENTS] = {
    [PRESENCE_ANNOUNCE_ONLINE] = "friend_online",
    [PRESENCE_ANNOUNCE_OFFLINE] = "friend_offline",
    [PRESENCE_ANNOUNCE_IN_CALL] = "friend_in_call",
    [PRESENCE_ANNOUNCE_OUT_OF_CALL] = "friend_out_of_call",
};

static const char *const ROOM_EVENTS[PRESENCE_ANNOUNCEMENTS] = {
    [PRESENCE_ANNOUNCE_ONLINE] = "USER_ONLINE",
    [PRESENCE_ANNOUNCE_OFFLINE] = "USER_OFFLINE",
};

/* Writes nothing when `name` is NULL: there is no customary event. presence/announcement.h decides what is sent. */
static void write_presence_event(struct slice user_id, const char *name, struct buffer *out)
{
    if (!name)
        return;
    begin_socketio_event(out, slice_of(name));
    json_write_key_string(out, SLICE("userId"), user_id);
    end_socketio_event(out);
}

/* ---- calls, relayed from the gateway that made the transition ---- */

struct customary_event {
    const char *native;
    const char *name;
};

static const struct customary_event CALL_EVENTS[] = {
    {"call_incoming", "call:incoming"},
    {"call_accepted", "call:accepted"},
    {"call_rejected", "call:rejected"},
    {"call_ended", "call:ended"},
};

enum { CALL_EVENT_COUNT = sizeof(CALL_EVENTS) / sizeof(CALL_EVENTS[0]) };

/* An application's event, relayed as a delivery that begins with its name: the event has that name and the data as its
 * argument, or as many arguments as `args` has. Returns false for a delivery without a name. */
static bool write_named_event(struct slice fields, struct buffer *out)
{
    struct json json;
    struct slice key, name, data, args = SLICE_NONE;
    json_init(&json, (char *)fields.data, fields.len);
    json_object(&json);
    if (!json_member(&json, &key) || !slice_is(key, "event") || !json_raw(&json, &name) ||
        !json_member(&json, &key) || !json_raw(&json, &data))
        return false;
    if (json_member(&json, &key) && json_raw(&json, &args))
        data = (struct slice){args.data + 1, args.len - 2}; /* without the brackets */
    buffer_append_text(out, "42[");
    buffer_append_slice(out, name);
    if (data.len)
        buffer_append_byte(out, ',');
    buffer_append_slice(out, data);
    buffer_append_byte(out, ']');
    return true;
}

/* Copies the JSON members and renames the call's id. Values stay raw and our own keys have no escapes, so reading
 * does not change the text. */
static void write_call_event(struct slice fields, const char *name, struct buffer *out)
{
    struct json json;
    struct slice key, value;
    begin_socketio_event(out, slice_of(name));
    json_init(&json, (char *)fields.data, fields.len);
    json_object(&json);
    while (json_member(&json, &key) && json_raw(&json, &value)) {
        json_write_key(out, slice_is(key, "call_id") ? SLICE("callId") : key);
        json_write_raw(out, value);
    }
    end_socketio_event(out);
}

static void write_customary_event(const struct message *message, struct buffer *out)
{
    if (message->type == MESSAGE_TYPING_CHANGED) {
        begin_socketio_event(out, SLICE("typing"));
        json_write_key_string(out, SLICE("roomId"), message->typing.chat_id);
        json_write_key_string(out, SLICE("userId"), message->typing.user_id);
        json_write_key_bool(out, SLICE("typing"), message->typing.typing);
        end_socketio_event(out);
        return;
    }
    if (message->type != MESSAGE_RELAY || !slice_starts_with(message->relay.name, SLICE("call_")))
        return;
    for (size_t i = 0; i < CALL_EVENT_COUNT; i++)
        if (slice_is(message->relay.name, CALL_EVENTS[i].native))
            write_call_event(message->relay.fields, CALL_EVENTS[i].name, out);
}

static void socketio_encode(const struct message *message, struct buffer *out)
{
    const struct presence_change *change = &message->change;
    if (message->type == MESSAGE_CONTACT_PRESENCE) {
        write_presence_event(change->presence.user_id, CONTACT_EVENTS[change->announcement], out);
        /* A contact that becomes visible during a call is announced as in a call too, since its start was not. */
        if (change->announcement == PRESENCE_ANNOUNCE_ONLINE && change->presence.in_call)
            write_presence_event(change->presence.user_id,
                                 CONTACT_EVENTS[PRESENCE_ANNOUNCE_IN_CALL], out);
    } else if (message->type == MESSAGE_CHAT_PRESENCE) {
        write_presence_event(change->presence.user_id, ROOM_EVENTS[change->announcement], out);
    } else if (message->type == MESSAGE_EVENT_ACK && message->id.data) {
        /* the application's answer is the acknowledgement, as from a handler of its own */
        buffer_append_text(out, "43");
        buffer_append_slice(out, slice_after(message->id, 1));
        buffer_append_byte(out, '[');
        buffer_append_slice(out, message->data);
        buffer_append_byte(out, ']');
    } else if (message->id.data) {
        buffer_append_text(out, "43");
        buffer_append_slice(out, slice_after(message->id, 1));
        buffer_append_text(out, "[{");
        json_write_key_string(out, SLICE("type"), message_name(message));
        fields_encode(out, message);
        end_socketio_event(out);
    } else if (message->type != MESSAGE_RELAY || !slice_is(message->relay.name, "delivery") ||
               !write_named_event(message->relay.fields, out)) {
        begin_socketio_event(out, message_name(message));
        fields_encode(out, message);
        end_socketio_event(out);
    }
    write_customary_event(message, out);
}

const struct dialect DIALECT_TABLE_SOCKETIO = {
    .slot = DIALECT_SLOT_SOCKETIO,
    .decode = socketio_decode_text,
    .encode = socketio_encode,
    .split = ENGINEIO_SEPARATOR,
    .append_offset = socketio_offset_append,
    .keeps_events = true,
    .confirms_acks = true,
    .answers_asked_only = true,
};
