/*
 * Compares the WebSocket decoder with itself on other splits of the input, and with wslay.
 *
 * Properties: any split gives the same events; an idle decoder holds no memory; memory is bounded by what
 * arrived; and wslay gives the same messages. Allowed differences: where we report an error, wslay may
 * continue (it accepts masked frames on a client, and unmasked ones on a server), and it refuses the close
 * codes 1012 to 1014, which were registered after it was written.
 *
 * Input: a byte (bit 0: server side), a byte of split seed, then the bytes from the other side.
 */
#include "fuzz.h"
#include "protocol/websocket/websocket.h"

#include <string.h>
#include <wslay/wslay.h>

#define MESSAGE_BYTES_MAX 4096
#define INPUT_BYTES_MAX 65536
#define PARTIAL_OVERHEAD_BYTES_MAX 256

/* Events in order: kind, length, payload; an error as its code. */
struct log {
    uint8_t bytes[INPUT_BYTES_MAX * 8];
    size_t len;
    size_t last; /* where the last event begins */
    bool error;
};

static void log_event(struct log *log, uint8_t kind, const void *data, size_t len)
{
    uint32_t length = (uint32_t)len;
    fuzz_require(log->len + len + 5 <= sizeof log->bytes,
                 "there are no more events than input bytes");
    log->last = log->len;
    log->bytes[log->len++] = kind;
    memcpy(log->bytes + log->len, &length, 4);
    log->len += 4;
    if (len > 0)
        memcpy(log->bytes + log->len, data, len);
    log->len += len;
}

static void log_close(struct log *log, unsigned code, const void *reason, size_t len)
{
    uint8_t payload[WEBSOCKET_CONTROL_BYTES_MAX] = {(uint8_t)(code >> 8), (uint8_t)code};
    if (len > 0)
        memcpy(payload + 2, reason, len);
    log_event(log, WEBSOCKET_OPCODE_CLOSE, payload, code == WEBSOCKET_CLOSE_NO_CODE ? 0 : len + 2);
}

/* Decodes one piece. Returns false when the connection is over. */
static bool decode_piece(struct websocket_decoder *decoder, const struct websocket_limits *limits,
                         const uint8_t *data, size_t size, struct log *log)
{
    static const uint8_t opcodes[] = {
        [WEBSOCKET_TEXT] = WEBSOCKET_OPCODE_TEXT,
        [WEBSOCKET_BINARY] = WEBSOCKET_OPCODE_BINARY,
        [WEBSOCKET_PING] = WEBSOCKET_OPCODE_PING,
        [WEBSOCKET_PONG] = WEBSOCKET_OPCODE_PONG,
    };
    struct websocket_message message;
    enum websocket_event event;
    char *chunk = fuzz_copy(data, size);
    char *at = chunk;
    while ((event = websocket_decode(decoder, limits, &at, &size, &message)) !=
           WEBSOCKET_NEED_MORE) {
        if (event == WEBSOCKET_CLOSE || event == WEBSOCKET_ERROR)
            break;
        log_event(log, opcodes[event], message.data, message.len);
    }
    if (event == WEBSOCKET_CLOSE)
        log_close(log, message.close_code, message.data, message.len);
    if (event == WEBSOCKET_ERROR) {
        log_event(log, 0xff, &message.close_code, sizeof message.close_code);
        log->error = true;
    }
    free(chunk);
    return event == WEBSOCKET_NEED_MORE;
}

static void decode_in_pieces(const struct websocket_limits *limits, const uint8_t *data,
                             size_t size, uint32_t seed, struct log *log)
{
    struct websocket_decoder decoder = {NULL};
    bool open = true;
    for (size_t at = 0; open && at < size;) {
        size_t piece = seed ? fuzz_piece(&seed, size - at) : size;
        open = decode_piece(&decoder, limits, data + at, piece, log);
        at += piece;
        fuzz_require(websocket_decoder_memory_bytes(&decoder) <=
                         2 * at + PARTIAL_OVERHEAD_BYTES_MAX,
                     "memory grows with what arrived");
    }
    websocket_decoder_free(&decoder);
}

/* What wslay reads from and writes to. */
struct oracle {
    const uint8_t *data;
    size_t size;
    struct log *log;
};

static ssize_t oracle_recv(wslay_event_context_ptr context, uint8_t *out, size_t len, int flags,
                           void *user)
{
    struct oracle *oracle = user;
    (void)flags;
    if (oracle->size == 0) {
        wslay_event_set_error(context, WSLAY_ERR_WOULDBLOCK);
        return -1;
    }
    size_t count = len < oracle->size ? len : oracle->size;
    memcpy(out, oracle->data, count);
    oracle->data += count;
    oracle->size -= count;
    return (ssize_t)count;
}

static void oracle_message(wslay_event_context_ptr context,
                           const struct wslay_event_on_msg_recv_arg *arg, void *user)
{
    struct oracle *oracle = user;
    (void)context;
    log_event(oracle->log, arg->opcode, arg->msg, arg->msg_length);
}

static void decode_with_wslay(const struct websocket_limits *limits, const uint8_t *data,
                              size_t size, struct log *log)
{
    const struct wslay_event_callbacks callbacks = {
        .recv_callback = oracle_recv,
        .on_msg_recv_callback = oracle_message,
    };
    struct oracle oracle = {data, size, log};
    wslay_event_context_ptr context;
    int made = limits->expects_masks
                   ? wslay_event_context_server_init(&context, &callbacks, &oracle)
                   : wslay_event_context_client_init(&context, &callbacks, &oracle);
    if (made != 0)
        abort();
    wslay_event_config_set_max_recv_msg_length(context, limits->message_bytes_max);
    wslay_event_recv(context);
    wslay_event_context_free(context);
}

/* Our last event is a close with a code that wslay does not know yet. */
static bool ends_with_newer_close(const struct log *log)
{
    const uint8_t *event = log->bytes + log->last;
    if (log->len < log->last + 7 || event[0] != WEBSOCKET_OPCODE_CLOSE)
        return false;
    unsigned code = (unsigned)event[5] << 8 | event[6];
    return code >= 1012 && code <= 1014;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct log whole, pieces, other;
    if (size < 2 || size > INPUT_BYTES_MAX)
        return 0;
    const struct websocket_limits limits = {MESSAGE_BYTES_MAX, data[0] & 1};
    whole.len = whole.last = pieces.len = other.len = 0;
    whole.error = false;
    decode_in_pieces(&limits, data + 2, size - 2, 0, &whole);
    decode_in_pieces(&limits, data + 2, size - 2, 1u + data[1], &pieces);
    fuzz_require(whole.len == pieces.len && memcmp(whole.bytes, pieces.bytes, whole.len) == 0,
                 "a split changes nothing");

    decode_with_wslay(&limits, data + 2, size - 2, &other);
    bool stricter = whole.error || ends_with_newer_close(&whole);
    size_t common = stricter ? whole.last : whole.len;
    fuzz_require(stricter ? other.len >= common : other.len == common,
                 "wslay gives as many messages");
    fuzz_require(memcmp(whole.bytes, other.bytes, common) == 0, "wslay gives the same messages");
    return 0;
}
