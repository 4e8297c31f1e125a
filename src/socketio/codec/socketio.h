/*
 * Socket.IO, protocol 5: the packets that travel in Engine.IO messages. A codec without I/O.
 *
 *   type [attachments "-"] [namespace ","] [acknowledgement id] [JSON]
 *
 *   0{"token":"…"}             CONNECT to "/", with what authenticates
 *   21["call:request",{…}]     EVENT that asks to be acknowledged as 1
 *   31[{…}]                    ACK of it
 *   0/admin,                   CONNECT to another namespace
 *   51-["file",{"_placeholder":true,"num":0}]   BINARY_EVENT; one attachment follows
 *
 * Parsing is strict where the reference server is, so that what it closes a connection for is a problem
 * here too: an unknown type, JSON that is none, an event whose name is neither text nor number or is
 * reserved, attachments that are none or too many, a placeholder for one that does not exist. What it passes
 * over in silence, a packet that ends where its JSON should begin, is a packet here too. So is an event
 * whose JSON it reads and we do not (text/json.h): that is refused, and no reason to close.
 *
 * A packet borrows from the text it was read from, which is written to: strings are unescaped in place.
 * Nothing is allocated. Bounded: SOCKETIO_*_MAX below and JSON_DEPTH_MAX. Pure functions; any thread.
 *
 * How Rollcall's messages look as events is the Socket.IO dialect (dialect.h, socketio_dialect.c). Clients may
 * also say packets in MessagePack (socketio_packed.h).
 */
#ifndef ROLLCALL_SOCKETIO_CODEC_SOCKETIO_H
#define ROLLCALL_SOCKETIO_CODEC_SOCKETIO_H

#include "base/buffer.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    SOCKETIO_ATTACHMENTS_MAX = 10,      /* of one packet, as the reference has it */
    SOCKETIO_NAMESPACE_BYTES_MAX = 256, /* of a name we send back to refuse it */
    SOCKETIO_ACK_ID_DIGITS_MAX = 15,    /* what JavaScript counts exactly */
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
    unsigned attachments;    /* of the binary types: how many binary messages follow */
    struct slice name_space; /* "/" where none is named */
    struct slice ack_id;     /* digits; SLICE_NONE: none */
    bool empty;              /* nothing comes after the head: an event without even a name */
    bool unreadable;         /* an event whose JSON is beyond what we read: refused, no more */
    struct slice event;      /* of events: its name; SLICE_NONE where it is a number */
    struct slice
        argument; /* raw JSON: the first of an event; of CONNECT, what authenticates; or none */
};

/* Reads a packet from the text of a message. False: *problem says why, static text. */
bool socketio_parse(char *text, size_t len, struct socketio_packet *out, const char **problem);

/* The same up to where the JSON begins, which is not looked at: *data, empty where there is none. */
bool socketio_parse_head(const char *text, size_t len, struct socketio_packet *out,
                         struct slice *data, const char **problem);

struct fields_scratch;
struct message;

/* The command in an event; the dialect's `decode` for a packet that has been parsed. The id of the message
 * is good for its answer and no more. */
bool socketio_decode(struct fields_scratch *scratch, const struct socketio_packet *packet,
                     struct message *out, const char **problem);

/* Whether it is about the one namespace there is. */
static inline bool socketio_is_main(const struct socketio_packet *packet)
{
    return packet->name_space.len == 1;
}

/* Each of these appends one whole Engine.IO message packet, its "4" included. */

/* CONNECT accepted: the client's socket id, and for recovery its private one (SLICE_NONE: none). */
void socketio_write_connected(struct buffer *out, struct slice sid, struct slice pid);

/* CONNECT refused. `data` is a JSON object that tells a program what to do, or SLICE_NONE. */
void socketio_write_refused(struct buffer *out, struct slice name_space, const char *message,
                            struct slice data);

void socketio_write_disconnect(struct buffer *out);

#endif
