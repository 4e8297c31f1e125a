/* Calls while memory runs out: every command is answered, and nobody stays in a call forever. */
#include "support/alloc_fault.h"
#include "support/call_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

struct cast {
    struct call_world world;
    struct device *alice, *bob, *bob_other;
};

static struct cast *open_cast(void)
{
    struct cast *cast = malloc(sizeof(*cast));
    assert_non_null(cast);
    call_world_open(&cast->world);
    fake_ledger_befriend(&cast->world.ledger, "alice", "bob");
    cast->alice = call_world_device(&cast->world, "alice", "phone", 0);
    cast->bob = call_world_device(&cast->world, "bob", "phone", 1);
    cast->bob_other = call_world_device(&cast->world, "bob", "desk", 0);
    return cast;
}

static void close_cast(struct cast **cast)
{
    call_world_close(&(*cast)->world);
    free(*cast);
    *cast = NULL;
}

/* Only a refusal because of missing memory is allowed. */
static bool done_or_busy(const struct cast *cast, bool done)
{
    assert_true(done || cast->world.code == ERROR_SERVER_BUSY ||
                cast->world.code == ERROR_SERVICE_UNAVAILABLE);
    return done;
}

/* After any failure: when both devices have left, no call and no in_call is left. */
static void expect_nothing_left(struct cast *cast)
{
    call_world_disconnect(cast->alice);
    call_world_disconnect(cast->bob);
    call_world_pass(&cast->world, CALL_WORLD_RING_MS + CALL_WORLD_WINDOW_MS);
    assert_false(call_world_in_call(&cast->world, "alice"));
    assert_false(call_world_in_call(&cast->world, "bob"));
    assert_int_equal(call_world_metric(&cast->world, METRIC_CALLS_ACTIVE), 0);
}

static void a_call_survives_any_failed_allocation(void **state)
{
    (void)state;
    for (size_t n = 1, failed = 1; failed > 0; n++) {
        struct cast *cast = open_cast();
        alloc_fault_after(n);
        bool ringing = done_or_busy(cast, call_world_request(cast->alice, "bob", "c"));
        bool accepted = ringing && done_or_busy(cast, call_world_accept(cast->bob, "c"));
        if (accepted)
            done_or_busy(cast, call_world_signal(cast->alice, "c", "1"));
        failed = alloc_fault_off();
        call_world_pass(&cast->world, CALL_WORLD_TICK_MS);
        assert_int_equal(call_world_in_call(&cast->world, "alice"), accepted);
        assert_int_equal(call_world_in_call(&cast->world, "bob"), accepted);
        expect_nothing_left(cast);
        close_cast(&cast);
    }
}

static void in_call_is_cleared_without_memory(void **state)
{
    (void)state;
    for (size_t n = 1, failed = 1; failed > 0; n++) {
        struct cast *cast = open_cast();
        assert_true(call_world_request(cast->alice, "bob", "c"));
        assert_true(call_world_accept(cast->bob, "c"));
        alloc_fault_from(n);
        bool ended = done_or_busy(cast, call_world_end(cast->bob, "c"));
        failed = alloc_fault_off();
        call_world_pass(&cast->world, CALL_WORLD_TICK_MS);
        assert_int_equal(call_world_in_call(&cast->world, "alice"), !ended);
        assert_int_equal(call_world_in_call(&cast->world, "bob"), !ended);
        expect_nothing_left(cast);
        close_cast(&cast);
    }
}

/* A connection that cannot be bound is detached. */
static void a_reconnect_survives_any_failed_allocation(void **state)
{
    (void)state;
    for (size_t n = 1, failed = 1; failed > 0; n++) {
        struct cast *cast = open_cast();
        assert_true(call_world_request(cast->alice, "bob", "c"));
        assert_true(call_world_accept(cast->bob, "c"));
        call_world_disconnect(cast->bob);
        struct call_device back = {SLICE("bob"), SLICE("phone"), {{9, 9}}};
        alloc_fault_after(n);
        call_plane_attach(&cast->bob->gateway->calls, &back);
        failed = alloc_fault_off();
        call_world_pass(&cast->world, CALL_WORLD_GRACE_MS);
        assert_false(call_world_in_call(&cast->world, "alice"));
        call_world_connect(cast->bob);
        expect_nothing_left(cast);
        close_cast(&cast);
    }
}

static void a_store_is_made_completely_or_not_at_all(void **state)
{
    (void)state;
    for (size_t n = 1, failed = 1; failed > 0; n++) {
        alloc_fault_after(n);
        struct memory_calls *calls = memory_calls_make(&(struct memory_calls_options){0});
        struct clock clock = {0};
        struct call_store *store = calls ? memory_calls_store(calls, &clock) : NULL;
        failed = alloc_fault_off();
        assert_int_equal(failed, !store);
        call_store_free(&store);
        memory_calls_free(&calls);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_survives_any_failed_allocation),
        cmocka_unit_test(in_call_is_cleared_without_memory),
        cmocka_unit_test(a_reconnect_survives_any_failed_allocation),
        cmocka_unit_test(a_store_is_made_completely_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
