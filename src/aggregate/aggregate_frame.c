#include "aggregate/aggregate_frame.h"

#include "peer/wire.h"

static void pass_hello(struct wire *wire, struct aggregate_frame *frame)
{
    wire_number(wire, &frame->version, UINT64_MAX);
    wire_text(wire, &frame->gateway_id, 1, AGGREGATE_ID_BYTES_MAX);
    wire_text(wire, &frame->instance, 1, AGGREGATE_ID_BYTES_MAX);
    wire_text(wire, &frame->process, 0, AGGREGATE_ID_BYTES_MAX);
    for (size_t i = 0; i < AGGREGATE_TERM_COUNT; i++)
        wire_signed(wire, &frame->terms.values[i]);
}

static void pass_welcome(struct wire *wire, struct aggregate_frame *frame)
{
    wire_number(wire, &frame->version, UINT64_MAX);
    wire_bool(wire, &frame->is_available);
}

static void pass_refusal(struct wire *wire, struct aggregate_frame *frame)
{
    wire_text(wire, &frame->reason, 1, AGGREGATE_REASON_BYTES_MAX);
}

static void pass_call_frame(struct wire *wire, struct aggregate_frame *frame)
{
    wire_number(wire, &frame->id, UINT64_MAX);
    wire_choice(wire, &frame->operation, AGGREGATE_OPERATION_COUNT);
    wire_signed(wire, &frame->sent_ms);
    wire_rest(wire, &frame->body);
}

static void pass_answer(struct wire *wire, struct aggregate_frame *frame)
{
    wire_number(wire, &frame->id, UINT64_MAX);
    wire_rest(wire, &frame->body);
}

static void pass_undone(struct wire *wire, struct aggregate_frame *frame)
{
    wire_number(wire, &frame->id, UINT64_MAX);
}

static void pass_notice(struct wire *wire, struct aggregate_frame *frame)
{
    wire_choice(wire, &frame->notice, AGGREGATE_NOTICE_COUNT);
    wire_rest(wire, &frame->body);
}

static void pass_ping(struct wire *wire, struct aggregate_frame *frame)
{
    wire_signed(wire, &frame->sent_ms);
}

static void pass_nothing(struct wire *wire, struct aggregate_frame *frame)
{
    (void)wire;
    (void)frame;
}

static void pass_aggregate_frame(struct wire *wire, struct aggregate_frame *frame)
{
    static void (*const pass[])(struct wire *, struct aggregate_frame *) = {
        [AGGREGATE_HELLO] = pass_hello,     [AGGREGATE_WELCOME] = pass_welcome,
        [AGGREGATE_REFUSAL] = pass_refusal, [AGGREGATE_CALL] = pass_call_frame,
        [AGGREGATE_ANSWER] = pass_answer,   [AGGREGATE_UNDONE] = pass_undone,
        [AGGREGATE_NOTICE] = pass_notice,   [AGGREGATE_PING] = pass_ping,
        [AGGREGATE_PONG] = pass_nothing,
    };
    unsigned kind = frame->kind;
    wire_choice(wire, &kind, AGGREGATE_KIND_COUNT);
    frame->kind = kind;
    if (!wire->failed)
        pass[kind](wire, frame);
}

void aggregate_frame_write(struct buffer *out, const struct aggregate_frame *frame)
{
    struct wire wire = wire_writing(out);
    struct aggregate_frame copy = *frame;
    pass_aggregate_frame(&wire, &copy);
}

bool aggregate_frame_read(struct slice in, struct aggregate_frame *frame)
{
    struct wire wire = wire_reading(in, NULL, NULL);
    *frame = (struct aggregate_frame){0};
    pass_aggregate_frame(&wire, frame);
    return wire_end(&wire);
}

const char *aggregate_operation_name(enum aggregate_operation operation)
{
    static const char *const names[] = {
#define AGGREGATE_OPERATION_NAME(id, name) [AGGREGATE_##id] = name,
        AGGREGATE_OPERATIONS(AGGREGATE_OPERATION_NAME)
#undef AGGREGATE_OPERATION_NAME
    };
    return operation < AGGREGATE_OPERATION_COUNT ? names[operation] : "unknown";
}

const char *aggregate_term_name(enum aggregate_term term)
{
    static const char *const names[] = {
        [AGGREGATE_LEASE_WINDOW_MS] = "presence.expiry_window_seconds",
        [AGGREGATE_OFFLINE_GRACE_MS] = "presence.offline_grace_seconds",
        [AGGREGATE_TYPING_TTL_MS] = "typing.ttl_seconds",
        [AGGREGATE_TYPING_RATE] = "typing.rate_per_second",
        [AGGREGATE_RING_TIMEOUT_MS] = "call.ring_timeout_seconds",
        [AGGREGATE_RECONNECT_GRACE_MS] = "call.reconnect_grace_seconds",
        [AGGREGATE_RECOVERY_MS] = "socketio.recovery_seconds",
    };
    return names[term];
}
