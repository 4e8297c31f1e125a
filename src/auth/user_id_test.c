#include "auth/user_id.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h requires the four headers above. */
#include <cmocka.h>

static void accepts_any_printable_text(void **state)
{
    (void)state;
    assert_true(user_id_valid(SLICE("a")));
    assert_true(user_id_valid(SLICE("alice@example.com {x} / ?")));
    assert_true(user_id_valid(SLICE("J\xc3\xbcrgen \xf0\x9f\x90\xa2")));
    assert_true(user_id_valid(SLICE("no-break\xc2\xa0space"))); /* U+00A0, the first after C1 */
}

static void bounds_the_length(void **state)
{
    (void)state;
    char text[USER_ID_BYTES_MAX + 1];
    memset(text, 'x', sizeof(text));
    assert_false(user_id_valid((struct slice){text, 0}));
    assert_true(user_id_valid((struct slice){text, USER_ID_BYTES_MAX}));
    assert_false(user_id_valid((struct slice){text, USER_ID_BYTES_MAX + 1}));
}

static void refuses_control_characters(void **state)
{
    (void)state;
    assert_false(user_id_valid(SLICE("a\0b")));
    assert_false(user_id_valid(SLICE("a\nb")));
    assert_false(user_id_valid(SLICE("\x1f")));
    assert_false(user_id_valid(SLICE("a\x7f")));
    assert_false(user_id_valid(SLICE("a\xc2\x80")));
    assert_false(user_id_valid(SLICE("\xc2\x9f"
                                     "b")));
}

static void refuses_invalid_utf8(void **state)
{
    (void)state;
    assert_false(user_id_valid(SLICE("\xff")));
    assert_false(user_id_valid(SLICE("a\xc3")));
    assert_false(user_id_valid(SLICE("\xc0\xaf")));
    assert_false(user_id_valid(SLICE("\xed\xa0\x80")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_any_printable_text),
        cmocka_unit_test(bounds_the_length),
        cmocka_unit_test(refuses_control_characters),
        cmocka_unit_test(refuses_invalid_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
