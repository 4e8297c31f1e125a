/*
 * Socket.IO as a dialect (protocol/dialect.h): events in text, and the same events packed in MessagePack. Only
 * code that opens connections names these tables; all other code uses the table of a connection's dialect.
 */
#ifndef ROLLCALL_SOCKETIO_CODEC_SOCKETIO_DIALECT_H
#define ROLLCALL_SOCKETIO_CODEC_SOCKETIO_DIALECT_H

#include "protocol/dialect.h"

enum { DIALECT_SLOT_SOCKETIO = DIALECT_SLOT_NATIVE + 1, DIALECT_SLOT_SOCKETIO_PACKED };
_Static_assert((int)DIALECT_SLOT_SOCKETIO_PACKED < (int)DIALECT_SLOT_COUNT,
               "each dialect needs a slot");

extern const struct dialect DIALECT_TABLE_SOCKETIO;
extern const struct dialect DIALECT_TABLE_SOCKETIO_PACKED;

#endif
