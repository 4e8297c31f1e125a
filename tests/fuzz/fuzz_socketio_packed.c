/*
 * Compares the reader of Socket.IO packets in MessagePack with a second reader of MessagePack and with jansson.
 * Properties:
 *
 *   - an accepted packet is one whole value to the second reader too: neither truncated nor followed by more;
 *   - its text is a packet, at most MSGPACK_JSON_GROWTH_MAX times as long, whose data jansson accepts;
 *   - that text, packed and unpacked again, is the same packet;
 *   - any map or array in the input converts to JSON that jansson accepts, and back to the same bytes.
 *
 * Input: one binary Engine.IO message of a client.
 */
#include "fuzz.h"
#include "fuzz_json_oracle.h"
#include "socketio/codec/msgpack_json.h"
#include "socketio/codec/socketio_packed.h"

#include <string.h>

enum { HEAD_BYTES_MAX = SOCKETIO_NAMESPACE_BYTES_MAX + SOCKETIO_ACK_ID_DIGITS_MAX + 2 };

/* ---- the second reader, which only finds the end of a value; 0: none ---- */

static size_t number_at(const uint8_t *data, size_t len)
{
    size_t number = 0;
    for (size_t i = 0; i < len; i++)
        number = number << 8 | data[i];
    return number;
}

/* Returns the size of a value without the values in it, and sets *values to their number. */
static size_t own_bytes(const uint8_t *data, size_t size, size_t *values)
{
    static const uint8_t fixed[0x20] = {
        [0x00] = 1, [0x02] = 1, [0x03] = 1, [0x0a] = 5, [0x0b] = 9,  [0x0c] = 2,
        [0x0d] = 3, [0x0e] = 5, [0x0f] = 9, [0x10] = 2, [0x11] = 3,  [0x12] = 5,
        [0x13] = 9, [0x14] = 3, [0x15] = 4, [0x16] = 6, [0x17] = 10, [0x18] = 18};
    static const uint8_t digits[0x20] = {
        [0x04] = 1, [0x05] = 2, [0x06] = 4, [0x07] = 1, [0x08] = 2, [0x09] = 4, [0x19] = 1,
        [0x1a] = 2, [0x1b] = 4, [0x1c] = 2, [0x1d] = 4, [0x1e] = 2, [0x1f] = 4};
    uint8_t first = data[0];
    *values = 0;
    if (first < 0x80 || first >= 0xe0)
        return 1;
    if (first < 0xa0) {
        *values = (first & 15U) * (first < 0x90 ? 2U : 1U);
        return 1;
    }
    if (first < 0xc0)
        return 1U + (first & 31U);
    size_t head = digits[first - 0xc0];
    if (head == 0)
        return fixed[first - 0xc0];
    if (1 + head > size)
        return 0;
    size_t number = number_at(data + 1, head);
    if (first >= 0xdc) {
        *values = number * (first < 0xde ? 1U : 2U);
        return 1 + head;
    }
    bool is_extension = first >= 0xc7 && first <= 0xc9;
    return 1 + head + is_extension + number;
}

static size_t value_bytes(const uint8_t *data, size_t size)
{
    size_t at = 0;
    for (size_t due = 1; due > 0; due--) {
        size_t values;
        size_t own = at < size ? own_bytes(data + at, size - at, &values) : 0;
        if (own == 0 || own > size - at)
            return 0;
        at += own;
        due += values;
    }
    return at;
}

/* ---- packets ---- */

static void check_data(struct slice text)
{
    struct socketio_packet head;
    struct slice data;
    const char *problem;
    fuzz_require(socketio_parse_head(text.data, text.len, &head, &data, &problem), "it has a head");
    fuzz_require(data.len == 0 || fuzz_json_judge(data) != FUZZ_JSON_REFUSED,
                 "jansson accepts the data");
}

static void check_again(struct slice text, const struct socketio_packet *first)
{
    struct buffer copy = BUFFER_INIT, packed = BUFFER_INIT, again = BUFFER_INIT;
    struct socketio_packet packet;
    const char *problem;
    buffer_append_byte(&copy, '4');
    buffer_append_slice(&copy, text);
    socketio_pack(copy.data, copy.len, &packed);
    fuzz_require(socketio_unpack(buffer_slice(&packed), &again, &packet, &problem),
                 "what we pack is a packet");
    fuzz_require(packet.type == first->type && !packet.unreadable &&
                     slice_equal(packet.name_space, first->name_space) &&
                     slice_equal(packet.ack_id, first->ack_id) &&
                     slice_equal(packet.event, first->event),
                 "and the same");
    buffer_free(&copy);
    buffer_free(&packed);
    buffer_free(&again);
}

/* Returns whether the text has no escapes. */
static bool is_plain(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.data[i] < ' ' || text.data[i] == '"' || text.data[i] == '\\')
            return false;
    return true;
}

static void check_packet(struct slice input)
{
    struct buffer text = BUFFER_INIT;
    struct socketio_packet packet;
    const char *problem = NULL;
    if (!socketio_unpack(input, &text, &packet, &problem)) {
        fuzz_require(problem != NULL, "a refusal has a reason");
        buffer_free(&text);
        return;
    }
    fuzz_require(value_bytes((const uint8_t *)input.data, input.len) == input.len,
                 "a packet is one value");
    fuzz_require(packet.type <= SOCKETIO_CONNECT_ERROR && packet.attachments == 0,
                 "packed packets have no binary types");
    fuzz_require(text.len <= MSGPACK_JSON_GROWTH_MAX * input.len + HEAD_BYTES_MAX,
                 "text is bounded by the input");
    if (is_plain(packet.event)) { /* else unescaping has changed the text */
        check_data(buffer_slice(&text));
        check_again(buffer_slice(&text), &packet);
    }
    buffer_free(&text);
}

/* ---- values ---- */

static void check_back(struct slice text)
{
    char *copy = fuzz_copy(text.data, text.len); /* packing changes it */
    struct buffer packed = BUFFER_INIT, again = BUFFER_INIT;
    struct json json;
    bool lost = false;
    json_init(&json, copy, text.len);
    fuzz_require(msgpack_from_json(&json, &packed) && json_done(&json), "JSON is packed");
    struct slice rest = buffer_slice(&packed);
    fuzz_require(msgpack_to_json(&rest, &again, &lost) && rest.len == 0 && !lost,
                 "and unpacked whole");
    fuzz_require(fuzz_json_judge(text) == FUZZ_JSON_BEYOND_LIMITS ||
                     fuzz_json_same(text, buffer_slice(&again)),
                 "it is the same");
    free(copy);
    buffer_free(&packed);
    buffer_free(&again);
}

static void check_value(struct slice input)
{
    struct buffer text = BUFFER_INIT;
    struct slice rest = input;
    bool lost = false;
    size_t len = value_bytes((const uint8_t *)input.data, input.len);
    if (msgpack_to_json(&rest, &text, &lost)) {
        fuzz_require(input.len - rest.len == len, "both readers end at the same byte");
        fuzz_require(text.len <= MSGPACK_JSON_GROWTH_MAX * len, "text is bounded by the input");
        fuzz_require(fuzz_json_judge(buffer_slice(&text)) != FUZZ_JSON_REFUSED,
                     "jansson accepts it");
        check_back(buffer_slice(&text));
    } else {
        bool is_container = input.len && (((uint8_t)input.data[0] & 0xe0) == 0x80 ||
                                          ((uint8_t)input.data[0] & 0xfc) == 0xdc);
        fuzz_require(!is_container || len == 0, "the other reader refuses it too");
    }
    buffer_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice input = {(const char *)data, size};
    check_packet(input);
    for (size_t at = 0; at < size && at < 16; at++)
        check_value(slice_after(input, at));
    return 0;
}
