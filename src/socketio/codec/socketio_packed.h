/*
 * Socket.IO packets as socket.io-msgpack-parser writes them: each is one binary Engine.IO message that holds a
 * MessagePack map with these keys, in any order:
 *
 *   type   0 to 4: there are no binary types, since a packet can hold binary itself
 *   nsp    the namespace
 *   data   an object or an array; undefined counts as absent
 *   id     of an acknowledgement, or of an event that requests one
 *
 * Other keys are skipped (a client sends `options`). Such a packet and its text (socketio.h) mean the same, so it is
 * converted to text when it is received and from text when it is sent: all other code uses the text. The parser is as
 * strict as the reference parser: a packet that is not a map, truncated, or has data its type does not allow is a
 * problem. So is a namespace that the text form cannot express.
 *
 * An event with a value that JSON cannot express (msgpack_json.h), above all binary, is `unreadable`: it is
 * refused without closing the connection.
 *
 * DIALECT_TABLE_SOCKETIO_PACKED uses these functions. Pure functions; any thread.
 */
#ifndef ROLLCALL_SOCKETIO_CODEC_SOCKETIO_PACKED_H
#define ROLLCALL_SOCKETIO_CODEC_SOCKETIO_PACKED_H

#include "socketio/codec/socketio.h"

/* Reads a packet by way of its text, which is appended to an empty buffer; the packet borrows from it. On failure
 * *problem is the reason, a static text. */
bool socketio_unpack(struct slice packed, struct buffer *text, struct socketio_packet *out,
                     const char **problem);

/* Packs the text of a whole Engine.IO message that we wrote ("42…"); reading overwrites the text. */
void socketio_pack(char *text, size_t len, struct buffer *out);

#endif
