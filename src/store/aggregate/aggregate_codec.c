#include "store/aggregate/aggregate_codec.h"

#include "store/aggregate/aggregate_codec_internal.h"

/* How an operation's arguments and outcome are passed. */
struct aggregate_shape {
    void (*pass_arguments)(struct wire *wire, union aggregate_arguments *arguments);
    void (*pass_outcome)(struct wire *wire, union aggregate_outcome *outcome);
    bool writes;
};

static const struct aggregate_shape SHAPES[AGGREGATE_OPERATION_COUNT] = {
    [AGGREGATE_STATE_CLAIM] = {aggregate_pass_put, aggregate_pass_no_outcome, true},
    [AGGREGATE_STATE_PUT] = {aggregate_pass_put, aggregate_pass_no_outcome, true},
    [AGGREGATE_STATE_RELEASE] = {aggregate_pass_no_arguments, aggregate_pass_no_outcome, true},
    [AGGREGATE_STATE_GONE] = {aggregate_pass_process, aggregate_pass_no_outcome, true},
    [AGGREGATE_STATE_UNCLAIM] = {aggregate_pass_no_arguments, aggregate_pass_no_outcome, true},
    [AGGREGATE_STATE_OPEN] = {aggregate_pass_open, aggregate_pass_transition, true},
    [AGGREGATE_STATE_RENEW] = {aggregate_pass_renew, aggregate_pass_renewals, true},
    [AGGREGATE_STATE_SET_IDLE] = {aggregate_pass_subject, aggregate_pass_transition, true},
    [AGGREGATE_STATE_CLOSE] = {aggregate_pass_subject, aggregate_pass_transition, true},
    [AGGREGATE_STATE_SETTLE] = {aggregate_pass_settle, aggregate_pass_transition, true},
    [AGGREGATE_STATE_READ] = {aggregate_pass_users, aggregate_pass_presences, false},
    [AGGREGATE_STATE_SET_CALL] = {aggregate_pass_subject, aggregate_pass_transition, true},
    [AGGREGATE_STATE_ROUTES] = {aggregate_pass_users, aggregate_pass_routes, false},
    [AGGREGATE_STATE_LEASES] = {aggregate_pass_subject, aggregate_pass_leases, false},
    [AGGREGATE_STATE_FIND] = {aggregate_pass_conn_id, aggregate_pass_leases, false},
    [AGGREGATE_STATE_HISTORY] = {aggregate_pass_subject, aggregate_pass_history, false},
    [AGGREGATE_STATE_REAP] = {aggregate_pass_max, aggregate_pass_transitions, true},
    [AGGREGATE_STATE_FORGET] = {aggregate_pass_subject, aggregate_pass_only_status, true},
    [AGGREGATE_STATE_GATEWAYS] = {aggregate_pass_no_arguments, aggregate_pass_gateways, false},
    [AGGREGATE_STATE_ONLINE] = {aggregate_pass_page, aggregate_pass_online, false},
    [AGGREGATE_STATE_COUNT_ONLINE] = {aggregate_pass_no_arguments, aggregate_pass_count, false},
    [AGGREGATE_GRAPH_LOOKUP] = {aggregate_pass_subject, aggregate_pass_lookup, false},
    [AGGREGATE_GRAPH_PUT] = {aggregate_pass_graph_put, aggregate_pass_no_outcome, true},
    [AGGREGATE_GRAPH_DROP] = {aggregate_pass_subject, aggregate_pass_no_outcome, true},
    [AGGREGATE_GRAPH_SET_ONLINE] = {aggregate_pass_graph_online, aggregate_pass_no_outcome, true},
    [AGGREGATE_TYPING_START] = {aggregate_pass_typing, aggregate_pass_typing_start, true},
    [AGGREGATE_TYPING_STOP] = {aggregate_pass_typing, aggregate_pass_typing_stop, true},
    [AGGREGATE_TYPING_READ] = {aggregate_pass_typing, aggregate_pass_typing_users, false},
    [AGGREGATE_CALL_REQUEST] = {aggregate_pass_call_arguments, aggregate_pass_call, true},
    [AGGREGATE_CALL_RING_UNHEARD] = {aggregate_pass_call_arguments, aggregate_pass_call, true},
    [AGGREGATE_CALL_DECLARE] = {aggregate_pass_call_arguments, aggregate_pass_call, true},
    [AGGREGATE_CALL_ANSWER] = {aggregate_pass_call_arguments, aggregate_pass_call, true},
    [AGGREGATE_CALL_REJECT] = {aggregate_pass_call_arguments, aggregate_pass_call, true},
    [AGGREGATE_CALL_END] = {aggregate_pass_call_arguments, aggregate_pass_call, true},
    [AGGREGATE_CALL_GET] = {aggregate_pass_call_arguments, aggregate_pass_call, false},
    [AGGREGATE_CALL_ATTACH] = {aggregate_pass_call_arguments, aggregate_pass_call, true},
    [AGGREGATE_CALL_DETACH] = {aggregate_pass_call_arguments, aggregate_pass_call, true},
    [AGGREGATE_CALL_RENEW] = {aggregate_pass_devices, aggregate_pass_no_outcome, true},
    [AGGREGATE_CALL_REAP] = {aggregate_pass_max, aggregate_pass_calls, true},
    [AGGREGATE_BUDGET_TAKE] = {aggregate_pass_claim, aggregate_pass_budget, true},
    [AGGREGATE_RECOVERY_PARK] = {aggregate_pass_park, aggregate_pass_no_outcome, true},
    [AGGREGATE_RECOVERY_APPEND] = {aggregate_pass_append, aggregate_pass_only_status, true},
    [AGGREGATE_RECOVERY_TAKE] = {aggregate_pass_take, aggregate_pass_taken, true},
};

bool aggregate_codec_has(enum aggregate_operation operation)
{
    return SHAPES[operation].pass_arguments != NULL;
}

bool aggregate_codec_writes(enum aggregate_operation operation)
{
    return SHAPES[operation].writes;
}

/* Writing does not change the value (peer/wire.h), but the functions are the same for both directions. */
void aggregate_codec_write_arguments(struct buffer *out, enum aggregate_operation operation,
                                     const union aggregate_arguments *arguments)
{
    struct wire wire = wire_writing(out);
    union aggregate_arguments copy = *arguments;
    SHAPES[operation].pass_arguments(&wire, &copy);
}

void aggregate_codec_write_outcome(struct buffer *out, enum aggregate_operation operation,
                                   const union aggregate_outcome *outcome)
{
    struct wire wire = wire_writing(out);
    union aggregate_outcome copy = *outcome;
    SHAPES[operation].pass_outcome(&wire, &copy);
}

bool aggregate_codec_read_arguments(struct slice body, enum aggregate_operation operation,
                                    union aggregate_arguments *arguments,
                                    struct wire_memory *memory)
{
    *memory = (struct wire_memory){.bytes_max = AGGREGATE_MEMORY_MAX};
    memset(arguments, 0, sizeof(*arguments));
    struct wire wire = wire_reading(body, wire_memory_alloc, memory);
    SHAPES[operation].pass_arguments(&wire, arguments);
    return wire_end(&wire);
}

bool aggregate_codec_read_outcome(struct slice body, enum aggregate_operation operation,
                                  union aggregate_outcome *outcome, struct wire_memory *memory)
{
    *memory = (struct wire_memory){.bytes_max = AGGREGATE_MEMORY_MAX};
    memset(outcome, 0, sizeof(*outcome));
    struct wire wire = wire_reading(body, wire_memory_alloc, memory);
    SHAPES[operation].pass_outcome(&wire, outcome);
    return wire_end(&wire);
}

/* ---- shared parts ---- */

void aggregate_pass_list(struct wire *wire, const void **items, size_t *count, size_t item_bytes,
                         size_t count_max, aggregate_pass_item pass)
{
    if (wire_list(wire, items, count, item_bytes, count_max))
        for (size_t i = 0; i < *count; i++)
            pass(wire, (char *)*items + i * item_bytes);
}

void aggregate_pass_status(struct wire *wire, enum state_status *status)
{
    unsigned number = *status;
    wire_choice(wire, &number, STATE_UNKNOWN + 1);
    *status = number;
}

void aggregate_codec_pass_claimed(struct wire *wire, struct aggregate_claimed *claimed)
{
    enum { CLAIMS = 4 };
    wire_choice(wire, &claimed->result, CLAIMS);
    wire_text(wire, &claimed->since, 0, AGGREGATE_ID_BYTES_MAX);
}

void aggregate_codec_pass_registered(struct wire *wire, struct aggregate_registered *registered)
{
    wire_signed(wire, &registered->put_ms);
    wire_bool(wire, &registered->made);
}
