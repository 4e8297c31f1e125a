/*
 * Random operations of three users with three devices each, against a model that is too simple to be wrong: a
 * list of all calls, searched from end to end. Every answer must be the one that the model expects, and at the
 * end all calls have ended.
 */
#include "base/random.h"
#include "conformance/call_store_harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { STEPS = 6000, USERS = 3, DEVICES = 3, CALLS_MAX = STEPS + 1 };

static const char *const NAMES[USERS] = {"alice", "bob", "carol"};

struct model_party {
    int user; /* -1: none */
    int device;
    unsigned connection;
    bool attached;
    int64_t due_at_ms;
};

struct model_call {
    char id[32];
    enum call_state state;
    enum call_reason reason;
    struct model_party parties[2]; /* caller, callee */
    int64_t ring_until_ms;
    unsigned answers;
};

struct model {
    struct harness *harness;
    struct random random;
    struct model_call calls[CALLS_MAX];
    size_t count;
    int64_t now_ms;
    unsigned next_connection;
};

/* Returns the call that a user is in, or NULL; *side is 0 for the caller and 1 for the callee. */
static struct model_call *find_model_call(struct model *model, int user, int *side)
{
    for (size_t i = 0; i < model->count; i++)
        for (*side = 0; *side < 2; ++*side)
            if (model->calls[i].state != CALL_ENDED && model->calls[i].parties[*side].user == user)
                return &model->calls[i];
    return NULL;
}

static bool is_device_of(const struct model_party *party, int user, int device)
{
    return party->user == user && party->device == device;
}

static void attach_model_party(struct model *model, struct model_party *party, int device,
                               unsigned connection)
{
    party->device = device;
    party->connection = connection;
    party->attached = true;
    party->due_at_ms = model->now_ms + model->harness->backend->lease_window_ms;
}

static void end_model_call(struct model_call *call, enum call_reason reason)
{
    call->state = CALL_ENDED;
    call->reason = reason;
}

static void accept_model_call(struct model *model, struct model_call *call, int device,
                              unsigned connection)
{
    call->state = CALL_ACCEPTED;
    call->answers++;
    assert_int_equal(call->answers, 1);
    attach_model_party(model, &call->parties[1], device, connection);
}

static struct model_call *add_model_call(struct model *model, int caller, int callee, int device,
                                         unsigned connection)
{
    struct model_call *call = &model->calls[model->count];
    snprintf(call->id, sizeof(call->id), "call-%zu", model->count++);
    call->state = CALL_RINGING;
    call->parties[0].user = caller;
    call->parties[1] = (struct model_party){.user = callee, .device = -1};
    call->ring_until_ms = model->now_ms + model->harness->backend->ring_timeout_ms;
    attach_model_party(model, &call->parties[0], device, connection);
    return call;
}

/* ---- operations: each derives the expected result, runs the operation and updates the model ---- */

static void step_request(struct model *model, int user, int device)
{
    int other = (int)random_below(&model->random, USERS), side, other_side;
    if (other == user)
        return;
    unsigned connection = model->next_connection++;
    struct model_call *own = find_model_call(model, user, &side);
    struct model_call *theirs = find_model_call(model, other, &other_side);
    bool glare = own && own == theirs && side == 1 && own->state == CALL_RINGING;
    enum call_result expected = own      ? glare ? CALL_GLARE : CALL_CALLER_BUSY
                                : theirs ? CALL_CALLEE_BUSY
                                         : CALL_DONE;
    char id[32];
    snprintf(id, sizeof(id), "call-%zu", model->count);
    assert_int_equal(harness_request(model->harness, id,
                                     harness_device(NAMES[user], (unsigned)device, connection),
                                     NAMES[other]),
                     expected);
    if (expected == CALL_DONE)
        add_model_call(model, user, other, device, connection);
    else if (expected == CALL_GLARE)
        accept_model_call(model, own, device, connection);
}

static void step_declare(struct model *model, int user, int device)
{
    int side;
    char id[32];
    snprintf(id, sizeof(id), "call-%zu", model->count);
    unsigned connection = model->next_connection++;
    bool busy = find_model_call(model, user, &side) != NULL;
    assert_int_equal(harness_declare(model->harness, id,
                                     harness_device(NAMES[user], (unsigned)device, connection)),
                     busy ? CALL_CALLER_BUSY : CALL_DONE);
    if (!busy)
        add_model_call(model, user, -1, device, connection)->state = CALL_ACCEPTED;
}

static void step_answer(struct model *model, int user, int device)
{
    int side;
    struct model_call *call = find_model_call(model, user, &side);
    unsigned connection = model->next_connection++;
    enum call_result expected = CALL_DONE;
    if (!call)
        expected = CALL_NOT_FOUND;
    else if (call->state == CALL_ACCEPTED)
        expected = side == 1 && is_device_of(&call->parties[1], user, device) ? CALL_REPEATED
                                                                              : CALL_WRONG_STATE;
    else if (side == 0)
        expected = CALL_WRONG_PARTY;
    assert_int_equal(harness_answer(model->harness, call ? call->id : NULL,
                                    harness_device(NAMES[user], (unsigned)device, connection)),
                     expected);
    if (expected == CALL_DONE)
        accept_model_call(model, call, device, connection);
}

static void step_reject(struct model *model, int user, int device)
{
    (void)device;
    int side;
    struct model_call *call = find_model_call(model, user, &side);
    enum call_result expected = CALL_NOT_FOUND;
    if (call && call->state == CALL_ACCEPTED)
        expected = CALL_WRONG_STATE;
    else if (call)
        expected = side == 0 ? CALL_WRONG_PARTY : CALL_DONE;
    assert_int_equal(harness_reject(model->harness, call ? call->id : NULL, NAMES[user]), expected);
    if (expected == CALL_DONE)
        end_model_call(call, CALL_REASON_REJECTED);
}

static void step_end(struct model *model, int user, int device)
{
    (void)device;
    int side;
    struct model_call *call = find_model_call(model, user, &side);
    assert_int_equal(harness_end(model->harness, call ? call->id : NULL, NAMES[user]),
                     call ? CALL_DONE : CALL_NOT_FOUND);
    if (!call)
        return;
    end_model_call(call, call->state == CALL_ACCEPTED ? CALL_REASON_HANGUP
                         : side == 0                  ? CALL_REASON_CANCELLED
                                                      : CALL_REASON_REJECTED);
    assert_int_equal(model->harness->call.reason, call->reason);
}

static void step_detach(struct model *model, int user, int device)
{
    int side;
    struct model_call *call = find_model_call(model, user, &side);
    struct model_party *own = call ? &call->parties[side] : NULL;
    bool holds = own && own->attached && own->device == device;
    unsigned connection = holds ? own->connection : model->next_connection++;
    assert_int_equal(
        harness_detach(model->harness, harness_device(NAMES[user], (unsigned)device, connection)),
        holds ? CALL_DONE : CALL_NOT_FOUND);
    if (!holds)
        return;
    own->attached = false;
    own->due_at_ms = model->now_ms + model->harness->backend->reconnect_grace_ms;
}

static void step_attach(struct model *model, int user, int device)
{
    int side;
    struct model_call *call = find_model_call(model, user, &side);
    unsigned connection = model->next_connection++;
    enum call_result expected = CALL_NOT_FOUND;
    if (call && is_device_of(&call->parties[side], user, device))
        expected = CALL_DONE;
    else if (call)
        expected = call->state == CALL_RINGING && side == 1 ? CALL_RINGS : CALL_ELSEWHERE;
    assert_int_equal(
        harness_attach(model->harness, harness_device(NAMES[user], (unsigned)device, connection)),
        expected);
    if (expected == CALL_DONE)
        attach_model_party(model, &call->parties[side], device, connection);
}

static void step_renew(struct model *model, int user, int device)
{
    int side;
    struct model_call *call = find_model_call(model, user, &side);
    struct model_party *own = call ? &call->parties[side] : NULL;
    bool holds = own && is_device_of(own, user, device);
    unsigned connection = holds ? own->connection : model->next_connection++;
    assert_int_equal(
        harness_renew(model->harness, harness_device(NAMES[user], (unsigned)device, connection)),
        holds);
    if (holds)
        attach_model_party(model, own, device, connection);
}

/* Ends the model's call if it is due. Returns whether it was. */
static bool reap_model_call(struct model *model, struct model_call *call)
{
    bool lost = false;
    for (int side = 0; side < 2; side++) {
        const struct model_party *party = &call->parties[side];
        lost |= party->user >= 0 && party->device >= 0 && party->due_at_ms <= model->now_ms;
    }
    if (call->state == CALL_RINGING && call->ring_until_ms <= model->now_ms)
        end_model_call(call, CALL_REASON_TIMEOUT);
    else if (call->state != CALL_ENDED && lost)
        end_model_call(call, CALL_REASON_DISCONNECTED);
    else
        return false;
    return true;
}

/* Lets time pass and reaps: the store must end the same calls as the model. */
static void pass_and_reap(struct model *model, int64_t duration_ms)
{
    size_t ended = 0;
    harness_pass(model->harness, duration_ms);
    model->now_ms += duration_ms;
    harness_reap(model->harness, CALL_REAP_MAX);
    for (size_t i = 0; i < model->count; i++) {
        if (!reap_model_call(model, &model->calls[i]))
            continue;
        size_t at = 0;
        while (at < model->harness->ended_count &&
               !slice_is(model->harness->ended[at].id, model->calls[i].id))
            at++;
        assert_true(at < model->harness->ended_count);
        assert_int_equal(model->harness->ended[at].reason, model->calls[i].reason);
        ended++;
    }
    assert_int_equal(model->harness->ended_count, ended);
}

static void step_pass(struct model *model, int user, int device)
{
    (void)user;
    (void)device;
    const struct call_store_suite_backend *backend = model->harness->backend;
    bool is_long = random_below(&model->random, 8) == 0;
    int64_t most_ms = is_long ? backend->ring_timeout_ms * 2 : backend->reconnect_grace_ms;
    pass_and_reap(model, (int64_t)random_below(&model->random, (uint64_t)most_ms));
}

/* Every user is in the call that the model has for the user. */
static void compare_with_model(struct model *model)
{
    for (int user = 0; user < USERS; user++) {
        int side;
        struct model_call *call = find_model_call(model, user, &side);
        assert_int_equal(harness_get(model->harness, NULL, NAMES[user]),
                         call ? CALL_DONE : CALL_NOT_FOUND);
        if (!call)
            continue;
        assert_true(slice_is(model->harness->call.id, call->id));
        assert_int_equal(model->harness->call.state, call->state);
    }
}

static struct model the_model; /* too large for the stack */

void call_store_suite_operations_match_a_model(void **state)
{
    static void (*const OPERATIONS[])(struct model *, int, int) = {
        step_request, step_request, step_declare, step_answer, step_answer, step_reject, step_end,
        step_detach,  step_attach,  step_attach,  step_renew,  step_renew,  step_pass,   step_pass,
    };
    struct model *model = &the_model;
    *model = (struct model){.harness = *state, .next_connection = 1};
    random_init_seeded(&model->random, 20240229);
    for (int step = 0; step < STEPS; step++) {
        size_t which = random_below(&model->random, sizeof(OPERATIONS) / sizeof(OPERATIONS[0]));
        int user = (int)random_below(&model->random, USERS);
        OPERATIONS[which](model, user, (int)random_below(&model->random, DEVICES));
        compare_with_model(model);
    }
    pass_and_reap(model, model->harness->backend->lease_window_ms);
    compare_with_model(model);
    size_t reasons[CALL_REASON_COUNT] = {0};
    for (size_t i = 0; i < model->count; i++) {
        assert_int_equal(model->calls[i].state, CALL_ENDED);
        reasons[model->calls[i].reason]++;
    }
    assert_true(reasons[CALL_REASON_HANGUP] && reasons[CALL_REASON_REJECTED] &&
                reasons[CALL_REASON_CANCELLED] && reasons[CALL_REASON_TIMEOUT] &&
                reasons[CALL_REASON_DISCONNECTED]);
}
