/*
 * The Socket.IO dialect: messages as events.
 *
 * In, an event is a native command under its own name with an object of its fields, or a word that is
 * customary among those who use Socket.IO (CUSTOMARY_COMMANDS), whose fields are written their way (roomId,
 * callId). Out, a message is an event under its own name; where there is a customary word for it, that
 * follows as an event of its own (write_customary_event()). What answers an event that asked to be
 * acknowledged is the acknowledgement, one object with `type`.
 *
 * The id of such an event is its digits with ACK_MARK in front, which no id in JSON begins with.
 */
#include "socketio/codec/socketio_dialect.h"
#include "socketio/codec/engineio.h"
#include "socketio/codec/socketio.h"

#define ACK_MARK '#'

/* ---- in ---- */

/* What a customary word means; `fields` says whether its argument is looked at. */
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
    /* about the user of the connection and nobody else, whatever the argument says */
    {"call:start", MESSAGE_CALL_DECLARE_START, false},
    {"call:end", MESSAGE_CALL_DECLARE_END, false},
    {"user:connect", MESSAGE_USER_CONNECT, false},
    {"user:disconnect", MESSAGE_USER_DISCONNECT, false},
};

enum { CUSTOMARY_COMMAND_COUNT = sizeof(CUSTOMARY_COMMANDS) / sizeof(CUSTOMARY_COMMANDS[0]) };

static const struct customary_command *find_customary_command(struct slice name)
{
    for (size_t i = 0; i < CUSTOMARY_COMMAND_COUNT; i++)
        if (slice_is(name, CUSTOMARY_COMMANDS[i].name))
            return &CUSTOMARY_COMMANDS[i];
    return NULL;
}

/* An event without an argument has no fields. */
static bool scan_argument(struct fields_scratch *scratch, struct slice argument,
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

static void rename_fields(struct fields_scratch *scratch)
{
    for (size_t i = 0; i < scratch->count; i++) {
        struct slice *key = &scratch->members[i].key;
        if (slice_is(*key, "roomId"))
            *key = SLICE("chat_id");
        else if (slice_is(*key, "callId"))
            *key = SLICE("call_id");
    }
}

/* A call may be answered without naming it: it is the one that rings, from whom it says. */
static bool decode_answer(struct fields_scratch *scratch, struct message *out, const char **problem)
{
    struct slice from = fields_find(scratch, "from");
    if (fields_find(scratch, "call_id").data && !fields_decode(scratch, out, problem))
        return false;
    *problem = "from must be a user id";
    return !from.data || (fields_string(from, &out->call.from) && user_id_valid(out->call.from));
}

static bool decode_customary_command(struct fields_scratch *scratch,
                                     const struct customary_command *command, struct slice argument,
                                     struct message *out, const char **problem)
{
    *out = (struct message){.type = command->type, .id = out->id};
    if (!command->fields)
        return true;
    if (!scan_argument(scratch, argument, problem))
        return false;
    rename_fields(scratch);
    if (command->type == MESSAGE_CALL_ACCEPT || command->type == MESSAGE_CALL_REJECT)
        return decode_answer(scratch, out, problem);
    return fields_decode(scratch, out, problem);
}

static bool decode_event(struct fields_scratch *scratch, const struct socketio_packet *packet,
                         struct message *out, const char **problem)
{
    const struct customary_command *customary = find_customary_command(packet->event);
    if (customary)
        return decode_customary_command(scratch, customary, packet->argument, out, problem);
    out->type = message_type_from_client(packet->event);
    *problem = "unknown event";
    return out->type != MESSAGE_INVALID && scan_argument(scratch, packet->argument, problem) &&
           fields_decode(scratch, out, problem);
}

/* The byte before the digits belongs to the packet's head, which has been read. */
static struct slice mark_ack_id(struct slice digits)
{
    if (!digits.data)
        return SLICE_NONE;
    char *marked = (char *)digits.data - 1;
    *marked = ACK_MARK;
    return (struct slice){marked, digits.len + 1};
}

static bool decode(struct fields_scratch *scratch, char *data, size_t len, struct message *out,
                   const char **problem)
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
    *out = (struct message){.type = MESSAGE_INVALID, .id = mark_ack_id(packet->ack_id)};
    *problem = "binary events are not part of this protocol";
    if (packet->type != SOCKETIO_EVENT)
        return false;
    *problem = "the event is nested too deeply, or holds binary or half a character";
    return !packet->unreadable && decode_event(scratch, packet, out, problem);
}

/* ---- out ---- */

static void begin_event(struct buffer *out, struct slice name)
{
    if (out->len)
        buffer_append_byte(out, ENGINEIO_SEPARATOR);
    buffer_append_text(out, "42[");
    json_write_string(out, name);
    json_write_object(out);
}

static void end_event(struct buffer *out)
{
    json_write_object_end(out);
    buffer_append_byte(out, ']');
}

static void write_ack(const struct message *message, struct buffer *out)
{
    buffer_append_text(out, "43");
    buffer_append_slice(out, slice_after(message->id, 1));
    buffer_append_text(out, "[{");
    json_write_key_string(out, SLICE("type"), message_name(message));
    fields_encode(out, message);
    end_event(out);
}

static void write_event(const struct message *message, struct buffer *out)
{
    begin_event(out, message_name(message));
    fields_encode(out, message);
    end_event(out);
}

static void write_typing(const struct typing_change *change, struct buffer *out)
{
    begin_event(out, SLICE("typing"));
    json_write_key_string(out, SLICE("roomId"), change->chat_id);
    json_write_key_string(out, SLICE("userId"), change->user_id);
    json_write_key_bool(out, SLICE("typing"), change->typing);
    end_event(out);
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

/* Nothing where there is no customary word for the news: those who send ask presence/announcement.h first. */
static void write_news(struct slice user_id, const char *name, struct buffer *out)
{
    if (!name)
        return;
    begin_event(out, slice_of(name));
    json_write_key_string(out, SLICE("userId"), user_id);
    end_event(out);
}

/* A new contact may come into sight in the middle of a call, of whose beginning one did not hear. */
static void write_contact_news(const struct presence_change *change, struct buffer *out)
{
    struct slice user_id = change->presence.user_id;
    write_news(user_id, CONTACT_EVENTS[change->announcement], out);
    if (change->announcement == PRESENCE_ANNOUNCE_ONLINE && change->presence.in_call)
        write_news(user_id, CONTACT_EVENTS[PRESENCE_ANNOUNCE_IN_CALL], out);
}

/* ---- calls, which come as relays from whichever gateway made the transition ---- */

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

static const char *customary_name_of_call(struct slice native)
{
    if (!slice_starts_with(native, SLICE("call_")))
        return NULL;
    for (size_t i = 0; i < CALL_EVENT_COUNT; i++)
        if (slice_is(native, CALL_EVENTS[i].native))
            return CALL_EVENTS[i].name;
    return NULL;
}

/* The same members, but for the call's id. Their values stay raw, and keys of ours have no escapes, so
 * that reading changes nothing. */
static void write_call(struct slice fields, const char *name, struct buffer *out)
{
    struct json json;
    struct slice key, value;
    begin_event(out, slice_of(name));
    json_init(&json, (char *)fields.data, fields.len);
    json_object(&json);
    while (json_member(&json, &key) && json_raw(&json, &value)) {
        json_write_key(out, slice_is(key, "call_id") ? SLICE("callId") : key);
        json_write_raw(out, value);
    }
    end_event(out);
}

static void write_customary_event(const struct message *message, struct buffer *out)
{
    const char *call = NULL;
    if (message->type == MESSAGE_TYPING_CHANGED)
        write_typing(&message->typing, out);
    else if (message->type == MESSAGE_RELAY)
        call = customary_name_of_call(message->relay.name);
    if (call)
        write_call(message->relay.fields, call, out);
}

static void encode(const struct message *message, struct buffer *out)
{
    if (message->type == MESSAGE_CONTACT_PRESENCE)
        write_contact_news(&message->change, out);
    else if (message->type == MESSAGE_CHAT_PRESENCE)
        write_news(message->change.presence.user_id, ROOM_EVENTS[message->change.announcement],
                   out);
    else if (message->id.data)
        write_ack(message, out);
    else
        write_event(message, out);
    write_customary_event(message, out);
}

const struct dialect DIALECT_TABLE_SOCKETIO = {
    .slot = DIALECT_SLOT_SOCKETIO,
    .decode = decode,
    .encode = encode,
    .split = ENGINEIO_SEPARATOR,
    .has_offsets = true,
    .keeps_events = true,
    .confirms_acks = true,
};
