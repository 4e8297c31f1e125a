/* Delivery without memory: whoever waits is answered once, events are whole or not sent, nothing leaks. */
#include "routing/delivery_testing.h"

#include "support/alloc_fault.h"

static const struct slice users[] = {{"alice", 5}, {"bob", 3}};
static const struct message message = {.type = MESSAGE_DELIVERY, .data = {"{\"a\":1}", 7}};

static void sending_answers_once_and_sends_only_whole_events(void **state)
{
    struct office *office = *state;
    size_t failed = 1;
    for (size_t n = 1; failed > 0; n++) {
        office->published_count = 0;
        office->sent = -1;
        alloc_fault_after(n);
        delivery_send_then(&office->delivery, users, 2, &message, NULL, office_done, office);
        failed = alloc_fault_off();
        assert_int_not_equal(office->sent, -1);
        for (size_t i = 0; i < office->published_count; i++)
            assert_non_null(
                strstr(office->payloads[i], "\"fields\":{\"data\":{\"a\":1}},\"id\":\""));
        if (failed == 0)
            assert_int_equal(office->published_count, 2);
        assert_true(n < 100);
    }
}

/* A broadcast names everybody or nobody, whether the answer comes at once or late. */
static void a_broadcast_is_whole(void **state)
{
    struct office *office = *state;
    size_t failed = 1;
    office->store_is_down = true;
    for (size_t n = 1; failed > 0; n++) {
        office->store_is_late = n % 2;
        office->published_count = 0;
        office->late_done = NULL;
        office->sent = -1;
        alloc_fault_after(n / 2 + 1);
        delivery_send_then(&office->delivery, users, 2, &message, NULL, office_done, office);
        if (office->late_done)
            office_answer(office);
        failed = alloc_fault_off();
        assert_int_equal(office->published_count, office->sent);
        if (office->sent)
            assert_non_null(strstr(office->payloads[0], "\"users\":[\"alice\",\"bob\"]}"));
        assert_true(n < 100);
    }
}

static void so_do_sending_to_a_device_and_closing(void **state)
{
    struct office *office = *state;
    size_t failed = 1;
    for (size_t n = 1; failed > 0; n++) {
        office->published_count = 0;
        alloc_fault_after(n);
        delivery_send_device(&office->delivery, users[1], SLICE("phone"), &message);
        delivery_close(&office->delivery, SLICE("gw-2"), users[0], &office->alice_phone.conn_id);
        failed = alloc_fault_off();
        assert_true(failed > 0 || office->published_count == 2);
        assert_true(n < 100);
    }
}

static void receiving_loses_at_most_the_event(void **state)
{
    struct office *office = *state;
    struct slice payload =
        SLICE("{\"kind\":\"event\",\"users\":[\"bob\"],\"type\":\"t\",\"fields\":{\"a\":1}}");
    alloc_fault_after(1);
    delivery_received(&office->delivery, payload);
    assert_int_equal(alloc_fault_off(), 1);
    assert_int_equal(office->bob_phone.got, 0);
    delivery_received(&office->delivery, payload);
    assert_int_equal(office->bob_phone.got, 1);
}

#define IN_OFFICE(test) cmocka_unit_test_setup_teardown(test, office_begin, office_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_OFFICE(sending_answers_once_and_sends_only_whole_events),
        IN_OFFICE(a_broadcast_is_whole),
        IN_OFFICE(so_do_sending_to_a_device_and_closing),
        IN_OFFICE(receiving_loses_at_most_the_event),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
