/* Requests and declarations, in the three steps that redis_call.h explains. */
#include "base/container.h"
#include "base/id_list.h"
#include "store/redis/redis_call_internal.h"

enum { CALLER, CALLEE };

static void prepare_call(struct call_operation *operation);
static void take_next_call_claim(struct call_operation *operation);

/* ---- refusals ---- */

/* Removes the prepared record and the claims. Where Redis is out of reach, they time out. */
static void undo_call_request(struct call_operation *operation)
{
    struct redis_call_backend *calls = operation->calls;
    if (!operation->prepared || calls->is_freed)
        return;
    redis_calls_begin(calls);
    redis_call_run(calls, "abandon", operation->id, REDIS_ARGS(call_claim_nonce(&operation->claim)),
                   redis_calls_on_ignored_reply, calls);
    for (size_t i = 0; i < operation->side_count; i++) {
        redis_calls_begin(calls);
        redis_call_run_claim(calls, i == CALLER ? operation->user : operation->callee,
                             REDIS_ARGS(SLICE("release"), call_claim_value(&operation->claim)),
                             redis_calls_on_ignored_reply, calls);
    }
}

static void refuse_call_request(struct call_operation *operation, enum call_result result,
                                const struct call *call)
{
    undo_call_request(operation);
    call_operation_finish(operation, result, call);
}

/* ---- a claim is in the way ---- */

/* The crossing call may have ended in the meantime; whether the caller is free is then unknown. */
static void on_crossing_call_answered(void *arg, const struct resp_value *reply)
{
    struct call_operation *operation = arg;
    struct call call;
    if (slice_is(redis_call_reply_result(reply), "done") && redis_call_parse_reply(reply, &call))
        call_operation_finish(operation, CALL_GLARE, &call);
    else
        call_operation_finish(operation, reply ? CALL_UNAVAILABLE : CALL_UNKNOWN, NULL);
}

/* The claim in the way belongs to a live call: answers a call that crosses this request, and refuses it otherwise. */
static void handle_live_call(struct call_operation *operation, size_t side, const struct call *call)
{
    bool is_ringing = call->state == CALL_RINGING;
    bool is_crossing = is_ringing && operation->callee.len > 0 &&
                       slice_equal(call->callee.user_id, operation->user) &&
                       slice_equal(call->caller.user_id, operation->callee);
    bool is_repeated = is_ringing && slice_equal(call->id, operation->id) &&
                       slice_equal(call->caller.user_id, operation->user) &&
                       slice_equal(call->caller.device_id, operation->device) &&
                       slice_equal(call->callee.user_id, operation->callee);
    if (is_crossing) {
        undo_call_request(operation);
        redis_call_run(operation->calls, "answer", call_claim_call_id(&operation->other_claim),
                       REDIS_ARGS(call_claim_nonce(&operation->other_claim), operation->user,
                                  operation->device,
                                  (struct slice){operation->conn, ULID_TEXT_LEN}),
                       on_crossing_call_answered, operation);
    } else if (side != CALLER) {
        refuse_call_request(operation, CALL_CALLEE_BUSY, NULL);
    } else {
        refuse_call_request(operation, is_repeated ? CALL_REPEATED : CALL_CALLER_BUSY, call);
    }
}

static void check_other_claim(struct call_operation *operation);

static void on_claim_check_pause_over(struct wheel_timer *timer)
{
    struct call_operation *operation = CONTAINER_OF(timer, struct call_operation, pause);
    list_remove(&operation->place);
    check_other_claim(operation);
}

/* The other request may still be in preparation and needs a moment, so later checks wait a little. */
static void check_other_claim_again(struct call_operation *operation)
{
    struct loop *loop = operation->calls->options.loop;
    if (++operation->checks >= REDIS_CALL_CHECKS_MAX) {
        refuse_call_request(operation, CALL_UNAVAILABLE, NULL);
    } else if (operation->checks <= REDIS_CALL_CHECKS_AT_ONCE) {
        check_other_claim(operation);
    } else {
        list_append(&operation->calls->paused, &operation->place);
        operation->pause = (struct wheel_timer){.fire = on_claim_check_pause_over};
        loop_set_timer(loop, &operation->pause, loop->clock.now_ms + REDIS_CALL_CHECK_PAUSE_MS);
    }
}

static void on_other_claim_checked(void *arg, const struct resp_value *reply)
{
    struct call_operation *operation = arg;
    struct slice result = operation->calls->is_freed ? SLICE_NONE : redis_call_reply_result(reply);
    size_t side = operation->prepared ? operation->order[operation->next_side] : CALLER;
    struct call call;
    if (slice_is(result, "none")) {
        operation->dead[side] = operation->other_claim;
        (operation->prepared ? take_next_call_claim : prepare_call)(operation);
    } else if (slice_is(result, "preparing")) {
        check_other_claim_again(operation);
    } else if (slice_is(result, "done") && redis_call_parse_reply(reply, &call)) {
        handle_live_call(operation, side, &call);
    } else {
        refuse_call_request(operation, CALL_UNAVAILABLE, NULL);
    }
}

static void check_other_claim(struct call_operation *operation)
{
    redis_call_run(operation->calls, "check", call_claim_call_id(&operation->other_claim),
                   REDIS_ARGS(call_claim_nonce(&operation->other_claim)), on_other_claim_checked,
                   operation);
}

void redis_call_end_paused(struct redis_call_backend *calls)
{
    while (!list_empty(&calls->paused)) {
        struct call_operation *operation =
            CONTAINER_OF(calls->paused.next, struct call_operation, place);
        loop_cancel_timer(calls->options.loop, &operation->pause);
        list_remove(&operation->place);
        refuse_call_request(operation, CALL_UNAVAILABLE, NULL);
    }
}

/* ---- step 3: commit ---- */

static void on_call_committed(void *arg, const struct resp_value *reply)
{
    struct call_operation *operation = arg;
    struct call call;
    if (slice_is(redis_call_reply_result(reply), "done") && redis_call_parse_reply(reply, &call))
        call_operation_finish(operation, CALL_DONE, &call);
    else
        refuse_call_request(operation, reply ? CALL_UNAVAILABLE : CALL_UNKNOWN, NULL);
}

/* ---- step 2: claim ---- */

static void on_call_claim_taken(void *arg, const struct resp_value *reply)
{
    struct call_operation *operation = arg;
    if (!redis_call_parse_claim(reply, &operation->other_claim) || operation->calls->is_freed) {
        refuse_call_request(operation, CALL_UNAVAILABLE, NULL);
    } else if (operation->other_claim.len > 0) {
        check_other_claim_again(operation);
    } else {
        operation->next_side++;
        take_next_call_claim(operation);
    }
}

static void take_next_call_claim(struct call_operation *operation)
{
    if (operation->next_side == operation->side_count) {
        redis_call_run(operation->calls, "commit", operation->id,
                       REDIS_ARGS(call_claim_nonce(&operation->claim)), on_call_committed,
                       operation);
        return;
    }
    size_t side = operation->order[operation->next_side];
    struct redis_store_number ttl;
    redis_call_run_claim(
        operation->calls, side == CALLER ? operation->user : operation->callee,
        REDIS_ARGS(SLICE("take"), call_claim_value(&operation->claim),
                   call_claim_value(&operation->dead[side]),
                   redis_store_number(&ttl, redis_call_claim_ttl_ms(operation->calls))),
        on_call_claim_taken, operation);
}

/* ---- step 1: prepare ---- */

static void on_call_prepared(void *arg, const struct resp_value *reply)
{
    struct call_operation *operation = arg;
    struct slice result = redis_call_reply_result(reply);
    operation->prepared = slice_is(result, "prepared");
    if (operation->prepared && !operation->calls->is_freed)
        take_next_call_claim(operation);
    else
        refuse_call_request(operation, slice_is(result, "taken") ? CALL_ID_TAKEN : CALL_UNAVAILABLE,
                            NULL);
}

static void prepare_call(struct call_operation *operation)
{
    redis_call_run(operation->calls, "prepare", operation->id,
                   REDIS_ARGS(call_claim_nonce(&operation->claim), operation->user,
                              operation->device, (struct slice){operation->conn, ULID_TEXT_LEN},
                              operation->callee.data ? operation->callee : SLICE(""),
                              operation->unheard ? SLICE("1") : SLICE("")),
                   on_call_prepared, operation);
}

/* ---- before them: is the caller free? ---- */

static void on_caller_claim_read(void *arg, const struct resp_value *reply)
{
    struct call_operation *operation = arg;
    if (operation->calls->is_freed || !redis_call_parse_claim(reply, &operation->other_claim))
        refuse_call_request(operation, CALL_UNAVAILABLE, NULL);
    else if (operation->other_claim.len)
        check_other_claim(operation);
    else
        prepare_call(operation);
}

void redis_call_request(struct call_operation *operation)
{
    struct ulid nonce = ulid_make(0, operation->calls->options.random);
    ulid_write(operation->claim.bytes, &nonce);
    memcpy(operation->claim.bytes + ULID_TEXT_LEN, operation->id.data, operation->id.len);
    operation->claim.len = ULID_TEXT_LEN + operation->id.len;
    operation->side_count = operation->callee.data && !operation->unheard ? CALL_SIDES : 1;
    bool callee_first = operation->side_count == CALL_SIDES &&
                        id_list_compare(operation->callee, operation->user) < 0;
    operation->order[0] = callee_first ? CALLEE : CALLER;
    operation->order[1] = callee_first ? CALLER : CALLEE;
    redis_call_run_claim(operation->calls, operation->user, REDIS_ARGS(SLICE("read"), SLICE("")),
                         on_caller_claim_read, operation);
}
