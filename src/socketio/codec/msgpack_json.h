/*
 * MessagePack to JSON and back, so that what understands JSON need not know the other.
 *
 * To JSON, what it cannot say becomes null and is noted (`lost`): binary and extensions, what is nested beyond
 * JSON_DEPTH_MAX, a pair whose key is no string (which is left out). What JavaScript writes as JSON in its own
 * way is written so: NaN and infinity are null, an undefined element is null and such a member left out, bytes
 * that are no UTF-8 are U+FFFD. The text is at most MSGPACK_JSON_GROWTH_MAX times as long.
 *
 * From JSON, integers are exact, other numbers doubles; one that is too large or too long to be a double is nil.
 *
 * Pure functions; any thread.
 */
#ifndef ROLLCALL_SOCKETIO_CODEC_MSGPACK_JSON_H
#define ROLLCALL_SOCKETIO_CODEC_MSGPACK_JSON_H

#include "socketio/codec/msgpack.h"
#include "text/json.h"

/* A control character is one byte here and six there, so is `false` with its comma. */
enum { MSGPACK_JSON_GROWTH_MAX = 6 };

/* Takes the map or array *packed begins with off its front and appends it as JSON, whatever stands in front of
 * it there. False: it is neither, or not whole. Sets *lost, never clears it. */
bool msgpack_to_json(struct slice *packed, struct buffer *json, bool *lost);

/* Reads the value that comes next and appends it. False: it is not JSON, and nothing is appended. */
bool msgpack_from_json(struct json *json, struct buffer *out);

#endif
