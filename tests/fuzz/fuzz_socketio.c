/*
 * Compares the reader of Socket.IO packets with jansson and a second reader of the head. Properties:
 *
 *   - an accepted packet has a type, a head and JSON that jansson accepts, of the kind its type requires; or it is
 *     an event that is refused because its JSON exceeds our bounds;
 *   - slices lie in the text; ids are digits; ids, attachments and namespaces are bounded;
 *   - no event with a reserved name is accepted;
 *   - the answer to an accepted event is a packet: an acknowledgement with its id, or an event.
 *
 * Input: the text of an Engine.IO message.
 */
#include "fuzz.h"
#include "fuzz_json_oracle.h"
#include "socketio/codec/socketio.h"
#include "socketio/codec/socketio_dialect.h"

#include <string.h>

static const struct dialect *const dialect = &DIALECT_TABLE_SOCKETIO;

static bool lies_in(struct slice part, const char *text, size_t size)
{
    return !part.data || slice_is(part, "/") ||
           (part.data >= text && part.data + part.len <= text + size);
}

static struct slice data_of(struct slice text)
{
    size_t at = 0;
    while (at < text.len && text.data[at] != '{' && text.data[at] != '[' && text.data[at] != '"' &&
           text.data[at] != ',')
        at++;
    return slice_after(text, at);
}

static void check_bounds(const struct socketio_packet *packet, const char *text, size_t size)
{
    fuzz_require(packet->type < SOCKETIO_TYPE_COUNT, "the type is known");
    fuzz_require(packet->attachments <= SOCKETIO_ATTACHMENTS_MAX, "attachments are bounded");
    fuzz_require(packet->name_space.len <= SOCKETIO_NAMESPACE_BYTES_MAX, "namespaces are bounded");
    fuzz_require(packet->ack_id.len <= SOCKETIO_ACK_ID_DIGITS_MAX, "ids are bounded");
    for (size_t i = 0; i < packet->ack_id.len; i++)
        fuzz_require(packet->ack_id.data[i] >= '0' && packet->ack_id.data[i] <= '9',
                     "ids are digits");
    fuzz_require(lies_in(packet->name_space, text, size) && lies_in(packet->ack_id, text, size) &&
                     lies_in(packet->event, text, size) && lies_in(packet->argument, text, size),
                 "slices lie in the text");
}

static void check_event(const struct socketio_packet *packet)
{
    fuzz_require(!slice_is(packet->event, "connect") && !slice_is(packet->event, "disconnect") &&
                     !slice_is(packet->event, "disconnecting") &&
                     !slice_is(packet->event, "connect_error") &&
                     !slice_is(packet->event, "newListener") &&
                     !slice_is(packet->event, "removeListener"),
                 "reserved names are refused");
    fuzz_require(!packet->argument.data || fuzz_json_judge(packet->argument) != FUZZ_JSON_REFUSED,
                 "jansson accepts an argument");
}

/* In the main namespace the head has no comma, so the data begins at the first bracket. */
static void check_data(struct slice text, const struct socketio_packet *packet)
{
    struct slice data = data_of(text);
    if (socketio_is_main(packet) && data.len && data.data[0] != ',')
        fuzz_require(fuzz_json_judge(data) != FUZZ_JSON_REFUSED, "jansson accepts the data");
}

static void check_answer(const struct message *message)
{
    struct message ok = {.type = MESSAGE_OK, .id = message->id};
    struct buffer out = BUFFER_INIT;
    struct socketio_packet packet;
    const char *problem;
    dialect->encode(&ok, &out);
    fuzz_require(!out.failed && out.len > 1 && out.data[0] == '4', "an answer is a message");
    fuzz_require(socketio_parse(out.data + 1, out.len - 1, &packet, &problem), "and a packet");
    fuzz_require(packet.type == (message->id.data ? SOCKETIO_ACK : SOCKETIO_EVENT),
                 "an acknowledgement if one was requested");
    fuzz_require(!message->id.data || slice_equal(packet.ack_id, slice_after(message->id, 1)),
                 "with the client's id");
    buffer_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fields_scratch scratch;
    struct slice text = {(const char *)data, size};
    struct socketio_packet packet;
    struct message message;
    const char *problem = NULL;
    char *copy = fuzz_copy(data, size);
    if (!socketio_parse(copy, size, &packet, &problem)) {
        fuzz_require(problem != NULL, "a refusal has a reason");
        free(copy);
        return 0;
    }
    check_bounds(&packet, copy, size);
    if (!packet.unreadable)
        check_data(text, &packet);
    if (packet.type == SOCKETIO_EVENT)
        check_event(&packet);
    if (packet.type == SOCKETIO_EVENT || packet.type == SOCKETIO_BINARY_EVENT) {
        bool decoded = socketio_decode(&scratch, &packet, &message, &problem);
        fuzz_require(!decoded || message.type != MESSAGE_INVALID, "a command has a type");
        fuzz_require(packet.type == SOCKETIO_EVENT || !decoded, "binary events are refused");
        fuzz_require(!packet.unreadable || !decoded, "what was not read is no command");
        check_answer(&message);
    }
    free(copy);
    return 0;
}
