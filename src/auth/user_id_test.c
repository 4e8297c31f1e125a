#include "auth/user_id.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h requires the four headers above. */
#include <cmocka.h>

static void printable_user_id_is_valid(void **state)
{
    (void)state;
    assert_true(user_id_valid(SLICE("a")));
    assert_true(user_id_valid(SLICE("alice@example.com {x} / ?")));
    assert_true(user_id_valid(SLICE("J\xc3\xbcrgen \xf0\x9f\x90\xa2")));
    assert_true(user_id_valid(SLICE("no-break\xc2\xa0space"))); /* U+00A0, the first after C1 */
}

static void user_id_length_is_bounded(void **state)
{
    (void)state;
    char text[USER_ID_BYTES_MAX + 1];
    memset(text, 'x', sizeof(text));
    assert_false(user_id_valid((struct slice){text, 0}));
    assert_true(user_id_valid((struct slice){text, USER_ID_BYTES_MAX}));
    assert_false(user_id_valid((struct slice){text, USER_ID_BYTES_MAX + 1}));
}

static void user_id_with_control_characters_is_invalid(void **state)
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

static void user_id_with_invalid_utf8_is_invalid(void **state)
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
        cmocka_unit_test(printable_user_id_is_valid),
        cmocka_unit_test(user_id_length_is_bounded),
        cmocka_unit_test(user_id_with_control_characters_is_invalid),
        cmocka_unit_test(user_id_with_invalid_utf8_is_invalid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
