/*
 * What the stock @socket.io/redis-adapter and @socket.io/redis-emitter publish, read without I/O.
 *
 *   KEY#/#[ROOM#]    MessagePack [uid, {"type":2, "nsp":"/", "data":[name, …]}, {"rooms":[…], "except":[…], "flags":{…}}]
 *   KEY-request#/#   JSON {"type":4, "opts":{"rooms":[…], "except":[…]}, "close":bool}      disconnectSockets()
 *
 * Anybody who may write to Redis can publish there, so the reader is strict and bounded: the bytes of a message, the number
 * of rooms, and the depth (JSON_DEPTH_MAX). Other requests (joins, fetchSockets(), serverSideEmit(), broadcasts with
 * acknowledgements), other packet types, other namespaces and `flags.local` are valid and ignored. Binary arguments become
 * what JSON.stringify() makes of a Buffer.
 *
 * A packet borrows from the message and from the buffer. Pure functions; any thread.
 */
#ifndef ROLLCALL_SOCKETIO_CODEC_ADAPTER_PACKET_H
#define ROLLCALL_SOCKETIO_CODEC_ADAPTER_PACKET_H

#include "base/buffer.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>

/* What follows the key in the names of channels. */
#define ADAPTER_BROADCASTS "#/#"
#define ADAPTER_REQUESTS "-request#/#"

enum { ADAPTER_PACKET_BYTES_MAX = 1000000, ADAPTER_ROOMS_MAX = 256, ADAPTER_ROOM_BYTES_MAX = 256 };

enum adapter_act { ADAPTER_IGNORE, ADAPTER_EMIT, ADAPTER_DISCONNECT };

/* Rooms that no user and no chat can have (numbers, names that are too long) are left out, but count as named. */
struct adapter_rooms {
    struct slice names[ADAPTER_ROOMS_MAX];
    size_t count;
    bool are_named; /* else all sockets are meant */
};

struct adapter_packet {
    enum adapter_act act;
    struct adapter_rooms rooms;
    struct adapter_rooms except;
    struct slice fields; /* of an event: a delivery's, a JSON object {"event", "data"[, "args"]} */
};

/* Reads a broadcast. Appends to `json`, which is empty. On failure *problem is the reason, a static text. */
bool adapter_packet_read(struct slice message, struct buffer *json, struct adapter_packet *out,
                         const char **problem);

/* Reads a request; the same. */
bool adapter_request_read(struct slice message, struct buffer *json, struct adapter_packet *out,
                          const char **problem);

/* Appends the pattern that matches every channel that begins with these two, in the syntax of PSUBSCRIBE. */
void adapter_pattern_write(struct buffer *out, struct slice key, struct slice suffix);

#endif
