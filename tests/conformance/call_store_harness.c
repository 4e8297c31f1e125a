#include "conformance/call_store_harness.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { PATIENCE = 10000 }; /* polls */

struct call_device suite_device(const char *user, unsigned number, unsigned connection)
{
    static const char *const DEVICES[] = {"device-0", "device-1", "device-2", "device-3"};
    struct call_device device = {slice_of(user), slice_of(DEVICES[number]), {{0}}};
    device.conn_id.bytes[0] = (uint8_t)user[0];
    device.conn_id.bytes[1] = (uint8_t)number;
    memcpy(&device.conn_id.bytes[2], &connection, sizeof(connection));
    return device;
}

static struct slice keep(struct suite_world *world, struct slice text)
{
    if (!text.data)
        return text;
    assert_true(world->texts_len + text.len <= sizeof(world->texts));
    char *copy = world->texts + world->texts_len;
    memcpy(copy, text.data, text.len);
    world->texts_len += text.len;
    return (struct slice){copy, text.len};
}

static struct call keep_call(struct suite_world *world, const struct call *call)
{
    struct call copy = *call;
    copy.id = keep(world, call->id);
    copy.caller.user_id = keep(world, call->caller.user_id);
    copy.caller.device_id = keep(world, call->caller.device_id);
    copy.callee.user_id = keep(world, call->callee.user_id);
    copy.callee.device_id = keep(world, call->callee.device_id);
    return copy;
}

static void take_answer(void *arg, const struct call_answer *answer)
{
    struct suite_world *world = arg;
    assert_false(world->answered);
    world->answered = true;
    world->result = answer->result;
    world->has_call = answer->call != NULL;
    if (answer->call)
        world->call = keep_call(world, answer->call);
}

static struct call_store *begin(struct suite_world *world)
{
    world->answered = false;
    world->texts_len = 0;
    world->next_port = (world->next_port + 1) % SUITE_PORTS;
    return world->ports[world->next_port];
}

static void wait(struct suite_world *world)
{
    for (int i = 0; i < PATIENCE && !world->answered && world->backend->poll; i++)
        world->backend->poll(world->backend->context);
    assert_true(world->answered);
}

/* Every answer shows a call, or none, as its result says. */
static enum call_result result(struct suite_world *world)
{
    wait(world);
    bool without = world->result == CALL_NOT_FOUND || world->result == CALL_CALLEE_BUSY ||
                   world->result == CALL_ID_TAKEN || world->result == CALL_UNAVAILABLE ||
                   world->result == CALL_UNKNOWN;
    assert_int_equal(world->has_call, !without);
    return world->result;
}

enum call_result suite_request(struct suite_world *world, const char *id, struct call_device caller,
                               const char *callee)
{
    call_store_request(begin(world), slice_of(id), &caller, slice_of(callee), take_answer, world);
    return result(world);
}

enum call_result suite_declare(struct suite_world *world, const char *id, struct call_device caller)
{
    call_store_declare(begin(world), slice_of(id), &caller, take_answer, world);
    return result(world);
}

enum call_result suite_answer(struct suite_world *world, const char *id, struct call_device callee)
{
    call_store_answer(begin(world), slice_of(id), &callee, take_answer, world);
    return result(world);
}

enum call_result suite_reject(struct suite_world *world, const char *id, const char *user)
{
    call_store_reject(begin(world), slice_of(id), slice_of(user), take_answer, world);
    return result(world);
}

enum call_result suite_end(struct suite_world *world, const char *id, const char *user)
{
    call_store_end(begin(world), slice_of(id), slice_of(user), take_answer, world);
    return result(world);
}

enum call_result suite_get(struct suite_world *world, const char *id, const char *user)
{
    call_store_get(begin(world), slice_of(id), slice_of(user), take_answer, world);
    return result(world);
}

enum call_result suite_attach(struct suite_world *world, struct call_device device)
{
    call_store_attach(begin(world), &device, take_answer, world);
    return result(world);
}

enum call_result suite_detach(struct suite_world *world, struct call_device device)
{
    call_store_detach(begin(world), device.user_id, &device.conn_id, take_answer, world);
    return result(world);
}

static void take_lost(void *arg, const struct ulid *conn_id)
{
    (void)conn_id;
    ((struct suite_world *)arg)->lost_count++;
}

bool suite_renew(struct suite_world *world, struct call_device device)
{
    world->lost_count = 0;
    call_store_renew(begin(world), &device, 1, take_lost, world);
    if (world->backend->settle)
        world->backend->settle(world->backend->context);
    return world->lost_count == 0;
}

static void take_ended(void *arg, const struct call *ended, size_t count)
{
    struct suite_world *world = arg;
    assert_false(world->answered);
    world->answered = true;
    world->ended_count = count;
    for (size_t i = 0; i < count; i++)
        world->ended[i] = keep_call(world, &ended[i]);
}

size_t suite_reap(struct suite_world *world, size_t max)
{
    call_store_reap(begin(world), max, take_ended, world);
    wait(world);
    for (size_t i = 0; i < world->ended_count; i++)
        assert_int_equal(world->ended[i].state, CALL_ENDED);
    return world->ended_count;
}

void suite_pass(struct suite_world *world, int64_t duration_ms)
{
    world->backend->pass(world->backend->context, duration_ms);
}
