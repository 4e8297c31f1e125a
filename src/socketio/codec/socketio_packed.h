/*
 * Socket.IO packets as socket.io-msgpack-parser has them: each is one binary Engine.IO message, a MessagePack
 * map, in whatever order,
 *
 *   type   0 to 4: there are no binary types, since nothing has to be taken out of a packet
 *   nsp    the namespace
 *   data   an object or an array; undefined is as good as none
 *   id     of an acknowledgement, or of an event that asks for one
 *
 * and further members that are passed over (`options`, of the client). Such a packet and its text
 * (socketio/codec/socketio.h) say the same, so it is made text when it comes in and made of text when it goes out:
 * nothing but this knows the difference. It is as strict as the reference: what is no map, not whole, or not of
 * the kind its type has, is a problem. So is a namespace that text could not name.
 *
 * An event with something in it that JSON cannot say (socketio/codec/msgpack_json.h), binary above all, is `unreadable`:
 * refused, and no reason to close.
 *
 * DIALECT_TABLE_SOCKETIO_PACKED (dialect.h) is made of this. Pure functions; any thread.
 */
#ifndef ROLLCALL_SOCKETIO_CODEC_SOCKETIO_PACKED_H
#define ROLLCALL_SOCKETIO_CODEC_SOCKETIO_PACKED_H

#include "socketio/codec/socketio.h"

/* Reads a packet by way of its text, which is appended to an empty buffer that the packet borrows from. False:
 * *problem says why, static text. */
bool socketio_unpack(struct slice packed, struct buffer *text, struct socketio_packet *out,
                     const char **problem);

/* Appends the packet in the text of a whole Engine.IO message ("42…"), as we write it; the text is spent. */
void socketio_pack(char *text, size_t len, struct buffer *out);

#endif
