/*
 * Engine.IO, protocol 4: packets, and payloads of several packets. A codec without I/O.
 *
 * A packet is a type and data. On a WebSocket each packet is a frame of its own:
 *
 *   text frame     the type as a digit, then the data:  4hello
 *   binary frame   the data of a binary message, without a type; a client with forceBase64 sends a text
 *                  frame as in a payload instead:  bAQID
 *
 * Over HTTP several packets travel in one body, separated by ENGINEIO_SEPARATOR, which cannot occur in JSON:
 *
 *   4hello\x1e2\x1ebAQID       a message, a ping, a binary message in base64
 *
 * Reading works in place and allocates nothing: packets point into the input, and base64 is decoded into it.
 * A payload holds at most ENGINEIO_PACKETS_MAX packets; its size is limited by the code that reads it from
 * the wire. Pure functions; any thread.
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

/* Reads the packet in one WebSocket frame. Returns false when it is malformed. */
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

/* Reads the next packet. BAD: it is malformed, or the payload has too many, and reading is over. An empty
 * payload is bad. */
enum engineio_next engineio_payload_next(struct engineio_payload *payload,
                                         struct engineio_packet *out);

/* Appends a packet to a payload, in the form it has in a text frame. */
void engineio_payload_append(struct buffer *payload, struct slice packet);

/* Appends a binary message to a payload, as base64. */
void engineio_payload_append_binary(struct buffer *payload, struct slice data);

/* What the open packet contains. */
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
