/*
 * Frames between gateways and aggregators, and the bodies of their calls and answers. What is accepted has only one form:
 * encoding what was decoded gives the same bytes.
 *
 * Input: one byte, then the bytes to read. The byte is 0 for a frame; else it is an operation, twice, plus one for its
 * arguments and plus two for its outcome.
 */
#include "aggregate/aggregate_frame.h"
#include "fuzz.h"
#include "store/aggregate/aggregate_codec.h"

static void check_bytes(struct buffer *again, struct slice bytes)
{
    fuzz_require(slice_equal(buffer_slice(again), bytes), "what is accepted has one form");
    buffer_free(again);
}

static void check_frame(struct slice bytes)
{
    struct aggregate_frame frame;
    struct buffer again = BUFFER_INIT;
    if (!aggregate_frame_read(bytes, &frame))
        return;
    fuzz_require(frame.kind < AGGREGATE_KIND_COUNT && frame.operation < AGGREGATE_OPERATION_COUNT &&
                     frame.notice < AGGREGATE_NOTICE_COUNT,
                 "a frame is within its bounds");
    aggregate_frame_write(&again, &frame);
    check_bytes(&again, bytes);
}

static void check_arguments(enum aggregate_operation operation, struct slice bytes)
{
    union aggregate_arguments arguments;
    struct wire_memory memory = {0};
    struct buffer again = BUFFER_INIT;
    if (aggregate_codec_read_arguments(bytes, operation, &arguments, &memory)) {
        aggregate_codec_write_arguments(&again, operation, &arguments);
        check_bytes(&again, bytes);
    }
    fuzz_require(memory.bytes <= AGGREGATE_MEMORY_MAX, "memory is bounded");
    wire_memory_free(&memory);
}

static void check_outcome(enum aggregate_operation operation, struct slice bytes)
{
    union aggregate_outcome outcome;
    struct wire_memory memory = {0};
    struct buffer again = BUFFER_INIT;
    if (aggregate_codec_read_outcome(bytes, operation, &outcome, &memory)) {
        aggregate_codec_write_outcome(&again, operation, &outcome);
        check_bytes(&again, bytes);
    }
    wire_memory_free(&memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct slice bytes = {(const char *)data + 1, size - 1};
    enum aggregate_operation operation = (data[0] - 1) / 2 % AGGREGATE_OPERATION_COUNT;
    if (data[0] == 0)
        check_frame(bytes);
    else if (!aggregate_codec_has(operation))
        return 0;
    else if (data[0] % 2)
        check_arguments(operation, bytes);
    else
        check_outcome(operation, bytes);
    return 0;
}
