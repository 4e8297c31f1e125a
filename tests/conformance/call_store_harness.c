#include "conformance/call_store_harness.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { POLLS_MAX = 10000 };

struct call_device harness_device(const char *user, unsigned number, unsigned connection)
{
    static const char *const DEVICES[] = {"device-0", "device-1", "device-2", "device-3"};
    struct call_device device = {slice_of(user), slice_of(DEVICES[number]), {{0}}};
    device.conn_id.bytes[0] = (uint8_t)user[0];
    device.conn_id.bytes[1] = (uint8_t)number;
    memcpy(&device.conn_id.bytes[2], &connection, sizeof(connection));
    return device;
}

static struct slice copy_text(struct harness *harness, struct slice text)
{
    if (!text.data)
        return text;
    assert_true(harness->texts_len + text.len <= sizeof(harness->texts));
    char *copy = harness->texts + harness->texts_len;
    memcpy(copy, text.data, text.len);
    harness->texts_len += text.len;
    return (struct slice){copy, text.len};
}

static struct call copy_call(struct harness *harness, const struct call *call)
{
    struct call copy = *call;
    copy.id = copy_text(harness, call->id);
    copy.caller.user_id = copy_text(harness, call->caller.user_id);
    copy.caller.device_id = copy_text(harness, call->caller.device_id);
    copy.callee.user_id = copy_text(harness, call->callee.user_id);
    copy.callee.device_id = copy_text(harness, call->callee.device_id);
    return copy;
}

static void on_call_answered(void *arg, const struct call_answer *answer)
{
    struct harness *harness = arg;
    assert_false(harness->answered);
    harness->answered = true;
    harness->result = answer->result;
    harness->has_call = answer->call != NULL;
    if (answer->call)
        harness->call = copy_call(harness, answer->call);
}

static struct call_store *begin_operation(struct harness *harness)
{
    harness->answered = false;
    harness->texts_len = 0;
    harness->next_port = (harness->next_port + 1) % HARNESS_PORTS;
    return harness->ports[harness->next_port];
}

static void await_answer(struct harness *harness)
{
    for (int i = 0; i < POLLS_MAX && !harness->answered && harness->backend->poll; i++)
        harness->backend->poll(harness->backend->context);
    assert_true(harness->answered);
}

/* Checks that the answer has a call, unless its result excludes one. */
static enum call_result await_result(struct harness *harness)
{
    await_answer(harness);
    bool without = harness->result == CALL_NOT_FOUND || harness->result == CALL_CALLEE_BUSY ||
                   harness->result == CALL_ID_TAKEN || harness->result == CALL_UNAVAILABLE ||
                   harness->result == CALL_UNKNOWN;
    assert_int_equal(harness->has_call, !without);
    return harness->result;
}

enum call_result harness_request(struct harness *harness, const char *id, struct call_device caller,
                                 const char *callee)
{
    call_store_request(begin_operation(harness), slice_of(id), &caller, slice_of(callee),
                       on_call_answered, harness);
    return await_result(harness);
}

enum call_result harness_ring_unheard(struct harness *harness, const char *id,
                                      struct call_device caller, const char *callee)
{
    call_store_ring_unheard(begin_operation(harness), slice_of(id), &caller, slice_of(callee),
                            on_call_answered, harness);
    return await_result(harness);
}

enum call_result harness_declare(struct harness *harness, const char *id, struct call_device caller)
{
    call_store_declare(begin_operation(harness), slice_of(id), &caller, on_call_answered, harness);
    return await_result(harness);
}

enum call_result harness_answer(struct harness *harness, const char *id, struct call_device callee)
{
    call_store_answer(begin_operation(harness), slice_of(id), &callee, on_call_answered, harness);
    return await_result(harness);
}

enum call_result harness_reject(struct harness *harness, const char *id, const char *user)
{
    call_store_reject(begin_operation(harness), slice_of(id), slice_of(user), on_call_answered,
                      harness);
    return await_result(harness);
}

enum call_result harness_end(struct harness *harness, const char *id, const char *user)
{
    call_store_end(begin_operation(harness), slice_of(id), slice_of(user), on_call_answered,
                   harness);
    return await_result(harness);
}

enum call_result harness_get(struct harness *harness, const char *id, const char *user)
{
    call_store_get(begin_operation(harness), slice_of(id), slice_of(user), on_call_answered,
                   harness);
    return await_result(harness);
}

enum call_result harness_attach(struct harness *harness, struct call_device device)
{
    call_store_attach(begin_operation(harness), &device, on_call_answered, harness);
    return await_result(harness);
}

enum call_result harness_detach(struct harness *harness, struct call_device device)
{
    call_store_detach(begin_operation(harness), device.user_id, &device.conn_id, on_call_answered,
                      harness);
    return await_result(harness);
}

static void on_device_lost(void *arg, const struct ulid *conn_id)
{
    (void)conn_id;
    ((struct harness *)arg)->lost_count++;
}

bool harness_renew(struct harness *harness, struct call_device device)
{
    harness->lost_count = 0;
    call_store_renew(begin_operation(harness), &device, 1, on_device_lost, harness);
    if (harness->backend->settle)
        harness->backend->settle(harness->backend->context);
    return harness->lost_count == 0;
}

static void on_calls_reaped(void *arg, const struct call *ended, size_t count)
{
    struct harness *harness = arg;
    assert_false(harness->answered);
    harness->answered = true;
    harness->ended_count = count;
    for (size_t i = 0; i < count; i++)
        harness->ended[i] = copy_call(harness, &ended[i]);
}

size_t harness_reap(struct harness *harness, size_t max)
{
    call_store_reap(begin_operation(harness), max, on_calls_reaped, harness);
    await_answer(harness);
    for (size_t i = 0; i < harness->ended_count; i++)
        assert_int_equal(harness->ended[i].state, CALL_ENDED);
    return harness->ended_count;
}

void harness_pass(struct harness *harness, int64_t duration_ms)
{
    harness->backend->pass(harness->backend->context, duration_ms);
}
