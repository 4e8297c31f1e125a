#include "store/aggregate/aggregate_forward.h"

#include "log/log.h"
#include "redis/protocol/redis_slot.h"

#include <stdlib.h>

/* One forwarded operation that waits for its answer. */
struct forwarded_call {
    struct aggregate_forwarded forwarded;
    aggregate_complete complete;
    char user[USER_ID_BYTES_MAX];
};

uint16_t aggregate_slot_of(struct slice id)
{
    return redis_slot(id);
}

static void complete_without_outcome(struct forwarded_call *call, enum state_status status)
{
    call->forwarded.status = status;
    if (call->complete)
        call->complete(&call->forwarded, NULL);
}

static void on_forwarded_answered(void *arg, enum aggregate_result result, struct slice body)
{
    struct forwarded_call *call = arg;
    enum aggregate_operation operation = call->forwarded.operation;
    bool may_be_done = result != AGGREGATE_REFUSED && aggregate_codec_writes(operation);
    struct wire_memory memory = {0};
    union aggregate_outcome outcome;
    bool is_read = result == AGGREGATE_DONE &&
                   aggregate_codec_read_outcome(body, operation, &outcome, &memory);
    if (result == AGGREGATE_DONE && !is_read)
        log_error("aggregator_answer_refused", "operation=%s", aggregate_operation_name(operation));
    if (!is_read)
        complete_without_outcome(call, may_be_done ? STATE_UNKNOWN : STATE_UNAVAILABLE);
    else if (call->complete)
        call->complete(&call->forwarded, &outcome);
    wire_memory_free(&memory);
    free(call);
}

/* Where a call goes: to a slot's aggregator, or to a given one. */
struct forward_target {
    bool is_slot;
    uint16_t slot;
    size_t aggregator;
};

static void forward_to_target(struct aggregate_client *client, struct forward_target target,
                              const union aggregate_arguments *arguments,
                              const struct forwarded_call *call)
{
    enum aggregate_operation operation = call->forwarded.operation;
    struct forwarded_call *kept = malloc(sizeof(*kept));
    struct buffer body = BUFFER_INIT;
    aggregate_codec_write_arguments(&body, operation, arguments);
    if (!kept || body.failed) {
        struct forwarded_call refused = *call;
        complete_without_outcome(&refused, STATE_UNAVAILABLE);
        free(kept);
    } else {
        size_t len = call->forwarded.user_id.len;
        *kept = *call;
        if (len)
            memcpy(kept->user, call->forwarded.user_id.data, len);
        kept->forwarded.user_id = (struct slice){kept->user, len};
        if (target.is_slot)
            aggregate_client_call(client, target.slot, operation, buffer_slice(&body),
                                  on_forwarded_answered, kept);
        else
            aggregate_client_call_at(client, target.aggregator, operation, buffer_slice(&body),
                                     on_forwarded_answered, kept);
    }
    buffer_free(&body);
}

void aggregate_forward(struct aggregate_client *client, struct slice slot_id,
                       enum aggregate_operation operation,
                       const union aggregate_arguments *arguments, struct slice user_id,
                       aggregate_complete complete, aggregate_any_done done, void *arg)
{
    struct forwarded_call call = {
        .forwarded = {operation, STATE_OK, slice_first(user_id, USER_ID_BYTES_MAX), done, arg},
        .complete = complete,
    };
    forward_to_target(client,
                      (struct forward_target){.is_slot = true, .slot = aggregate_slot_of(slot_id)},
                      arguments, &call);
}

void aggregate_forward_to(struct aggregate_client *client, size_t aggregator,
                          enum aggregate_operation operation,
                          const union aggregate_arguments *arguments, aggregate_complete complete,
                          aggregate_any_done done, void *arg)
{
    struct forwarded_call call = {
        .forwarded = {operation, STATE_OK, SLICE_NONE, done, arg},
        .complete = complete,
    };
    forward_to_target(client, (struct forward_target){.aggregator = aggregator}, arguments, &call);
}
