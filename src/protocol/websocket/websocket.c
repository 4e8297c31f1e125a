#include "protocol/websocket/websocket.h"

#include "protocol/websocket/websocket_frame.h"
#include "text/utf8.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum partial_state { HEADER, PAYLOAD, BETWEEN, RETURNED };

/* `bytes` holds the open message, then the bytes of a control frame between its fragments. */
struct websocket_partial {
    enum partial_state state;
    uint8_t message_opcode; /* CONTINUATION: no message is open */
    uint8_t control_len;
    uint8_t header_len;
    uint8_t header[WEBSOCKET_FRAME_HEADER_BYTES_MAX];
    struct utf8 utf8;
    struct websocket_frame frame; /* payload_len: what is still missing */
    size_t message_len;
    size_t capacity;
    int64_t began_ms;
    char bytes[];
};

/* The arguments of websocket_decode(), for its helpers. */
struct decoding {
    struct websocket_decoder *decoder;
    const struct websocket_limits *limits;
    char *data;
    size_t len;
    struct websocket_message *out;
};

static void websocket_partial_set_state(struct websocket_partial *partial, enum partial_state state)
{
    assert(partial->state != RETURNED);
    assert(state != BETWEEN || partial->message_opcode != WEBSOCKET_OPCODE_CONTINUATION);
    assert(state != HEADER || partial->state != PAYLOAD);
    partial->state = state;
}

static enum websocket_event websocket_decoding_fail(struct decoding *d,
                                                    enum websocket_close_code code,
                                                    const char *reason)
{
    *d->out = (struct websocket_message){.close_code = (uint16_t)code, .error_reason = reason};
    d->len = 0;
    websocket_decoder_free(d->decoder);
    return WEBSOCKET_ERROR;
}

static enum websocket_event websocket_decoding_fail_protocol(struct decoding *d, const char *reason)
{
    return websocket_decoding_fail(d, WEBSOCKET_CLOSE_PROTOCOL_ERROR, reason);
}

static enum websocket_event websocket_decoding_fail_memory(struct decoding *d)
{
    return websocket_decoding_fail(d, WEBSOCKET_CLOSE_INTERNAL, "out of memory");
}

static enum websocket_event websocket_decoding_fail_text(struct decoding *d)
{
    return websocket_decoding_fail(d, WEBSOCKET_CLOSE_INVALID_TEXT, "text is not valid UTF-8");
}

static void websocket_decoding_take_bytes(struct decoding *d, size_t count)
{
    d->data += count;
    d->len -= count;
}

static bool websocket_partial_is_open_message(const struct websocket_partial *partial)
{
    return partial && partial->message_opcode != WEBSOCKET_OPCODE_CONTINUATION;
}

/* Returns the partial, making it if necessary; NULL when out of memory. */
static struct websocket_partial *websocket_partial_get(struct websocket_decoder *decoder)
{
    if (!decoder->partial)
        decoder->partial = calloc(1, sizeof *decoder->partial);
    return decoder->partial;
}

/* Reserves space behind the held bytes. The capacity doubles, so that a message that arrives byte by byte is
 * moved a bounded number of times, and never exceeds what a message may have. */
static bool websocket_partial_reserve(struct decoding *d, size_t extra)
{
    struct websocket_partial *partial = d->decoder->partial;
    size_t needed = partial->message_len + partial->control_len + extra;
    if (needed <= partial->capacity)
        return true;
    size_t capacity = partial->capacity * 2;
    size_t capacity_max = d->limits->message_bytes_max + WEBSOCKET_CONTROL_BYTES_MAX;
    if (capacity > capacity_max)
        capacity = capacity_max;
    if (capacity < needed)
        capacity = needed;
    partial = realloc(partial, sizeof *partial + capacity);
    if (!partial)
        return false;
    partial->capacity = capacity;
    d->decoder->partial = partial;
    return true;
}

bool websocket_close_code_valid(unsigned code)
{
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
           (code >= 3000 && code <= 4999);
}

static enum websocket_event websocket_decoding_return_close(struct decoding *d, char *payload,
                                                            size_t len)
{
    struct websocket_message *out = d->out;
    *out = (struct websocket_message){.data = payload, .close_code = WEBSOCKET_CLOSE_NO_CODE};
    if (len == 0)
        return WEBSOCKET_CLOSE;
    if (len == 1)
        return websocket_decoding_fail_protocol(d, "close frame with half a code");
    const unsigned char *code = (const unsigned char *)payload;
    out->close_code = (uint16_t)(code[0] << 8 | code[1]);
    if (!websocket_close_code_valid(out->close_code))
        return websocket_decoding_fail_protocol(d, "close code may not be sent");
    out->data = payload + 2;
    out->len = len - 2;
    if (!utf8_valid((struct slice){out->data, out->len}))
        return websocket_decoding_fail_text(d);
    return WEBSOCKET_CLOSE;
}

static enum websocket_event websocket_decoding_return_payload(struct decoding *d, uint8_t opcode,
                                                              char *payload, size_t len)
{
    if (opcode == WEBSOCKET_OPCODE_CLOSE)
        return websocket_decoding_return_close(d, payload, len);
    *d->out = (struct websocket_message){.data = payload, .len = len};
    switch (opcode) {
    case WEBSOCKET_OPCODE_TEXT:
        return WEBSOCKET_TEXT;
    case WEBSOCKET_OPCODE_BINARY:
        return WEBSOCKET_BINARY;
    case WEBSOCKET_OPCODE_PING:
        return WEBSOCKET_PING;
    default:
        return WEBSOCKET_PONG;
    }
}

/* The frame's last byte arrived and is in the partial. */
static enum websocket_event websocket_partial_finish_frame(struct decoding *d)
{
    struct websocket_partial *partial = d->decoder->partial;
    if (websocket_frame_is_control(&partial->frame)) {
        char *payload = partial->bytes + partial->message_len;
        websocket_partial_set_state(partial, websocket_partial_is_open_message(partial) ? BETWEEN
                                                                                        : RETURNED);
        return websocket_decoding_return_payload(d, partial->frame.opcode, payload,
                                                 partial->control_len);
    }
    if (!partial->frame.final) {
        websocket_partial_set_state(partial, BETWEEN);
        return WEBSOCKET_NEED_MORE;
    }
    if (partial->message_opcode == WEBSOCKET_OPCODE_TEXT && !utf8_complete(&partial->utf8))
        return websocket_decoding_fail_text(d);
    websocket_partial_set_state(partial, RETURNED);
    return websocket_decoding_return_payload(d, partial->message_opcode, partial->bytes,
                                             partial->message_len);
}

/* Moves the chunk's part of the payload into the partial. */
static enum websocket_event websocket_partial_take_payload(struct decoding *d)
{
    struct websocket_partial *partial = d->decoder->partial;
    struct websocket_frame *frame = &partial->frame;
    size_t count = frame->payload_len < d->len ? (size_t)frame->payload_len : d->len;
    bool control = websocket_frame_is_control(frame);

    websocket_unmask(d->data, count, frame->mask);
    frame->mask = websocket_mask_after(frame->mask, count);
    frame->payload_len -= count;
    if (!control && partial->message_opcode == WEBSOCKET_OPCODE_TEXT &&
        !utf8_add(&partial->utf8, d->data, count))
        return websocket_decoding_fail_text(d);

    if (!websocket_partial_reserve(d, count))
        return websocket_decoding_fail_memory(d);
    partial = d->decoder->partial;
    memcpy(partial->bytes + partial->message_len + partial->control_len, d->data, count);
    if (control)
        partial->control_len += (uint8_t)count;
    else
        partial->message_len += count;
    websocket_decoding_take_bytes(d, count);
    return partial->frame.payload_len == 0 ? websocket_partial_finish_frame(d)
                                           : WEBSOCKET_NEED_MORE;
}

/* Starts a frame that is incomplete, or a fragment: its payload must be kept. */
static enum websocket_event websocket_partial_start_frame(struct decoding *d,
                                                          const struct websocket_frame *frame)
{
    struct websocket_partial *partial = websocket_partial_get(d->decoder);
    if (!partial)
        return websocket_decoding_fail_memory(d);
    websocket_partial_set_state(partial, PAYLOAD);
    partial->frame = *frame;
    partial->header_len = 0;
    partial->control_len = 0;
    if (frame->opcode == WEBSOCKET_OPCODE_TEXT || frame->opcode == WEBSOCKET_OPCODE_BINARY)
        partial->message_opcode = frame->opcode;
    return websocket_partial_take_payload(d);
}

/* Takes a complete frame that is an event of its own and returns it in place. */
static enum websocket_event websocket_decoding_take_whole_frame(struct decoding *d,
                                                                const struct websocket_frame *frame)
{
    struct websocket_partial *partial = d->decoder->partial;
    char *payload = d->data;
    size_t len = (size_t)frame->payload_len;
    bool ascii = websocket_unmask(payload, len, frame->mask);
    websocket_decoding_take_bytes(d, len);
    if (websocket_partial_is_open_message(partial)) {
        websocket_partial_set_state(partial, BETWEEN);
        partial->header_len = 0;
    } else if (partial) {
        websocket_decoder_free(d->decoder);
    }
    if (frame->opcode == WEBSOCKET_OPCODE_TEXT && !ascii &&
        !utf8_valid((struct slice){payload, len}))
        return websocket_decoding_fail_text(d);
    return websocket_decoding_return_payload(d, frame->opcode, payload, len);
}

/* Gathers a header that is incomplete in the chunk, byte by byte, in the partial. Returns its bytes once all
 * `*size` of them are there, else NULL. */
static const uint8_t *websocket_partial_gather_header(struct decoding *d, size_t *size)
{
    struct websocket_partial *partial = d->decoder->partial;
    websocket_partial_set_state(partial, HEADER);
    for (;;) {
        *size = websocket_frame_header_size(partial->header, partial->header_len);
        if (partial->header_len == *size)
            return partial->header;
        if (d->len == 0)
            return NULL;
        partial->header[partial->header_len++] = (uint8_t)*d->data;
        websocket_decoding_take_bytes(d, 1);
    }
}

/* Reads the next header into `frame`; *whole is false when it is incomplete. */
static enum websocket_event websocket_decoding_take_header(struct decoding *d,
                                                           struct websocket_frame *frame,
                                                           bool *whole)
{
    const struct websocket_partial *partial = d->decoder->partial;
    bool open = websocket_partial_is_open_message(partial);
    const uint8_t *header = (const uint8_t *)d->data;
    size_t size = websocket_frame_header_size(header, d->len);
    const char *fault;
    *whole = true;
    if (d->len >= size && !(partial && partial->state == HEADER)) {
        websocket_decoding_take_bytes(d, size);
        fault = websocket_frame_fault(header, size, open, d->limits->expects_masks);
    } else {
        if (!(partial = websocket_partial_get(d->decoder)))
            return websocket_decoding_fail_memory(d);
        header = websocket_partial_gather_header(d, &size);
        *whole = header != NULL;
        fault = websocket_frame_fault(partial->header, partial->header_len, open,
                                      d->limits->expects_masks);
    }
    if (!fault && *whole)
        fault = websocket_frame_read(header, size, frame);
    return fault ? websocket_decoding_fail_protocol(d, fault) : WEBSOCKET_NEED_MORE;
}

static enum websocket_event websocket_decoding_next_frame(struct decoding *d)
{
    struct websocket_frame frame;
    bool whole;
    if (websocket_decoding_take_header(d, &frame, &whole) == WEBSOCKET_ERROR)
        return WEBSOCKET_ERROR;
    if (!whole)
        return WEBSOCKET_NEED_MORE;
    bool control = websocket_frame_is_control(&frame);
    size_t held = d->decoder->partial ? d->decoder->partial->message_len : 0;
    size_t max = d->limits->message_bytes_max;
    if (!control && (held > max || frame.payload_len > max - held))
        return websocket_decoding_fail(d, WEBSOCKET_CLOSE_TOO_BIG, "message too big");
    bool is_event = control || (frame.final && frame.opcode != WEBSOCKET_OPCODE_CONTINUATION);
    if (is_event && frame.payload_len <= d->len)
        return websocket_decoding_take_whole_frame(d, &frame);
    return websocket_partial_start_frame(d, &frame);
}

/* Takes what a server receives nearly always: a short, complete, masked text while no message is incomplete.
 * websocket_decoding_next_frame() would do the same in twice the instructions. It handles all other frames; bad
 * text is masked again (masking is its own inverse), so that it reports the error. */
static bool websocket_decoding_short_text(const struct websocket_limits *limits, char **data,
                                          size_t *len, struct websocket_message *out)
{
    const size_t header_bytes = 6;
    const uint8_t *header = (const uint8_t *)*data;
    if (*len < header_bytes || header[0] != (WEBSOCKET_FRAME_FINAL | WEBSOCKET_OPCODE_TEXT))
        return false;
    /* for an unmasked frame the result is more than any short length */
    size_t payload_len = header[1] ^ WEBSOCKET_FRAME_MASKED;
    if (payload_len >= WEBSOCKET_FRAME_LENGTH_IN_2_BYTES || payload_len > *len - header_bytes ||
        payload_len > limits->message_bytes_max || !limits->expects_masks)
        return false;
    struct websocket_mask mask = websocket_mask_of(header + 2);
    char *payload = *data + header_bytes;
    if (!websocket_unmask(payload, payload_len, mask) &&
        !utf8_valid((struct slice){payload, payload_len})) {
        websocket_unmask(payload, payload_len, mask);
        return false;
    }
    *out = (struct websocket_message){.data = payload, .len = payload_len};
    *data = payload + payload_len;
    *len -= header_bytes + payload_len;
    return true;
}

enum websocket_event websocket_decode(struct websocket_decoder *decoder,
                                      const struct websocket_limits *limits, char **data,
                                      size_t *len, struct websocket_message *out)
{
    if (decoder->partial && decoder->partial->state == RETURNED)
        websocket_decoder_free(decoder);
    if (!decoder->partial && websocket_decoding_short_text(limits, data, len, out))
        return WEBSOCKET_TEXT;
    struct decoding d = {decoder, limits, *data, *len, out};
    enum websocket_event event = WEBSOCKET_NEED_MORE;
    while (event == WEBSOCKET_NEED_MORE && d.len > 0) {
        if (decoder->partial && decoder->partial->state == PAYLOAD)
            event = websocket_partial_take_payload(&d);
        else
            event = websocket_decoding_next_frame(&d);
    }
    *data = d.data;
    *len = d.len;
    return event;
}

void websocket_decoder_free(struct websocket_decoder *decoder)
{
    free(decoder->partial);
    decoder->partial = NULL;
}

void websocket_decoder_note_begin(struct websocket_decoder *decoder, int64_t now_ms)
{
    if (decoder->partial && decoder->partial->began_ms == 0)
        decoder->partial->began_ms = now_ms;
}

int64_t websocket_decoder_began_ms(const struct websocket_decoder *decoder)
{
    const struct websocket_partial *partial = decoder->partial;
    return partial && partial->state != RETURNED ? partial->began_ms : 0;
}

size_t websocket_decoder_memory_bytes(const struct websocket_decoder *decoder)
{
    return decoder->partial ? sizeof *decoder->partial + decoder->partial->capacity : 0;
}
