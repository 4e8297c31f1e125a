/*
 * Checks the reader of what Socket.IO adapters publish on Redis. Properties:
 *
 *   - the fields of an event are one JSON object that jansson accepts, with `event` first, and can be carried by a message;
 *   - rooms are within their bounds, and none is empty;
 *   - a refusal has a reason;
 *   - a message that is not for us (ignored) has no fields.
 *
 * Input: one byte that chooses the channel, and the message.
 */
#include "fuzz.h"
#include "fuzz_json_oracle.h"
#include "socketio/codec/adapter_packet.h"
#include "text/json.h"

static void check_rooms(const struct adapter_rooms *rooms)
{
    fuzz_require(rooms->count <= ADAPTER_ROOMS_MAX, "rooms are bounded");
    fuzz_require(rooms->count == 0 || rooms->are_named, "a room is named");
    for (size_t i = 0; i < rooms->count; i++)
        fuzz_require(rooms->names[i].len > 0 && rooms->names[i].len <= ADAPTER_ROOM_BYTES_MAX,
                     "a room has a name");
}

static void check_fields(struct slice fields)
{
    fuzz_require(fuzz_json_judge(fields) != FUZZ_JSON_REFUSED, "jansson accepts the fields");
    fuzz_require(slice_starts_with(fields, SLICE("{\"event\":\"")), "the event's name is first");
    fuzz_require(json_can_be_wrapped(fields), "a message can carry them");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buffer json = BUFFER_INIT;
    struct adapter_packet packet;
    const char *problem = NULL;
    if (size == 0)
        return 0;
    struct slice message = {(const char *)data + 1, size - 1};
    bool is_request = data[0] & 1;
    bool is_read = is_request ? adapter_request_read(message, &json, &packet, &problem)
                              : adapter_packet_read(message, &json, &packet, &problem);
    if (is_read) {
        check_rooms(&packet.rooms);
        check_rooms(&packet.except);
        fuzz_require(packet.act == ADAPTER_EMIT || !packet.fields.data, "only an event has fields");
        if (packet.act == ADAPTER_EMIT)
            check_fields(packet.fields);
    } else {
        fuzz_require(problem && problem[0], "a refusal has a reason");
    }
    buffer_free(&json);
    return 0;
}
