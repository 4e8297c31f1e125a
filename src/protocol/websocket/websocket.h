/*
 * WebSocket (RFC 6455): received bytes → messages. The other direction is websocket_encode.h.
 *
 * The decoder does no I/O. It takes a chunk of bytes that the caller owns and may overwrite, unmasks it in
 * place, and returns one event at a time. A frame that is complete in the chunk and is a whole message (nearly
 * every frame) is returned in place, without a copy and without an allocation. Only what a chunk leaves
 * incomplete is kept, in a `websocket_partial` that exists as long as it is needed: an idle connection costs one
 * pointer.
 *
 *   partial == NULL
 *     IDLE ──── chunk ends inside a header ────────────────► HEADER
 *      ▲ │                                                   │    ▲
 *      │ └───── header known, payload incomplete ─► PAYLOAD ◄┘    │ chunk ends inside
 *      │                                            │  │  ▲       │ the next header
 *      │             non-final fragment complete, or│  │  │       │
 *      │             a control frame complete while │  │  └─── BETWEEN
 *      │             a message is open              └──┼────────► ▲
 *      │                                               │
 *      │   message or lone control frame complete      ▼
 *      └─────────── next decode ─────────────────── RETURNED
 *
 *   HEADER     some bytes of a frame's header arrived
 *   PAYLOAD    a frame's header arrived, its payload is incomplete
 *   BETWEEN    a fragmented message is open, no frame is
 *   RETURNED   the last event points into the partial; the next decode frees it
 *
 * HEADER returns to IDLE or BETWEEN when the rest of the frame is complete in the chunk. Any error frees the
 * partial.
 *
 * Bounds. A message is at most `message_bytes_max`: a header that declares more is refused before its payload
 * arrives. A partial holds what arrived, at most doubled; a declared length alone costs nothing. Text is
 * validated as it arrives: a bad byte ends the connection even if its frame never completes.
 *
 * The caller calls websocket_decode() until it returns NEED_MORE, CLOSE or ERROR. After CLOSE or ERROR no more
 * bytes may be passed; only websocket_decoder_free() may follow. One thread at a time.
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
    WEBSOCKET_CLOSE_NO_CODE = 1005, /* never on the wire: the close frame was empty */
    WEBSOCKET_CLOSE_INVALID_TEXT = 1007,
    WEBSOCKET_CLOSE_POLICY = 1008,
    WEBSOCKET_CLOSE_TOO_BIG = 1009,
    WEBSOCKET_CLOSE_INTERNAL = 1011,
};

#define WEBSOCKET_CONTROL_BYTES_MAX 125

enum websocket_event {
    WEBSOCKET_NEED_MORE, /* the whole chunk was taken */
    WEBSOCKET_TEXT,
    WEBSOCKET_BINARY,
    WEBSOCKET_PING,
    WEBSOCKET_PONG,
    WEBSOCKET_CLOSE,
    WEBSOCKET_ERROR,
};

/* What the decoder demands of the other side; shared by all connections of a kind. */
struct websocket_limits {
    size_t message_bytes_max;
    bool
        expects_masks; /* true on a server: every frame must be masked; false on a client: none may */
};

/* The content of an event. `data` points into the chunk or the partial; it may be changed and is valid until
 * the decoder is used again. */
struct websocket_message {
    char *data; /* the payload; for CLOSE the reason, valid UTF-8 */
    size_t len;
    uint16_t close_code;      /* CLOSE: the received code; ERROR: the code to close with */
    const char *error_reason; /* ERROR: static text for the close frame and the log */
};

struct websocket_partial;

/* A zeroed decoder is idle. */
struct websocket_decoder {
    struct websocket_partial *partial;
};

/* Takes bytes from the front of the chunk (*data, *len), advancing both, up to the end of the next message or
 * control frame. NEED_MORE means that all bytes were taken. ERROR, which also reports out of memory (1011),
 * takes the rest. `out` is written for every event but NEED_MORE. */
enum websocket_event websocket_decode(struct websocket_decoder *decoder,
                                      const struct websocket_limits *limits, char **data,
                                      size_t *len, struct websocket_message *out);

/* Frees an incomplete message; the decoder is idle again. */
void websocket_decoder_free(struct websocket_decoder *decoder);

/* Notes when an incomplete message began, if that is not noted yet. */
void websocket_decoder_note_begin(struct websocket_decoder *decoder, int64_t now_ms);

/* When the incomplete message began; 0: there is none, or it was not noted. */
int64_t websocket_decoder_began_ms(const struct websocket_decoder *decoder);

/* Heap bytes of an incomplete message; 0 when idle. For accounting. */
size_t websocket_decoder_memory_bytes(const struct websocket_decoder *decoder);

/* Whether this code may be sent in a close frame (RFC 6455, 7.4). */
bool websocket_close_code_valid(unsigned code);

#endif
