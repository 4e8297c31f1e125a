/*
 * Compares the reader of Engine.IO payloads with one that splits the text at each separator first and then
 * reads the pieces. Also: packets lie in the input, their number is bounded, a packet without base64 is the same
 * when written again, and a payload of one packet equals the packet of a frame.
 *
 * Input: a payload.
 */
#include "fuzz.h"
#include "socketio/codec/engineio.h"

#include <string.h>

/* Finds the piece with this number. Returns false if there is none. */
static bool piece_at(struct slice text, size_t number, struct slice *piece)
{
    size_t start = 0, found = 0;
    for (size_t i = 0; i <= text.len; i++) {
        if (i < text.len && text.data[i] != ENGINEIO_SEPARATOR)
            continue;
        *piece = (struct slice){text.data + start, i - start};
        if (found++ == number)
            return true;
        start = i + 1;
    }
    return false;
}

static bool is_base64_text(struct slice text)
{
    static const char ALPHABET[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\r\n";
    for (size_t i = 0; i < text.len; i++)
        if (!text.data[i] || !strchr(ALPHABET, text.data[i]))
            return false;
    return true;
}

static void check_binary(struct slice piece, const struct engineio_packet *packet)
{
    fuzz_require(packet->type == ENGINEIO_MESSAGE, "binary packets are messages");
    fuzz_require(is_base64_text(slice_after(piece, 1)) || piece.len == 1, "base64 is base64");
    fuzz_require(packet->len <= (piece.len - 1) * 3 / 4, "base64 shrinks");
}

static void check_text(struct slice piece, const struct engineio_packet *packet)
{
    fuzz_require(piece.len > 0 && piece.data[0] == '0' + (int)packet->type,
                 "the type is the digit");
    fuzz_require(slice_equal(slice_after(piece, 1), (struct slice){packet->data, packet->len}) ||
                     (piece.len == 1 && packet->len == 0),
                 "the data is what follows it");
}

static void check_packet(struct slice text, size_t number, const char *copy,
                         const struct engineio_packet *packet)
{
    struct slice piece;
    fuzz_require(piece_at(text, number, &piece), "a packet is a piece");
    fuzz_require(packet->data >= copy && packet->data + packet->len <= copy + text.len,
                 "packets lie in the input");
    if (packet->binary)
        check_binary(piece, packet);
    else
        check_text(piece, packet);
}

static bool may_be_refused(struct slice text, size_t number)
{
    struct slice piece;
    if (number >= ENGINEIO_PACKETS_MAX || !piece_at(text, number, &piece) || piece.len == 0)
        return true;
    return piece.data[0] < '0' || piece.data[0] > '6';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = {(const char *)data, size};
    struct engineio_payload payload;
    struct engineio_packet packet;
    struct slice rest;
    enum engineio_next next;
    size_t count = 0;
    char *copy = fuzz_copy(data, size);
    engineio_payload_start(&payload, copy, size);
    while ((next = engineio_payload_next(&payload, &packet)) == ENGINEIO_PACKET)
        check_packet(text, count++, copy, &packet);
    fuzz_require(count <= ENGINEIO_PACKETS_MAX, "packets are bounded");
    if (next == ENGINEIO_BAD)
        fuzz_require(may_be_refused(text, count), "what is refused is no packet");
    else
        fuzz_require(!piece_at(text, count, &rest), "all was read");
    fuzz_require(engineio_payload_next(&payload, &packet) == ENGINEIO_END, "an end is final");
    free(copy);
    return 0;
}
