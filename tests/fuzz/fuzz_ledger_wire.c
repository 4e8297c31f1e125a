/*
 * Frames between a gateway and its ledger. An accepted frame has only one form: encoding what was decoded
 * gives the same bytes. An accepted request is within the bounds of the port.
 *
 * Input: one byte, then the frame. The byte is 0 for a request, else the operation (plus one) of an answer.
 */
#include "fuzz.h"
#include "ledger/remote/ledger_wire.h"

static struct clock clock_now;
static struct ledger_client client = {.clock = &clock_now};

static void check_bytes(struct buffer *again, struct slice frame)
{
    fuzz_require(slice_equal(buffer_slice(again), frame), "an accepted frame has one form");
    buffer_free(again);
}

static void check_bounds(const struct ledger_request_input *input)
{
    fuzz_require(input->user.len <= LEDGER_ID_BYTES_MAX, "an id is short enough");
    fuzz_require(input->text.len <= LEDGER_BODY_BYTES_MAX, "a text is short enough");
    fuzz_require(input->limit <= LEDGER_PAGE_MAX, "a page is small enough");
    for (size_t i = 0; i < input->id_count; i++)
        fuzz_require(input->ids[i].len > 0 && input->ids[i].len <= LEDGER_ID_BYTES_MAX,
                     "an id in a list has a valid length");
}

static void check_request(struct slice frame)
{
    struct buffer again = BUFFER_INIT;
    struct ledger_wire_head head;
    struct slice body;
    if (!ledger_wire_decode_request_head(frame, &head, &body))
        return;
    struct ledger_request *request = ledger_request_make(&client, head.operation, NULL);
    request->wall_ms = head.wall_ms;
    if (ledger_wire_decode_input(request, body)) {
        check_bounds(&request->input);
        fuzz_require(head.operation != LEDGER_CALL_APPEND || request->input.call,
                     "a call append has a call");
        ledger_wire_encode_request(&again, head.id, request);
        check_bytes(&again, frame);
    }
    ledger_request_free(request);
}

static void check_answer(enum ledger_operation operation, struct slice frame)
{
    struct buffer again = BUFFER_INIT;
    struct ledger_wire_head head;
    struct slice body;
    if (!ledger_wire_decode_answer_head(frame, &head, &body))
        return;
    struct ledger_request *request = ledger_request_make(&client, operation, NULL);
    request->input.id_count = 1; /* as in the request */
    request->input.limit = LEDGER_PAGE_MAX;
    if (ledger_wire_decode_outcome(request, head.status, body)) {
        ledger_wire_encode_answer(&again, head.id, request);
        check_bytes(&again, frame);
    }
    ledger_request_free(request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct slice frame = {(const char *)data + 1, size - 1};
    if (data[0] == 0)
        check_request(frame);
    else
        check_answer((data[0] - 1) % LEDGER_OPERATION_COUNT, frame);
    return 0;
}
