/*
 * MessagePack to JSON and back, so that the rest of the code only reads JSON.
 *
 * To JSON: values that JSON cannot express become null and set `lost`. These are binary, extensions, and values
 * nested beyond JSON_DEPTH_MAX; a pair whose key is not a string is left out and sets `lost` too. Other values are
 * written as JavaScript writes them: NaN and infinity become null, an undefined element becomes null, an undefined
 * JSON member is left out, invalid UTF-8 becomes U+FFFD. The text is at most MSGPACK_JSON_GROWTH_MAX times as long as
 * the input.
 *
 * From JSON: integers are exact, other numbers become doubles; a number too large or too long for a double
 * becomes nil.
 *
 * Pure functions; any thread.
 */
#ifndef ROLLCALL_SOCKETIO_CODEC_MSGPACK_JSON_H
#define ROLLCALL_SOCKETIO_CODEC_MSGPACK_JSON_H

#include "socketio/codec/msgpack.h"
#include "text/json.h"

/* A control character takes one byte in MessagePack and six in JSON, as does `false` with its comma. */
enum { MSGPACK_JSON_GROWTH_MAX = 6 };

/* Takes a map or an array off the front of *packed and appends it as JSON; `json` may already hold other text.
 * Returns false when it is neither, or truncated. Sets *lost, never clears it. */
bool msgpack_to_json(struct slice *packed, struct buffer *json, bool *lost);

/* The same; binary is not lost, but written as JSON.stringify() writes a Buffer: {"type":"Buffer","data":[1,2,3]}. */
bool msgpack_to_json_with_buffers(struct slice *packed, struct buffer *json, bool *lost);

/* Reads the next value and appends it. Returns false, and appends nothing, when it is not JSON. */
bool msgpack_from_json(struct json *json, struct buffer *out);

#endif
