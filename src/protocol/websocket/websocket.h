/*
 * WebSocket (RFC 6455): bytes from a peer → messages. The other direction is websocket_encode.h.
 *
 * The decoder does no I/O. It is handed a chunk of bytes that the caller owns and may overwrite,
 * unmasks it in place, and gives out one event at a time. A frame that lies whole in the chunk and
 * is a whole message (nearly every frame there is) is given out where it stands, without a copy and
 * without memory. Only what a chunk leaves unfinished is kept, in a `websocket_partial` that exists
 * as long as it is needed: an idle connection costs the one pointer.
 *
 *   partial == NULL
 *     IDLE ──── chunk ends inside a header ────────────────► HEADER
 *      ▲ │                                                   │    ▲
 *      │ └───── header known, payload unfinished ─► PAYLOAD ◄┘    │ chunk ends inside
 *      │                                            │  │  ▲       │ the next header
 *      │             non-final fragment is whole, or│  │  │       │
 *      │             a control frame is whole while │  │  └─── BETWEEN
 *      │             a message is open              └──┼────────► ▲
 *      │                                               │
 *      │   message or lone control frame is whole      ▼
 *      └──────────── next call ─────────────────── DELIVERED
 *
 *   HEADER     some bytes of a frame's header arrived
 *   PAYLOAD    a frame's header arrived, its payload not yet
 *   BETWEEN    a fragmented message is open, no frame is
 *   DELIVERED  the partial's memory was given out; the next call frees it
 *
 * HEADER returns to IDLE or BETWEEN when the rest of the frame lies whole in the chunk. Any error
 * frees the partial.
 *
 * Bounds. A message is at most `message_bytes_max`: a header that declares more is refused before
 * its payload arrives. A partial holds what arrived, at most doubled; what a header declares costs
 * nothing. Text is validated as it arrives: a bad byte ends the connection even if its frame never
 * would.
 *
 * The caller calls websocket_decode() until it answers NEED_MORE, CLOSE or ERROR. After CLOSE or
 * ERROR no more bytes may be fed; websocket_decoder_free() is all that is left to do.
 * One thread at a time.
 */
#ifndef ROLLCALL_PROTOCOL_WEBSOCKET_WEBSOCKET_H
#define ROLLCALL_PROTOCOL_WEBSOCKET_WEBSOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum websocket_opcode {
    WEBSOCKET_OPCODE_CONTINUATION = 0x0,
    WEBSOCKET_OPCODE_TEXT = 0x1,
    WEBSOCKET_OPCODE_BINARY = 0x2,
    WEBSOCKET_OPCODE_CLOSE = 0x8,
    WEBSOCKET_OPCODE_PING = 0x9,
    WEBSOCKET_OPCODE_PONG = 0xa,
};

enum websocket_close_code {
    WEBSOCKET_CLOSE_NORMAL = 1000,
    WEBSOCKET_CLOSE_GOING_AWAY = 1001,
    WEBSOCKET_CLOSE_PROTOCOL_ERROR = 1002,
    WEBSOCKET_CLOSE_NO_CODE = 1005, /* never on the wire: the peer's close frame was empty */
    WEBSOCKET_CLOSE_INVALID_TEXT = 1007,
    WEBSOCKET_CLOSE_POLICY = 1008,
    WEBSOCKET_CLOSE_TOO_BIG = 1009,
    WEBSOCKET_CLOSE_INTERNAL = 1011,
};

#define WEBSOCKET_CONTROL_BYTES_MAX 125

enum websocket_event {
    WEBSOCKET_NEED_MORE, /* the chunk is used up */
    WEBSOCKET_TEXT,
    WEBSOCKET_BINARY,
    WEBSOCKET_PING,
    WEBSOCKET_PONG,
    WEBSOCKET_CLOSE,
    WEBSOCKET_ERROR,
};

/* What the decoder holds its peer to; shared by all connections of a kind. */
struct websocket_limits {
    size_t message_bytes_max;
    bool peer_masks; /* true on a server: every frame must be masked; false on a client: none may */
};

/* What an event carries. `data` points into the chunk or the partial: it may be changed, and lasts
 * until the next call on the decoder. */
struct websocket_message {
    char *data; /* the payload; of CLOSE the reason, valid UTF-8 */
    size_t len;
    uint16_t close_code;      /* CLOSE: the peer's code; ERROR: the code to close with */
    const char *error_reason; /* ERROR: static text for the close frame and the log */
};

struct websocket_partial;

/* All zero is the idle decoder. */
struct websocket_decoder {
    struct websocket_partial *partial;
};

/* Takes bytes from the front of the chunk (*data, *len), moving both, up to the end of the next
 * message or control frame. NEED_MORE means all was taken. ERROR, which also reports that memory
 * ran out (1011), takes all that is left. `out` is written for every event but NEED_MORE. */
enum websocket_event websocket_decode(struct websocket_decoder *decoder,
                                      const struct websocket_limits *limits, char **data,
                                      size_t *len, struct websocket_message *out);

/* Frees what an unfinished message holds; the decoder is idle again. */
void websocket_decoder_free(struct websocket_decoder *decoder);

/* Heap bytes that an unfinished message holds now; 0 when idle. For accounting. */
size_t websocket_decoder_memory_bytes(const struct websocket_decoder *decoder);

/* Whether a peer may send this code in a close frame (RFC 6455, 7.4). */
bool websocket_close_code_valid(unsigned code);

#endif
