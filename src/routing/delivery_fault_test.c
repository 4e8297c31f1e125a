/* Delivery when out of memory: the completion runs once, events are sent whole or not at all, nothing leaks. */
#include "routing/delivery_testing.h"

#include "support/alloc_fault.h"

static const struct slice users[] = {{"alice", 5}, {"bob", 3}};
static const struct message message = {.type = MESSAGE_DELIVERY, .data = {"{\"a\":1}", 7}};

static void sending_completes_once_and_publishes_whole_events_only(void **state)
{
    struct delivery_fixture *fixture = *state;
    size_t failed = 1;
    for (size_t n = 1; failed > 0; n++) {
        fixture->published_count = 0;
        fixture->result = -1;
        alloc_fault_after(n);
        delivery_send_then(&fixture->delivery, users, 2, &message, NULL, fixture_done, fixture);
        failed = alloc_fault_off();
        assert_int_not_equal(fixture->result, -1);
        for (size_t i = 0; i < fixture->published_count; i++)
            assert_non_null(
                strstr(fixture->payloads[i], "\"fields\":{\"data\":{\"a\":1}},\"id\":\""));
        if (failed == 0)
            assert_int_equal(fixture->published_count, 2);
        assert_true(n < 100);
    }
}

/* Whether the store answers at once or late. */
static void broadcast_names_all_users_or_is_not_sent(void **state)
{
    struct delivery_fixture *fixture = *state;
    size_t failed = 1;
    fixture->store_is_down = true;
    for (size_t n = 1; failed > 0; n++) {
        fixture->store_is_late = n % 2;
        fixture->published_count = 0;
        fixture->late_done = NULL;
        fixture->result = -1;
        alloc_fault_after(n / 2 + 1);
        delivery_send_then(&fixture->delivery, users, 2, &message, NULL, fixture_done, fixture);
        if (fixture->late_done)
            fixture_answer(fixture);
        failed = alloc_fault_off();
        assert_int_equal(fixture->published_count, fixture->result == DELIVERY_SENT);
        if (fixture->result == DELIVERY_SENT)
            assert_non_null(strstr(fixture->payloads[0], "\"users\":[\"alice\",\"bob\"]}"));
        assert_true(n < 100);
    }
}

static void sending_to_a_device_and_closing_leak_nothing(void **state)
{
    struct delivery_fixture *fixture = *state;
    size_t failed = 1;
    for (size_t n = 1; failed > 0; n++) {
        fixture->published_count = 0;
        alloc_fault_after(n);
        delivery_send_device(&fixture->delivery, users[1], SLICE("phone"), &message);
        delivery_close(&fixture->delivery, SLICE("gw-2"), users[0], &fixture->alice_phone.conn_id,
                       CLOSING_ADMIN);
        failed = alloc_fault_off();
        assert_true(failed > 0 || fixture->published_count == 2);
        assert_true(n < 100);
    }
}

static void receiving_loses_at_most_one_event(void **state)
{
    struct delivery_fixture *fixture = *state;
    struct slice payload =
        SLICE("{\"kind\":\"event\",\"users\":[\"bob\"],\"type\":\"t\",\"fields\":{\"a\":1}}");
    alloc_fault_after(1);
    fixture_receive(fixture, payload);
    assert_int_equal(alloc_fault_off(), 1);
    assert_int_equal(fixture->bob_phone.got, 0);
    fixture_receive(fixture, payload);
    assert_int_equal(fixture->bob_phone.got, 1);
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, fixture_begin, fixture_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(sending_completes_once_and_publishes_whole_events_only),
        WITH_FIXTURE(broadcast_names_all_users_or_is_not_sent),
        WITH_FIXTURE(sending_to_a_device_and_closing_leak_nothing),
        WITH_FIXTURE(receiving_loses_at_most_one_event),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
