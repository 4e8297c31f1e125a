/* When memory runs out, the store is unavailable and keeps its state. */
#include "store/memory/state/memory_state.h"

#include "support/alloc_fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct memory_state_options OPTIONS = {
    .lease_window_ms = 1000, .offline_records_max = 100, .started_at_ms = 5};

struct answer {
    unsigned count;
    enum state_status status;
    enum presence_status presence;
    bool changed;
};

static void on_transition(void *arg, enum state_status status,
                          const struct state_transition *transition)
{
    struct answer *answer = arg;
    answer->count++;
    answer->status = status;
    answer->presence = transition->presence.status;
    answer->changed = transition->changed;
}

static void on_presences_read(void *arg, enum state_status status, const struct presence *presences,
                              size_t count)
{
    struct answer *answer = arg;
    answer->count++;
    answer->status = status;
    answer->presence = count ? presences[0].status : PRESENCE_UNKNOWN;
}

static void on_routes_found(void *arg, enum state_status status, const struct state_routes *routes)
{
    unsigned count = routes ? (unsigned)routes->count : 0;
    *(struct answer *)arg = (struct answer){.count = count, .status = status};
}

static struct answer open_lease(struct state_store *store, struct slice user, uint8_t number)
{
    struct answer answer = {0};
    struct lease lease = {
        .user_id = user, .device_id = SLICE("d"), .gateway_id = SLICE("g"), .conn_id = {{number}}};
    state_open(store, &lease, on_transition, &answer);
    assert_int_equal(answer.count, 1);
    return answer;
}

static struct answer read_user(struct state_store *store, struct slice user)
{
    struct answer answer = {0};
    state_read(store, &user, 1, on_presences_read, &answer);
    assert_int_equal(answer.count, 1);
    return answer;
}

static void store_is_not_made_when_an_allocation_fails(void **state)
{
    (void)state;
    for (size_t n = 1, failed = 1; failed > 0; n++) {
        struct clock clock = {0};
        alloc_fault_after(n);
        struct memory_state *memory = memory_state_make(&OPTIONS);
        struct state_store *store = memory ? memory_state_store(memory, &clock) : NULL;
        failed = alloc_fault_off();
        assert_int_equal(store == NULL, failed);
        state_store_free(&store);
        memory_state_free(&memory);
    }
}

static void failed_open_changes_nothing(void **state)
{
    (void)state;
    struct clock clock = {0};
    struct memory_state *memory = memory_state_make(&OPTIONS);
    struct state_store *store = memory_state_store(memory, &clock);
    uint8_t number = 1;
    for (size_t n = 1, failed = 1; failed > 0; n++, number++) {
        alloc_fault_after(n);
        struct answer answer = open_lease(store, SLICE("alice"), number);
        failed = alloc_fault_off();
        assert_int_equal(answer.status, failed ? STATE_UNAVAILABLE : STATE_OK);
        assert_int_equal(answer.changed, !failed);
        assert_int_equal(memory_state_count(memory, 0).leases, !failed);
        assert_int_equal(read_user(store, SLICE("alice")).presence,
                         failed ? PRESENCE_OFFLINE : PRESENCE_ONLINE);
    }
    assert_true(number > 3); /* at least two allocations failed: the lease's and the user's */
    state_store_free(&store);
    memory_state_free(&memory);
}

static void failed_read_is_unavailable(void **state)
{
    (void)state;
    struct clock clock = {0};
    struct memory_state *memory = memory_state_make(&OPTIONS);
    struct state_store *store = memory_state_store(memory, &clock);
    struct slice alice = SLICE("alice");
    open_lease(store, alice, 1);
    alloc_fault_after(1);
    assert_int_equal(read_user(store, alice).status, STATE_UNAVAILABLE);
    alloc_fault_off();
    for (size_t n = 1, failed = 1; failed > 0; n++) {
        struct answer answer = {0};
        alloc_fault_after(n);
        state_routes(store, &alice, 1, on_routes_found, &answer);
        failed = alloc_fault_off();
        assert_int_equal(answer.status, failed ? STATE_UNAVAILABLE : STATE_OK);
        assert_int_equal(answer.count, !failed);
    }
    state_store_free(&store);
    memory_state_free(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(store_is_not_made_when_an_allocation_fails),
        cmocka_unit_test(failed_open_changes_nothing),
        cmocka_unit_test(failed_read_is_unavailable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
