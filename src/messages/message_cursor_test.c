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

static void answer(void *arg, struct ledger_request *request)
{
    struct fixture *fixture = arg;
    fixture->stored = request->input.sequence;
    request->outcome.change.changed = true;
}

static int set_up(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){0};
    script_ledger_init(&fixture.script);
    fixture.script.answer = answer;
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

static void advance(struct fixture *fixture, const char *device, uint64_t sequence)
{
    message_cursor_advance(&fixture->plane, SLICE("c"), SLICE("alice"), slice_of(device), sequence);
}

static void test_a_storm_of_one_device_becomes_two_writes(void **state)
{
    struct fixture *fixture = *state;
    for (uint64_t n = 1; n <= 1000; n++)
        advance(fixture, "phone", n);
    advance(fixture, "phone", 7); /* late, and never back */
    assert_int_equal(fixture->script.asked[LEDGER_CURSOR_PUT], 1);
    fixture->script.holding = false;
    script_ledger_turn(&fixture->script);
    assert_int_equal(fixture->script.asked[LEDGER_CURSOR_PUT], 2);
    assert_int_equal(fixture->stored, 1000);
}

static void test_devices_do_not_mix(void **state)
{
    struct fixture *fixture = *state;
    advance(fixture, "phone", 1);
    advance(fixture, "tablet", 2);
    message_cursor_advance(&fixture->plane, SLICE("ca"), SLICE("lice"), SLICE("phone"), 3);
    assert_int_equal(fixture->script.asked[LEDGER_CURSOR_PUT], 3);
}

static void test_a_failure_is_forgotten_and_the_next_goes_out(void **state)
{
    struct fixture *fixture = *state;
    advance(fixture, "phone", 1);
    advance(fixture, "phone", 2);
    fixture->script.status = LEDGER_UNAVAILABLE;
    script_ledger_turn(&fixture->script);
    assert_int_equal(fixture->plane.cursors.size, 0);
    fixture->script.status = LEDGER_OK;
    advance(fixture, "phone", 3);
    assert_int_equal(fixture->script.asked[LEDGER_CURSOR_PUT], 2);
}

static void test_bounded(void **state)
{
    struct fixture *fixture = *state;
    for (uint32_t n = 0; n < MESSAGE_CURSORS_MAX + 10; n++) {
        char device[8] = {(char)('a' + n % 16), (char)('a' + n / 16 % 16), (char)('a' + n / 256)};
        advance(fixture, device, 1);
    }
    assert_int_equal(fixture->script.asked[LEDGER_CURSOR_PUT], MESSAGE_CURSORS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_storm_of_one_device_becomes_two_writes, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_devices_do_not_mix, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_failure_is_forgotten_and_the_next_goes_out, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_bounded, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
