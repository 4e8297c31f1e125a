/*
 * Random operations of three users with three devices each, beside a model that is too simple to be
 * wrong: one record per call, looked through from end to end. What the store answers, the model must
 * have foreseen; at the end everything that rang has ended.
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
    struct suite_world *world;
    struct random random;
    struct model_call calls[CALLS_MAX];
    size_t count;
    int64_t now_ms;
    unsigned next_connection;
};

/* The call a user is in; *side is which party. NULL: none. */
static struct model_call *call_of(struct model *model, int user, int *side)
{
    for (size_t i = 0; i < model->count; i++)
        for (*side = 0; *side < 2; ++*side)
            if (model->calls[i].state != CALL_ENDED && model->calls[i].parties[*side].user == user)
                return &model->calls[i];
    return NULL;
}

static bool uses(const struct model_party *party, int user, int device)
{
    return party->user == user && party->device == device;
}

static void hold(struct model *model, struct model_party *party, int device, unsigned connection)
{
    party->device = device;
    party->connection = connection;
    party->attached = true;
    party->due_at_ms = model->now_ms + model->world->backend->lease_window_ms;
}

static void end_model(struct model_call *call, enum call_reason reason)
{
    call->state = CALL_ENDED;
    call->reason = reason;
}

static void accept_model(struct model *model, struct model_call *call, int device,
                         unsigned connection)
{
    call->state = CALL_ACCEPTED;
    call->answers++;
    assert_int_equal(call->answers, 1);
    hold(model, &call->parties[1], device, connection);
}

static struct model_call *add_call(struct model *model, int caller, int callee, int device,
                                   unsigned connection)
{
    struct model_call *call = &model->calls[model->count];
    snprintf(call->id, sizeof(call->id), "call-%zu", model->count++);
    call->state = CALL_RINGING;
    call->parties[0].user = caller;
    call->parties[1] = (struct model_party){.user = callee, .device = -1};
    call->ring_until_ms = model->now_ms + model->world->backend->ring_timeout_ms;
    hold(model, &call->parties[0], device, connection);
    return call;
}

/* ---- operations: each foresees the answer, asks, and changes the model likewise ---- */

static void do_request(struct model *model, int user, int device)
{
    int other = (int)random_below(&model->random, USERS), side, other_side;
    if (other == user)
        return;
    unsigned connection = model->next_connection++;
    struct model_call *own = call_of(model, user, &side);
    struct model_call *theirs = call_of(model, other, &other_side);
    bool glare = own && own == theirs && side == 1 && own->state == CALL_RINGING;
    enum call_result wanted = own      ? glare ? CALL_GLARE : CALL_CALLER_BUSY
                              : theirs ? CALL_CALLEE_BUSY
                                       : CALL_DONE;
    char id[32];
    snprintf(id, sizeof(id), "call-%zu", model->count);
    assert_int_equal(suite_request(model->world, id,
                                   suite_device(NAMES[user], (unsigned)device, connection),
                                   NAMES[other]),
                     wanted);
    if (wanted == CALL_DONE)
        add_call(model, user, other, device, connection);
    else if (wanted == CALL_GLARE)
        accept_model(model, own, device, connection);
}

static void do_declare(struct model *model, int user, int device)
{
    int side;
    char id[32];
    snprintf(id, sizeof(id), "call-%zu", model->count);
    unsigned connection = model->next_connection++;
    bool busy = call_of(model, user, &side) != NULL;
    assert_int_equal(
        suite_declare(model->world, id, suite_device(NAMES[user], (unsigned)device, connection)),
        busy ? CALL_CALLER_BUSY : CALL_DONE);
    if (!busy)
        add_call(model, user, -1, device, connection)->state = CALL_ACCEPTED;
}

static void do_answer(struct model *model, int user, int device)
{
    int side;
    struct model_call *call = call_of(model, user, &side);
    unsigned connection = model->next_connection++;
    enum call_result wanted = CALL_DONE;
    if (!call)
        wanted = CALL_NOT_FOUND;
    else if (call->state == CALL_ACCEPTED)
        wanted =
            side == 1 && uses(&call->parties[1], user, device) ? CALL_REPEATED : CALL_WRONG_STATE;
    else if (side == 0)
        wanted = CALL_WRONG_PARTY;
    assert_int_equal(suite_answer(model->world, call ? call->id : NULL,
                                  suite_device(NAMES[user], (unsigned)device, connection)),
                     wanted);
    if (wanted == CALL_DONE)
        accept_model(model, call, device, connection);
}

static void do_reject(struct model *model, int user, int device)
{
    (void)device;
    int side;
    struct model_call *call = call_of(model, user, &side);
    enum call_result wanted = CALL_NOT_FOUND;
    if (call && call->state == CALL_ACCEPTED)
        wanted = CALL_WRONG_STATE;
    else if (call)
        wanted = side == 0 ? CALL_WRONG_PARTY : CALL_DONE;
    assert_int_equal(suite_reject(model->world, call ? call->id : NULL, NAMES[user]), wanted);
    if (wanted == CALL_DONE)
        end_model(call, CALL_REASON_REJECTED);
}

static void do_end(struct model *model, int user, int device)
{
    (void)device;
    int side;
    struct model_call *call = call_of(model, user, &side);
    assert_int_equal(suite_end(model->world, call ? call->id : NULL, NAMES[user]),
                     call ? CALL_DONE : CALL_NOT_FOUND);
    if (!call)
        return;
    end_model(call, call->state == CALL_ACCEPTED ? CALL_REASON_HANGUP
                    : side == 0                  ? CALL_REASON_CANCELLED
                                                 : CALL_REASON_REJECTED);
    assert_int_equal(model->world->call.reason, call->reason);
}

static void do_detach(struct model *model, int user, int device)
{
    int side;
    struct model_call *call = call_of(model, user, &side);
    struct model_party *own = call ? &call->parties[side] : NULL;
    bool holds = own && own->attached && own->device == device;
    unsigned connection = holds ? own->connection : model->next_connection++;
    assert_int_equal(
        suite_detach(model->world, suite_device(NAMES[user], (unsigned)device, connection)),
        holds ? CALL_DONE : CALL_NOT_FOUND);
    if (!holds)
        return;
    own->attached = false;
    own->due_at_ms = model->now_ms + model->world->backend->reconnect_grace_ms;
}

static void do_attach(struct model *model, int user, int device)
{
    int side;
    struct model_call *call = call_of(model, user, &side);
    unsigned connection = model->next_connection++;
    enum call_result wanted = CALL_NOT_FOUND;
    if (call && uses(&call->parties[side], user, device))
        wanted = CALL_DONE;
    else if (call)
        wanted = call->state == CALL_RINGING && side == 1 ? CALL_RINGS : CALL_ELSEWHERE;
    assert_int_equal(
        suite_attach(model->world, suite_device(NAMES[user], (unsigned)device, connection)),
        wanted);
    if (wanted == CALL_DONE)
        hold(model, &call->parties[side], device, connection);
}

static void do_renew(struct model *model, int user, int device)
{
    int side;
    struct model_call *call = call_of(model, user, &side);
    struct model_party *own = call ? &call->parties[side] : NULL;
    bool holds = own && uses(own, user, device);
    unsigned connection = holds ? own->connection : model->next_connection++;
    assert_int_equal(
        suite_renew(model->world, suite_device(NAMES[user], (unsigned)device, connection)), holds);
    if (holds)
        hold(model, own, device, connection);
}

/* Time passes, and what is due ends: in the store as in the model. */
static bool reap_model(struct model *model, struct model_call *call)
{
    bool lost = false;
    for (int side = 0; side < 2; side++) {
        const struct model_party *party = &call->parties[side];
        lost |= party->user >= 0 && party->device >= 0 && party->due_at_ms <= model->now_ms;
    }
    if (call->state == CALL_RINGING && call->ring_until_ms <= model->now_ms)
        end_model(call, CALL_REASON_TIMEOUT);
    else if (call->state != CALL_ENDED && lost)
        end_model(call, CALL_REASON_DISCONNECTED);
    else
        return false;
    return true;
}

static void expect_ended(const struct suite_world *world, const struct model_call *call)
{
    for (size_t i = 0; i < world->ended_count; i++)
        if (slice_is(world->ended[i].id, call->id)) {
            assert_int_equal(world->ended[i].reason, call->reason);
            return;
        }
    fail_msg("%s did not end", call->id);
}

static void pass(struct model *model, int64_t duration_ms)
{
    size_t ended = 0;
    suite_pass(model->world, duration_ms);
    model->now_ms += duration_ms;
    suite_reap(model->world, CALL_REAP_MAX);
    for (size_t i = 0; i < model->count; i++)
        if (reap_model(model, &model->calls[i])) {
            expect_ended(model->world, &model->calls[i]);
            ended++;
        }
    assert_int_equal(model->world->ended_count, ended);
}

static void do_pass(struct model *model, int user, int device)
{
    (void)user;
    (void)device;
    const struct call_store_suite_backend *backend = model->world->backend;
    bool is_long = random_below(&model->random, 8) == 0;
    int64_t most_ms = is_long ? backend->ring_timeout_ms * 2 : backend->reconnect_grace_ms;
    pass(model, (int64_t)random_below(&model->random, (uint64_t)most_ms));
}

/* What a user sees of calls is what the model has. */
static void compare(struct model *model)
{
    for (int user = 0; user < USERS; user++) {
        int side;
        struct model_call *call = call_of(model, user, &side);
        assert_int_equal(suite_get(model->world, NULL, NAMES[user]),
                         call ? CALL_DONE : CALL_NOT_FOUND);
        if (!call)
            continue;
        assert_true(slice_is(model->world->call.id, call->id));
        assert_int_equal(model->world->call.state, call->state);
    }
}

static struct model the_model; /* large, and of one test at a time */

void call_store_suite_follows_a_model(void **state)
{
    static void (*const OPERATIONS[])(struct model *, int, int) = {
        do_request, do_request, do_declare, do_answer, do_answer, do_reject, do_end,
        do_detach,  do_attach,  do_attach,  do_renew,  do_renew,  do_pass,   do_pass,
    };
    struct model *model = &the_model;
    *model = (struct model){.world = *state, .next_connection = 1};
    random_init_seeded(&model->random, 20240229);
    for (int step = 0; step < STEPS; step++) {
        size_t which = random_below(&model->random, sizeof(OPERATIONS) / sizeof(OPERATIONS[0]));
        int user = (int)random_below(&model->random, USERS);
        OPERATIONS[which](model, user, (int)random_below(&model->random, DEVICES));
        compare(model);
    }
    pass(model, model->world->backend->lease_window_ms);
    compare(model);
    size_t reasons[CALL_REASON_COUNT] = {0};
    for (size_t i = 0; i < model->count; i++) {
        assert_int_equal(model->calls[i].state, CALL_ENDED);
        reasons[model->calls[i].reason]++;
    }
    assert_true(reasons[CALL_REASON_HANGUP] && reasons[CALL_REASON_REJECTED] &&
                reasons[CALL_REASON_CANCELLED] && reasons[CALL_REASON_TIMEOUT] &&
                reasons[CALL_REASON_DISCONNECTED]);
}
