#include "messages/message_cursor.h"

#include "support/script_ledger.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct fixture {
    struct script_ledger script;
    struct message_plane plane;
    uint64_t stored;
};

static void answer_cursor_put(void *arg, struct ledger_request *request)
{
    struct fixture *fixture = arg;
    fixture->stored = request->input.sequence;
    request->outcome.cursor.changed = true;
}

static int set_up(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){0};
    script_ledger_init(&fixture.script);
    fixture.script.answer = answer_cursor_put;
    fixture.script.arg = &fixture;
    fixture.script.holding = true;
    fixture.plane.ledger = &fixture.script.client;
    assert_true(message_cursor_init(&fixture.plane, 1));
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    fixture->script.holding = false;
    script_ledger_turn(&fixture->script);
    assert_int_equal(fixture->plane.cursors.size, 0);
    message_cursor_free(&fixture->plane);
    return 0;
}

static void acknowledge(struct fixture *fixture, const char *device, uint64_t sequence)
{
    message_cursor_advance(&fixture->plane, SLICE("c"), SLICE("alice"), slice_of(device), sequence);
}

static void test_many_acknowledgements_of_a_device_become_two_writes(void **state)
{
    struct fixture *fixture = *state;
    for (uint64_t n = 1; n <= 1000; n++)
        acknowledge(fixture, "phone", n);
    acknowledge(fixture, "phone", 7); /* an older one changes nothing */
    assert_int_equal(fixture->script.submitted[LEDGER_CURSOR_PUT], 1);
    fixture->script.holding = false;
    script_ledger_turn(&fixture->script);
    assert_int_equal(fixture->script.submitted[LEDGER_CURSOR_PUT], 2);
    assert_int_equal(fixture->stored, 1000);
}

static void test_devices_are_stored_separately(void **state)
{
    struct fixture *fixture = *state;
    acknowledge(fixture, "phone", 1);
    acknowledge(fixture, "tablet", 2);
    message_cursor_advance(&fixture->plane, SLICE("ca"), SLICE("lice"), SLICE("phone"), 3);
    assert_int_equal(fixture->script.submitted[LEDGER_CURSOR_PUT], 3);
}

static void test_failed_write_is_dropped_and_the_next_is_sent(void **state)
{
    struct fixture *fixture = *state;
    acknowledge(fixture, "phone", 1);
    acknowledge(fixture, "phone", 2);
    fixture->script.status = LEDGER_UNAVAILABLE;
    script_ledger_turn(&fixture->script);
    assert_int_equal(fixture->plane.cursors.size, 0);
    fixture->script.status = LEDGER_OK;
    acknowledge(fixture, "phone", 3);
    assert_int_equal(fixture->script.submitted[LEDGER_CURSOR_PUT], 2);
}

static void test_acknowledgements_beyond_the_bound_are_dropped(void **state)
{
    struct fixture *fixture = *state;
    for (uint32_t n = 0; n < MESSAGE_CURSORS_MAX + 10; n++) {
        char device[8] = {(char)('a' + n % 16), (char)('a' + n / 16 % 16), (char)('a' + n / 256)};
        acknowledge(fixture, device, 1);
    }
    assert_int_equal(fixture->script.submitted[LEDGER_CURSOR_PUT], MESSAGE_CURSORS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_many_acknowledgements_of_a_device_become_two_writes,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_devices_are_stored_separately, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_failed_write_is_dropped_and_the_next_is_sent, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_acknowledgements_beyond_the_bound_are_dropped, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
