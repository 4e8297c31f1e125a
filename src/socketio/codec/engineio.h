/*
 * Engine.IO, protocol 4: packets, and payloads of several packets. A codec without I/O.
 *
 * A packet is a type and data. On a WebSocket each is a frame of its own:
 *
 *   text frame     a digit, the type, and the data:  4hello
 *   binary frame   the data of a binary message, without a type; or, of a client that is told to (forceBase64),
 *                  a text frame as in a payload:  bAQID
 *
 * Over HTTP several travel in one body, separated by ENGINEIO_SEPARATOR, which cannot stand in JSON:
 *
 *   4hello\x1e2\x1ebAQID       a message, a ping, a binary message in base64
 *
 * Reading works in place and allocates nothing: packets point into the input, which base64 is decoded
 * into. Bounded: a payload holds at most ENGINEIO_PACKETS_MAX packets; how many bytes, is for those who
 * read it from the wire to say. Pure functions; any thread.
 */
#ifndef ROLLCALL_SOCKETIO_CODEC_ENGINEIO_H
#define ROLLCALL_SOCKETIO_CODEC_ENGINEIO_H

#include "base/buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ENGINEIO_SEPARATOR '\x1e'
#define ENGINEIO_PROTOCOL "4"

enum { ENGINEIO_PACKETS_MAX = 1024 };

enum engineio_type {
    ENGINEIO_OPEN,
    ENGINEIO_CLOSE,
    ENGINEIO_PING,
    ENGINEIO_PONG,
    ENGINEIO_MESSAGE,
    ENGINEIO_UPGRADE,
    ENGINEIO_NOOP,
    ENGINEIO_TYPE_COUNT
};

struct engineio_packet {
    enum engineio_type type;
    bool binary; /* of a message only */
    char *data;  /* may be written to */
    size_t len;
};

/* The packet in one WebSocket frame. False: it is none. */
bool engineio_parse(char *data, size_t len, bool binary, struct engineio_packet *out);

/* A payload being read. */
struct engineio_payload {
    char *at;
    char *end;
    size_t count; /* packets read */
    bool done;
};

enum engineio_next { ENGINEIO_PACKET, ENGINEIO_END, ENGINEIO_BAD };

void engineio_payload_start(struct engineio_payload *payload, char *data, size_t len);

/* The next packet. BAD: it is none, or the payload has too many; reading is over then. An empty payload
 * is bad. */
enum engineio_next engineio_payload_next(struct engineio_payload *payload,
                                         struct engineio_packet *out);

/* Appends a packet as it would stand in a text frame to a payload. */
void engineio_payload_append(struct buffer *payload, struct slice packet);

/* The same for a binary message, which becomes base64. */
void engineio_payload_append_binary(struct buffer *payload, struct slice data);

/* The handshake, as the server opens a session. */
struct engineio_open {
    struct slice sid;
    bool upgrades; /* to a WebSocket */
    int64_t ping_interval_ms;
    int64_t ping_timeout_ms;
    size_t payload_bytes_max;
};

/* Appends the open packet to an empty buffer. */
void engineio_open_write(struct buffer *out, const struct engineio_open *open);

#endif
