#include "protocol/encoder.h"

#include "protocol/websocket/websocket.h"
#include "protocol/websocket/websocket_encode.h"

/* A scratch that grew beyond this for a large message is freed. */
enum { ENCODER_SCRATCH_KEEP_BYTES = 64 * 1024 };

void encoder_init(struct encoder *encoder)
{
    *encoder = (struct encoder){.heartbeat_ack_ms = TIME_NONE};
}

static void encoder_drop_heartbeat_acks(struct encoder *encoder)
{
    for (int i = 0; i < DIALECT_SLOT_COUNT; i++)
        blob_drop(&encoder->heartbeat_acks[i]);
}

void encoder_free(struct encoder *encoder)
{
    encoder_drop_heartbeat_acks(encoder);
    buffer_free(&encoder->scratch);
}

static void encoder_drop_large_scratch(struct encoder *encoder)
{
    if (encoder->scratch.cap > ENCODER_SCRATCH_KEEP_BYTES)
        buffer_free(&encoder->scratch);
}

static void encoder_append_frame(struct buffer *frames, enum websocket_opcode opcode,
                                 struct slice payload)
{
    uint8_t header[WEBSOCKET_HEADER_BYTES_MAX];
    size_t len = websocket_header_write(header, opcode, payload.len);
    buffer_append(frames, header, len);
    buffer_append_slice(frames, payload);
}

static struct blob *encoder_take_frames(struct buffer *frames)
{
    struct blob *blob = frames->failed ? NULL : blob_make(SLICE_NONE, buffer_slice(frames));
    buffer_free(frames);
    return blob;
}

/* Several frames become one blob too, so that a message is sent whole or not at all. */
static struct blob *encoder_frame_message(const struct dialect *dialect, struct slice payload)
{
    if (!dialect->split || !memchr(payload.data, dialect->split, payload.len)) {
        uint8_t header[WEBSOCKET_HEADER_BYTES_MAX];
        size_t len = websocket_header_write(header, WEBSOCKET_OPCODE_TEXT, payload.len);
        return blob_make((struct slice){(const char *)header, len}, payload);
    }
    struct buffer frames = BUFFER_INIT;
    while (payload.data) {
        struct slice part;
        payload = slice_split(payload, dialect->split, &part);
        encoder_append_frame(&frames, WEBSOCKET_OPCODE_TEXT, part);
    }
    return encoder_take_frames(&frames);
}

/* Copies the text first, because packing changes it and a blob may be shared. */
static void encoder_append_packed(struct encoder *encoder, const struct dialect *dialect,
                                  struct slice payload, struct buffer *frames)
{
    struct buffer *scratch = &encoder->scratch;
    struct buffer packed = BUFFER_INIT;
    buffer_clear(scratch);
    buffer_append_slice(scratch, payload);
    if (!scratch->failed)
        dialect->pack(scratch->data, scratch->len, &packed);
    if (scratch->failed || packed.failed)
        frames->failed = true;
    else
        encoder_append_frame(frames, WEBSOCKET_OPCODE_BINARY, buffer_slice(&packed));
    buffer_free(&packed);
}

struct blob *encoder_translate(struct encoder *encoder, const struct dialect *dialect,
                               struct blob *text)
{
    struct buffer frames = BUFFER_INIT;
    struct slice rest = {text->bytes, text->len};
    enum websocket_opcode opcode;
    struct slice payload;
    if (!dialect->text)
        return blob_share(text);
    while (websocket_written_next(&rest, &opcode, &payload))
        encoder_append_packed(encoder, dialect, payload, &frames);
    encoder_drop_large_scratch(encoder);
    return encoder_take_frames(&frames);
}

bool encoder_wrote(struct slice frames)
{
    return websocket_written_is_text(frames);
}

uint64_t encoder_next_offset(struct encoder *encoder)
{
    uint64_t now_us = (uint64_t)encoder->offset_clock->wall_ms * 1000;
    encoder->offset = now_us > encoder->offset ? now_us : encoder->offset + 1;
    return encoder->offset;
}

void encoder_pass(struct encoder *encoder, uint64_t offset)
{
    if (encoder->offset < offset)
        encoder->offset = offset;
}

struct blob *encoder_encode(struct encoder *encoder, const struct dialect *dialect,
                            const struct message *message)
{
    if (dialect->text) {
        struct blob *text = encoder_encode(encoder, dialect->text, message);
        struct blob *packed = text ? encoder_translate(encoder, dialect, text) : NULL;
        blob_drop(&text);
        return packed;
    }
    struct buffer *scratch = &encoder->scratch;
    buffer_clear(scratch);
    dialect->encode(message, scratch);
    if (encoder->offset_clock && dialect->append_offset && !message->id.data && scratch->len)
        dialect->append_offset(scratch, encoder_next_offset(encoder));
    struct blob *blob =
        scratch->failed ? NULL : encoder_frame_message(dialect, buffer_slice(scratch));
    encoder_drop_large_scratch(encoder);
    return blob;
}

struct blob *encoder_heartbeat_ack(struct encoder *encoder, const struct dialect *dialect,
                                   int64_t server_time_ms)
{
    if (encoder->heartbeat_ack_ms != server_time_ms) {
        encoder_drop_heartbeat_acks(encoder);
        encoder->heartbeat_ack_ms = server_time_ms;
    }
    struct blob **cached = &encoder->heartbeat_acks[dialect->slot];
    if (!*cached) {
        struct message ack = {.type = MESSAGE_HEARTBEAT_ACK, .server_time_ms = server_time_ms};
        *cached = encoder_encode(encoder, dialect, &ack);
    }
    return *cached ? blob_share(*cached) : NULL;
}

struct blob *broadcast_encode(struct broadcast *broadcast, struct encoder *encoder,
                              const struct dialect *dialect)
{
    struct blob **blob = &broadcast->blobs[dialect->slot];
    if (!dialect->text)
        return *blob = encoder_encode(encoder, dialect, broadcast->message);
    struct blob *text = broadcast_blob(broadcast, encoder, dialect->text);
    return *blob = text ? encoder_translate(encoder, dialect, text) : NULL;
}

void broadcast_end(struct broadcast *broadcast)
{
    for (int i = 0; i < DIALECT_SLOT_COUNT; i++)
        blob_drop(&broadcast->blobs[i]);
}
