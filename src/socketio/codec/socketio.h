/*
 * Socket.IO, protocol 5: the packets that travel in Engine.IO messages. A codec without I/O.
 *
 *   type [attachments "-"] [namespace ","] [acknowledgement id] [JSON]
 *
 *   0{"token":"…"}             CONNECT to "/", with credentials
 *   21["call:request",{…}]     EVENT that requests an acknowledgement with id 1
 *   31[{…}]                    ACK of it
 *   0/admin,                   CONNECT to another namespace
 *   51-["file",{"_placeholder":true,"num":0}]   BINARY_EVENT; one attachment follows
 *
 * The parser is as strict as the reference server: a packet for which that closes the connection is a problem
 * here too. Those are an unknown type, malformed JSON, an event whose name is reserved or neither text nor a
 * number, a wrong number of attachments, and a placeholder without its attachment. The reference server silently
 * ignores a packet that ends where its JSON should begin, so that is a packet here too. So is an event whose
 * JSON the reference reads and we do not (text/json.h): it is refused without closing the connection.
 *
 * A packet borrows from the text it was read from. The parser writes to that text: strings are unescaped in
 * place. Nothing is allocated. Limits are SOCKETIO_*_MAX below and JSON_DEPTH_MAX. Pure functions; any thread.
 *
 * socketio_dialect.c encodes messages as events. Clients may also send packets in MessagePack (socketio_packed.h).
 */
#ifndef ROLLCALL_SOCKETIO_CODEC_SOCKETIO_H
#define ROLLCALL_SOCKETIO_CODEC_SOCKETIO_H

#include "base/buffer.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    SOCKETIO_ATTACHMENTS_MAX = 10,      /* of one packet, as in the reference server */
    SOCKETIO_NAMESPACE_BYTES_MAX = 256, /* of a name that is sent back with a refusal */
    SOCKETIO_ACK_ID_DIGITS_MAX = 15,    /* integers that JavaScript represents exactly */
};

enum socketio_type {
    SOCKETIO_CONNECT,
    SOCKETIO_DISCONNECT,
    SOCKETIO_EVENT,
    SOCKETIO_ACK,
    SOCKETIO_CONNECT_ERROR,
    SOCKETIO_BINARY_EVENT,
    SOCKETIO_BINARY_ACK,
    SOCKETIO_TYPE_COUNT
};

struct socketio_packet {
    enum socketio_type type;
    unsigned attachments;    /* of binary types: the number of binary messages that follow */
    struct slice name_space; /* "/" by default */
    struct slice ack_id;     /* digits; SLICE_NONE: none */
    bool empty;              /* nothing follows the head, not even an event's name */
    bool unreadable;       /* an event whose JSON is beyond our limits: refused, and nothing more */
    struct slice event;    /* of an event: its name; SLICE_NONE when it is a number */
    struct slice argument; /* raw JSON: first of an event, credentials of CONNECT; or SLICE_NONE */
    struct slice arguments; /* of an event: all, with the commas between them; or SLICE_NONE */
};

/* Reads a packet from the text of a message. On failure *problem is the reason, a static text. */
bool socketio_parse(char *text, size_t len, struct socketio_packet *out, const char **problem);

/* Reads the packet's head only. *data is the JSON that follows, unread; empty when there is none. */
bool socketio_parse_head(const char *text, size_t len, struct socketio_packet *out,
                         struct slice *data, const char **problem);

struct fields_scratch;
struct message;

/* Reads the command in an event: the dialect's `decode` for a packet already parsed. The id of the message is
 * valid for its answer only. */
bool socketio_decode(struct fields_scratch *scratch, const struct socketio_packet *packet,
                     struct message *out, const char **problem);

/* Whether the packet is for the main namespace, the only one there is. */
static inline bool socketio_is_main(const struct socketio_packet *packet)
{
    return packet->name_space.len == 1;
}

/* Each of these appends one whole Engine.IO message packet, its "4" included. */

/* Accepts a CONNECT with the client's socket id and, for recovery, its private id (SLICE_NONE: none). */
void socketio_write_connected(struct buffer *out, struct slice sid, struct slice pid);

/* Refuses a CONNECT. `data` is a JSON object for programs, or SLICE_NONE. */
void socketio_write_refused(struct buffer *out, struct slice name_space, const char *message,
                            struct slice data);

void socketio_write_disconnect(struct buffer *out);

#endif
